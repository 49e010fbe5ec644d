/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/control.h"

#include <stdarg.h>

#include "provisioner/control/decision.h"
#include "provisioner/control/provision.h"

#define TICK (10 * NS_PER_S)

static int64_t or_default(int64_t v, int64_t d)
{
    return v ? v : d;
}

static void fill_options(struct control *c, const struct control_options *o)
{
    c->o = *o;
    c->o.batch_idle = or_default(o->batch_idle, NS_PER_S);
    c->o.batch_max = or_default(o->batch_max, 10 * NS_PER_S);
    c->o.launch_deadline = or_default(o->launch_deadline, 5 * NS_PER_MIN);
    c->o.registration_deadline = or_default(o->registration_deadline, 15 * NS_PER_MIN);
    c->o.initialization_deadline = or_default(o->initialization_deadline, 15 * NS_PER_MIN);
    c->o.coming_for = or_default(o->coming_for, 30 * NS_PER_S);
    c->o.gc_interval = or_default(o->gc_interval, 2 * NS_PER_MIN);
    c->o.notice_interval = or_default(o->notice_interval, 10 * NS_PER_S);
    c->o.catalogue_interval = or_default(o->catalogue_interval, 5 * NS_PER_MIN);
    c->o.empty_settle = or_default(o->empty_settle, 2 * NS_PER_S);
    c->o.solve_cost = or_default(o->solve_cost, 20 * NS_PER_MS);
    c->cluster_name = xstrdup(o->cluster_name ? o->cluster_name : "default");
    c->namespace_ = xstrdup(o->namespace_ ? o->namespace_ : "weft-system");
    c->o.cluster_name = c->cluster_name;
    c->o.namespace_ = c->namespace_;
}

static struct metric_family *counter(struct control *c, const char *name, const char *help,
                                     const char *labels)
{
    return metrics_family(c->metrics, METRIC_COUNTER, name, help, labels, NULL, 0);
}

static struct metric_family *gauge(struct control *c, const char *name, const char *help,
                                   const char *labels)
{
    return metrics_family(c->metrics, METRIC_GAUGE, name, help, labels, NULL, 0);
}

static void declare_metrics(struct control *c)
{
    struct control_metrics *m = &c->metric;

    if (!c->metrics)
        return;
    m->claims_created =
        counter(c, "karpenter_nodeclaims_created_total", "NodeClaims created.", "reason,nodepool");
    m->claims_terminated = counter(c, "karpenter_nodeclaims_terminated_total",
                                   "NodeClaims whose instance is gone and that were let go.",
                                   "nodepool,capacity_type,zone");
    m->claims_disrupted =
        counter(c, "karpenter_nodeclaims_disrupted_total",
                "NodeClaims that weft deleted, by reason.", "reason,nodepool,capacity_type");
    m->evictions = counter(c, "karpenter_pods_eviction_requests_total",
                           "Evictions asked for, by answer.", "code");
    m->unschedulable = gauge(c, "karpenter_scheduler_unschedulable_pods_count",
                             "Pods that the last plan could not place.", "controller");
    m->decisions =
        counter(c, "weft_decisions_total", "Decisions, by kind and outcome.", "decision,outcome");
    m->pool_usage = gauge(c, "karpenter_nodepools_usage", "Capacity of the NodePool's nodes.",
                          "resource_type,nodepool");
    m->pool_limit =
        gauge(c, "karpenter_nodepools_limit", "Limits of the NodePool.", "resource_type,nodepool");
    m->cloud_errors = counter(c, "karpenter_cloudprovider_errors_total", "Errors of the cloud.",
                              "provider,error");
    m->launch_failures = counter(c, "karpenter_cloudprovider_instance_launch_failures_total",
                                 "Offerings that had no capacity.", "zone,capacity_type,reason");
    m->state_synced =
        gauge(c, "karpenter_cluster_state_synced", "1 when every cache has synced.", "");
    m->state_nodes = gauge(c, "karpenter_cluster_state_node_count", "Nodes in the cache.", "");
    m->pools_not_ready = gauge(c, "weft_no_nodepool_ready",
                               "1 when nothing can be launched: no NodePool, or none ready.", "");
    m->breaker = counter(c, "weft_mass_deletion_refused_total",
                         "Deletions held back by the mass-deletion rule.", "");
}

/* ---- Shared helpers ---- */

void control_event(struct control *c, const struct object *about, bool warning, const char *reason,
                   const char *fmt, ...)
{
    char text[1100];
    va_list ap;

    if (!c->recorder || c->o.observe || !c->leader)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    recorder_event(c->recorder, about, warning, reason, 0, "%s", text);
}

void control_say_unschedulable(struct control *c, const struct pod *p, const char *why)
{
    if (c->recorder && !c->o.observe && c->leader)
        recorder_event(c->recorder, &p->obj, true, "FailedScheduling", 5 * NS_PER_MIN, "%s", why);
}

void control_count(struct metric_family *f, ...)
{
    struct str values[8];
    const char *v;
    size_t n = 0;
    va_list ap;

    if (!f)
        return;
    va_start(ap, f);
    while ((v = va_arg(ap, const char *)) && n < ARRAY_LEN(values))
        values[n++] = str_from(v);
    va_end(ap);
    metric_add(metric_of(f, values, n), 1);
}

/* ---- Waking up ---- */

