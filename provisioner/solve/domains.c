/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Topology over domains that many nodes share: zones, capacity types, labels of one's own.
 *
 * Each class that such a rule concerns is dealt out to cells before anything is packed. A cell is
 * one combination of the domains that matter to the class; pods go one by one to the allowed cell
 * that holds fewest, then to one with free nodes, then to the cheapest. Each cell becomes an item
 * that may use the cell's nodes and offerings only, so whatever the packer does later keeps the
 * rule. Classes that others count are dealt out too, for then their domains are known. Where limits
 * or rooms turn out to leave a dealt pod without a place, all is dealt again with that known
 * (domains_learn), so that nothing relies on a pod that is not there. Rules by hostname are kept
 * while spots are filled (spot.c). */

#include "base/bits.h"
#include "base/num.h"
#include "provisioner/solve/problem.h"

#define CELLS_MAX 128
#define KEYS_MAX 8

struct domain {
    const char *value;
    int64_t match, anti; /* pods placed by this plan */
};

struct group_state {
    bool concerned; /* by domain, and of interest to somebody */
    struct {
        VEC(struct domain);
    } planned;
};

struct cell {
    const char *value[KEYS_MAX]; /* NULL: has no such label */
    uint64_t *offers, *nodes;
    int64_t node_copies; /* that its nodes can take, others aside */
    bool has_offers;
    int64_t price_uusd_h;
    uint32_t pods, most;
    int64_t *spread; /* per spread of the class: matching pods in its domain, found on nodes */
};

struct split {
    struct problem *p;
    struct group_state *groups;
    const struct podset *class_;
    uint32_t mask;
    const char *keys[KEYS_MAX];
    uint32_t n_keys;
    struct cell *cells;
    uint32_t n_cells;
    uint32_t assigned;
    bool too_many;
};

static bool by_host(const struct problem *p, uint32_t group)
{
    return strcmp(p->w->groups[group].key, LABEL_HOSTNAME) == 0;
}

static struct domain *domain_of(struct group_state *g, const char *value)
{
    for (size_t i = 0; i < g->planned.len; i++)
        if (strcmp(g->planned.v[i].value, value) == 0)
            return &g->planned.v[i];
    vec_push(&g->planned, (struct domain){.value = value});
    return &vec_last(&g->planned);
}

/* ---- Counting what is there ---- */

static bool pod_counts(const struct problem *p, uint32_t group, const struct pod *pod)
{
    const char *namespace_ = pod->obj.meta.namespace_ ? pod->obj.meta.namespace_ : "default";
    return topology_group_matches(&p->w->groups[group], namespace_, &pod->obj.meta.labels);
}

/* Adds what nodes hold: for affinity and anti-affinity every node counts. */
static void count_existing(struct problem *p, struct group_state *groups)
{
    const struct world *w = p->w;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        if (!groups[g].concerned)
            continue;
        for (uint32_t i = 0; i < w->n_nodes; i++) {
            const char *value = world_node_domain(&w->nodes[i], w->groups[g].key);
            if (!value || w->nodes[i].state == WORLD_NODE_DELETING)
                continue;
            for (uint32_t k = 0; k < w->nodes[i].n_pods; k++)
                if (pod_counts(p, g, w->nodes[i].pods[k]))
                    domain_of(&groups[g], value)->match++;
        }
    }
    for (uint32_t i = 0; i < w->n_antis; i++) {
        uint32_t g = w->antis[i].group;
        const char *value = world_node_domain(&w->nodes[w->antis[i].node], w->groups[g].key);
        if (groups[g].concerned && value)
            domain_of(&groups[g], value)->anti++;
    }
}

