/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* From a world to items, masks and choices. */

#include "provisioner/solve/problem.h"

#include "base/bits.h"
#include "base/buf.h"
#include "base/num.h"

/* ---- Nodes and hostname groups ---- */

static void find_hosts(struct problem *p)
{
    const struct world *w = p->w;
    uint32_t *v = ARENA_NEW_ARRAY(&p->arena, uint32_t, w->n_groups);
    for (uint32_t g = 0; g < w->n_groups; g++)
        if (strcmp(w->groups[g].key, LABEL_HOSTNAME) == 0)
            v[p->n_hosts++] = g;
    p->hosts = v;
    p->host_total = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_hosts);
}

static const char *namespace_of(const struct pod *pod)
{
    return pod->obj.meta.namespace_ ? pod->obj.meta.namespace_ : "default";
}

static void count_node(struct problem *p, struct spot *s, const struct world_node *n)
{
    for (uint32_t h = 0; h < p->n_hosts; h++)
        for (uint32_t i = 0; i < n->n_pods; i++)
            if (topology_group_matches(&p->w->groups[p->hosts[h]], namespace_of(n->pods[i]),
                                       &n->pods[i]->obj.meta.labels))
                s->host[h]++;
}

static void init_nodes(struct problem *p)
{
    const struct world *w = p->w;
    p->nodes = ARENA_NEW_ARRAY(&p->arena, struct spot, w->n_nodes + 1);
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        struct spot *s = &p->nodes[i];
        *s = (struct spot){.pool = w->nodes[i].pool, .node = i, .kind = WORLD_NONE};
        s->room = ARENA_NEW_ARRAY(&p->arena, int64_t, w->resources.n);
        s->host = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_hosts);
        s->anti = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->n_hosts);
        spot_reset(p, s, w->nodes[i].room);
        if (p->n_hosts == 0)
            continue;
        count_node(p, s, &w->nodes[i]);
        for (uint32_t h = 0; h < p->n_hosts && w->nodes[i].state != WORLD_NODE_DELETING; h++)
            p->host_total[h] += s->host[h];
    }
    for (uint32_t i = 0; i < w->n_antis; i++)
        for (uint32_t h = 0; h < p->n_hosts; h++)
            if (p->hosts[h] == w->antis[i].group)
                p->nodes[w->antis[i].node].anti[h]++;
}

static void init_limits(struct problem *p)
{
    const struct world *w = p->w;
    p->limit_left = ARENA_NEW_ARRAY(&p->arena, int64_t *, w->n_pools + 1);
    for (uint32_t i = 0; i < w->n_pools; i++) {
        int64_t *v = ARENA_NEW_ARRAY(&p->arena, int64_t, w->resources.n + 1);
        memcpy(v, w->pools[i].limit_left, w->resources.n * sizeof(*v));
        v[w->resources.n] = w->pools[i].nodes_left;
        p->limit_left[i] = v;
    }
}

void problem_init(struct problem *p, const struct world *w)
{
    *p = (struct problem){.w = w};
    p->offer_words = BITS_WORDS(w->n_offers) + 1;
    p->node_words = BITS_WORDS(w->n_nodes) + 1;
    find_hosts(p);
    init_nodes(p);
    init_limits(p);
}

void problem_release(struct problem *p)
{
    vec_release(&p->bins);
    map_release(&p->mask_index, NULL);
    free(p->items);
    free(p->masks);
    arena_release(&p->arena);
}

/* ---- Masks ---- */

static uint32_t add_mask(struct problem *p, struct mask m)
{
    if (p->n_masks == p->cap_masks) {
        p->cap_masks = p->cap_masks ? 2 * p->cap_masks : 64;
        p->masks = xrealloc(p->masks, p->cap_masks * sizeof(*p->masks));
    }
    p->masks[p->n_masks] = m;
    return p->n_masks++;
}

