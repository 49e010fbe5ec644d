/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/provision.h"

#include "base/num.h"
#include "provisioner/disrupt/empty.h"

#define EVALUATE_AFTER (20 * NS_PER_MS) /* events come in bursts; one look serves them all */
#define SWEEP_EVERY (10 * NS_PER_S)     /* while something is promised or refused */

static void evaluate(void *arg);

void provision_poke(struct control *c)
{
    int64_t at = loop_now(c->loop) + EVALUATE_AFTER;

    if (c->ready && (!loop_timer_active(&c->provision->timer) || c->provision->timer.node.key > at))
        loop_timer_at(c->loop, &c->provision->timer, at, evaluate, c);
}

/* ---- Who waits ---- */

struct scan {
    struct control *c;
    struct map seen;     /* keys that want a place now */
    int64_t first, last; /* when the longest and the latest began to wait */
    int64_t again;       /* when the next one that was refused may be tried again */
    bool complete;       /* nobody will join them */
};

static void wants(struct scan *s, const char *key, bool complete)
{
    struct control *c = s->c;
    const struct nomination *n = map_get(&c->provision->nominations, str_from(key));
    void **slot;
    int64_t since, again;

    if (n && !n->stale)
        return;
    if (refused_now(c, key, &again)) {
        s->again = MIN(s->again, again);
        return;
    }
    slot = map_slot(&c->provision->waiting, str_from(key));
    if (!*slot) {
        *slot = xcalloc(1, sizeof(int64_t));
        *(int64_t *)*slot = control_now(c);
    }
    since = *(int64_t *)*slot;
    map_put(&s->seen, str_from(key), s);
    s->first = MIN(s->first, since);
    s->last = MAX(s->last, since);
    /* Those that were refused before come back in step with everything that changes; they wait. */
    s->complete &= complete && !map_has(&c->provision->refusals, str_from(key)) && !n;
}

/* All pods that the owner announces exist, and the scheduler has looked at each. */
static bool owner_complete(const struct control *c, const struct pod *p)
{
    static const struct {
        const struct kind *kind;
        enum cache cache;
    } owners[] = {{&kind_replicaset, CACHE_REPLICASET},
                  {&kind_statefulset, CACHE_STATEFULSET},
                  {&kind_job, CACHE_JOB}};
    const struct owner_ref *o = meta_controller(&p->obj.meta);
    const struct owner_memory *m =
        o && o->uid ? map_get(&c->cluster.owners, str_from(o->uid)) : NULL;

    for (size_t i = 0; m && i < ARRAY_LEN(owners); i++) {
        const struct object *found;
        const struct workload *w;
        int64_t expected;

        if (strcmp(o->kind, owners[i].kind->kind) != 0)
            continue;
        found = informer_get(c->cluster.caches[owners[i].cache], p->obj.meta.namespace_, o->name);
        if (!found)
            return false;
        w = (const struct workload *)(const void *)found;
        expected = w->replicas;
        if (owners[i].cache == CACHE_JOB) {
            expected = w->parallelism < 0 ? 1 : w->parallelism;
            if (w->completions >= 0)
                expected = MIN(expected, w->completions - w->succeeded);
        }
        return m->decided == m->live && m->live >= expected;
    }
    return false;
}

static void scan_moving(struct scan *s)
{
    struct control *c = s->c;

    cluster_each(c, CACHE_NODECLAIM, nodeclaim, claim)
    {
        const struct node *n = claim->obj.meta.deletion && claim->provider_id
                                   ? cluster_node_of_id(c, claim->provider_id, NULL)
                                   : NULL;
        const struct node_memory *m =
            n ? map_get(&c->cluster.nodes, str_from(n->obj.meta.name)) : NULL;
        char key[512];

        for (size_t i = 0; m && i < m->pods.len; i++)
            if (pod_keeps_node(m->pods.v[i]) && !pod_is_terminating(m->pods.v[i])) {
                struct str k = object_key(key, &m->pods.v[i]->obj);

                key[k.len] = '\0';
                wants(s, key, true);
            }
    }
}

static void scan_all(struct control *c, struct scan *s)
{
    struct coming_pods coming;
    size_t cursor = 0;

    *s = (struct scan){
        .c = c, .first = TIME_NEVER, .last = 0, .again = TIME_NEVER, .complete = true};
    map_each(&c->cluster.unbound, it) {
        const struct pod *p = it->value;

        if (pod_is_provisionable(p))
            wants(s, it->key, owner_complete(c, p));
    }
    scan_moving(s);
    while (coming_next(c, &cursor, &coming)) {
        char key[600];

        snprintf(key, sizeof(key), "%s/%s (coming)", coming.workload->obj.meta.namespace_,
                 coming.workload->obj.meta.name);
        if (coming.wanting)
            wants(s, key, true);
    }
    map_each(&c->provision->waiting, it) {
        if (!map_has(&s->seen, map_key(it)))
            free(map_remove(&c->provision->waiting, map_key(it)));
    }
}

/* ---- A plan ---- */

static void pass_run(void *arg)
{
    struct pass *p = arg;

    p->plan = solve(p->world, &p->options);
}

static void pass_dispose(void *arg)
{
    pass_free(arg);
}

static void pass_done(void *arg)
{
    struct pass *p = arg;
    struct control *c = p->c;

    c->provision->job = NULL;
    c->provision->pass = NULL;
    c->provision->plans++;
    perform_plan(c, p);
    /* Whoever waited and got no answer is not asked about again until something changes. */
    map_each(&c->provision->waiting, it) {
        const struct nomination *n = map_get(&c->provision->nominations, map_key(it));

        if ((!n || n->stale) && !refused_now(c, it->key, NULL))
            refuse(c, it->key, p->generation, NULL);
        free(map_remove(&c->provision->waiting, map_key(it)));
    }
    provision_poke(c);
}

