/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Claims that are going: what drain_step says, done. The state between two looks is the objects'
 * own; what is kept in memory (pauses of refused evictions, sightings of an absent instance, the
 * start of the drain) costs at most a repeated wait after a restart. */
#include "base/num.h"
#include "provisioner/control/body.h"
#include "provisioner/control/decision.h"
#include "provisioner/control/launch.h"

#define EVICTION_FIRST_PAUSE (100 * NS_PER_MS)
#define EVICTION_LONGEST_PAUSE (10 * NS_PER_S)
#define ABSENT_APART (5 * NS_PER_S) /* between two sightings of no instance */
#define UNRESOLVED_SIGHTINGS 4      /* of a launch whose outcome nobody knows: a list may lag */
#define TERMINATE_AGAIN                                                                            \
    (60 * NS_PER_S) /* an accepted termination that shows no effect is repeated */

struct eviction {
    int64_t next, pause;
    bool running;
};

static void done(struct control *c, const char *name, const struct effect_answer *a)
{
    bool behind = a->err && (a->err->code == ERR_CONFLICT || a->err->code == ERR_NOT_FOUND);

    claims_finish(c, name, !a->err || behind, !a->err);
    if (behind)
        queue_add_after(c->claim_queue, str_from(name), 200 * NS_PER_MS);
}

static void look_in(struct control *c, const char *name, int64_t delay)
{
    claims_finish(c, name, true, false);
    queue_add_after(c->claim_queue, str_from(name), MAX(delay, 0) + NS_PER_MS);
}

static void patch(struct control *c, enum cache which, const char *claim, const char *name,
                  struct buf *body)
{
    if (!execute_patch(c, which, claim, name, NULL, buf_view(body), done))
        claims_finish(c, claim, true, false);
}

/* ---- The instance: gone, or not known to be ---- */

static void sighting(struct control *c, struct claim_memory *m, bool absent, bool certain)
{
    int64_t now = control_now(c);

    if (!absent)
        m->absent = 0;
    else if (certain)
        m->absent = UNRESOLVED_SIGHTINGS;
    else if (m->absent == 0 || now - m->absent_last >= ABSENT_APART)
        m->absent++;
    m->absent_last = now;
}

static enum drain_instance instance_of(const struct nodeclaim *claim, const struct claim_memory *m)
{
    if (claim->provider_id && claim->provider_id[0])
        return m->absent >= 2 ? INSTANCE_GONE : INSTANCE_LIVES;
    if (m->launched)
        return INSTANCE_UNRESOLVED;
    if (!labels_has(&claim->obj.meta.annotations, ANNOTATION_LAUNCH_TOKEN) || m->launch_failed)
        return INSTANCE_NEVER;
    return m->absent >= UNRESOLVED_SIGHTINGS ? INSTANCE_NEVER : INSTANCE_UNRESOLVED;
}

static void got(struct control *c, const char *name, const struct effect_answer *a)
{
    struct claim_memory *m = claims_memory(c, name);

    if (!a->err)
        sighting(c, m, a->instance->state == INSTANCE_TERMINATED, true);
    else if (a->err->code == ERR_NOT_FOUND)
        sighting(c, m, true, m->terminate_accepted);
    if (!a->err && a->instance->state == INSTANCE_RUNNING &&
        control_now(c) - m->terminate_last >= TERMINATE_AGAIN)
        m->terminate_accepted = false;
    if (m->absent >= 2)
        claims_finish(c, name, true, true);
    else
        look_in(c, name, DRAIN_POLL);
}

static void terminated(struct control *c, const char *name, const struct effect_answer *a)
{
    struct claim_memory *m = claims_memory(c, name);
    struct nodeclaim *claim = cluster_claim(c, name);
    bool again =
        claim && condition_is(&claim->conditions, CONDITION_INSTANCE_TERMINATING, CONDITION_TRUE);

    m->terminate_last = control_now(c);
    if (!a->err) {
        m->terminate_accepted = true;
        claims_finish(c, name, true, true);
    } else if (a->err->code == ERR_NOT_FOUND) {
        sighting(c, m, true, again);
        look_in(c, name, m->absent >= 2 ? 0 : ABSENT_APART);
    } else {
        if (claim)
            control_event(c, &claim->obj, true, "FailedTermination",
                          "the cloud did not terminate the instance: %s", a->err->msg);
        claims_finish(c, name, false, false);
    }
}

static void terminate(struct control *c, struct nodeclaim *claim, struct claim_memory *m,
                      const struct drain_step *s)
{
    static const struct wanted_condition terminating = {
        CONDITION_INSTANCE_TERMINATING, CONDITION_TRUE, CONDITION_INSTANCE_TERMINATING, ""};
    struct wanted_condition want[DRAIN_CONDITIONS];
    unsigned n = 0;
    struct cloud *cloud = cluster_cloud(c, &claim->spec.class_ref);
    const char *name = claim->obj.meta.name;

    for (unsigned i = 0; i < s->n_conditions; i++)
        want[n++] = s->conditions[i];
    if (m->terminate_accepted && n < DRAIN_CONDITIONS)
        want[n++] = terminating;
    if (claims_sync_conditions(c, claim, NULL, want, n))
        return;
    if (!cloud) {
        claims_finish(c, name, false, false);
    } else if (m->terminate_accepted) {
        execute_get(c, cloud, name, claim->provider_id, got);
    } else if (!execute_terminate(c, cloud, name, claim->provider_id, terminated)) {
        claims_finish(c, name, true, false);
    }
}

