/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/podspec.h"

#include "base/num.h"
#include "base/vec.h"
#include "kube/api/decode.h"

static const char *const effect_names[] = {"", "NoSchedule", "PreferNoSchedule", "NoExecute", NULL};

const char *taint_effect_name(enum taint_effect e)
{
    return effect_names[e];
}

/* Source: k8s.io/api/core/v1, Toleration.ToleratesTaint. */
bool toleration_tolerates(const struct toleration *t, const struct taint *taint)
{
    if (t->effect != TAINT_ANY_EFFECT && t->effect != taint->effect)
        return false;
    if (t->key && *t->key && (!taint->key || strcmp(t->key, taint->key) != 0))
        return false;
    if (t->exists)
        return true;
    if (!t->key || !*t->key)
        return false; /* an empty key needs Exists; the API server refuses anything else */
    return strcmp(t->value ? t->value : "", taint->value ? taint->value : "") == 0;
}

/* ---- Requests ---- */

VEC_DEFINE(vec_amount, struct resource_amount);

static int64_t *amount_of(struct vec_amount *v, const char *name)
{
    for (size_t i = 0; i < v->len; i++)
        if (strcmp(v->v[i].name, name) == 0)
            return &v->v[i].amount;
    vec_push(v, (struct resource_amount){.name = name});
    return &vec_last(v).amount;
}

static void add(struct vec_amount *to, const struct resource_amount *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t *a = amount_of(to, v[i].name);
        *a = num_add_sat(*a, v[i].amount);
    }
}

static void raise_to(struct vec_amount *to, const struct resource_amount *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t *a = amount_of(to, v[i].name);
        *a = MAX(*a, v[i].amount);
    }
}

/* A container's requests; a limit stands in where there is no request, as the API server's
 * defaulting does for objects that went through it. */
static void container_requests(const struct container *c, struct vec_amount *ret)
{
    vec_clear(ret);
    add(ret, c->requests.v, c->requests.n);
    for (uint32_t i = 0; i < c->limits.n; i++)
        if (!resource_list_has(&c->requests, c->limits.v[i].name))
            *amount_of(ret, c->limits.v[i].name) = c->limits.v[i].amount;
}

/* Init containers run one after another, each beside the sidecars that started before it; the
 * regular containers run beside all sidecars (KEP-753, "Resources calculation for scheduling"). */
static void container_sums(const struct pod_spec *s, struct vec_amount *ret)
{
    struct vec_amount one = {0}, sidecars = {0}, init = {0}, beside = {0};
    for (uint32_t i = 0; i < s->n_init_containers; i++) {
        container_requests(&s->init_containers[i], &one);
        if (s->init_containers[i].restart_always) {
            add(&sidecars, one.v, one.len);
            raise_to(&init, sidecars.v, sidecars.len);
            continue;
        }
        vec_clear(&beside);
        add(&beside, sidecars.v, sidecars.len);
        add(&beside, one.v, one.len);
        raise_to(&init, beside.v, beside.len);
    }
    for (uint32_t i = 0; i < s->n_containers; i++) {
        container_requests(&s->containers[i], &one);
        add(ret, one.v, one.len);
    }
    add(ret, sidecars.v, sidecars.len);
    raise_to(ret, init.v, init.len);
    vec_release(&one);
    vec_release(&sidecars);
    vec_release(&init);
    vec_release(&beside);
}

/* Pod-level requests replace the containers' sums for the resources they name (KEP-2837: cpu,
 * memory, hugepages); a pod-level limit stands in only where no container asks for anything. */
static void apply_pod_level(const struct pod_spec *s, struct vec_amount *v)
{
    for (uint32_t i = 0; i < s->pod_requests.n; i++)
        *amount_of(v, s->pod_requests.v[i].name) = s->pod_requests.v[i].amount;
    for (uint32_t i = 0; i < s->pod_limits.n; i++) {
        int64_t *a = amount_of(v, s->pod_limits.v[i].name);
        if (*a == 0 && !resource_list_has(&s->pod_requests, s->pod_limits.v[i].name))
            *a = s->pod_limits.v[i].amount;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct resource_amount *)a)->name,
                  ((const struct resource_amount *)b)->name);
}

