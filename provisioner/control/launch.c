/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/launch.h"

#include "base/crypto.h"
#include "base/num.h"
#include "provisioner/control/body.h"
#include "provisioner/model/requirement.h"

struct launched {
    struct arena arena;
    struct instance i;
};

void launched_free(struct launched *l)
{
    if (l)
        arena_release(&l->arena);
    free(l);
}

static struct resource_list copy_resources(struct arena *a, const struct resource_list *l)
{
    struct resource_amount *v = ARENA_NEW_ARRAY(a, struct resource_amount, l->n);

    for (uint32_t i = 0; i < l->n; i++)
        v[i] = (struct resource_amount){arena_cstr(a, str_from(l->v[i].name)), l->v[i].amount};
    return (struct resource_list){v, l->n};
}

static const char *copy_text(struct arena *a, const char *s)
{
    return s ? arena_cstr(a, str_from(s)) : NULL;
}

static struct launched *launched_copy(const struct instance *i)
{
    struct launched *l = xcalloc(1, sizeof(*l));
    struct arena *a = &l->arena;

    l->i = *i;
    l->i.provider_id = copy_text(a, i->provider_id);
    l->i.instance_type = copy_text(a, i->instance_type);
    l->i.zone = copy_text(a, i->zone);
    l->i.image_id = copy_text(a, i->image_id);
    l->i.nodeclaim = l->i.nodepool = l->i.cluster = l->i.token = NULL;
    l->i.capacity = copy_resources(a, &i->capacity);
    l->i.allocatable = copy_resources(a, &i->allocatable);
    return l;
}

/* ---- Offerings and tokens as text ---- */

size_t launch_parse_offerings(struct arena *a, const char *text, struct launch_offering *ret,
                              size_t max)
{
    struct str rest = str_from(text), item, type, zone;
    size_t n = 0;

    while (n < max && str_split(&rest, ',', &item)) {
        enum capacity_type capacity;

        if (!str_split(&item, '/', &type) || !str_split(&item, '/', &zone) || type.len == 0 ||
            zone.len == 0 || capacity_type_parse(item, &capacity, NULL) < 0)
            continue;
        ret[n++] = (struct launch_offering){arena_cstr(a, type), arena_cstr(a, zone), capacity};
    }
    return n;
}

void launch_print_offerings(struct buf *out, const struct launch_offering *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s/%s/%s", i ? "," : "", v[i].instance_type, v[i].zone,
                   capacity_type_name(v[i].capacity_type));
}

void launch_token(char ret[65], const char *cluster_uid, const char *claim_uid, int64_t attempt,
                  const char *offerings)
{
    CLEANUP(buf_release) struct buf b = BUF_INIT;

    buf_printf(&b, "%s\n%s\n%lld\n%s", cluster_uid, claim_uid, (long long)attempt, offerings);
    crypto_sha256_hex(buf_view(&b), 64, ret);
}

/* ---- The attempt, written ahead ---- */

static void again(struct control *c, const char *name, const struct effect_answer *a)
{
    bool ok = !a->err || a->err->code == ERR_CONFLICT || a->err->code == ERR_NOT_FOUND;

    claims_finish(c, name, ok, !a->err);
    if (a->err && ok)
        queue_add_after(c->claim_queue, str_from(name), 200 * NS_PER_MS);
}

static void attempt_written(struct control *c, const char *name, const struct effect_answer *a)
{
    struct claim_memory *m = map_get(&c->claims, str_from(name));

    if (m && !a->err)
        m->launch_failed = false;
    again(c, name, a);
}

static void no_capacity(struct control *c, const struct nodeclaim *claim)
{
    control_event(c, &claim->obj, true, "InsufficientCapacityError",
                  "no capacity in any offering of this NodeClaim");
    if (!claims_delete(c, claim, "replace", "InsufficientCapacity",
                       "every offering of the plan was out of capacity", again))
        claims_finish(c, claim->obj.meta.name, true, false);
}

static size_t usable_offerings(struct control *c, const struct nodeclaim *claim, struct arena *a,
                               struct launch_offering *v)
{
    const char *text = labels_get(&claim->obj.meta.annotations, ANNOTATION_ALTERNATIVES);
    size_t n = 0, all = text ? launch_parse_offerings(a, text, v, LAUNCH_OFFERINGS_MAX) : 0;

    if (!text)
        all = provision_offerings_of(c, claim, a, v, LAUNCH_OFFERINGS_MAX);
    for (size_t i = 0; i < all; i++)
        if (!offers_blocked_until(&c->offers, &v[i], control_now(c)))
            v[n++] = v[i];
    return n;
}

