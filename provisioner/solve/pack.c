/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The greedy packer: free room first, then the node that gives most value for its price.
 *
 * An item's value is the cheapest share of a node that holds it, so a node that is filled with
 * value above its price is a good buy. Each choice is filled in order of value per share of the
 * choice that the item takes; the best buy is repeated as long as it can be filled the same way,
 * and a filling stays known until one of its items runs short. Pools of larger weight are packed
 * first and exclusively. (The idea is the "reservation price" of Eva, EuroSys 2025.) */

#include "base/bits.h"
#include "base/num.h"
#include "provisioner/solve/problem.h"

enum share { SHARE_SUM, SHARE_MAX, N_SHARES };

/* A choice filled as well as its orders allow. */
struct filling {
    uint32_t *order[N_SHARES]; /* its items, best value for their share first; NULL: not yet made */
    uint32_t n;
    struct content *v;
    uint32_t n_v;
    int64_t value;
    bool known;
};

struct ranked {
    int64_t density;
    uint32_t item;
};

static int by_density(const void *x, const void *y)
{
    const struct ranked *p = x, *q = y;
    if (p->density != q->density)
        return p->density > q->density ? -1 : 1;
    return p->item < q->item ? -1 : 1;
}

/* Parts per million of the room that one bundle takes, at least 1. */
static int64_t share_of(const struct problem *p, const struct item *i, const int64_t *room,
                        enum share how)
{
    int64_t sum = 1;
    for (uint32_t r = 0; r < p->w->resources.n; r++) {
        if (i->need[r] <= 0 || room[r] <= 0)
            continue;
        int64_t part = num_mul_div(i->need[r], 1000000, room[r]);
        sum = how == SHARE_SUM ? num_add_sat(sum, part) : MAX(sum, part);
    }
    return sum;
}

static void rank(const struct problem *p, const int64_t *room, enum share how, struct ranked *v,
                 uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct item *i = &p->items[v[k].item];
        v[k].density = num_mul_div(i->value_nusd_h, 1000000, share_of(p, i, room, how));
    }
    if (n)
        qsort(v, n, sizeof(*v), by_density);
}

/* ---- Free room ---- */

static void fill_node(struct problem *p, uint32_t node, struct ranked *scratch)
{
    struct spot *s = &p->nodes[node];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_items; i++) {
        const struct item *it = &p->items[i];
        if (item_left(it) > 0 && !it->refusal &&
            resources_fit(it->need, s->room, p->w->resources.n) &&
            bits_get(p->masks[it->mask].nodes, node))
            scratch[n++].item = i;
    }
    rank(p, s->room, SHARE_SUM, scratch, n);
    for (uint32_t k = 0; k < n; k++) {
        struct item *it = &p->items[scratch[k].item];
        int64_t copies = spot_copies(p, s, scratch[k].item, item_left(it));
        if (copies <= 0)
            continue;
        spot_put(p, s, scratch[k].item, copies);
        it->taken += (uint32_t)copies * it->bundle;
    }
}

void pack_nodes(struct problem *p)
{
    const struct world *w = p->w;
    struct ranked *scratch = xcalloc(p->n_items + 1, sizeof(*scratch));
    for (uint32_t i = 0; i < w->n_nodes; i++)
        if (w->nodes[i].state != WORLD_NODE_CLOSED && w->nodes[i].state != WORLD_NODE_DELETING &&
            w->nodes[i].room[RESOURCE_PODS] > 0)
            fill_node(p, i, scratch);
    free(scratch);
}

/* ---- Limits ---- */

bool choice_within_limits(const struct problem *p, const struct choice *k)
{
    const int64_t *left = p->limit_left[k->pool];
    uint32_t n = p->w->resources.n;
    for (uint32_t r = 0; r < n; r++)
        if (left[r] != INT64_MAX && k->capacity[r] > 0 && k->capacity[r] > left[r])
            return false;
    return left[n] > 0;
}