struct resource_list pod_spec_requests(const struct pod_spec *s, struct arena *a)
{
    struct vec_amount v = {0};
    container_sums(s, &v);
    apply_pod_level(s, &v);
    add(&v, s->overhead.v, s->overhead.n);
    struct resource_list ret = {0};
    struct resource_amount *copy = ARENA_NEW_ARRAY(a, struct resource_amount, v.len);
    if (copy && v.len) {
        memcpy(copy, v.v, v.len * sizeof(*copy));
        qsort(copy, v.len, sizeof(*copy), by_name);
        ret = (struct resource_list){copy, (uint32_t)v.len};
    }
    vec_release(&v);
    return ret;
}

/* ---- Tables ---- */

const struct field fields_taint[] = {
    F(FIELD_TEXT, struct taint, key, "key"),
    F(FIELD_TEXT, struct taint, value, "value"),
    F_ENUM(struct taint, effect, "effect", effect_names),
    F(FIELD_TIME, struct taint, time_added, "timeAdded"),
    F_END,
};

static const struct field fields_toleration[] = {
    F(FIELD_TEXT, struct toleration, key, "key"),
    F(FIELD_TEXT, struct toleration, value, "value"),
    F_IS(struct toleration, exists, "operator", "Exists"),
    F_ENUM(struct toleration, effect, "effect", effect_names),
    F_HAS(FIELD_INT64, struct toleration, seconds, has_seconds, "tolerationSeconds"),
    F_END,
};

const struct field fields_node_selector_term[] = {
    F_LIST(struct node_selector_term, expressions, n_expressions, "matchExpressions",
           struct selector_requirement, fields_selector_requirement),
    F_LIST(struct node_selector_term, fields, n_fields, "matchFields", struct selector_requirement,
           fields_selector_requirement),
    F_END,
};

static const struct field fields_preferred_node[] = {
    F(FIELD_INT32, struct preferred_node_term, weight, "weight"),
    F_STRUCT(struct preferred_node_term, term, "preference", fields_node_selector_term),
    F_END,
};

static const struct field fields_pod_term[] = {
    F_POINTER(struct pod_affinity_term, selector, "labelSelector", struct label_selector,
              fields_label_selector),
    F_POINTER(struct pod_affinity_term, namespace_selector, "namespaceSelector",
              struct label_selector, fields_label_selector),
    F(FIELD_STRINGS, struct pod_affinity_term, namespaces, "namespaces"),
    F(FIELD_TEXT, struct pod_affinity_term, topology_key, "topologyKey"),
    F(FIELD_STRINGS, struct pod_affinity_term, match_label_keys, "matchLabelKeys"),
    F(FIELD_STRINGS, struct pod_affinity_term, mismatch_label_keys, "mismatchLabelKeys"),
    F_END,
};

static const struct field fields_weighted_pod_term[] = {
    F(FIELD_INT32, struct pod_affinity_term, weight, "weight"),
    F_INLINE("podAffinityTerm", fields_pod_term),
    F_END,
};

static const struct field fields_node_required[] = {
    F_LIST(struct affinity, node_required, n_node_required, "nodeSelectorTerms",
           struct node_selector_term, fields_node_selector_term),
    F_END,
};

static const struct field fields_node_affinity[] = {
    {.kind = FIELD_STRUCT,
     FIELD_NAMED("requiredDuringSchedulingIgnoredDuringExecution"),
     .sub = fields_node_required,
     .has_offset = offsetof(struct affinity, has_node_required)},
    F_LIST(struct affinity, node_preferred, n_node_preferred,
           "preferredDuringSchedulingIgnoredDuringExecution", struct preferred_node_term,
           fields_preferred_node),
    F_END,
};

static const struct field fields_pod_affinity[] = {
    F_LIST(struct affinity, pod_required, n_pod_required,
           "requiredDuringSchedulingIgnoredDuringExecution", struct pod_affinity_term,
           fields_pod_term),
    F_LIST(struct affinity, pod_preferred, n_pod_preferred,
           "preferredDuringSchedulingIgnoredDuringExecution", struct pod_affinity_term,
           fields_weighted_pod_term),
    F_END,
};

