/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Names, lists and prices of the plan. */

#include "provisioner/solve/emit.h"

#include "base/bits.h"
#include "base/num.h"
#include "provisioner/solve/why.h"

struct emitter {
    struct problem *p;
    struct plan *plan;
    uint32_t *cursor; /* per item: pods handed out so far */
    unsigned alternatives_max;
};

static int by_number(const void *x, const void *y)
{
    uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;
    return p < q ? -1 : p > q;
}

/* The next pods of the spot's content, ascending. */
static uint32_t *hand_out(struct emitter *e, const struct spot *s, uint32_t *ret_n)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += (uint32_t)s->v[i].bundles * e->p->items[s->v[i].item].bundle;
    uint32_t *v = ARENA_NEW_ARRAY(&e->plan->arena, uint32_t, n);
    *ret_n = n;
    n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct item *it = &e->p->items[s->v[i].item];
        uint32_t pods = (uint32_t)s->v[i].bundles * it->bundle;
        memcpy(v + n, it->pods + e->cursor[s->v[i].item], pods * sizeof(*v));
        e->cursor[s->v[i].item] += pods;
        n += pods;
    }
    if (n)
        qsort(v, n, sizeof(*v), by_number);
    return v;
}

/* ---- Launches ---- */

/* Whether the launch could be this offer too: same pool, open to all of its pods, and with room. */
static bool could_be(const struct problem *p, const struct spot *s, uint32_t offer)
{
    const struct world_offer *o = &p->w->offers[offer];
    const int64_t *had = p->choices[s->kind].room;
    if (o->pool != s->pool || !o->usable)
        return false;
    for (uint32_t r = 0; r < p->w->resources.n; r++) {
        int64_t used = had[r] - s->room[r];
        if (used > 0 && used > o->room[r])
            return false;
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (!bits_get(p->masks[p->items[s->v[i].item].mask].offers, offer))
            return false;
    return true;
}

/* A larger alternative must not break a limit even if every launch of the pool took one like it. */
static bool limits_bear(const struct problem *p, const struct spot *s, uint32_t offer,
                        int64_t launches)
{
    const int64_t *left = p->limit_left[s->pool], *is = p->choices[s->kind].capacity;
    const int64_t *would = p->w->offers[offer].capacity;
    for (uint32_t r = 0; r < p->w->resources.n; r++)
        if (left[r] != INT64_MAX && would[r] > is[r] &&
            would[r] - is[r] > MAX(left[r], 0) / launches)
            return false;
    return true;
}

static struct plan_alternative alternative(const struct world *w, uint32_t offer)
{
    const struct world_offer *o = &w->offers[offer];
    return (struct plan_alternative){
        .offer = offer,
        .instance_type = o->type->name,
        .zone = o->offering->zone ? o->offering->zone : "",
        .capacity_type = world_capacity_type(o->offering->capacity_type),
        .price_uusd_h = o->price_uusd_h,
    };
}

static void set_alternatives(struct emitter *e, const struct spot *s, int64_t launches,
                             struct plan_launch *to)
{
    const struct problem *p = e->p;
    const struct choice *chosen = &p->choices[s->kind];
    struct plan_alternative *v =
        ARENA_NEW_ARRAY(&e->plan->arena, struct plan_alternative, e->alternatives_max);
    uint32_t n = 0;
    v[n++] = alternative(p->w, chosen->offer);
    int64_t dearest = num_mul_sat(chosen->price_uusd_h, 2);
    for (uint32_t o = 0; o < p->w->n_offers && n < e->alternatives_max; o++) {
        const struct world_offer *x = &p->w->offers[o];
        if (x->pool != s->pool || o == chosen->offer || x->price_uusd_h < chosen->price_uusd_h)
            continue;
        if (x->price_uusd_h > dearest && n >= 3)
            break; /* a pool's offers are sorted by price */
        if (could_be(p, s, o) && limits_bear(p, s, o, launches))
            v[n++] = alternative(p->w, o);
    }
    to->alternatives = v;
    to->n_alternatives = n;
}

/* Values for the keys that the pool leaves open, as the pods of the launch want them. */
static void set_labels(struct emitter *e, const struct spot *s, struct plan_launch *to)
{
    const struct world_pool *pool = &e->p->w->pools[s->pool];
    const struct podset *asks = NULL;
    for (uint32_t i = 0; i < s->n; i++)
        if (e->p->masks[e->p->items[s->v[i].item].mask].open[s->pool])
            asks = e->p->items[s->v[i].item].class_;
    struct arena *a = &e->plan->arena;
    struct label *v = ARENA_NEW_ARRAY(a, struct label, pool->extra.n);
    const struct requirements *wish = NULL;
    for (uint32_t k = 0; asks && k < asks->n_alternatives && !wish; k++)
        if (requirements_compatible(&pool->extra, &asks->alternatives[k], label_is_well_known,
                                    NULL))
            wish = &asks->alternatives[k];
    for (uint32_t i = 0; i < pool->extra.n; i++) {
        struct requirement r = pool->extra.v[i];
        if (!r.complement && r.n_values == 1)
            continue;
        const struct requirement *want = wish ? requirements_find(wish, r.key) : NULL;
        if (want)
            r = requirement_intersect(&r, want, a);
        if (requirement_allows_absent(&r))
            continue;
        const char *value = requirement_any(&r, a);
        if (value)
            v[to->labels.n++] = (struct label){r.key, value};
    }
    to->labels.v = v;
}

static void add_launch(struct emitter *e, const struct spot *s, int64_t launches,
                       struct plan_launch *to)
{
    const struct world *w = e->p->w;
    struct arena *a = &e->plan->arena;
    to->pool = s->pool;
    to->node_pool = w->pools[s->pool].name;
    to->pods = hand_out(e, s, &to->n_pods);
    const char **keys = ARENA_NEW_ARRAY(a, const char *, to->n_pods);
    for (uint32_t i = 0; i < to->n_pods; i++)
        keys[i] = w->pods[to->pods[i]].key;
    to->pod_keys = keys;
    const struct choice *k = &e->p->choices[s->kind];
    int64_t *used = ARENA_NEW_ARRAY(a, int64_t, w->resources.n);
    for (uint32_t r = 0; r < w->resources.n; r++)
        used[r] = k->room[r] - s->room[r];
    to->requests = resources_list(&w->resources, used, a);
    to->allocatable = resources_list(&w->resources, k->room, a);
    set_alternatives(e, s, launches, to);
    set_labels(e, s, to);
}

static int dearest_first(const void *x, const void *y)
{
    const struct plan_launch *p = x, *q = y;
    if (p->pool != q->pool)
        return p->pool < q->pool ? -1 : 1;
    int64_t a = p->alternatives[0].price_uusd_h, b = q->alternatives[0].price_uusd_h;
    if (a != b)
        return a > b ? -1 : 1;
    if (p->alternatives[0].offer != q->alternatives[0].offer)
        return p->alternatives[0].offer < q->alternatives[0].offer ? -1 : 1;
    return p->pods[0] < q->pods[0] ? -1 : 1;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct plan_launch *)x)->name, ((const struct plan_launch *)y)->name);
}

