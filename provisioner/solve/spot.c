/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Filling one place. */

#include "base/bits.h"
#include "provisioner/solve/problem.h"

void spot_reset(const struct problem *p, struct spot *s, const int64_t *room)
{
    memcpy(s->room, room, p->w->resources.n * sizeof(*s->room));
    if (p->n_hosts) {
        memset(s->host, 0, p->n_hosts * sizeof(*s->host));
        memset(s->anti, 0, p->n_hosts * sizeof(*s->anti));
    }
    s->n = 0;
    s->open = 0;
}

void spot_init_bin(struct problem *p, struct spot *s, uint32_t choice)
{
    *s = (struct spot){.pool = p->choices[choice].pool, .node = WORLD_NONE, .kind = choice};
    s->room = ARENA_NEW_ARRAY(&p->arena, int64_t, p->w->resources.n);
    s->host = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_hosts);
    s->anti = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_hosts);
    spot_reset(p, s, p->choices[choice].room);
}

/* The least skew that pods already in the spot allow their group; a pod that has no such rule
 * itself must not push them over it, for they may come later. */
static int64_t skew_of_company(const struct problem *p, const struct spot *s, uint32_t group)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct podset *c = p->items[s->v[i].item].class_;
        for (uint32_t k = 0; k < c->n_spreads; k++)
            if (c->spreads[k].group == group)
                least = MIN(least, (int64_t)c->spreads[k].max_skew);
    }
    return least;
}

/* Caps from spread, affinity and anti-affinity by hostname. A node of the plan always competes with
 * the empty node that could be launched, so the least count over nodes is taken as 0. */
static int64_t host_copies(const struct problem *p, const struct spot *s, const struct item *i,
                           int64_t most)
{
    const struct podset *c = i->class_;
    for (uint32_t h = 0; h < p->n_hosts && most > 0; h++) {
        uint32_t g = p->hosts[h];
        bool self = bits_get(c->matches, g);
        if (self && s->anti[h])
            return 0;
        if (self)
            most = MIN(most, MAX(skew_of_company(p, s, g) - s->host[h], 0) / i->bundle);
        for (uint32_t k = 0; k < c->n_spreads; k++) {
            if (c->spreads[k].group != g)
                continue;
            int64_t free = (int64_t)c->spreads[k].max_skew - s->host[h];
            most = self ? MIN(most, MAX(free, 0) / i->bundle) : free >= 0 ? most : 0;
        }
        for (uint32_t k = 0; k < c->n_antis; k++) {
            if (c->antis[k].group != g)
                continue;
            if (s->host[h])
                return 0;
            if (self)
                most = MIN(most, i->bundle == 1 ? 1 : 0);
        }
        for (uint32_t k = 0; k < c->n_affinities; k++)
            if (c->affinities[k].group == g && s->host[h] == 0 && (i->follower || !self))
                return 0;
    }
    return most;
}

int64_t spot_copies(const struct problem *p, const struct spot *s, uint32_t item, int64_t most)
{
    const struct item *i = &p->items[item];
    if (s->pool != WORLD_NONE && s->node == WORLD_NONE) {
        uint32_t open = p->masks[i->mask].open[s->pool];
        if (open && s->open && open != s->open)
            return 0;
    }
    most = resources_copies(i->need, s->room, p->w->resources.n, most);
    if (most <= 0)
        return 0;
    if (p->n_hosts)
        most = host_copies(p, s, i, most);
    if (i->class_->n_ports) {
        most = MIN(most, i->bundle == 1 ? 1 : 0);
        for (uint32_t k = 0; k < s->n && most > 0; k++) {
            const struct podset *there = p->items[s->v[k].item].class_;
            if (s->v[k].bundles && podset_ports_conflict(i->class_, there->ports, there->n_ports))
                most = 0;
        }
    }
    return most;
}

static void count_hosts(const struct problem *p, struct spot *s, const struct item *i, int64_t pods)
{
    for (uint32_t h = 0; h < p->n_hosts; h++) {
        uint32_t g = p->hosts[h];
        if (bits_get(i->class_->matches, g))
            s->host[h] = (uint32_t)((int64_t)s->host[h] + pods);
        for (uint32_t k = 0; k < i->class_->n_antis; k++)
            if (i->class_->antis[k].group == g)
                s->anti[h] = (uint32_t)((int64_t)s->anti[h] + pods);
    }
}

static void move_room(const struct problem *p, struct spot *s, const struct item *i,
                      int64_t bundles)
{
    for (uint32_t r = 0; r < p->w->resources.n; r++)
        s->room[r] -= i->need[r] * bundles; /* both fit the room, so the product does */
}

void spot_put(struct problem *p, struct spot *s, uint32_t item, int64_t bundles)
{
    const struct item *i = &p->items[item];
    move_room(p, s, i, bundles);
    count_hosts(p, s, i, bundles * i->bundle);
    if (s->pool != WORLD_NONE && s->node == WORLD_NONE && p->masks[i->mask].open[s->pool])
        s->open = p->masks[i->mask].open[s->pool];
    for (uint32_t k = 0; k < s->n; k++)
        if (s->v[k].item == item) {
            s->v[k].bundles += bundles;
            return;
        }
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? 2 * s->cap : 4;
        struct content *v = ARENA_NEW_ARRAY(&p->arena, struct content, cap);
        if (s->n)
            memcpy(v, s->v, s->n * sizeof(*v));
        s->v = v;
        s->cap = cap;
    }
    s->v[s->n++] = (struct content){item, bundles};
}

void spot_take(struct problem *p, struct spot *s, uint32_t at, int64_t bundles)
{
    const struct item *i = &p->items[s->v[at].item];
    move_room(p, s, i, -bundles);
    count_hosts(p, s, i, -bundles * (int64_t)i->bundle);
    s->v[at].bundles -= bundles;
    if (s->v[at].bundles == 0) {
        memmove(&s->v[at], &s->v[at + 1], (s->n - at - 1) * sizeof(*s->v));
        s->n--;
    }
}