static void mark_concerned(struct problem *p, struct group_state *groups)
{
    const struct world *w = p->w;
    for (uint32_t i = 0; i < w->n_classes; i++) {
        const struct podset *c = &w->classes[i];
        for (uint32_t k = 0; k < c->n_spreads; k++)
            groups[c->spreads[k].group].concerned = true;
        for (uint32_t k = 0; k < c->n_affinities; k++)
            groups[c->affinities[k].group].concerned = true;
        for (uint32_t k = 0; k < c->n_antis; k++)
            groups[c->antis[k].group].concerned = true;
    }
    for (uint32_t i = 0; i < w->n_antis; i++)
        groups[w->antis[i].group].concerned = true;
    for (uint32_t g = 0; g < w->n_groups; g++)
        if (by_host(p, g))
            groups[g].concerned = false;
}

/* ---- Cells ---- */

static void add_key(struct split *s, uint32_t group)
{
    if (!s->groups[group].concerned)
        return;
    const char *key = s->p->w->groups[group].key;
    for (uint32_t i = 0; i < s->n_keys; i++)
        if (strcmp(s->keys[i], key) == 0)
            return;
    if (s->n_keys == KEYS_MAX)
        s->too_many = true;
    else
        s->keys[s->n_keys++] = key;
}

static void find_keys(struct split *s)
{
    const struct podset *c = s->class_;
    for (uint32_t k = 0; k < c->n_spreads; k++)
        add_key(s, c->spreads[k].group);
    for (uint32_t k = 0; k < c->n_affinities; k++)
        add_key(s, c->affinities[k].group);
    for (uint32_t k = 0; k < c->n_antis; k++)
        add_key(s, c->antis[k].group);
    for (uint32_t g = 0; g < s->p->w->n_groups; g++)
        if (bits_get(c->matches, g))
            add_key(s, g);
}

static bool same_text(const char *x, const char *y)
{
    return x == y || (x && y && strcmp(x, y) == 0);
}

static struct cell *cell_of(struct split *s, const char *const *value)
{
    for (uint32_t i = 0; i < s->n_cells; i++) {
        uint32_t k = 0;
        while (k < s->n_keys && same_text(s->cells[i].value[k], value[k]))
            k++;
        if (k == s->n_keys)
            return &s->cells[i];
    }
    if (s->n_cells == CELLS_MAX) {
        s->too_many = true;
        return NULL;
    }
    struct cell *c = &s->cells[s->n_cells++];
    *c = (struct cell){.price_uusd_h = INT64_MAX};
    for (uint32_t k = 0; k < s->n_keys; k++)
        c->value[k] = value[k];
    c->offers = ARENA_NEW_ARRAY(&s->p->arena, uint64_t, s->p->offer_words);
    c->nodes = ARENA_NEW_ARRAY(&s->p->arena, uint64_t, s->p->node_words);
    c->spread = ARENA_NEW_ARRAY(&s->p->arena, int64_t, s->class_->n_spreads);
    return c;
}

static int64_t copies_on_node(const struct split *s, uint32_t node)
{
    return resources_copies(s->class_->requests, s->p->nodes[node].room, s->p->w->resources.n,
                            s->class_->n_pods);
}

static void find_cells(struct split *s)
{
    const struct problem *p = s->p;
    const struct mask *m = &p->masks[s->mask];
    const char *value[KEYS_MAX] = {NULL};
    s->cells = ARENA_NEW_ARRAY(&s->p->arena, struct cell, CELLS_MAX);
    for (size_t i = bits_next(m->offers, p->offer_words, 0); i != SIZE_MAX;
         i = bits_next(m->offers, p->offer_words, i + 1)) {
        const struct world_offer *o = &p->w->offers[i];
        for (uint32_t k = 0; k < s->n_keys; k++)
            value[k] = world_offer_domain(p->w, o, s->keys[k]);
        struct cell *c = cell_of(s, value);
        if (!c)
            return;
        bits_set(c->offers, i);
        if (!resources_fit(s->class_->requests, o->room, p->w->resources.n))
            continue;
        c->has_offers = true;
        c->price_uusd_h = MIN(c->price_uusd_h, o->price_uusd_h);
    }
    for (size_t i = bits_next(m->nodes, p->node_words, 0); i != SIZE_MAX;
         i = bits_next(m->nodes, p->node_words, i + 1)) {
        for (uint32_t k = 0; k < s->n_keys; k++)
            value[k] = world_node_domain(&p->w->nodes[i], s->keys[k]);
        struct cell *c = cell_of(s, value);
        if (!c)
            return;
        bits_set(c->nodes, i);
        c->node_copies = num_add_sat(c->node_copies, copies_on_node(s, (uint32_t)i));
    }
}