static void add_launches(struct emitter *e)
{
    struct problem *p = e->p;
    struct plan *plan = e->plan;
    size_t n = p->bins.len;
    int64_t *of_pool = ARENA_NEW_ARRAY(&p->arena, int64_t, p->w->n_pools + 1);
    struct plan_launch *v = ARENA_NEW_ARRAY(&plan->arena, struct plan_launch, n + 1);
    for (size_t i = 0; i < n; i++)
        of_pool[p->bins.v[i].pool]++;
    for (size_t i = 0; i < n; i++)
        add_launch(e, &p->bins.v[i], of_pool[p->bins.v[i].pool], &v[i]);
    if (n)
        qsort(v, n, sizeof(*v), dearest_first);
    memset(of_pool, 0, p->w->n_pools * sizeof(*of_pool));
    for (size_t i = 0; i < n; i++) {
        v[i].name =
            arena_printf(&plan->arena, "%s-%04lld", v[i].node_pool, (long long)++of_pool[v[i].pool])
                .p;
        plan->launch_uusd_h = num_add_sat(plan->launch_uusd_h, v[i].alternatives[0].price_uusd_h);
    }
    if (n)
        qsort(v, n, sizeof(*v), by_name);
    plan->objective_uusd_h = plan->launch_uusd_h;
    plan->launches = v;
    plan->n_launches = (uint32_t)n;
}