static int64_t times_within_limits(const struct problem *p, const struct choice *k, int64_t most)
{
    const int64_t *left = p->limit_left[k->pool];
    uint32_t n = p->w->resources.n;
    for (uint32_t r = 0; r < n; r++)
        if (left[r] != INT64_MAX && k->capacity[r] > 0)
            most = MIN(most, left[r] / k->capacity[r]);
    return MIN(most, left[n]);
}

void choice_charge(struct problem *p, const struct choice *k, int64_t times)
{
    int64_t *left = p->limit_left[k->pool];
    uint32_t n = p->w->resources.n;
    for (uint32_t r = 0; r < n; r++)
        if (left[r] != INT64_MAX)
            left[r] = num_add_sat(left[r], -num_mul_sat(k->capacity[r], times));
    if (left[n] != INT64_MAX)
        left[n] -= times;
}

/* Parts per million of what the pool may still launch that one node takes. */
static int64_t limit_share(const struct problem *p, const struct choice *k)
{
    const int64_t *left = p->limit_left[k->pool];
    int64_t most = 1;
    for (uint32_t r = 0; r < p->w->resources.n; r++)
        if (left[r] != INT64_MAX && left[r] > 0 && k->capacity[r] > 0)
            most = MAX(most, num_mul_div(k->capacity[r], 1000000, left[r]));
    return most;
}

/* ---- Buying ---- */

struct buyer {
    struct problem *p;
    struct filling *fillings; /* per choice */
    struct spot spot;         /* scratch */
    struct content *best;
    struct ranked *scratch;
    enum pack_aim aim;
};

static void make_orders(struct buyer *b, struct filling *f, const struct choice *k)
{
    const struct problem *p = b->p;
    for (size_t i = bits_next(k->items, p->item_words, 0); i != SIZE_MAX;
         i = bits_next(k->items, p->item_words, i + 1))
        if (!p->items[i].follower)
            b->scratch[f->n++].item = (uint32_t)i;
    for (enum share how = 0; how < N_SHARES; how++) {
        rank(p, k->room, how, b->scratch, f->n);
        f->order[how] = ARENA_NEW_ARRAY(&b->p->arena, uint32_t, f->n);
        for (uint32_t i = 0; i < f->n; i++)
            f->order[how][i] = b->scratch[i].item;
    }
}

/* Fills the scratch spot in one order; returns the value. */
static int64_t fill(struct buyer *b, const struct choice *k, const uint32_t *order, uint32_t n)
{
    struct problem *p = b->p;
    spot_reset(p, &b->spot, k->room);
    b->spot.pool = k->pool;
    b->spot.node = WORLD_NONE;
    int64_t value = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct item *it = &p->items[order[i]];
        int64_t left = item_left(it);
        if (left <= 0)
            continue;
        int64_t copies = spot_copies(p, &b->spot, order[i], left);
        if (copies <= 0)
            continue;
        spot_put(p, &b->spot, order[i], copies);
        value = num_add_sat(value, num_mul_sat(it->value_nusd_h, copies));
    }
    return value;
}

static void refill(struct buyer *b, uint32_t choice)
{
    struct filling *f = &b->fillings[choice];
    const struct choice *k = &b->p->choices[choice];
    if (!f->order[0])
        make_orders(b, f, k);
    f->value = 0;
    f->n_v = 0;
    f->known = true;
    for (enum share how = 0; how < N_SHARES; how++) {
        int64_t value = fill(b, k, f->order[how], f->n);
        if (value <= f->value)
            continue;
        f->value = value;
        f->v = xrealloc(f->v, b->spot.n * sizeof(*f->v));
        memcpy(f->v, b->spot.v, b->spot.n * sizeof(*f->v));
        f->n_v = b->spot.n;
    }
}

static bool still_fills(const struct problem *p, const struct filling *f)
{
    if (!f->known)
        return false;
    for (uint32_t i = 0; i < f->n_v; i++)
        if (item_left(&p->items[f->v[i].item]) < f->v[i].bundles)
            return false;
    return true;
}