void launch_attempt(struct control *c, struct nodeclaim *claim, struct claim_memory *m)
{
    const struct meta *meta = &claim->obj.meta;
    const char *before = labels_get(&meta->annotations, ANNOTATION_LAUNCH_ATTEMPT);
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    CLEANUP(buf_release) struct buf list = BUF_INIT, first = BUF_INIT, body = BUF_INIT;
    struct launch_offering v[LAUNCH_OFFERINGS_MAX];
    size_t n = usable_offerings(c, claim, &a, v);
    int64_t attempt = 0;
    struct json_writer w;
    char token[65], number[24];

    (void)m;
    if (n == 0) {
        no_capacity(c, claim);
        return;
    }
    if (before && labels_has(&meta->annotations, ANNOTATION_LAUNCH_TOKEN))
        (void)num_parse_range(str_from(before), 0, INT32_MAX, &attempt, NULL);
    snprintf(number, sizeof(number), "%lld", (long long)++attempt);
    launch_print_offerings(&list, v, n);
    launch_print_offerings(&first, v, 1);
    launch_token(token, c->cluster.uid, meta->uid, attempt, list.data);
    body_begin(&w, &body, meta);
    json_w_kobject(&w, "annotations");
    json_w_kcstr(&w, ANNOTATION_LAUNCH_ATTEMPT, number);
    json_w_kcstr(&w, ANNOTATION_LAUNCH_TOKEN, token);
    json_w_kcstr(&w, ANNOTATION_LAUNCH_OFFERING, first.data);
    json_w_kcstr(&w, ANNOTATION_ALTERNATIVES, list.data);
    json_w_object_end(&w);
    body_metadata_end(&w);
    body_end(&w);
    if (!execute_patch(c, CACHE_NODECLAIM, meta->name, meta->name, NULL, buf_view(&body),
                       attempt_written))
        claims_finish(c, meta->name, true, false);
}

/* ---- The call and what follows ---- */

void claims_remember_exhausted(struct control *c, const struct cloud_error *e)
{
    for (uint32_t i = 0; i < e->n_exhausted; i++) {
        offers_failed(&c->offers, &e->exhausted[i], control_now(c));
        control_count(c->metric.launch_failures, e->exhausted[i].zone,
                      capacity_type_name(e->exhausted[i].capacity_type),
                      e->quota ? "quota" : "capacity", NULL);
    }
    if (e->n_exhausted > 0)
        offers_save(c);
}

static void remember_failure(struct claim_memory *m, const struct cloud_error *e)
{
    static const char *const reasons[] = {
        [ERR_CAPACITY] = "InsufficientCapacity",
        [ERR_THROTTLED] = "Throttled",
        [ERR_DENIED] = "NotAllowed",
        [ERR_INVALID] = "InvalidConfiguration",
        [ERR_UNKNOWN] = "OutcomeUnknown",
    };
    const char *reason = (size_t)e->code < ARRAY_LEN(reasons) ? reasons[e->code] : NULL;

    free(m->launch_reason);
    free(m->launch_message);
    m->launch_reason = xstrdup(reason ? reason : "LaunchFailed");
    m->launch_message = xstr_dup(str_sub(str_from(e->msg), 0, 300));
}

/* Nothing was told about single offerings: everything that was asked for is out. */
static void remember_all(struct control *c, const struct nodeclaim *claim)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct launch_offering v[LAUNCH_OFFERINGS_MAX];
    const char *text = labels_get(&claim->obj.meta.annotations, ANNOTATION_ALTERNATIVES);
    size_t n = text ? launch_parse_offerings(&a, text, v, LAUNCH_OFFERINGS_MAX) : 0;

    for (size_t i = 0; i < n; i++)
        offers_failed(&c->offers, &v[i], control_now(c));
    offers_save(c);
}

