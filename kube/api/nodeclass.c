/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/nodeclass.h"

#include "kube/api/decode.h"

static const struct field fields_status[] = {F_LIST(struct nodeclass, conditions.v, conditions.n,
                                                    "conditions", struct condition,
                                                    fields_condition),
                                             F_END};
static const struct field fields_nodeclass[] = {
    F_DERIVED(FIELD_TEXT, struct nodeclass, invalid),
    F_STRUCT(struct nodeclass, obj.meta, "metadata", fields_meta),
    F(FIELD_JSON, struct nodeclass, spec_json, "spec"),
    F_INLINE("status", fields_status),
    F_END,
};

const struct kind kind_sim_nodeclass = {"SimNodeClass",   "weft.sh", "v1alpha1",
                                        "simnodeclasses", false,     sizeof(struct nodeclass),
                                        fields_nodeclass, NULL};
const struct kind kind_ec2_nodeclass = {
    "EC2NodeClass",           "karpenter.k8s.aws", "v1", "ec2nodeclasses", false,
    sizeof(struct nodeclass), fields_nodeclass,    NULL};
const struct kind kind_gce_nodeclass = {"GCENodeClass",   "weft.sh", "v1alpha1",
                                        "gcenodeclasses", false,     sizeof(struct nodeclass),
                                        fields_nodeclass, NULL};

static int read_delay(const struct json_member *m, int64_t *ret, struct err *err)
{
    struct err why = ERR_INIT;
    if (m->value->type != JSON_STRING)
        return err_set(err, ERR_INVALID, "spec.%.*s: a duration such as 20s is needed",
                       STR_ARG(m->key));
    if (time_parse_duration(m->value->text, ret, &why) < 0)
        return err_set(err, ERR_INVALID, "spec.%.*s: %s", STR_ARG(m->key), why.msg);
    if (*ret < 0)
        return err_set(err, ERR_INVALID, "spec.%.*s: below 0", STR_ARG(m->key));
    return 0;
}

static int read_zones(const struct json *j, struct arena *a, struct string_list *ret,
                      struct err *err)
{
    if (j->type != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "spec.zones: a list is needed");
    const char **v = ARENA_NEW_ARRAY(a, const char *, j->n);
    for (size_t i = 0; v && i < j->n; i++) {
        if (j->items[i]->type != JSON_STRING || j->items[i]->text.len == 0)
            return err_set(err, ERR_INVALID, "spec.zones[%zu]: the name of a zone is needed", i);
        v[i] = arena_cstr(a, j->items[i]->text);
    }
    *ret = (struct string_list){v, v ? (uint32_t)j->n : 0};
    return 0;
}

int sim_nodeclass_decode(const struct nodeclass *c, struct arena *a, struct sim_nodeclass_spec *ret,
                         struct err *err)
{
    struct sim_nodeclass_spec s = {
        .launch_delay = 5 * NS_PER_S,
        .registration_delay = 20 * NS_PER_S,
        .ready_delay = 10 * NS_PER_S,
        .startup_taint_delay = 5 * NS_PER_S,
    };
    const struct json *spec = c->spec_json ? json_parse(a, str_from(c->spec_json), err) : NULL;
    if (c->spec_json && !spec)
        return -1;
    for (size_t i = 0; spec && spec->type == JSON_OBJECT && i < spec->n; i++) {
        const struct json_member *m = &spec->members[i];
        static const struct {
            const char *name;
            size_t offset;
        } delays[] = {
            {"launchDelay", offsetof(struct sim_nodeclass_spec, launch_delay)},
            {"registrationDelay", offsetof(struct sim_nodeclass_spec, registration_delay)},
            {"readyDelay", offsetof(struct sim_nodeclass_spec, ready_delay)},
            {"deviceDelay", offsetof(struct sim_nodeclass_spec, device_delay)},
            {"startupTaintDelay", offsetof(struct sim_nodeclass_spec, startup_taint_delay)},
        };
        size_t k = 0;
        while (k < ARRAY_LEN(delays) && !str_eq_c(m->key, delays[k].name))
            k++;
        if (k < ARRAY_LEN(delays)) {
            if (read_delay(m, (int64_t *)(void *)((char *)&s + delays[k].offset), err) < 0)
                return -1;
        } else if (str_eq_c(m->key, "zones")) {
            if (read_zones(m->value, a, &s.zones, err) < 0)
                return -1;
        } else {
            return err_set(err, ERR_INVALID, "spec.%.*s: no such field",
                           STR_ARG(str_sub(m->key, 0, 60)));
        }
    }
    *ret = s;
    return 0;
}
