/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What a plan says, done: promises for what fits, claims for what is to be launched, a word to
 * whoever owns a pod that fits nowhere. Each launch is checked once more against the present. */
#include "base/num.h"
#include "provisioner/control/decision.h"
#include "provisioner/control/provision.h"
#include "provisioner/disrupt/empty.h"

/* Whether the pod still looks for a place: the world was frozen a moment ago. */
static bool still_wanted(const struct control *c, const struct world_pod *p)
{
    const struct object *o;

    if (p->origin == WORLD_POD_COMING)
        return true;
    if (p->origin == WORLD_POD_PENDING)
        return map_has(&c->cluster.unbound, str_from(p->key));
    o = informer_get(c->cluster.caches[CACHE_POD], p->namespace_, p->name);
    return o && pod_keeps_node((const struct pod *)(const void *)o);
}

static void places(struct control *c, const struct pass *p)
{
    for (uint32_t i = 0; i < p->plan->n_places; i++) {
        const struct plan_placement *place = &p->plan->places[i];
        const struct world_node *n = world_find_node(p->world, place->node);

        if (!n || !still_wanted(c, &p->world->pods[place->pod]))
            continue;
        if (n->claim && n->state != WORLD_NODE_READY)
            promise_make(c, place->pod_key, n->claim->obj.meta.name, true);
        else
            promise_make(c, place->pod_key, n->name, false);
    }
}

/* ---- Launches ---- */

static void log_launch(struct control *c, const struct pass *p, const struct plan_launch *l,
                       const char *outcome, const char *blocked)
{
    const struct plan_alternative *first = &l->alternatives[0];
    const char **pods = xcalloc(l->n_pods + 1, sizeof(char *));
    char evidence[200];
    struct decision d = {
        .decision = "launch",
        .reason = "pods need a place",
        .outcome = outcome,
        .blocked_by = blocked,
        .evidence = evidence,
        .pods = pods,
        .n_pods = l->n_pods,
        .node_pool = l->node_pool,
        .instance_type = first->instance_type,
        .zone = first->zone,
        .capacity_type = first->capacity_type,
        .price_uusd_h = first->price_uusd_h,
        .lower_bound_uusd_h = p->plan->bound_uusd_h,
    };

    for (uint32_t i = 0; i < l->n_pods; i++)
        pods[i] = p->world->pods[l->pods[i]].key;
    snprintf(
        evidence, sizeof(evidence),
        "%u launches of the plan cost %lld micro-dollars an hour, at least %lld; %u alternatives",
        p->plan->n_launches, (long long)p->plan->launch_uusd_h, (long long)p->plan->bound_uusd_h,
        l->n_alternatives);
    decision_log(c, &d);
    free(pods);
}

static const char *launch_blocked(const struct control *c, const struct pass *p,
                                  const struct plan_launch *l)
{
    const struct nodepool *pool = cluster_pool(c, l->node_pool);
    uint32_t wanted = 0;

    if (!pool || pool->obj.meta.deletion)
        return "the NodePool is gone";
    if (pools_blocked(c, l->node_pool))
        return pools_blocked(c, l->node_pool);
    for (uint32_t i = 0; i < l->n_pods; i++)
        wanted += still_wanted(c, &p->world->pods[l->pods[i]]);
    return wanted == 0 ? "its pods have found a place meanwhile" : NULL;
}

static void nominate_events(struct control *c, const struct pass *p, const struct plan_launch *l)
{
    for (uint32_t i = 0; i < l->n_pods && i < 10; i++) {
        const struct world_pod *pod = &p->world->pods[l->pods[i]];
        const struct nomination *n = map_get(&c->provision->nominations, str_from(pod->key));

        if (pod->pod && n)
            control_event(c, &pod->pod->obj, false, "Nominated",
                          "expected on NodeClaim %s (%s, %s)", n->target,
                          l->alternatives[0].instance_type, l->alternatives[0].zone);
    }
}

static void launches(struct control *c, const struct pass *p)
{
    for (uint32_t i = 0; i < p->plan->n_launches; i++) {
        const struct plan_launch *l = &p->plan->launches[i];
        const char *blocked = launch_blocked(c, p, l);

        if (blocked) {
            log_launch(c, p, l, "refused", blocked);
        } else if (c->o.observe) {
            log_launch(c, p, l, "observed", "mode observe");
            for (uint32_t j = 0; j < l->n_pods; j++)
                refuse(c, p->world->pods[l->pods[j]].key, p->generation,
                       "mode observe: would be launched for");
        } else if (claim_create(c, p, l)) {
            log_launch(c, p, l, "done", NULL);
            nominate_events(c, p, l);
        }
    }
}

/* ---- Refusals ---- */

static void say_no_pool(struct control *c, const struct pod *p, const char *what)
{
    const struct workload *w = cluster_workload_of(c, p);

    control_event(c, w ? &w->obj : &p->obj, true, "NoNodePool",
                  "%s: nothing can be launched for its pods", what);
}

static const char *no_pool(const struct control *c)
{
    bool any = false;

    cluster_each(c, CACHE_NODEPOOL, nodepool, p)
    {
        any = true;
        if (!pools_blocked(c, p->obj.meta.name))
            return NULL;
    }
    return any ? "no NodePool is ready" : "there is no NodePool";
}

static void refusal_text(struct buf *out, const struct plan_refusal *r)
{
    buf_cstr(out, r->reason);
    for (uint32_t i = 0; i < r->detail.n; i++)
        buf_printf(out, "; %s", r->detail.v[i]);
}

static void refuse_one(struct control *c, const struct pass *p, const struct plan_refusal *r,
                       const char *none)
{
    const struct world_pod *pod = &p->world->pods[r->pod];
    const struct refusal *before = map_get(&c->provision->refusals, str_from(r->pod_key));
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    struct decision d = {.decision = "refuse",
                         .reason = r->reason,
                         .outcome = "refused",
                         .pods = &r->pod_key,
                         .n_pods = 1};
    bool news;

    buf_init(&text, 900);
    refusal_text(&text, r);
    news = !before || !before->why || strcmp(before->why, text.data) != 0;
    refuse(c, r->pod_key, p->generation, text.data);
    if (pod->pod && none)
        say_no_pool(c, pod->pod, none);
    else if (pod->pod && pod->origin == WORLD_POD_PENDING && pod_is_provisionable(pod->pod))
        control_say_unschedulable(c, pod->pod, text.data);
    if (!news)
        return;
    d.evidence = text.data;
    d.blocked_by = none ? none : r->reason;
    decision_log(c, &d);
}

void perform_plan(struct control *c, struct pass *p)
{
    const char *none = no_pool(c);

    if (!c->leader)
        return;
    places(c, p);
    launches(c, p);
    for (uint32_t i = 0; i < p->plan->n_refusals; i++)
        refuse_one(c, p, &p->plan->refusals[i], none);
    if (c->metric.unschedulable)
        metric_set(metric_of(c->metric.unschedulable, &(struct str){"provisioner", 11}, 1),
                   p->plan->n_refusals);
    if (c->metric.pools_not_ready)
        metric_set(metric_of(c->metric.pools_not_ready, NULL, 0), none != NULL);
}