/* What the class asks of keys that the pool's template leaves open, as text; "" nothing. */
static struct str open_wish(struct problem *p, const struct podset *c,
                            const struct world_pool *pool)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    for (uint32_t i = 0; i < pool->extra.n; i++) {
        const struct requirement *is = &pool->extra.v[i];
        if (!is->complement && is->n_values == 1)
            continue;
        for (uint32_t k = 0; k < c->n_alternatives; k++) {
            const struct requirement *want = requirements_find(&c->alternatives[k], is->key);
            if (want)
                buf_printf(&text, "%u %.*s;", k, STR_ARG(requirement_format(want, &p->arena)));
        }
    }
    return arena_str(&p->arena, buf_view(&text));
}

static void set_open(struct problem *p, const struct podset *c, struct mask *m)
{
    for (uint32_t i = 0; i < p->w->n_pools; i++) {
        struct str wish = open_wish(p, c, &p->w->pools[i]);
        if (wish.len == 0)
            continue;
        struct str key = arena_printf(&p->arena, "open %u %.*s", i, STR_ARG(wish));
        void **slot = map_slot(&p->mask_index, key);
        if (!*slot)
            *slot = (void *)(uintptr_t)map_len(&p->mask_index);
        m->open[i] = (uint32_t)(uintptr_t)*slot;
    }
}

static struct mask new_mask(struct problem *p)
{
    return (struct mask){
        .offers = ARENA_NEW_ARRAY(&p->arena, uint64_t, p->offer_words),
        .nodes = ARENA_NEW_ARRAY(&p->arena, uint64_t, p->node_words),
        .open = ARENA_NEW_ARRAY(&p->arena, uint32_t, p->w->n_pools + 1),
    };
}

uint32_t problem_mask(struct problem *p, const struct podset *c)
{
    const struct world *w = p->w;
    char text[48];
    int len = c->n_ports ? snprintf(text, sizeof(text), "class %u", c->id)
                         : snprintf(text, sizeof(text), "where %u", c->where);
    struct str key = {text, (size_t)len};
    uintptr_t known = (uintptr_t)map_get(&p->mask_index, key);
    if (known)
        return (uint32_t)(known - 1);
    struct mask m = new_mask(p);
    for (uint32_t i = 0; i < w->n_offers; i++)
        if (w->offers[i].usable && !w->pools[w->offers[i].pool].blocked &&
            world_offer_accepts(w, &w->offers[i], c, NULL))
            bits_set(m.offers, i);
    for (uint32_t i = 0; i < w->n_nodes; i++)
        if (world_node_accepts(&w->nodes[i], c, NULL))
            bits_set(m.nodes, i);
    set_open(p, c, &m);
    uint32_t at = add_mask(p, m);
    map_put(&p->mask_index, key, (void *)(uintptr_t)(at + 1));
    return at;
}

uint32_t problem_mask_narrow(struct problem *p, uint32_t mask, const uint64_t *keep_offers,
                             const uint64_t *keep_nodes)
{
    struct mask m = new_mask(p), from = p->masks[mask];
    memcpy(m.offers, from.offers, p->offer_words * sizeof(*m.offers));
    memcpy(m.nodes, from.nodes, p->node_words * sizeof(*m.nodes));
    memcpy(m.open, from.open, p->w->n_pools * sizeof(*m.open));
    bits_and(m.offers, keep_offers, p->offer_words);
    bits_and(m.nodes, keep_nodes, p->node_words);
    for (uint32_t i = 0; i < p->n_masks; i++)
        if (bits_equal(p->masks[i].offers, m.offers, p->offer_words) &&
            bits_equal(p->masks[i].nodes, m.nodes, p->node_words) &&
            memcmp(p->masks[i].open, m.open, p->w->n_pools * sizeof(*m.open)) == 0)
            return i;
    return add_mask(p, m);
}

void problem_add_item(struct problem *p, struct item i)
{
    if (p->n_items == p->cap_items) {
        p->cap_items = p->cap_items ? 2 * p->cap_items : 64;
        p->items = xrealloc(p->items, p->cap_items * sizeof(*p->items));
    }
    p->items[p->n_items++] = i;
}

/* ---- Choices ---- */

/* Which masks let it be used, as a set. */
static void column_of(const struct problem *p, uint32_t offer, uint64_t *ret)
{
    memset(ret, 0, (BITS_WORDS(p->n_masks) + 1) * sizeof(*ret));
    for (uint32_t m = 0; m < p->n_masks; m++)
        if (bits_get(p->masks[m].offers, offer))
            bits_set(ret, m);
}

