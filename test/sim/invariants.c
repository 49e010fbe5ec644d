/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "test/sim/invariants.h"

#include "base/map.h"
#include "base/num.h"
#include <stdarg.h>

#include "kube/api/node.h"
#include "kube/api/nodeclaim.h"
#include "kube/api/pod.h"

#define ORPHAN_AGE (10 * NS_PER_MIN) /* S5: an instance without a claim is gone by then */
#define CLAIM_AGE (40 * NS_PER_MIN)  /* L6: a claim is ready or gone by then */

struct invariants {
    struct fleet *f;
    bool faulty;
    char breach[400];
    size_t evictions, checks;
    struct map orphans; /* provider id to int64_t: since when nobody claims it */
};

static void breach(struct invariants *v, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void breach(struct invariants *v, const char *fmt, ...)
{
    va_list ap;
    char at[40];
    size_t n;

    if (v->breach[0])
        return;
    va_start(ap, fmt);
    n = (size_t)vsnprintf(v->breach, sizeof(v->breach), fmt, ap);
    va_end(ap);
    if (n < sizeof(v->breach))
        snprintf(v->breach + n, sizeof(v->breach) - n, " (%s, effect %llu)",
                 time_format(at, loop_wall(v->f->loop)).p, (unsigned long long)v->f->effects);
}

/* ---- What is seen ---- */

static bool alive(const struct instance *i)
{
    return i->state == INSTANCE_PENDING || i->state == INSTANCE_RUNNING;
}

static const struct instance *instance_by_id(const struct invariants *v, const char *id)
{
    const struct instance *all;
    size_t n = cloud_sim_instances(v->f->cloud, &all);

    for (size_t i = 0; i < n && id; i++)
        if (strcmp(all[i].provider_id, id) == 0)
            return &all[i];
    return NULL;
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

struct finder {
    const char *name, *id, *node;
    struct object *found;
    size_t n;
    struct invariants *v;
};

static void find_claim(void *arg, struct object *o)
{
    struct finder *x = arg;

    if ((x->name && same(o->meta.name, x->name)) ||
        (x->id && same(nodeclaim_of(o)->provider_id, x->id)))
        x->found = o;
}

static struct nodeclaim *claim_of(struct invariants *v, const char *name, const char *id)
{
    struct finder x = {.name = name, .id = id};

    sim_each_object(v->f->sim, &kind_nodeclaim, find_claim, &x);
    return x.found ? nodeclaim_of(x.found) : NULL;
}

static void find_node(void *arg, struct object *o)
{
    struct finder *x = arg;

    if (same(node_of(o)->provider_id, x->id) || same(o->meta.name, x->name))
        x->found = o;
}

static struct node *node_by(struct invariants *v, const char *name, const char *id)
{
    struct finder x = {.name = name, .id = id};

    sim_each_object(v->f->sim, &kind_node, find_node, &x);
    return x.found ? node_of(x.found) : NULL;
}

static bool tolerates_removal(const struct pod *p)
{
    for (uint32_t i = 0; i < p->spec.n_tolerations; i++)
        if (p->spec.tolerations[i].exists &&
            (!p->spec.tolerations[i].key || same(p->spec.tolerations[i].key, TAINT_DISRUPTED)))
            return true;
    return false;
}

static void count_left(void *arg, struct object *o)
{
    struct finder *x = arg;
    const struct pod *p = pod_of(o);

    if (same(p->spec.node_name, x->node) && !pod_is_terminal(p) && !pod_is_daemon(p) &&
        !pod_is_mirror(p) && !o->meta.deletion && !tolerates_removal(p))
        x->n++;
}

static size_t pods_left_on(struct invariants *v, const char *node)
{
    struct finder x = {.node = node};

    sim_each_object(v->f->sim, &kind_pod, count_left, &x);
    return x.n;
}

static int64_t forced_end(const struct nodeclaim *c)
{
    const char *text = labels_get(&c->obj.meta.annotations, ANNOTATION_TERMINATION_TIMESTAMP);
    int64_t t;

    return text && time_parse_rfc3339(str_from(text), &t, NULL) == 0 ? t : TIME_NEVER;
}

/* ---- S10, S11: nobody acts who has not seen or does not lead ---- */

static void check_actor(struct invariants *v, const char *what)
{
    struct control_state s;

    v->checks++;
    if (!v->f->control)
        return;
    control_state(v->f->control, &s);
    if (!s.ready)
        breach(v, "S10: %s before every cache had synced", what);
    if (!s.leader)
        breach(v, "S11: %s without leadership", what);
}

/* ---- S1: evictions ---- */

static void check_eviction(struct invariants *v, const struct sim_call *call, bool by_delete)
{
    struct object *o = sim_object(v->f->sim, &kind_pod, call->namespace_, call->name);
    const struct pod *p = o ? pod_of(o) : NULL;
    const struct node *n;
    const struct nodeclaim *c;
    const char *hold;

    v->checks++;
    if (!p || !p->spec.node_name)
        return;
    n = node_by(v, p->spec.node_name, NULL);
    c = n ? claim_of(v, NULL, n->provider_id) : NULL;
    hold = labels_get(&p->obj.meta.annotations, ANNOTATION_DO_NOT_DISRUPT);
    if (!c || !c->obj.meta.deletion)
        breach(v, "S1: pod %s was evicted from a node that stays", call->name);
    else if (by_delete && loop_wall(v->f->loop) + (p->spec.grace_s + 1) * NS_PER_S < forced_end(c))
        breach(v, "S1: pod %s was deleted before its deadline", call->name);
    else if (!by_delete && same(hold, "true"))
        breach(v, "S1: pod %s is not to be disrupted and was evicted", call->name);
}

void invariants_api_call(struct invariants *v, const struct sim_call *call, bool after)
{
    bool eviction = same(call->plural, "pods") && same(call->subresource, "eviction");
    bool deletion = same(call->plural, "pods") && same(call->verb, "delete");

    check_actor(v, call->verb);
    if (eviction && after && call->status >= 200 && call->status < 300)
        v->evictions++;
    if ((eviction || deletion) && !after)
        check_eviction(v, call, deletion);
}

/* ---- S5: one instance a claim; S6: what the pool allows; S2: nothing runs on what ends ---- */

static void check_unique(struct invariants *v)
{
    const struct instance *all;
    size_t n = cloud_sim_instances(v->f->cloud, &all);

    v->checks++;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i && alive(&all[i]) && all[i].nodeclaim; j++)
            if (alive(&all[j]) && same(all[i].nodeclaim, all[j].nodeclaim))
                breach(v, "S5: NodeClaim %s has two instances", all[i].nodeclaim);
}

static bool allows(const struct selector_requirement *r, const char *value)
{
    return r->op == SELECTOR_IN       ? string_list_has(&r->values, value)
           : r->op == SELECTOR_NOT_IN ? !string_list_has(&r->values, value)
                                      : true;
}

static void check_allowed(struct invariants *v, const struct cloud_sim_call *call)
{
    struct nodeclaim *c = claim_of(v, call->nodeclaim, NULL);
    const char *pool = c ? labels_get(&c->obj.meta.labels, LABEL_NODEPOOL) : NULL;
    struct object *o = pool ? sim_object(v->f->sim, &kind_nodepool, NULL, pool) : NULL;
    const struct node_template *t = o ? &nodepool_of(o)->template_ : NULL;

    v->checks++;
    if (!c)
        breach(v, "S5: a launch for NodeClaim %s, which does not exist", call->nodeclaim);
    for (uint32_t i = 0; t && i < t->n_requirements; i++) {
        const struct selector_requirement *r = &t->requirements[i];
        const char *value = same(r->key, LABEL_INSTANCE_TYPE) ? call->instance_type
                            : same(r->key, LABEL_ZONE)        ? call->zone
                            : same(r->key, LABEL_CAPACITY_TYPE)
                                ? capacity_type_name(call->capacity_type)
                                : NULL;

        if (value && !allows(r, value))
            breach(v, "S6: launched %s in %s, which NodePool %s does not allow",
                   call->instance_type, call->zone, pool);
    }
}

static void check_terminate(struct invariants *v, const char *id)
{
    struct nodeclaim *c = claim_of(v, NULL, id);
    struct node *n = node_by(v, NULL, id);
    size_t left;

    v->checks++;
    if (!c || !n || !node_is_ready(n) || loop_wall(v->f->loop) >= forced_end(c))
        return;
    left = pods_left_on(v, n->obj.meta.name);
    if (left > 0)
        breach(v, "S2: %s is terminated with %zu pods that nobody evicted", n->obj.meta.name, left);
}

void invariants_cloud_call(struct invariants *v, const struct cloud_sim_call *call, bool after)
{
    if (call->what != SIM_CALL_LAUNCH && call->what != SIM_CALL_TERMINATE)
        return;
    if (!after)
        check_actor(v, call->what == SIM_CALL_LAUNCH ? "a launch" : "a termination");
    if (call->what == SIM_CALL_TERMINATE && !after)
        check_terminate(v, call->provider_id);
    if (call->what == SIM_CALL_LAUNCH && after) {
        check_unique(v);
        if (call->result == ERR_NONE && call->provider_id)
            check_allowed(v, call);
    }
}

/* ---- S17: nothing vanishes while its instance lives; S4: budgets ---- */

static void check_release(struct invariants *v, const struct object *gone)
{
    const struct instance *all;
    size_t n = cloud_sim_instances(v->f->cloud, &all);

    v->checks++;
    for (size_t i = 0; i < n; i++)
        if (alive(&all[i]) && gone->kind == &kind_nodeclaim &&
            same(all[i].nodeclaim, gone->meta.name))
            breach(v, "S17: NodeClaim %s is gone and its instance %s lives", gone->meta.name,
                   all[i].provider_id);
        else if (alive(&all[i]) && gone->kind == &kind_node &&
                 meta_has_finalizer(&gone->meta, FINALIZER_TERMINATION) &&
                 same(all[i].provider_id, ((const struct node *)(const void *)gone)->provider_id))
            breach(v, "S17: Node %s is gone and its instance lives", gone->meta.name);
}

struct pool_count {
    const char *pool;
    int64_t nodes, disrupted;
};

static bool voluntary(const struct nodeclaim *c)
{
    return condition_is(&c->conditions, "DisruptionReason", CONDITION_TRUE);
}

static void count_claims(void *arg, struct object *o)
{
    struct pool_count *n = arg;
    const struct nodeclaim *c = nodeclaim_of(o);

    if (!same(labels_get(&o->meta.labels, LABEL_NODEPOOL), n->pool) ||
        !condition_is(&c->conditions, "Initialized", CONDITION_TRUE) ||
        condition_is(&c->conditions, "InstanceTerminating", CONDITION_TRUE))
        return;
    n->nodes++;
    n->disrupted += voluntary(c);
}

/* For pools with one budget and no schedule, which is all that these tests make. */
static void check_budget(struct invariants *v, const struct nodeclaim *c)
{
    struct pool_count n = {.pool = labels_get(&c->obj.meta.labels, LABEL_NODEPOOL)};
    struct object *o = n.pool ? sim_object(v->f->sim, &kind_nodepool, NULL, n.pool) : NULL;
    const struct nodepool *p = o ? nodepool_of(o) : NULL;
    struct str text;
    int64_t most;

    v->checks++;
    if (!p || p->n_budgets != 1 || p->budgets[0].schedule)
        return;
    sim_each_object(v->f->sim, &kind_nodeclaim, count_claims, &n);
    text = str_from(p->budgets[0].nodes);
    if (str_has_suffix(text, STR("%"))) {
        text.len--;
        if (num_parse_i64(text, &most, NULL) < 0)
            return;
        most = (n.nodes * most + 99) / 100;
    } else if (num_parse_i64(text, &most, NULL) < 0) {
        return;
    }
    if (n.disrupted > most)
        breach(v, "S4: %lld of %lld nodes of NodePool %s are disrupted, the budget is %s",
               (long long)n.disrupted, (long long)n.nodes, n.pool, p->budgets[0].nodes);
}

static void changed(void *arg, struct object *before, struct object *after)
{
    struct invariants *v = arg;

    if (before && !after && (before->kind == &kind_nodeclaim || before->kind == &kind_node))
        check_release(v, before);
    if (before && after && after->kind == &kind_nodeclaim && voluntary(nodeclaim_of(after)) &&
        !voluntary(nodeclaim_of(before)))
        check_budget(v, nodeclaim_of(after));
}

/* ---- The calm end ---- */

static void calm_pod(void *arg, struct object *o)
{
    struct invariants *v = arg;
    const struct pod *p = pod_of(o);

    v->checks++;
    if (!pod_is_terminal(p) && !o->meta.deletion && p->phase != POD_RUNNING &&
        !labels_has(&o->meta.labels, "infeasible"))
        breach(v, "L1: pod %s does not run", o->meta.name);
}

static void calm_claim(void *arg, struct object *o)
{
    struct invariants *v = arg;
    const struct nodeclaim *c = nodeclaim_of(o);
    const struct instance *i = instance_by_id(v, c->provider_id);
    const struct node *n;

    v->checks++;
    if (o->meta.deletion)
        breach(v, "L6: NodeClaim %s does not end", o->meta.name);
    else if (!condition_is(&c->conditions, "Ready", CONDITION_TRUE))
        breach(v, "L6: NodeClaim %s does not become Ready", o->meta.name);
    else if (!i || !alive(i))
        breach(v, "L5: NodeClaim %s has no instance", o->meta.name);
    n = node_by(v, NULL, c->provider_id);
    if (n && pods_left_on(v, n->obj.meta.name) == 0)
        breach(v, "L3: node %s is empty and stays", n->obj.meta.name);
}

static void calm_node(void *arg, struct object *o)
{
    struct invariants *v = arg;

    v->checks++;
    if (!claim_of(v, NULL, node_of(o)->provider_id))
        breach(v, "L5: Node %s has no NodeClaim", o->meta.name);
}

void invariants_calm(struct invariants *v)
{
    const struct instance *all;
    size_t n = cloud_sim_instances(v->f->cloud, &all);

    sim_each_object(v->f->sim, &kind_pod, calm_pod, v);
    sim_each_object(v->f->sim, &kind_nodeclaim, calm_claim, v);
    sim_each_object(v->f->sim, &kind_node, calm_node, v);
    for (size_t i = 0; i < n; i++)
        if (alive(&all[i]) && !claim_of(v, NULL, all[i].provider_id))
            breach(v, "L5: instance %s of NodeClaim %s is leaked", all[i].provider_id,
                   all[i].nodeclaim ? all[i].nodeclaim : "?");
}

/* ---- Life ---- */

struct invariants *invariants_new(struct fleet *f)
{
    struct invariants *v = xcalloc(1, sizeof(*v));

    v->f = f;
    sim_on_object_change(f->sim, changed, v);
    return v;
}

void invariants_free(struct invariants *v)
{
    map_release(&v->orphans, free);
    free(v);
}

void invariants_faulty(struct invariants *v, bool faulty)
{
    v->faulty = faulty;
}
const char *invariants_breach(const struct invariants *v)
{
    return v->breach[0] ? v->breach : NULL;
}
size_t invariants_evictions(const struct invariants *v)
{
    return v->evictions;
}
size_t invariants_checks(const struct invariants *v)
{
    return v->checks;
}
