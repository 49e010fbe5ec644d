/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Taking pods out of a packing until every rule over domains holds.
 *
 * Limits can leave a pod without a place on which the domain of another relied: its affinity, or
 * the evenness of its spread. Such a pod would stay pending whatever was launched for it, so it is
 * taken out, one at a time, and nodes that end up empty are not launched. */

#include "base/bits.h"
#include "provisioner/solve/problem.h"

struct count {
    const char *value;
    int64_t all, ruled; /* matching pods; of those, there already or with a spread over them */
};

struct counts {
    VEC(struct count);
};

static const char *domain_of(const struct problem *p, const struct spot *s, const char *key)
{
    if (s->node != WORLD_NONE)
        return world_node_domain(&p->w->nodes[s->node], key);
    return world_offer_domain(p->w, &p->w->offers[p->choices[s->kind].offer], key);
}

static struct count *find(struct counts *c, const char *value)
{
    for (size_t i = 0; i < c->len; i++)
        if (strcmp(c->v[i].value, value) == 0)
            return &c->v[i];
    vec_push(c, (struct count){.value = value});
    return &vec_last(c);
}

static bool by_host(const struct problem *p, uint32_t group)
{
    return strcmp(p->w->groups[group].key, LABEL_HOSTNAME) == 0;
}

static bool has_spread(const struct podset *c, uint32_t group)
{
    for (uint32_t k = 0; k < c->n_spreads; k++)
        if (c->spreads[k].group == group)
            return true;
    return false;
}

static void add_pods(const struct problem *p, struct counts *counts, const struct spot *s,
                     const struct podset *c, int64_t pods)
{
    for (uint32_t g = 0; g < p->w->n_groups; g++) {
        const char *key = p->w->groups[g].key,
                   *value = bits_get(c->matches, g) && !by_host(p, g) ? domain_of(p, s, key) : NULL;
        if (!value)
            continue;
        struct count *to = find(&counts[g], value);
        to->all += pods;
        if (has_spread(c, g))
            to->ruled += pods;
    }
}

static void add_existing(const struct problem *p, struct counts *counts)
{
    for (uint32_t i = 0; i < p->w->n_nodes; i++) {
        const struct world_node *n = &p->w->nodes[i];
        for (uint32_t g = 0; g < p->w->n_groups && n->state != WORLD_NODE_DELETING; g++) {
            const char *value = by_host(p, g) ? NULL : world_node_domain(n, p->w->groups[g].key);
            for (uint32_t k = 0; value && k < n->n_pods; k++) {
                const struct meta *m = &n->pods[k]->obj.meta;
                if (!topology_group_matches(&p->w->groups[g],
                                            m->namespace_ ? m->namespace_ : "default", &m->labels))
                    continue;
                find(&counts[g], value)->all++;
                find(&counts[g], value)->ruled++;
            }
        }
    }
}

static void add_spot(const struct problem *p, struct counts *counts, const struct spot *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct item *it = &p->items[s->v[i].item];
        add_pods(p, counts, s, it->class_, s->v[i].bundles * it->bundle);
    }
}

/* Lowers both to the counts of the domain; returns whether it was not seen before. */
static bool lower(struct counts *counts, const char *value, struct counts *seen,
                  struct count *least)
{
    size_t before = seen->len;
    find(seen, value);
    if (seen->len == before)
        return false;
    const struct count *c = find(counts, value);
    least->all = MIN(least->all, c->all);
    least->ruled = MIN(least->ruled, c->ruled);
    return true;
}

