/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Making a finished packing cheaper without packing anew.
 *
 * Two moves, in rounds: a launch whose pods all fit into what others have left is dropped, the
 * worst filled first; and each launch becomes the cheapest choice that holds what it now holds. */

#include "base/bits.h"
#include "base/num.h"
#include "provisioner/solve/problem.h"

static bool holds_all(const struct problem *p, const struct choice *k, const struct spot *s)
{
    const int64_t *had = p->choices[s->kind].room;
    for (uint32_t r = 0; r < p->w->resources.n; r++) {
        int64_t used = had[r] - s->room[r];
        if (used > 0 && used > k->room[r])
            return false;
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (!bits_get(k->items, s->v[i].item))
            return false;
    return true;
}

/* Gives the launch another choice; what it holds stays. */
static void become(struct problem *p, struct spot *s, uint32_t choice)
{
    const struct choice *from = &p->choices[s->kind], *to = &p->choices[choice];
    choice_charge(p, from, -1);
    choice_charge(p, to, 1);
    for (uint32_t r = 0; r < p->w->resources.n; r++)
        s->room[r] = to->room[r] - (from->room[r] - s->room[r]);
    s->kind = choice;
}

static bool limits_allow(struct problem *p, const struct choice *from, const struct choice *to)
{
    choice_charge(p, from, -1);
    bool ok = choice_within_limits(p, to);
    choice_charge(p, from, 1);
    return ok;
}

static void downsize(struct problem *p)
{
    for (size_t b = 0; b < p->bins.len; b++) {
        struct spot *s = &p->bins.v[b];
        for (uint32_t k = 0; k < p->n_choices; k++) {
            const struct choice *to = &p->choices[k];
            if (to->pool != s->pool)
                continue;
            if (to->price_uusd_h >= p->choices[s->kind].price_uusd_h)
                break; /* a pool's choices are sorted by price */
            p->work--;
            if (holds_all(p, to, s) && limits_allow(p, &p->choices[s->kind], to)) {
                become(p, s, k);
                break;
            }
        }
    }
}

/* Parts per million of the price that the content is worth. */
static int64_t worth(const struct problem *p, const struct spot *s)
{
    int64_t value = 0;
    for (uint32_t i = 0; i < s->n; i++)
        value =
            num_add_sat(value, num_mul_sat(p->items[s->v[i].item].value_nusd_h, s->v[i].bundles));
    return num_mul_div(value, 1000, p->choices[s->kind].price_uusd_h);
}

/* Moves a bin's content into the others. True when it is empty; else everything is put back. */
static bool empty_out(struct problem *p, size_t bin)
{
    struct spot *s = &p->bins.v[bin];
    struct moved {
        size_t to;
        uint32_t item;
        int64_t bundles;
    };
    struct {
        VEC(struct moved);
    } moves = {0};
    bool stuck = false;
    for (uint32_t i = 0; i < s->n && !stuck; i++) {
        struct content c = s->v[i];
        for (size_t t = 0; t < p->bins.len && c.bundles > 0; t++) {
            struct spot *to = &p->bins.v[t];
            p->work--;
            if (t == bin || !bits_get(p->choices[to->kind].items, c.item))
                continue;
            int64_t copies = spot_copies(p, to, c.item, c.bundles);
            if (copies <= 0)
                continue;
            spot_put(p, to, c.item, copies);
            vec_push(&moves, (struct moved){t, c.item, copies});
            c.bundles -= copies;
        }
        stuck = c.bundles > 0;
    }
    for (size_t m = 0; stuck && m < moves.len; m++) {
        struct spot *to = &p->bins.v[moves.v[m].to];
        for (uint32_t i = 0; i < to->n; i++)
            if (to->v[i].item == moves.v[m].item) {
                spot_take(p, to, i, moves.v[m].bundles);
                break;
            }
    }
    vec_release(&moves);
    return !stuck;
}

/* Whether pods of the bin are there because of each other. */
static bool has_company(const struct problem *p, const struct spot *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < p->items[s->v[i].item].class_->n_affinities; k++)
            for (uint32_t h = 0; h < p->n_hosts; h++)
                if (p->hosts[h] == p->items[s->v[i].item].class_->affinities[k].group)
                    return true;
    return false;
}

struct by_worth {
    int64_t worth;
    size_t bin;
};

static int least_worth(const void *x, const void *y)
{
    const struct by_worth *p = x, *q = y;
    if (p->worth != q->worth)
        return p->worth < q->worth ? -1 : 1;
    return p->bin < q->bin ? -1 : 1;
}

static bool drop_some(struct problem *p)
{
    size_t n = p->bins.len;
    struct by_worth *order = xcalloc(n + 1, sizeof(*order));
    bool *gone = xcalloc(n + 1, sizeof(*gone));
    for (size_t b = 0; b < n; b++)
        order[b] = (struct by_worth){worth(p, &p->bins.v[b]), b};
    if (n)
        qsort(order, n, sizeof(*order), least_worth);
    bool any = false;
    for (size_t k = 0; k < n && p->work > 0 && order[k].worth < 1000000; k++) {
        size_t b = order[k].bin;
        if (has_company(p, &p->bins.v[b]) || !empty_out(p, b))
            continue;
        choice_charge(p, &p->choices[p->bins.v[b].kind], -1);
        gone[b] = any = true;
        /* Nothing moves into it again: no room is left. */
        for (uint32_t r = 0; r < p->w->resources.n; r++)
            p->bins.v[b].room[r] = 0;
        p->bins.v[b].n = 0;
    }
    size_t kept = 0;
    for (size_t b = 0; b < n; b++)
        if (!gone[b])
            p->bins.v[kept++] = p->bins.v[b];
    p->bins.len = kept;
    free(order);
    free(gone);
    return any;
}

void improve(struct problem *p)
{
    for (int round = 0; round < 4; round++) {
        int64_t before = pack_price(p);
        downsize(p);
        bool dropped = p->work > 0 && drop_some(p);
        if (!dropped && pack_price(p) == before)
            break;
    }
    downsize(p);
}