static const char *cell_value(const struct split *s, const struct cell *c, uint32_t group)
{
    for (uint32_t k = 0; k < s->n_keys; k++)
        if (strcmp(s->keys[k], s->p->w->groups[group].key) == 0)
            return c->value[k];
    return NULL;
}

/* ---- Rules ---- */

/* Matching pods of the spread in the domain, on nodes that the spread counts, and planned ones. */
static int64_t spread_count(const struct split *s, const struct topology_use *u, const char *value)
{
    const struct world *w = s->p->w;
    int64_t all = 0, skipped = 0;
    struct group_state *g = &s->groups[u->group];
    for (size_t i = 0; i < g->planned.len; i++)
        if (strcmp(g->planned.v[i].value, value) == 0)
            all = g->planned.v[i].match;
    if (u->affinity_ignore && !u->taints_honor)
        return all;
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        const struct world_node *n = &w->nodes[i];
        const char *domain = world_node_domain(n, w->groups[u->group].key);
        if (!domain || n->n_pods == 0 || n->state == WORLD_NODE_DELETING ||
            strcmp(domain, value) != 0)
            continue;
        bool counted =
            (u->affinity_ignore || podset_compatible(s->class_, &n->labels, NULL)) &&
            (!u->taints_honor || !podset_untolerated(s->class_->spec, n->taints, n->n_taints));
        for (uint32_t k = 0; !counted && k < n->n_pods; k++)
            skipped += pod_counts(s->p, u->group, n->pods[k]);
    }
    return all - skipped;
}

/* The least count over the domains of the spread. `ret_domains` is their number. */
static int64_t spread_least(const struct split *s, const struct topology_use *u, uint32_t use)
{
    int64_t least = INT64_MAX;
    int32_t domains = 0;
    const char *seen[CELLS_MAX];
    for (uint32_t i = 0; i < s->n_cells; i++) {
        const char *value = cell_value(s, &s->cells[i], u->group);
        if (!value)
            continue;
        int32_t k = 0;
        while (k < domains && strcmp(seen[k], value) != 0)
            k++;
        if (k < domains)
            continue;
        seen[domains++] = value;
        least = MIN(least, s->cells[i].spread[use]);
    }
    return domains == 0 || domains < u->min_domains ? 0 : least;
}

static bool affinity_holds(const struct split *s, const struct cell *c,
                           const struct topology_use *u)
{
    const char *value = cell_value(s, c, u->group);
    if (!value)
        return false;
    const struct group_state *g = &s->groups[u->group];
    int64_t total = 0;
    for (size_t i = 0; i < g->planned.len; i++) {
        total += g->planned.v[i].match;
        if (strcmp(g->planned.v[i].value, value) == 0 && g->planned.v[i].match > 0)
            return true;
    }
    return total == 0 && bits_get(s->class_->matches, u->group);
}

static bool kept_apart(const struct split *s, const struct cell *c)
{
    const struct podset *x = s->class_;
    for (uint32_t g = 0; g < s->p->w->n_groups; g++) {
        const char *value = s->groups[g].concerned ? cell_value(s, c, g) : NULL;
        if (!value)
            continue;
        bool mine = false;
        for (uint32_t k = 0; k < x->n_antis; k++)
            mine = mine || x->antis[k].group == g;
        bool theirs = bits_get(x->matches, g);
        if (!mine && !theirs)
            continue;
        const struct domain *d = domain_of(&s->groups[g], value);
        if ((mine && d->match > 0) || (theirs && d->anti > 0))
            return true;
    }
    return false;
}