/* Whether x gives more than y for what the aim counts. */
static bool better_buy(const struct buyer *b, uint32_t x, uint32_t y)
{
    const struct choice *p = &b->p->choices[x], *q = &b->p->choices[y];
    __int128 x_cost = p->price_uusd_h, y_cost = q->price_uusd_h;
    if (b->aim == PACK_BY_NODES)
        x_cost = y_cost = 1;
    else if (b->aim == PACK_BY_LIMITS) {
        x_cost = limit_share(b->p, p);
        y_cost = limit_share(b->p, q);
    }
    __int128 x_gain = (__int128)b->fillings[x].value * y_cost,
             y_gain = (__int128)b->fillings[y].value * x_cost;
    if (x_gain != y_gain)
        return x_gain > y_gain;
    return p->price_uusd_h < q->price_uusd_h;
}

static void buy(struct buyer *b, uint32_t choice)
{
    struct problem *p = b->p;
    const struct filling *f = &b->fillings[choice];
    int64_t times = INT64_MAX;
    for (uint32_t i = 0; i < f->n_v; i++)
        times = MIN(times, item_left(&p->items[f->v[i].item]) / f->v[i].bundles);
    times = times_within_limits(p, &p->choices[choice], times);
    for (int64_t t = 0; t < times; t++) {
        struct spot s;
        spot_init_bin(p, &s, choice);
        for (uint32_t i = 0; i < f->n_v; i++) {
            struct item *it = &p->items[f->v[i].item];
            spot_put(p, &s, f->v[i].item, f->v[i].bundles);
            it->taken += (uint32_t)f->v[i].bundles * it->bundle;
        }
        vec_push(&p->bins, s);
    }
    choice_charge(p, &p->choices[choice], times);
}

static void buy_from(struct buyer *b, uint32_t first, uint32_t end)
{
    for (;;) {
        uint32_t best = WORLD_NONE;
        for (uint32_t k = first; k < end; k++) {
            if (!choice_within_limits(b->p, &b->p->choices[k]))
                continue;
            if (!still_fills(b->p, &b->fillings[k]))
                refill(b, k);
            if (b->fillings[k].value > 0 && (best == WORLD_NONE || better_buy(b, k, best)))
                best = k;
        }
        if (best == WORLD_NONE)
            return;
        buy(b, best);
    }
}

void pack_launch(struct problem *p, enum pack_aim aim)
{
    struct buyer b = {.p = p, .aim = aim};
    b.fillings = xcalloc(p->n_choices + 1, sizeof(*b.fillings));
    b.scratch = xcalloc(p->n_items + 1, sizeof(*b.scratch));
    b.spot.room = ARENA_NEW_ARRAY(&p->arena, int64_t, p->w->resources.n);
    b.spot.host = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_hosts);
    b.spot.anti = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_hosts);
    for (uint32_t first = 0; first < p->n_choices;) {
        uint32_t end = first;
        int32_t weight = p->w->pools[p->choices[first].pool].weight;
        while (end < p->n_choices && p->w->pools[p->choices[end].pool].weight == weight)
            end++;
        buy_from(&b, first, end);
        first = end;
    }
    for (uint32_t k = 0; k < p->n_choices; k++)
        free(b.fillings[k].v);
    free(b.fillings);
    free(b.scratch);
}

/* Pods that need the company of others, beside those others. */
void pack_followers(struct problem *p)
{
    for (uint32_t i = 0; i < p->n_items; i++) {
        struct item *it = &p->items[i];
        if (!it->follower || it->refusal)
            continue;
        for (size_t b = 0; b < p->bins.len && item_left(it) > 0; b++) {
            struct spot *s = &p->bins.v[b];
            int64_t copies =
                bits_get(p->choices[s->kind].items, i) ? spot_copies(p, s, i, item_left(it)) : 0;
            if (copies <= 0)
                continue;
            spot_put(p, s, i, copies);
            it->taken += (uint32_t)copies * it->bundle;
        }
    }
}

int64_t pack_unplaced(const struct problem *p)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < p->n_items; i++)
        n += p->items[i].n - p->items[i].taken;
    return n;
}

int64_t pack_price(const struct problem *p)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->bins.len; i++)
        sum = num_add_sat(sum, p->choices[p->bins.v[i].kind].price_uusd_h);
    return sum;
}
