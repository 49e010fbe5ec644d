/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Orphans of both sides: instances without a claim, claims without an instance, Nodes without
 * either.
 *
 * Nothing is collected on one sighting. An orphan is looked at again in a later listing, an
 * instance without a claim also by asking the API server itself, and whatever is deleted counts
 * against the mass-deletion rule: a listing that is empty by mistake cannot empty a cluster. */
#include "base/num.h"
#include "provisioner/control/body.h"
#include "provisioner/control/decision.h"
#include "provisioner/control/launch.h"

#define FIRST_LOOK (10 * NS_PER_S)
#define LOOK_AGAIN (15 * NS_PER_S) /* after something was suspected */
#define SIGHTINGS_APART (10 * NS_PER_S)
#define YOUNG (30 * NS_PER_S) /* an instance may be ahead of its claim's status */
#define BREAKER_WINDOW (10 * NS_PER_MIN)
#define BREAKER_LEAST 3
#define SUSPECTS_MAX 65536

struct suspect {
    int64_t first;
    bool seen; /* in the listing at hand */
};

VEC_DEFINE(instants, int64_t);

struct gc {
    struct loop_timer timer;
    struct map suspects;       /* "instance ID" "claim NAME" "node NAME" to struct suspect */
    struct instants deletions; /* of the last ten minutes */
    bool suspicious;
    size_t listing; /* answers awaited */
};

/* ---- The mass-deletion rule ---- */

static bool allowed_by_a_person(const struct control *c, const char *pool)
{
    const struct nodepool *p = cluster_pool(c, pool);
    const char *v = p ? labels_get(&p->obj.meta.annotations, "weft.sh/allow-mass-deletion") : NULL;

    return v && strcmp(v, "true") == 0;
}

bool breaker_take(struct control *c, const char *pool)
{
    struct gc *g = c->gc;
    int64_t now = control_now(c);
    size_t most =
        MAX((size_t)BREAKER_LEAST, (informer_count(c->cluster.caches[CACHE_NODE]) + 9) / 10);

    while (g->deletions.len > 0 && now - g->deletions.v[0] >= BREAKER_WINDOW)
        vec_remove(&g->deletions, 0);
    if (g->deletions.len >= most && !allowed_by_a_person(c, pool)) {
        log_warn("too many deletions in ten minutes: waiting for a person's word",
                 LOG_I64("allowed", (int64_t)most));
        if (c->metric.breaker)
            metric_add(metric_of(c->metric.breaker, NULL, 0), 1);
        return false;
    }
    vec_push(&g->deletions, now);
    return true;
}

/* ---- Suspicion ---- */

/* True when it was suspected long enough ago to be sure. */
static bool confirmed(struct control *c, const char *what, const char *name)
{
    char key[512];
    void **slot;
    struct suspect *s;

    c->gc->suspicious = true;
    if (map_len(&c->gc->suspects) >= SUSPECTS_MAX)
        return false;
    snprintf(key, sizeof(key), "%s %s", what, name);
    slot = map_slot(&c->gc->suspects, str_from(key));
    if (!*slot) {
        *slot = xcalloc(1, sizeof(*s));
        ((struct suspect *)*slot)->first = control_now(c);
    }
    s = *slot;
    s->seen = true;
    return control_now(c) - s->first >= SIGHTINGS_APART;
}

static void forget_the_cleared(struct control *c)
{
    map_each(&c->gc->suspects, it) {
        struct suspect *s = it->value;

        if (!s->seen)
            free(map_remove(&c->gc->suspects, map_key(it)));
        else
            s->seen = false;
    }
}

/* ---- Instances without a claim ---- */

static bool running(const struct instance *i)
{
    return i->state == INSTANCE_PENDING || i->state == INSTANCE_RUNNING;
}

static void orphan_terminated(struct control *c, const char *key, const struct effect_answer *a)
{
    (void)c;
    if (a->err && a->err->code != ERR_NOT_FOUND)
        log_warn("an orphan could not be terminated", LOG_CSTR("instance", key), LOG_ERR(a->err));
}

/* `key`: "cloud provider-id". The claim was asked for at the API server itself. */
static void claim_asked(struct control *c, const char *key, const struct effect_answer *a)
{
    struct str rest = str_from(key), cloud_name;
    struct decision d = {.decision = "gc",
                         .reason = "OrphanInstance",
                         .outcome = "done",
                         .evidence = "no NodeClaim has it"};

    (void)str_split(&rest, ' ', &cloud_name);
    if (!a->err && a->answer->object) {
        const struct nodeclaim *claim = nodeclaim_of(a->answer->object);

        if (!claim->provider_id || strcmp(claim->provider_id, rest.p) == 0)
            return;
        d.evidence = "its NodeClaim has another instance";
    } else if (!a->err || a->err->code != ERR_NOT_FOUND) {
        return;
    }
    for (size_t i = 0; i < c->n_clouds; i++)
        if (str_eq_c(cloud_name, c->clouds[i]->vt->name) && breaker_take(c, NULL) &&
            execute_terminate(c, c->clouds[i], rest.p, rest.p, orphan_terminated)) {
            d.nodes = &rest.p;
            d.n_nodes = 1;
            decision_log(c, &d);
        }
}

static bool has_owner(const struct control *c, const struct instance *i)
{
    const struct nodeclaim *claim = cluster_claim_of_id(c, i->provider_id);
    const char *token;

    if (claim)
        return true;
    claim = cluster_claim(c, i->nodeclaim);
    if (!claim || (claim->provider_id && claim->provider_id[0]))
        return false;
    token = labels_get(&claim->obj.meta.annotations, ANNOTATION_LAUNCH_TOKEN);
    return token && i->token && strcmp(token, i->token) == 0;
}