static const struct field fields_anti_affinity[] = {
    F_LIST(struct affinity, anti_required, n_anti_required,
           "requiredDuringSchedulingIgnoredDuringExecution", struct pod_affinity_term,
           fields_pod_term),
    F_LIST(struct affinity, anti_preferred, n_anti_preferred,
           "preferredDuringSchedulingIgnoredDuringExecution", struct pod_affinity_term,
           fields_weighted_pod_term),
    F_END,
};

static const struct field fields_affinity[] = {
    F_INLINE("nodeAffinity", fields_node_affinity),
    F_INLINE("podAffinity", fields_pod_affinity),
    F_INLINE("podAntiAffinity", fields_anti_affinity),
    F_END,
};

static const struct field fields_spread[] = {
    F(FIELD_TEXT, struct topology_spread, topology_key, "topologyKey"),
    F(FIELD_INT32, struct topology_spread, max_skew, "maxSkew"),
    F(FIELD_INT32, struct topology_spread, min_domains, "minDomains"),
    F_IS(struct topology_spread, schedule_anyway, "whenUnsatisfiable", "ScheduleAnyway"),
    F_IS(struct topology_spread, affinity_ignore, "nodeAffinityPolicy", "Ignore"),
    F_IS(struct topology_spread, taints_honor, "nodeTaintsPolicy", "Honor"),
    F_POINTER(struct topology_spread, selector, "labelSelector", struct label_selector,
              fields_label_selector),
    F(FIELD_STRINGS, struct topology_spread, match_label_keys, "matchLabelKeys"),
    F_END,
};

static const struct field fields_port[] = {
    F(FIELD_INT32, struct container_port, host_port, "hostPort"),
    F(FIELD_TEXT, struct container_port, host_ip, "hostIP"),
    F(FIELD_TEXT, struct container_port, protocol, "protocol"),
    F_END,
};

static const struct field fields_container_resources[] = {
    F(FIELD_RESOURCES, struct container, requests, "requests"),
    F(FIELD_RESOURCES, struct container, limits, "limits"),
    F_END,
};

static const struct field fields_secret_key[] = {
    F(FIELD_TEXT, struct env_var, secret, "name"),
    F(FIELD_TEXT, struct env_var, secret_key, "key"),
    F(FIELD_BOOL, struct env_var, optional, "optional"),
    F_END,
};

static const struct field fields_config_map_key[] = {
    F(FIELD_TEXT, struct env_var, config_map, "name"),
    F(FIELD_TEXT, struct env_var, config_map_key, "key"),
    F(FIELD_BOOL, struct env_var, optional, "optional"),
    F_END,
};

static const struct field fields_value_from[] = {
    F_INLINE("secretKeyRef", fields_secret_key),
    F_INLINE("configMapKeyRef", fields_config_map_key),
    F_END,
};

static const struct field fields_env[] = {
    F(FIELD_TEXT, struct env_var, name, "name"),
    F(FIELD_TEXT, struct env_var, value, "value"),
    F_INLINE("valueFrom", fields_value_from),
    F_END,
};

static const struct field fields_env_secret[] = {
    F(FIELD_TEXT, struct env_from, secret, "name"),
    F(FIELD_BOOL, struct env_from, optional, "optional"),
    F_END,
};

static const struct field fields_env_config_map[] = {
    F(FIELD_TEXT, struct env_from, config_map, "name"),
    F(FIELD_BOOL, struct env_from, optional, "optional"),
    F_END,
};

static const struct field fields_env_from[] = {
    F(FIELD_TEXT, struct env_from, prefix, "prefix"),
    F_INLINE("secretRef", fields_env_secret),
    F_INLINE("configMapRef", fields_env_config_map),
    F_END,
};

#define CONTAINER_FIELDS                                                                           \
    F(FIELD_TEXT, struct container, name, "name"),                                                 \
        F_INLINE("resources", fields_container_resources),                                         \
        F_LIST(struct container, host_ports, n_host_ports, "ports", struct container_port,         \
               fields_port),                                                                       \
        F_IS(struct container, restart_always, "restartPolicy", "Always")