/* Everything that may have been refused while we were not allowed is looked at again. */
static void wake(struct control *c)
{
    if (!c->ready || !c->leader)
        return;
    pools_touch_all(c);
    cluster_each(c, CACHE_NODECLAIM, nodeclaim, claim) claims_touch(c, claim->obj.meta.name);
    disruption_touch(c);
    provision_poke(c);
}

static void look_for_karpenter(struct control *c)
{
    const char *holder = c->o.take_over ? NULL : cluster_karpenter(c);
    bool was = c->blocked;

    c->blocked = holder != NULL;
    if (holder && !was) {
        struct decision d = {.decision = "refuse",
                             .reason = "a live Karpenter leads this cluster",
                             .outcome = "refused",
                             .blocked_by = holder,
                             .evidence =
                                 "its lease was renewed within 60 s; --take-over overrides"};

        decision_log(c, &d);
        cluster_each(c, CACHE_LEASE, lease, l)
            control_event(c, &l->obj, true, "KarpenterIsAlive",
                          "weft does not act while Karpenter (%s) renews its lease", holder);
    }
    if (was && !holder)
        wake(c);
}

/* An offering whose pause has ended may hold what was refused. */
static void look_at_pauses(struct control *c)
{
    int64_t now = control_now(c);

    if (now >= c->pause_ends) {
        c->cluster.generation++;
        provision_poke(c);
    }
    c->pause_ends = offers_next(&c->offers, now);
}

static void tick(void *arg)
{
    struct control *c = arg;

    loop_timer_in(c->loop, &c->tick, TICK, tick, c);
    if (!c->ready)
        return;
    look_for_karpenter(c);
    look_at_pauses(c);
    if (c->metric.state_nodes)
        metric_set(metric_of(c->metric.state_nodes, NULL, 0),
                   (double)informer_count(c->cluster.caches[CACHE_NODE]));
}

void control_synced(struct control *c)
{
    c->ready = true;
    if (c->metric.state_synced)
        metric_set(metric_of(c->metric.state_synced, NULL, 0), 1);
    look_for_karpenter(c);
    pools_touch_all(c);
    wake(c);
}

void control_set_leader(struct control *c, bool leader)
{
    if (c->leader == leader)
        return;
    c->leader = leader;
    if (leader && c->ready)
        look_for_karpenter(c);
    wake(c);
}

/* ---- Life ---- */

struct control *control_new(struct loop *l, struct worker *w, struct client *client,
                            struct recorder *r, struct metrics *m, struct cloud *const *clouds,
                            size_t n_clouds, const struct control_options *o)
{
    struct control *c = xcalloc(1, sizeof(*c));

    c->loop = l;
    c->worker = w;
    c->client = client;
    c->recorder = r;
    c->metrics = m;
    c->n_clouds = MIN(n_clouds, (size_t)CLOUDS_MAX);
    for (size_t i = 0; i < c->n_clouds; i++)
        c->clouds[i] = clouds[i];
    fill_options(c, o);
    c->pause_ends = TIME_NEVER;
    declare_metrics(c);
    cluster_init(c);
    provision_init(c);
    pools_init(c);
    claims_init(c);
    disruption_init(c);
    return c;
}

void control_start(struct control *c)
{
    c->started = true;
    interrupt_init(c);
    gc_init(c);
    offers_load(c);
    loop_timer_in(c->loop, &c->tick, TICK, tick, c);
    cluster_start(c);
}

void control_free(struct control *c)
{
    if (!c)
        return;
    c->ready = false;
    execute_cancel_all(c);
    client_cancel(c->offers_load);
    loop_timer_cancel(c->loop, &c->tick);
    loop_timer_cancel(c->loop, &c->offers_timer);
    if (c->started) {
        interrupt_release(c);
        gc_release(c);
    }
    disruption_release(c);
    claims_release(c);
    pools_release(c);
    provision_release(c);
    coming_release(c);
    cluster_release(c);
    offers_release(&c->offers);
    free(c->cluster_name);
    free(c->namespace_);
    free(c);
}

int64_t control_age(const struct control *c)
{
    int64_t oldest = 0;

    for (size_t i = 0; i < ARRAY_LEN(c->cluster.caches); i++)
        if (c->cluster.caches[i])
            oldest = MAX(oldest, informer_age(c->cluster.caches[i]));
    return oldest;
}

bool control_ready(const struct control *c)
{
    return c->ready;
}

void control_state(const struct control *c, struct control_state *ret)
{
    *ret = (struct control_state){
        .ready = c->ready,
        .leader = c->leader,
        .blocked_by_karpenter = c->blocked,
        .nominated_pods = map_len(&c->provision->nominations),
        .unschedulable_pods = map_len(&c->provision->refusals),
        .effects = c->n_effects,
        .plans = c->provision->plans,
        .launches = c->launches,
        .terminations = c->terminations,
        .evictions = c->evictions,
    };
    map_each(&c->cluster.unbound, it) {
        if (pod_is_provisionable(it->value) && !map_has(&c->provision->nominations, map_key(it)))
            ret->pending_pods++;
    }
}

const char *control_why_pending(const struct control *c, const char *namespace_, const char *pod)
{
    char key[512];
    const struct refusal *r;

    snprintf(key, sizeof(key), "%s/%s", namespace_, pod);
    r = map_get(&c->provision->refusals, str_from(key));
    return r ? r->why : NULL;
}