static void judge_instance(struct control *c, struct cloud *cloud, const struct instance *i)
{
    char key[512];

    if (!running(i) || !i->nodeclaim || control_now(c) - i->launched < YOUNG || has_owner(c, i))
        return;
    if (!confirmed(c, "instance", i->provider_id))
        return;
    snprintf(key, sizeof(key), "%s %s", cloud->vt->name, i->provider_id);
    execute_read(c, CACHE_NODECLAIM, key, i->nodeclaim, claim_asked);
}

/* ---- Claims and Nodes without an instance ---- */

static bool listed(const struct effect_answer *a, const char *provider_id)
{
    for (size_t i = 0; i < a->n_instances; i++)
        if (a->instances[i].state != INSTANCE_TERMINATED && a->instances[i].provider_id &&
            strcmp(a->instances[i].provider_id, provider_id) == 0)
            return true;
    return false;
}

static void touched(struct control *c, const char *name, const struct effect_answer *a)
{
    (void)a;
    claims_touch(c, name);
}

static void judge_claim(struct control *c, struct cloud *cloud, struct nodeclaim *claim,
                        const struct effect_answer *a)
{
    const struct condition *launched = condition_find(&claim->conditions, CONDITION_LAUNCHED);
    bool registered = condition_is(&claim->conditions, CONDITION_REGISTERED, CONDITION_TRUE);
    const struct node *n;
    const char *reason;

    if (claim->obj.meta.deletion || !claim->provider_id || !claim->provider_id[0] ||
        cluster_cloud(c, &claim->spec.class_ref) != cloud || !launched ||
        control_now(c) - launched->last_transition < YOUNG)
        return;
    n = cluster_node_of_id(c, claim->provider_id, NULL);
    if (n && node_is_ready(n))
        return;
    reason = !listed(a, claim->provider_id) ? "InstanceGone" : registered && !n ? "NodeGone" : NULL;
    if (!reason || !confirmed(c, "claim", claim->obj.meta.name))
        return;
    if (!registered || breaker_take(c, labels_get(&claim->obj.meta.labels, LABEL_NODEPOOL)))
        (void)claims_delete(
            c, claim, "gc", reason,
            strcmp(reason, "NodeGone") == 0 ? "its Node is gone" : "its instance is gone", touched);
}

static void ignored(struct control *c, const char *key, const struct effect_answer *a)
{
    (void)c, (void)key, (void)a;
}

/* A Node that we once registered and that nobody stands for any more: neither claim nor instance.
 */
static void judge_node(struct control *c, const struct node *n, const struct effect_answer *a)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    const struct meta *m = &n->obj.meta;

    if (!labels_has(&m->labels, LABEL_NODEPOOL) || !meta_has_finalizer(m, FINALIZER_TERMINATION) ||
        !n->provider_id || node_is_ready(n) || cluster_claim_of_id(c, n->provider_id) ||
        listed(a, n->provider_id))
        return;
    if (!confirmed(c, "node", m->name))
        return;
    if (!m->deletion) {
        if (breaker_take(c, labels_get(&m->labels, LABEL_NODEPOOL)))
            (void)execute_delete(c, CACHE_NODE, m->name, NULL, m->name, m->uid, -1, ignored);
        return;
    }
    body_finalizer(&body, m, false);
    (void)execute_patch(c, CACHE_NODE, m->name, m->name, NULL, buf_view(&body), ignored);
}

/* ---- One look ---- */

static void tick(void *arg);

static void listing(struct control *c, const char *key, const struct effect_answer *a)
{
    struct cloud *cloud = NULL;
    bool last = --c->gc->listing == 0;

    for (size_t i = 0; i < c->n_clouds; i++)
        if (strcmp(c->clouds[i]->vt->name, key) == 0)
            cloud = c->clouds[i];
    if (a->err) {
        log_warn("the cloud's instances could not be listed", LOG_CSTR("cloud", key),
                 LOG_ERR(a->err));
    } else if (execute_allowed(c)) {
        for (size_t i = 0; i < a->n_instances; i++)
            judge_instance(c, cloud, &a->instances[i]);
        cluster_each(c, CACHE_NODECLAIM, nodeclaim, claim) judge_claim(c, cloud, claim, a);
        /* Whose a Node without a claim is, its id does not say: with one cloud it can only be that
         * one's. */
        if (c->n_clouds == 1)
            cluster_each(c, CACHE_NODE, node, n) judge_node(c, n, a);
        forget_the_cleared(c);
    }
    if (last)
        loop_timer_in(c->loop, &c->gc->timer, c->gc->suspicious ? LOOK_AGAIN : c->o.gc_interval,
                      tick, c);
}

static void tick(void *arg)
{
    struct control *c = arg;

    c->gc->suspicious = false;
    if (!execute_allowed(c)) {
        loop_timer_in(c->loop, &c->gc->timer, FIRST_LOOK, tick, c);
        return;
    }
    c->gc->listing = c->n_clouds;
    for (size_t i = 0; i < c->n_clouds; i++)
        execute_list(c, c->clouds[i], c->clouds[i]->vt->name, listing);
}

void gc_init(struct control *c)
{
    c->gc = xcalloc(1, sizeof(*c->gc));
    loop_timer_in(c->loop, &c->gc->timer, FIRST_LOOK, tick, c);
}

void gc_release(struct control *c)
{
    loop_timer_cancel(c->loop, &c->gc->timer);
    map_release(&c->gc->suspects, free);
    vec_release(&c->gc->deletions);
    free(c->gc);
}