static bool bounded_no_worse(const struct problem *p, const struct choice *x,
                             const struct choice *y)
{
    for (uint32_t r = 0; r < p->w->resources.n; r++)
        if (p->w->pools[x->pool].limit_left[r] != INT64_MAX && x->capacity[r] > y->capacity[r])
            return false;
    return true;
}

static bool dominates(const struct problem *p, const struct choice *x, const struct choice *y)
{
    if (x->pool != y->pool || x->price_uusd_h > y->price_uusd_h)
        return false;
    for (uint32_t r = 0; r < p->w->resources.n; r++)
        if (x->room[r] < y->room[r])
            return false;
    return bits_subset(y->items, x->items, p->item_words) && bounded_no_worse(p, x, y);
}

/* Items of the masks in `column` that fit into the room alone. */
static bool set_items(struct problem *p, struct choice *k, const uint64_t *column)
{
    uint64_t *items = ARENA_NEW_ARRAY(&p->arena, uint64_t, p->item_words);
    bool any = false;
    for (uint32_t i = 0; i < p->n_items; i++)
        if (bits_get(column, p->items[i].mask) && !p->items[i].refusal &&
            resources_fit(p->items[i].need, k->room, p->w->resources.n)) {
            bits_set(items, i);
            any = true;
        }
    k->items = items;
    return any;
}

static void add_choice(struct problem *p, uint32_t offer, const uint64_t *column,
                       size_t column_words, uint32_t first_of_pool, struct map *seen)
{
    const struct world_offer *o = &p->w->offers[offer];
    CLEANUP(buf_release) struct buf key = BUF_INIT;
    buf_add(&key, &o->pool, sizeof(o->pool));
    buf_add(&key, &o->price_uusd_h, sizeof(o->price_uusd_h));
    buf_add(&key, o->room, p->w->resources.n * sizeof(*o->room));
    buf_add(&key, o->capacity, p->w->resources.n * sizeof(*o->capacity));
    buf_add(&key, column, column_words * sizeof(*column));
    void **slot = map_slot(seen, buf_view(&key));
    if (*slot)
        return;
    *slot = p;
    struct choice k = {.offer = offer,
                       .pool = o->pool,
                       .price_uusd_h = o->price_uusd_h,
                       .room = o->room,
                       .capacity = o->capacity};
    if (!set_items(p, &k, column))
        return;
    for (uint32_t i = first_of_pool; i < p->n_choices; i++)
        if (dominates(p, &p->choices[i], &k))
            return;
    p->choices[p->n_choices++] = k;
}

/* The cheapest share of a node that a bundle can be had for. */
static void set_values(struct problem *p)
{
    for (uint32_t i = 0; i < p->n_items; i++) {
        struct item *it = &p->items[i];
        it->value_nusd_h = INT64_MAX / 4;
        for (uint32_t k = 0; k < p->n_choices; k++) {
            if (!bits_get(p->choices[k].items, i))
                continue;
            int64_t copies =
                resources_copies(it->need, p->choices[k].room, p->w->resources.n, INT64_MAX);
            int64_t share = num_mul_sat(p->choices[k].price_uusd_h, 1000) / copies;
            it->value_nusd_h = MIN(it->value_nusd_h, MAX(share, 1));
        }
    }
}

void problem_choices(struct problem *p)
{
    const struct world *w = p->w;
    p->item_words = BITS_WORDS(p->n_items) + 1;
    p->choices = ARENA_NEW_ARRAY(&p->arena, struct choice, w->n_offers + 1);
    size_t words = BITS_WORDS(p->n_masks) + 1;
    uint64_t *column = ARENA_NEW_ARRAY(&p->arena, uint64_t, words);
    struct map seen = MAP_INIT;
    uint32_t first = 0;
    for (uint32_t i = 0; i < w->n_offers; i++) {
        if (i && w->offers[i].pool != w->offers[i - 1].pool)
            first = p->n_choices;
        if (!w->offers[i].usable || w->pools[w->offers[i].pool].blocked)
            continue;
        column_of(p, i, column);
        add_choice(p, i, column, words, first, &seen);
    }
    map_release(&seen, NULL);
    set_values(p);
}