static void launch_done(struct control *c, const char *name, const struct effect_answer *a)
{
    struct claim_memory *m = claims_memory(c, name);
    struct nodeclaim *claim = cluster_claim(c, name);

    if (a->cloud_error)
        claims_remember_exhausted(c, a->cloud_error);
    if (!a->err) {
        launched_free(m->launched);
        m->launched = launched_copy(a->instance);
        m->launch_unknown = false;
        claims_finish(c, name, true, true);
        return;
    }
    remember_failure(m, a->cloud_error);
    log_warn("launch failed", LOG_CSTR("nodeclaim", name), LOG_CSTR("reason", m->launch_reason),
             LOG_ERR(a->err));
    if (a->err->code == ERR_CAPACITY) {
        if (a->cloud_error->n_exhausted == 0 && claim)
            remember_all(c, claim);
        m->launch_failed = true;
        m->launch_unknown = false;
        provision_poke(c);
        claims_finish(c, name, true, true);
        return;
    }
    m->launch_unknown |= a->err->code == ERR_UNKNOWN;
    claims_finish(c, name, false, false);
}

static void label_instance(struct control *c, const struct nodeclaim *claim,
                           const struct instance *i)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct catalog *cat = pools_catalog(c, &claim->spec.class_ref);
    const struct instance_type *t = cat ? catalog_find(cat, i->instance_type) : NULL;
    const struct labels *have = &claim->obj.meta.labels;
    struct json_writer w;

    body_begin(&w, &body, &claim->obj.meta);
    json_w_kobject(&w, "labels");
    for (uint32_t n = 0; t && n < t->labels.n; n++)
        if (!labels_has(have, t->labels.v[n].key))
            json_w_kcstr(&w, t->labels.v[n].key, t->labels.v[n].value);
    if (t && t->arch && !labels_has(have, LABEL_ARCH) && !labels_has(&t->labels, LABEL_ARCH))
        json_w_kcstr(&w, LABEL_ARCH, t->arch);
    if (t && t->os && !labels_has(have, LABEL_OS) && !labels_has(&t->labels, LABEL_OS))
        json_w_kcstr(&w, LABEL_OS, t->os);
    if (cat && cat->region && !labels_has(have, LABEL_REGION) &&
        !(t && labels_has(&t->labels, LABEL_REGION)))
        json_w_kcstr(&w, LABEL_REGION, cat->region);
    if (!(t && labels_has(&t->labels, LABEL_INSTANCE_TYPE)) ||
        labels_has(have, LABEL_INSTANCE_TYPE))
        json_w_kcstr(&w, LABEL_INSTANCE_TYPE, i->instance_type);
    json_w_kcstr(&w, LABEL_ZONE, i->zone);
    json_w_kcstr(&w, LABEL_CAPACITY_TYPE, capacity_type_name(i->capacity_type));
    json_w_object_end(&w);
    body_metadata_end(&w);
    body_end(&w);
    if (!execute_patch(c, CACHE_NODECLAIM, claim->obj.meta.name, claim->obj.meta.name, NULL,
                       buf_view(&body), again))
        claims_finish(c, claim->obj.meta.name, true, false);
}

static bool labelled(const struct nodeclaim *claim, const struct instance *i)
{
    const struct labels *l = &claim->obj.meta.labels;
    const char *type = labels_get(l, LABEL_INSTANCE_TYPE), *zone = labels_get(l, LABEL_ZONE),
               *capacity = labels_get(l, LABEL_CAPACITY_TYPE);

    return type && zone && capacity && strcmp(type, i->instance_type) == 0 &&
           strcmp(zone, i->zone) == 0 &&
           strcmp(capacity, capacity_type_name(i->capacity_type)) == 0;
}

static void status_written(struct control *c, const char *name, const struct effect_answer *a)
{
    struct claim_memory *m = map_get(&c->claims, str_from(name));

    if (m && !a->err) {
        launched_free(m->launched);
        m->launched = NULL;
        free(m->launch_reason);
        free(m->launch_message);
        m->launch_reason = m->launch_message = NULL;
    }
    again(c, name, a);
}

static void record_instance(struct control *c, struct nodeclaim *claim, const struct instance *i)
{
    static const struct wanted_condition want[] = {
        {CONDITION_LAUNCHED, CONDITION_TRUE, CONDITION_LAUNCHED, ""}};
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct launch_offering o = {i->instance_type, i->zone, i->capacity_type};
    struct json_writer w;

    offers_worked(&c->offers, &o);
    body_begin(&w, &body, &claim->obj.meta);
    body_metadata_end(&w);
    json_w_kobject(&w, "status");
    json_w_kcstr(&w, "providerID", i->provider_id);
    if (i->image_id)
        json_w_kcstr(&w, "imageID", i->image_id);
    body_resources(&w, "capacity", &i->capacity);
    body_resources(&w, "allocatable", &i->allocatable);
    body_conditions(&w, &claim->conditions, want, ARRAY_LEN(want), claim->obj.meta.generation,
                    control_now(c));
    json_w_object_end(&w);
    body_end(&w);
    log_info("launched nodeclaim", LOG_CSTR("nodeclaim", claim->obj.meta.name),
             LOG_CSTR("provider-id", i->provider_id), LOG_CSTR("instance-type", i->instance_type),
             LOG_CSTR("zone", i->zone),
             LOG_CSTR("capacity-type", capacity_type_name(i->capacity_type)));
    if (!execute_patch(c, CACHE_NODECLAIM, claim->obj.meta.name, claim->obj.meta.name, "status",
                       buf_view(&body), status_written))
        claims_finish(c, claim->obj.meta.name, true, false);
}