static const struct field fields_container[] = {CONTAINER_FIELDS, F_END};

static const struct field fields_template_container[] = {
    CONTAINER_FIELDS,
    F_LIST(struct container, env, n_env, "env", struct env_var, fields_env),
    F_LIST(struct container, env_from, n_env_from, "envFrom", struct env_from, fields_env_from),
    F_END,
};

static const struct field fields_pvc_source[] = {F(FIELD_TEXT, struct pod_volume, pvc, "claimName"),
                                                 F_END};
static const struct field fields_claim_spec[] = {
    F(FIELD_TEXT, struct pod_volume, storage_class, "storageClassName"), F_END};
static const struct field fields_claim_template[] = {F_INLINE("spec", fields_claim_spec), F_END};
static const struct field fields_ephemeral[] = {
    {.kind = FIELD_STRUCT,
     FIELD_NAMED("volumeClaimTemplate"),
     .sub = fields_claim_template,
     .has_offset = offsetof(struct pod_volume, ephemeral)},
    F_END,
};

static const struct field fields_volume[] = {
    F(FIELD_TEXT, struct pod_volume, name, "name"),
    F_INLINE("persistentVolumeClaim", fields_pvc_source),
    F_INLINE("ephemeral", fields_ephemeral),
    F_END,
};

static const struct field fields_pod_resources[] = {
    F(FIELD_RESOURCES, struct pod_spec, pod_requests, "requests"),
    F(FIELD_RESOURCES, struct pod_spec, pod_limits, "limits"),
    F_END,
};

#define POD_SPEC_FIELDS(container_table)                                                           \
    F_PRESET(struct pod_spec, grace_s, 30), F(FIELD_TEXT, struct pod_spec, node_name, "nodeName"), \
        F(FIELD_TEXT, struct pod_spec, scheduler_name, "schedulerName"),                           \
        F(FIELD_TEXT, struct pod_spec, priority_class, "priorityClassName"),                       \
        F(FIELD_TEXT, struct pod_spec, runtime_class, "runtimeClassName"),                         \
        F(FIELD_TEXT, struct pod_spec, service_account, "serviceAccountName"),                     \
        F(FIELD_TEXT, struct pod_spec, restart_policy, "restartPolicy"),                           \
        F(FIELD_LABELS, struct pod_spec, node_selector, "nodeSelector"),                           \
        F_POINTER(struct pod_spec, affinity, "affinity", struct affinity, fields_affinity),        \
        F_LIST(struct pod_spec, tolerations, n_tolerations, "tolerations", struct toleration,      \
               fields_toleration),                                                                 \
        F_LIST(struct pod_spec, spreads, n_spreads, "topologySpreadConstraints",                   \
               struct topology_spread, fields_spread),                                             \
        F_LIST(struct pod_spec, containers, n_containers, "containers", struct container,          \
               container_table),                                                                   \
        F_LIST(struct pod_spec, init_containers, n_init_containers, "initContainers",              \
               struct container, container_table),                                                 \
        F_LIST(struct pod_spec, volumes, n_volumes, "volumes", struct pod_volume, fields_volume),  \
        F(FIELD_RESOURCES, struct pod_spec, overhead, "overhead"),                                 \
        F_INLINE("resources", fields_pod_resources),                                               \
        F(FIELD_NAMES, struct pod_spec, scheduling_gates, "schedulingGates"),                      \
        F(FIELD_NAMES, struct pod_spec, resource_claims, "resourceClaims"),                        \
        F_HAS(FIELD_INT32, struct pod_spec, priority, has_priority, "priority"),                   \
        F(FIELD_BOOL, struct pod_spec, host_network, "hostNetwork"),                               \
        F_IS(struct pod_spec, preemption_never, "preemptionPolicy", "Never"),                      \
        F(FIELD_INT64, struct pod_spec, grace_s, "terminationGracePeriodSeconds")

const struct field fields_pod_spec[] = {POD_SPEC_FIELDS(fields_container), F_END};
const struct field fields_pod_template_spec[] = {POD_SPEC_FIELDS(fields_template_container), F_END};