static bool cell_allowed(const struct split *s, const struct cell *c, const int64_t *least)
{
    const struct podset *x = s->class_;
    if (c->pods >= c->most || (!c->has_offers && c->pods >= c->node_copies))
        return false;
    for (uint32_t k = 0; k < x->n_spreads; k++) {
        const struct topology_use *u = &x->spreads[k];
        if (by_host(s->p, u->group))
            continue;
        int64_t self = bits_get(x->matches, u->group);
        if (!cell_value(s, c, u->group) || c->spread[k] + self - least[k] > u->max_skew)
            return false;
    }
    for (uint32_t k = 0; k < x->n_affinities; k++)
        if (!by_host(s->p, x->affinities[k].group) && !affinity_holds(s, c, &x->affinities[k]))
            return false;
    return !kept_apart(s, c);
}

/* ---- Dealing out ---- */

static int64_t crowd(const struct split *s, const struct cell *c)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < s->class_->n_spreads; k++)
        sum += by_host(s->p, s->class_->spreads[k].group) ? 0 : c->spread[k];
    return sum;
}

static bool better_cell(const struct split *s, const struct cell *x, const struct cell *y)
{
    int64_t p = crowd(s, x), q = crowd(s, y);
    if (p != q)
        return p < q;
    bool x_free = x->pods < x->node_copies, y_free = y->pods < y->node_copies;
    if (x_free != y_free)
        return x_free;
    return x->price_uusd_h < y->price_uusd_h;
}

static void settle(struct split *s, struct cell *c)
{
    const struct podset *x = s->class_;
    c->pods++;
    s->assigned++;
    for (uint32_t g = 0; g < s->p->w->n_groups; g++) {
        const char *value =
            s->groups[g].concerned && bits_get(x->matches, g) ? cell_value(s, c, g) : NULL;
        if (value)
            domain_of(&s->groups[g], value)->match++;
    }
    for (uint32_t k = 0; k < x->n_antis; k++) {
        const char *value =
            s->groups[x->antis[k].group].concerned ? cell_value(s, c, x->antis[k].group) : NULL;
        if (value)
            domain_of(&s->groups[x->antis[k].group], value)->anti++;
    }
    for (uint32_t k = 0; k < x->n_spreads; k++) {
        const char *value = cell_value(s, c, x->spreads[k].group);
        if (!value || !bits_get(x->matches, x->spreads[k].group))
            continue;
        for (uint32_t i = 0; i < s->n_cells; i++)
            if (same_text(cell_value(s, &s->cells[i], x->spreads[k].group), value))
                s->cells[i].spread[k]++;
    }
}

/* Deals out what is left of the class; true when any pod found a cell. */
static bool deal(struct split *s)
{
    const struct podset *x = s->class_;
    uint32_t before = s->assigned;
    for (uint32_t i = 0; i < s->n_cells; i++)
        for (uint32_t k = 0; k < x->n_spreads; k++) {
            const char *value = cell_value(s, &s->cells[i], x->spreads[k].group);
            s->cells[i].spread[k] = value ? spread_count(s, &x->spreads[k], value) : 0;
        }
    int64_t *least = ARENA_NEW_ARRAY(&s->p->arena, int64_t, x->n_spreads);
    while (s->assigned < x->n_pods) {
        for (uint32_t k = 0; k < x->n_spreads; k++)
            least[k] = spread_least(s, &x->spreads[k], k);
        struct cell *best = NULL;
        for (uint32_t i = 0; i < s->n_cells; i++)
            if (cell_allowed(s, &s->cells[i], least) &&
                (!best || better_cell(s, &s->cells[i], best)))
                best = &s->cells[i];
        if (!best)
            break;
        settle(s, best);
    }
    return s->assigned > before;
}