static void start_plan(struct control *c)
{
    struct err err = ERR_INIT;
    struct pass *p = pass_new(c, &err);

    if (!p) {
        log_error("the world could not be built", LOG_ERR(&err));
        map_each(&c->provision->waiting, it)
            refuse(c, it->key, c->cluster.generation, err.msg);
        return;
    }
    coming_planned(c);
    c->provision->pass = p;
    c->provision->job =
        worker_start(c->worker, c->o.solve_cost, pass_run, pass_dispose, pass_done, p);
}

static bool may_plan(const struct control *c)
{
    return c->ready && c->leader && pools_settled(c) && !c->provision->pass &&
           c->provision->creating == 0 && (c->o.observe || execute_allowed(c));
}

static void evaluate(void *arg)
{
    struct control *c = arg;
    struct scan s;
    int64_t now = control_now(c), at;

    if (!may_plan(c))
        return; /* the end of what is under way pokes again; leadership does too */
    promise_sweep(c);
    scan_all(c, &s);
    map_release(&s.seen, NULL);
    if (s.first == TIME_NEVER) {
        if (map_len(&c->provision->nominations) + map_len(&c->provision->refusals) > 0)
            loop_timer_in(c->loop, &c->provision->timer, MIN(SWEEP_EVERY, s.again - now), evaluate,
                          c);
        return;
    }
    at = s.complete ? now : MIN(s.last + c->o.batch_idle, s.first + c->o.batch_max);
    if (at <= now)
        start_plan(c);
    else
        loop_timer_in(c->loop, &c->provision->timer, at - now, evaluate, c);
}

void provision_claim_gone(struct control *c, const char *claim)
{
    (void)claim;
    provision_poke(c);
}

void provision_init(struct control *c)
{
    c->provision = xcalloc(1, sizeof(*c->provision));
}

void provision_release(struct control *c)
{
    loop_timer_cancel(c->loop, &c->provision->timer);
    if (c->provision->job)
        worker_cancel(c->provision->job);
    map_release(&c->provision->waiting, free);
    promise_release(c);
    free(c->provision);
}

/* ---- Claims made by hand ---- */

static int by_price(const void *x, const void *y)
{
    const struct plan_alternative *a = x, *b = y;
    int d = (a->price_uusd_h > b->price_uusd_h) - (a->price_uusd_h < b->price_uusd_h);

    if (!d)
        d = strcmp(a->instance_type, b->instance_type);
    if (!d)
        d = strcmp(a->zone, b->zone);
    return d ? d : strcmp(a->capacity_type, b->capacity_type);
}

static bool holds(const struct instance_type *t, const struct resource_list *requests)
{
    for (uint32_t i = 0; i < requests->n; i++)
        if (requests->v[i].amount > resource_list_get(&t->allocatable, requests->v[i].name))
            return false;
    return true;
}

static bool offers_claim(const struct nodeclaim *claim, const struct instance_type *t,
                         const struct offering *o, struct arena *a)
{
    struct requirements wish =
        requirements_from_selectors(claim->spec.requirements, claim->spec.n_requirements, a);
    struct requirements type = requirements_from_labels(&t->labels, a), own;
    struct requirement own_v[] = {
        requirement_equals(LABEL_CAPACITY_TYPE, capacity_type_name(o->capacity_type), a),
        requirement_equals(LABEL_ARCH, t->arch, a),
        requirement_equals(LABEL_OS, t->os, a),
        requirement_equals(LABEL_INSTANCE_TYPE, t->name, a),
        requirement_equals(LABEL_ZONE, o->zone, a),
    };

    for (size_t i = 0; i < ARRAY_LEN(own_v); i++) {
        struct requirements one = {&own_v[i], 1};

        type = requirements_merge(&type, &one, a);
    }
    own = requirements_from_labels(&claim->obj.meta.labels, a);
    (void)own;
    /* Labels of the claim itself satisfy what they name, as a pool's template labels would. */
    for (uint32_t i = 0; i < own.n; i++)
        if (!requirements_find(&type, own.v[i].key)) {
            struct requirements one = {&own.v[i], 1};

            type = requirements_merge(&type, &one, a);
        }
    return requirements_compatible(&type, &wish, NULL, NULL);
}

size_t provision_offerings_of(struct control *c, const struct nodeclaim *claim, struct arena *a,
                              struct launch_offering *ret, size_t max)
{
    const struct catalog *cat = pools_catalog(c, &claim->spec.class_ref);
    VEC_DEFINE(found, struct plan_alternative) v = {0};
    size_t n = 0;

    for (uint32_t i = 0; cat && i < cat->n_types; i++) {
        const struct instance_type *t = &cat->types[i];

        for (uint32_t j = 0; j < t->n_offerings && holds(t, &claim->requests); j++) {
            const struct offering *o = &t->offerings[j];

            if (o->price_uusd_h > 0 && o->available && offers_claim(claim, t, o, a))
                vec_push(&v, (struct plan_alternative){0, t->name, o->zone,
                                                       capacity_type_name(o->capacity_type),
                                                       o->price_uusd_h});
        }
    }
    if (v.len > 0)
        qsort(v.v, v.len, sizeof(*v.v), by_price);
    for (; n < v.len && n < max; n++) {
        ret[n] = (struct launch_offering){arena_cstr(a, str_from(v.v[n].instance_type)),
                                          arena_cstr(a, str_from(v.v[n].zone)), 0};
        (void)capacity_type_parse(str_from(v.v[n].capacity_type), &ret[n].capacity_type, NULL);
    }
    vec_release(&v);
    return n;
}