void launch_record(struct control *c, struct nodeclaim *claim, struct claim_memory *m)
{
    const struct instance *i = &m->launched->i;

    if (!labelled(claim, i) && !claim->obj.meta.deletion)
        label_instance(c, claim, i);
    else
        record_instance(c, claim, i);
}

void launch_adopt(struct control *c, struct nodeclaim *claim, struct claim_memory *m,
                  const struct instance *i)
{
    launched_free(m->launched);
    m->launched = launched_copy(i);
    m->absent = 0;
    launch_record(c, claim, m);
}

static void call(struct control *c, struct nodeclaim *claim, struct cloud *cloud,
                 const struct nodeclass *class, const struct launch_offering *v, uint32_t n,
                 const char *token)
{
    static const struct taint unregistered = {.key = TAINT_UNREGISTERED,
                                              .effect = TAINT_NO_EXECUTE};
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    const struct meta *meta = &claim->obj.meta;
    const struct node_template *t = &claim->spec;
    struct taint *taints =
        ARENA_NEW_ARRAY(&a, struct taint, (size_t)t->n_taints + t->n_startup_taints + 1);
    struct label *labels = ARENA_NEW_ARRAY(&a, struct label, meta->labels.n);
    const char *pool = labels_get(&meta->labels, LABEL_NODEPOOL);
    struct launch_request r = {
        .nodeclaim = meta->name,
        .nodepool = pool ? pool : "",
        .cluster = c->cluster_name,
        .nodeclaim_uid = meta->uid,
        .token = token,
        .node_class = class,
        .offerings = v,
        .n_offerings = n,
        .labels = labels,
        .taints = taints,
    };

    /* Labels of the instance are written later; a repeated call must look like the first. */
    for (uint32_t i = 0; i < meta->labels.n; i++)
        if (!label_is_well_known(meta->labels.v[i].key))
            labels[r.n_labels++] = meta->labels.v[i];
    for (uint32_t i = 0; i < t->n_taints; i++)
        taints[r.n_taints++] = t->taints[i];
    for (uint32_t i = 0; i < t->n_startup_taints; i++)
        taints[r.n_taints++] = t->startup_taints[i];
    taints[r.n_taints++] = unregistered;
    if (!execute_launch(c, cloud, meta->name, &r, launch_done))
        claims_finish(c, meta->name, true, false);
}

static bool is_running(const struct instance *i)
{
    return i->state == INSTANCE_PENDING || i->state == INSTANCE_RUNNING;
}

void launch_call(struct control *c, struct nodeclaim *claim, struct claim_memory *m)
{
    const struct meta *meta = &claim->obj.meta;
    const char *text = labels_get(&meta->annotations, ANNOTATION_ALTERNATIVES);
    const char *token = labels_get(&meta->annotations, ANNOTATION_LAUNCH_TOKEN);
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct launch_offering v[LAUNCH_OFFERINGS_MAX];
    size_t n = text ? launch_parse_offerings(&a, text, v, LAUNCH_OFFERINGS_MAX) : 0;
    struct cloud *cloud;
    struct nodeclass *class = cluster_class(c, &claim->spec.class_ref, &cloud);

    if (m->launched) {
        if (is_running(&m->launched->i)) {
            launch_record(c, claim, m);
        } else if (!claims_delete(c, claim, "replace", "InstanceTerminated",
                                  "the instance ended before it was recorded", again)) {
            claims_finish(c, meta->name, true, false);
        }
        return;
    }
    if (!class || n == 0) {
        control_event(c, &claim->obj, true, "NodeClassNotReady", "node class %s/%s is not there",
                      claim->spec.class_ref.kind, claim->spec.class_ref.name);
        claims_finish(c, meta->name, false, false);
        return;
    }
    call(c, claim, cloud, class, v, (uint32_t)n, token);
}