/* ---- Placements and refusals ---- */

static int place_by_pod(const void *x, const void *y)
{
    return by_number(&((const struct plan_placement *)x)->pod,
                     &((const struct plan_placement *)y)->pod);
}

static void add_places(struct emitter *e)
{
    const struct world *w = e->p->w;
    struct plan *plan = e->plan;
    struct plan_placement *v = ARENA_NEW_ARRAY(&plan->arena, struct plan_placement, w->n_pods + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        uint32_t count;
        const uint32_t *pods = hand_out(e, &e->p->nodes[i], &count);
        for (uint32_t k = 0; k < count; k++)
            v[n++] = (struct plan_placement){pods[k], w->pods[pods[k]].key, w->nodes[i].name};
    }
    if (n)
        qsort(v, n, sizeof(*v), place_by_pod);
    plan->places = v;
    plan->n_places = n;
}

static int refusal_by_pod(const void *x, const void *y)
{
    return by_number(&((const struct plan_refusal *)x)->pod,
                     &((const struct plan_refusal *)y)->pod);
}

static void add_refusals(struct emitter *e)
{
    const struct world *w = e->p->w;
    struct plan *plan = e->plan;
    struct plan_refusal *v = ARENA_NEW_ARRAY(&plan->arena, struct plan_refusal, w->n_pods + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->p->n_items; i++) {
        const struct item *it = &e->p->items[i];
        if (it->taken == it->n)
            continue;
        struct why why = why_refused(w, it->class_, e->p->limit_left, &plan->arena);
        if (it->refusal && *it->refusal)
            why.reason = it->refusal;
        for (uint32_t k = it->taken; k < it->n; k++)
            v[n++] = (struct plan_refusal){it->pods[k], w->pods[it->pods[k]].key, why.reason,
                                           why.detail};
    }
    if (n)
        qsort(v, n, sizeof(*v), refusal_by_pod);
    plan->refusals = v;
    plan->n_refusals = n;
}

struct plan *emit_plan(struct problem *p, unsigned alternatives_max)
{
    struct plan *plan = xcalloc(1, sizeof(*plan));
    struct emitter e = {.p = p, .plan = plan, .alternatives_max = alternatives_max};
    e.cursor = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_items + 1);
    add_places(&e);
    add_launches(&e);
    add_refusals(&e);
    plan->input.pods = p->w->n_pods_seen;
    for (uint32_t i = 0; i < p->w->n_pods; i++)
        plan->input.pending += p->w->pods[i].ignored == NULL;
    plan->input.nodes = p->w->n_nodes;
    plan->input.pools = p->w->n_pools;
    plan->input.offers = p->w->n_offers;
    plan->input.classes = p->w->n_classes;
    return plan;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    arena_release(&p->arena);
    free(p);
}

int64_t plan_gap(const struct plan *p)
{
    if (p->objective_uusd_h <= 0 || p->bound_uusd_h <= 0)
        return 0;
    return num_mul_div(p->objective_uusd_h - p->bound_uusd_h, 10000, p->bound_uusd_h);
}