static struct count least_count(struct problem *p, struct counts *counts, const struct podset *c,
                                const struct topology_use *u)
{
    const struct mask *m = &p->masks[problem_mask(p, c)];
    const char *key = p->w->groups[u->group].key;
    struct count least = {.all = INT64_MAX, .ruled = INT64_MAX};
    struct counts seen = {0};
    int32_t domains = 0;
    for (size_t i = bits_next(m->offers, p->offer_words, 0); i != SIZE_MAX;
         i = bits_next(m->offers, p->offer_words, i + 1)) {
        const char *value = world_offer_domain(p->w, &p->w->offers[i], key);
        domains += value && lower(&counts[u->group], value, &seen, &least);
    }
    for (size_t i = bits_next(m->nodes, p->node_words, 0); i != SIZE_MAX;
         i = bits_next(m->nodes, p->node_words, i + 1)) {
        const char *value = world_node_domain(&p->w->nodes[i], key);
        domains += value && lower(&counts[u->group], value, &seen, &least);
    }
    vec_release(&seen);
    if (domains == 0 || domains < u->min_domains)
        least.all = least.ruled = 0;
    return least;
}

static bool spread_broken(struct problem *p, struct counts *counts, const struct spot *s,
                          const struct podset *c)
{
    for (uint32_t k = 0; k < c->n_spreads; k++) {
        const struct topology_use *u = &c->spreads[k];
        const char *value =
            by_host(p, u->group) ? NULL : domain_of(p, s, p->w->groups[u->group].key);
        if (!value)
            continue;
        struct count here = *find(&counts[u->group], value), least = least_count(p, counts, c, u);
        /* Pods without the rule may be scheduled first or last: it is broken if it is in both
         * orders. */
        if (here.all - least.all > u->max_skew && here.ruled - least.ruled > u->max_skew)
            return true;
    }
    return false;
}

static bool affinity_broken(const struct problem *p, struct counts *counts, const struct spot *s,
                            const struct podset *c)
{
    for (uint32_t k = 0; k < c->n_affinities; k++) {
        uint32_t g = c->affinities[k].group;
        const char *value = by_host(p, g) ? NULL : domain_of(p, s, p->w->groups[g].key);
        if (!value)
            continue;
        int64_t total = 0, self = bits_get(c->matches, g), here = find(&counts[g], value)->all;
        for (size_t i = 0; i < counts[g].len; i++)
            total += counts[g].v[i].all;
        bool first = self && total == 1;
        if (here <= self && !first)
            return true;
    }
    return false;
}

/* Takes one bundle of each content that breaks a rule; true when any was taken. */
static bool prune_spot(struct problem *p, struct counts *counts, struct spot *s)
{
    bool any = false;
    for (uint32_t i = s->n; i-- > 0;) {
        struct item *it = &p->items[s->v[i].item];
        if (it->cell == WORLD_NONE)
            continue;
        if (!spread_broken(p, counts, s, it->class_) && !affinity_broken(p, counts, s, it->class_))
            continue;
        add_pods(p, counts, s, it->class_, -(int64_t)it->bundle);
        spot_take(p, s, i, 1);
        it->taken -= it->bundle;
        if (!it->refusal)
            it->refusal = "pods that its topology rules count on have no place";
        any = true;
    }
    return any;
}

static void drop_empty(struct problem *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->bins.len; i++) {
        if (p->bins.v[i].n)
            p->bins.v[kept++] = p->bins.v[i];
        else
            choice_charge(p, &p->choices[p->bins.v[i].kind], -1);
    }
    p->bins.len = kept;
}

void prune(struct problem *p)
{
    struct counts *counts = xcalloc(p->w->n_groups + 1, sizeof(*counts));
    add_existing(p, counts);
    for (uint32_t i = 0; i < p->w->n_nodes; i++)
        add_spot(p, counts, &p->nodes[i]);
    for (size_t i = 0; i < p->bins.len; i++)
        add_spot(p, counts, &p->bins.v[i]);
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < p->w->n_nodes; i++)
            any = prune_spot(p, counts, &p->nodes[i]) || any;
        for (size_t i = 0; i < p->bins.len; i++)
            any = prune_spot(p, counts, &p->bins.v[i]) || any;
    }
    drop_empty(p);
    for (uint32_t g = 0; g < p->w->n_groups; g++)
        vec_release(&counts[g]);
    free(counts);
}