/* ---- Items ---- */

static const int64_t *times(struct problem *p, const int64_t *need, uint32_t n)
{
    int64_t *v = ARENA_NEW_ARRAY(&p->arena, int64_t, p->w->resources.n);
    for (uint32_t r = 0; r < p->w->resources.n; r++)
        v[r] = num_mul_sat(need[r], n);
    return v;
}

/* The most pods of the item that any one spot can hold. */
static int64_t most_together(const struct problem *p, const struct item *i)
{
    const struct mask *m = &p->masks[i->mask];
    int64_t most = 0;
    for (size_t k = bits_next(m->offers, p->offer_words, 0); k != SIZE_MAX;
         k = bits_next(m->offers, p->offer_words, k + 1))
        most = MAX(most, resources_copies(i->need, p->w->offers[k].room, p->w->resources.n, i->n));
    for (size_t k = bits_next(m->nodes, p->node_words, 0); k != SIZE_MAX;
         k = bits_next(m->nodes, p->node_words, k + 1))
        most = MAX(most, resources_copies(i->need, p->nodes[k].room, p->w->resources.n, i->n));
    return most;
}

static bool needs_company(const struct podset *c, uint32_t group)
{
    for (uint32_t k = 0; k < c->n_affinities; k++)
        if (c->affinities[k].group == group)
            return true;
    return false;
}

/* Whether pods of the class may be the first of a hostname group: nobody matches it yet, and
 * whoever else is pending and matches will have to join them. */
static bool may_be_first(const struct problem *p, const struct podset *c, uint32_t host)
{
    uint32_t g = p->hosts[host];
    if (p->host_total[host] > 0 || !bits_get(c->matches, g))
        return false;
    for (uint32_t i = 0; i < p->w->n_classes; i++) {
        const struct podset *other = &p->w->classes[i];
        if (other != c && bits_get(other->matches, g) && !needs_company(other, g))
            return false;
    }
    return true;
}

/* Adds the item; pods that must share a node with each other become one bundle. */
static void add_item(struct problem *p, struct item i)
{
    bool together = false, follower = false;
    for (uint32_t h = 0; h < p->n_hosts; h++) {
        if (!needs_company(i.class_, p->hosts[h]))
            continue;
        if (may_be_first(p, i.class_, h))
            together = true;
        else
            follower = true;
    }
    for (uint32_t h = 0; h < p->n_hosts && together && !follower && !i.refusal; h++)
        if (needs_company(i.class_, p->hosts[h]))
            p->host_total[h]++; /* from here on others join these */
    i.bundle = 1;
    i.follower = follower;
    if (together && !follower && !i.refusal && i.n > 1) {
        struct item rest = i;
        i.bundle = (uint32_t)MAX(most_together(p, &i), 1);
        i.n = i.bundle;
        i.need = times(p, i.need, i.bundle);
        rest.pods += i.n;
        rest.n -= i.n;
        rest.follower = true;
        problem_add_item(p, i);
        i = rest;
    }
    if (i.n)
        problem_add_item(p, i);
}

static void add_cells(struct split *s)
{
    struct problem *p = s->p;
    const struct podset *c = s->class_;
    uint32_t from = 0;
    struct item i = {.class_ = c, .need = c->requests};
    for (uint32_t k = 0; k < s->n_cells; k++) {
        if (s->cells[k].pods == 0)
            continue;
        i.pods = c->pods + from;
        i.n = s->cells[k].pods;
        i.cell = k;
        i.mask = problem_mask_narrow(p, s->mask, s->cells[k].offers, s->cells[k].nodes);
        add_item(p, i);
        from += i.n;
    }
    if (from == c->n_pods)
        return;
    i.pods = c->pods + from;
    i.n = c->n_pods - from;
    i.cell = WORLD_NONE;
    i.mask = s->mask;
    bool open = false;
    for (uint32_t k = 0; k < s->n_cells; k++)
        open = open || s->cells[k].has_offers;
    i.refusal = ""; /* the pools tell why */
    if (s->too_many)
        i.refusal = "its topology rules span more domains than can be weighed";
    else if (open && c->n_spreads + c->n_affinities + c->n_antis > 0)
        i.refusal = "its topology spread or pod affinity leaves no domain for it";
    else if (open)
        i.refusal =
            "its pods would break the anti-affinity of others, or limits leave no node for it";
    add_item(p, i);
}