/* ---- A launch whose outcome is not known ---- */

static void listed(struct control *c, const char *name, const struct effect_answer *a)
{
    struct claim_memory *m = claims_memory(c, name);
    struct nodeclaim *claim = cluster_claim(c, name);
    const char *token =
        claim ? labels_get(&claim->obj.meta.annotations, ANNOTATION_LAUNCH_TOKEN) : NULL;

    if (a->err || !claim) {
        claims_finish(c, name, !claim, false);
        return;
    }
    for (size_t i = 0; i < a->n_instances; i++) {
        const struct instance *in = &a->instances[i];

        if (in->state != INSTANCE_TERMINATED &&
            ((token && in->token && strcmp(in->token, token) == 0) ||
             (in->nodeclaim && strcmp(in->nodeclaim, name) == 0))) {
            launch_adopt(c, claim, m, in);
            return;
        }
    }
    sighting(c, m, true, false);
    look_in(c, name, m->absent >= UNRESOLVED_SIGHTINGS ? 0 : ABSENT_APART);
}

/* ---- Evictions ---- */

struct eviction_key {
    char claim[256], uid[128], namespace_[256], pod[256];
};

static bool split_key(const char *key, struct eviction_key *ret)
{
    struct str rest = str_from(key), part;
    char *const to[] = {ret->claim, ret->uid, ret->namespace_, ret->pod};
    const size_t size[] = {sizeof(ret->claim), sizeof(ret->uid), sizeof(ret->namespace_),
                           sizeof(ret->pod)};

    for (size_t i = 0; i < ARRAY_LEN(to); i++) {
        if (!str_split(&rest, '/', &part))
            return false;
        snprintf(to[i], size[i], "%.*s", STR_ARG(part));
    }
    return true;
}

static void evicted(struct control *c, const char *key, const struct effect_answer *a)
{
    struct eviction_key k;
    struct claim_memory *m;
    struct eviction *e;
    struct object *pod;

    if (!split_key(key, &k))
        return;
    m = claims_memory(c, k.claim);
    e = map_get(&m->evictions, str_from(k.uid));
    pod = informer_get(c->cluster.caches[CACHE_POD], k.namespace_, k.pod);
    control_count(c->metric.evictions, !a->err ? "200" : err_code_name(a->err->code), NULL);
    if (!a->err || a->err->code == ERR_NOT_FOUND) {
        c->evictions += !a->err;
        if (pod && !a->err)
            control_event(c, pod, false, "Evicted", "evicted: its node is being removed");
    } else if (pod && a->err->code == ERR_THROTTLED) {
        control_event(c, pod, true, "FailedDraining", "the eviction was refused: %s", a->err->msg);
    }
    if (e) {
        e->running = false;
        e->pause = MIN(MAX(e->pause * 2, EVICTION_FIRST_PAUSE), EVICTION_LONGEST_PAUSE);
        e->next = loop_now(c->loop) + e->pause;
    }
    queue_add_after(c->claim_queue, str_from(k.claim), e ? e->pause : NS_PER_S);
}

static void evict(struct control *c, struct nodeclaim *claim, struct claim_memory *m,
                  const struct drain_step *s)
{
    int64_t now = loop_now(c->loop), wake = 10 * NS_PER_S;
    char key[1024];

    for (size_t i = 0; i < s->n_pods; i++) {
        const struct meta *p = &s->pods[i].pod->obj.meta;
        void **slot = map_slot(&m->evictions, str_from(p->uid));
        struct eviction *e;

        if (!*slot)
            *slot = xcalloc(1, sizeof(*e));
        e = *slot;
        if (e->running)
            continue;
        if (now < e->next) {
            wake = MIN(wake, e->next - now);
            continue;
        }
        snprintf(key, sizeof(key), "%s/%s/%s/%s", claim->obj.meta.name, p->uid, p->namespace_,
                 p->name);
        e->running = s->pods[i].grace_s < 0
                         ? execute_evict(c, key, s->pods[i].pod, evicted)
                         : execute_delete(c, CACHE_POD, key, p->namespace_, p->name, p->uid,
                                          s->pods[i].grace_s, evicted);
    }
    if (s->at != TIME_NEVER)
        wake = MIN(wake, s->at - control_now(c));
    look_in(c, claim->obj.meta.name, wake);
}

/* ---- One look ---- */

static size_t attachments_on(const struct control *c, const char *node, struct arena *a,
                             const struct volume_attachment ***ret)
{
    size_t n = 0, all = informer_count(c->cluster.caches[CACHE_VOLUME_ATTACHMENT]);

    *ret = ARENA_NEW_ARRAY(a, const struct volume_attachment *, all + 1);
    if (all == 0)
        return 0;
    cluster_each(c, CACHE_VOLUME_ATTACHMENT, volume_attachment, v)
    {
        if (v->node_name && strcmp(v->node_name, node) == 0 && n < all)
            (*ret)[n++] = v;
    }
    return n;
}