static bool begin(struct split *s, struct problem *p, struct group_state *groups,
                  const struct podset *c)
{
    *s = (struct split){.p = p, .groups = groups, .class_ = c};
    find_keys(s);
    if (s->n_keys == 0 && !s->too_many)
        return false;
    s->mask = problem_mask(p, c);
    if (!s->too_many)
        find_cells(s);
    for (uint32_t k = 0; k < s->n_cells; k++) {
        s->cells[k].most = UINT32_MAX;
        for (size_t i = 0; p->caps && i < p->caps->len; i++) {
            const struct cell_cap *cap = &p->caps->v[i];
            if (cap->class_ == c->id && cap->cell == k)
                s->cells[k].most = MIN(s->cells[k].most, cap->most);
        }
    }
    if (s->too_many)
        s->n_cells = 0;
    return true;
}

static int turn_of(const struct podset *c)
{
    if (c->n_affinities)
        return 3;
    for (uint32_t k = 0; k < c->n_spreads; k++)
        if (bits_get(c->matches, c->spreads[k].group))
            return 2; /* its rule counts itself */
    return c->n_spreads ? 1 : 0;
}

void domains_split(struct problem *p)
{
    const struct world *w = p->w;
    struct group_state *groups = xcalloc(w->n_groups + 1, sizeof(*groups));
    struct split *splits = xcalloc(w->n_classes + 1, sizeof(*splits));
    uint32_t n = 0;
    mark_concerned(p, groups);
    count_existing(p, groups);
    for (uint32_t i = 0; i < w->n_classes; i++) {
        const struct podset *c = &w->classes[i];
        struct item plain = {.class_ = c,
                             .pods = c->pods,
                             .n = c->n_pods,
                             .need = c->requests,
                             .refusal = c->refused,
                             .cell = WORLD_NONE};
        if (!c->refused && begin(&splits[n], p, groups, c)) {
            n++;
            continue;
        }
        plain.mask = problem_mask(p, c);
        add_item(p, plain);
    }
    /* Those without rules go first, so that the spreads of others take them into account, and those
     * that need company last, so that nobody is the first of a group that others join by chance. A
     * pod may find its domain only once another has its own: each round places one. */
    for (bool any = true; any;) {
        any = false;
        for (int turn = 0; turn < 4; turn++)
            for (uint32_t i = 0; i < n; i++)
                if (turn_of(splits[i].class_) == turn && splits[i].n_cells &&
                    splits[i].assigned < splits[i].class_->n_pods)
                    any = deal(&splits[i]) || any;
    }
    for (uint32_t i = 0; i < n; i++)
        add_cells(&splits[i]);
    for (uint32_t g = 0; g < w->n_groups; g++)
        vec_release(&groups[g].planned);
    free(splits);
    free(groups);
}

bool domains_learn(const struct problem *p, struct cell_caps *caps)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_items; i++) {
        const struct item *it = &p->items[i];
        if (it->cell == WORLD_NONE || it->taken == it->n)
            continue;
        struct cell_cap cap = {it->class_->id, it->cell, 0};
        for (uint32_t k = 0; k < p->n_items; k++)
            if (p->items[k].class_ == it->class_ && p->items[k].cell == it->cell)
                cap.most += p->items[k].taken;
        vec_push(caps, cap);
        any = true;
    }
    return any;
}