static void stamp(struct control *c, const struct nodeclaim *claim, int64_t deadline)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;
    char at[40];

    body_begin(&w, &body, NULL);
    json_w_kobject(&w, "annotations");
    json_w_kstr(&w, ANNOTATION_TERMINATION_TIMESTAMP, time_format(at, deadline));
    json_w_object_end(&w);
    body_metadata_end(&w);
    body_end(&w);
    patch(c, CACHE_NODECLAIM, claim->obj.meta.name, claim->obj.meta.name, &body);
}

static void release_claim(struct control *c, struct nodeclaim *claim)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    const struct labels *l = &claim->obj.meta.labels;
    const char *pool = labels_get(l, LABEL_NODEPOOL), *type = labels_get(l, LABEL_CAPACITY_TYPE),
               *zone = labels_get(l, LABEL_ZONE);

    control_count(c->metric.claims_terminated, pool ? pool : "", type ? type : "", zone ? zone : "",
                  NULL);
    body_finalizer(&body, &claim->obj.meta, false);
    patch(c, CACHE_NODECLAIM, claim->obj.meta.name, claim->obj.meta.name, &body);
}

static void perform(struct control *c, struct nodeclaim *claim, struct claim_memory *m,
                    const struct node *node, struct drain_step *s)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    const char *name = claim->obj.meta.name;
    struct cloud *cloud = cluster_cloud(c, &claim->spec.class_ref);

    switch (s->verb) {
    case DRAIN_STAMP:
        stamp(c, claim, s->deadline);
        return;
    case DRAIN_TAINT:
        body_disrupted(&body, node, true);
        patch(c, CACHE_NODE, name, node->obj.meta.name, &body);
        return;
    case DRAIN_DELETE_NODE:
        if (!execute_delete(c, CACHE_NODE, name, NULL, node->obj.meta.name, node->obj.meta.uid, -1,
                            done))
            claims_finish(c, name, true, false);
        return;
    case DRAIN_EVICT:
        if (!claims_sync_conditions(c, claim, NULL, s->conditions, s->n_conditions))
            evict(c, claim, m, s);
        return;
    case DRAIN_TERMINATE:
        terminate(c, claim, m, s);
        return;
    case DRAIN_RESOLVE:
        if (m->launched)
            launch_record(c, claim, m);
        else if (cloud)
            execute_list(c, cloud, name, listed);
        else
            claims_finish(c, name, false, false);
        return;
    case DRAIN_RELEASE_NODE:
        body_finalizer(&body, &node->obj.meta, false);
        patch(c, CACHE_NODE, name, node->obj.meta.name, &body);
        return;
    case DRAIN_RELEASE_CLAIM:
        release_claim(c, claim);
        return;
    case DRAIN_WAIT:
        if (claims_sync_conditions(c, claim, NULL, s->conditions, s->n_conditions))
            return;
        look_in(c, name,
                MIN(s->at == TIME_NEVER ? INT64_MAX : s->at - control_now(c), 60 * NS_PER_S));
        return;
    }
}

/* A silent machine may be gone: ask, so that nobody waits for pods that no kubelet will end. */
static bool ask_about_silent(struct control *c, struct nodeclaim *claim, struct claim_memory *m,
                             const struct drain_view *v)
{
    struct cloud *cloud = cluster_cloud(c, &claim->spec.class_ref);

    if (!v->node || node_is_ready(v->node) || v->instance != INSTANCE_LIVES || !cloud ||
        (m->asked_last && control_now(c) - m->asked_last < ABSENT_APART))
        return false;
    m->asked_last = control_now(c);
    execute_get(c, cloud, claim->obj.meta.name, claim->provider_id, got);
    return true;
}

void drains_process(struct control *c, struct nodeclaim *claim, struct claim_memory *m)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct drain_view v = {.claim = claim, .instance = instance_of(claim, m)};
    const struct volume_attachment **attachments;
    struct node_memory *node;
    struct drain_step *s = ARENA_NEW(&a, struct drain_step);

    if (claim->provider_id && claim->provider_id[0])
        v.node = cluster_node_of_id(c, claim->provider_id, NULL);
    if (v.node) {
        node = cluster_node(c, v.node->obj.meta.name);
        v.pods = (const struct pod *const *)node->pods.v;
        v.n_pods = node->pods.len;
        v.n_attachments = attachments_on(c, v.node->obj.meta.name, &a, &attachments);
        v.attachments = attachments;
        for (uint32_t i = 0; i < v.node->n_taints && m->drain_started == 0; i++)
            if (strcmp(v.node->taints[i].key, TAINT_DISRUPTED) == 0)
                m->drain_started = control_now(c);
        v.drain_started = m->drain_started;
        if (ask_about_silent(c, claim, m, &v))
            return;
    }
    drain_step(&v, control_now(c), s);
    perform(c, claim, m, v.node, s);
}
