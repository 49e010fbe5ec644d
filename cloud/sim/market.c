/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Prices and stock.
 *
 * Spot prices walk once an hour around the catalogue's, pulled back by a tenth of their distance,
 * never above the on-demand price of the same type and zone. The walk is done when somebody looks,
 * hour by hour, so that it depends on the seed and the clock only. */

#include "base/num.h"
#include "cloud/sim/internal.h"

#define WALK_EVERY NS_PER_HOUR
#define STEP_PPM 30000
#define MILLION 1000000

void market_init(struct cloud_sim *s)
{
    for (uint32_t i = 0; i < s->base->n_types; i++)
        s->n_stalls += s->base->types[i].n_offerings;
    s->stalls = xcalloc(s->n_stalls + 1, sizeof(*s->stalls));
    size_t n = 0;
    for (uint32_t i = 0; i < s->base->n_types; i++) {
        const struct instance_type *t = &s->base->types[i];
        for (uint32_t k = 0; k < t->n_offerings; k++)
            s->stalls[n++] = (struct stall){.type = t,
                                            .base = &t->offerings[k],
                                            .price = t->offerings[k].price_uusd_h,
                                            .factor_ppm = MILLION,
                                            .stock = -1};
    }
    s->version = s->base->version;
    s->walked = loop_now(s->loop);
}

void market_release(struct cloud_sim *s)
{
    free(s->stalls);
    catalog_unref(s->current);
    catalog_unref(s->base);
}

static void market_changed(struct cloud_sim *s)
{
    s->version++;
    catalog_unref(s->current);
    s->current = NULL;
}

static int64_t ceiling(const struct stall *v)
{
    for (uint32_t i = 0; i < v->type->n_offerings; i++) {
        const struct offering *o = &v->type->offerings[i];
        if (o->capacity_type == CAPACITY_ON_DEMAND && strcmp(o->zone, v->base->zone) == 0 &&
            o->price_uusd_h > 0)
            return o->price_uusd_h;
    }
    return INT64_MAX;
}

static void walk_one(struct cloud_sim *s, struct stall *v)
{
    int64_t step =
        rng_between(&s->prices, -STEP_PPM, STEP_PPM); /* drawn for all, so that pins shift nobody */
    if (v->pinned || v->base->price_uusd_h <= 0)
        return;
    v->factor_ppm += step - (v->factor_ppm - MILLION) / 10;
    v->factor_ppm = MAX(MIN(v->factor_ppm, 2 * MILLION), MILLION / 2);
    v->price = MIN(MAX(num_mul_div(v->base->price_uusd_h, v->factor_ppm, MILLION), 1), ceiling(v));
}

static void settle_spot(struct cloud_sim *s, int64_t at)
{
    for (size_t i = 0; i < s->live.len; i++) {
        struct machine *m = s->live.v[i];
        if (m->stall && m->stall->base->capacity_type == CAPACITY_SPOT && m->ended == TIME_NEVER)
            fleet_settle(m, at);
    }
}

/* Machines pay the price of the hour. */
static void reprice(struct cloud_sim *s)
{
    for (size_t i = 0; i < s->live.len; i++) {
        struct machine *m = s->live.v[i];
        if (m->stall && m->ended == TIME_NEVER)
            machine_instance(m)->price_uusd_h = m->stall->price;
    }
}

void market_walk(struct cloud_sim *s)
{
    int64_t every = MAX(sim_delay(s, WALK_EVERY), 1);
    bool moved = false;
    while (s->walked + every <= loop_now(s->loop)) {
        s->walked += every;
        settle_spot(s, s->walked);
        for (size_t i = 0; i < s->n_stalls; i++)
            if (s->stalls[i].base->capacity_type == CAPACITY_SPOT)
                walk_one(s, &s->stalls[i]);
        reprice(s);
        moved = true;
    }
    if (moved)
        market_changed(s);
}

struct stall *market_find(struct cloud_sim *s, const char *type, const char *zone,
                          enum capacity_type t)
{
    const struct instance_type *it = catalog_find(s->base, type);
    size_t lo = 0, hi = s->n_stalls;
    if (!it)
        return NULL;
    while (lo < hi) { /* stalls are in the order of types */
        size_t middle = lo + (hi - lo) / 2;
        if (s->stalls[middle].type < it)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < s->n_stalls && s->stalls[lo].type == it; lo++)
        if (s->stalls[lo].base->capacity_type == t && strcmp(s->stalls[lo].base->zone, zone) == 0)
            return &s->stalls[lo];
    return NULL;
}

static bool stall_is(const struct stall *v, const char *type, const char *zone, int t)
{
    return (!type || strcmp(v->type->name, type) == 0) &&
           (!zone || strcmp(v->base->zone, zone) == 0) &&
           (t < 0 || (int)v->base->capacity_type == t);
}

void cloud_sim_set_stock(struct cloud_sim *s, const char *type, const char *zone, int capacity_type,
                         int64_t n)
{
    for (size_t i = 0; i < s->n_stalls; i++)
        if (stall_is(&s->stalls[i], type, zone, capacity_type))
            s->stalls[i].stock = n;
}

void cloud_sim_set_price(struct cloud_sim *s, const char *type, const char *zone,
                         enum capacity_type t, int64_t price_uusd_h)
{
    market_walk(s);
    for (size_t i = 0; i < s->live.len; i++)
        if (s->live.v[i]->ended == TIME_NEVER)
            fleet_settle(s->live.v[i], loop_now(s->loop));
    for (size_t i = 0; i < s->n_stalls; i++) {
        if (!stall_is(&s->stalls[i], type, zone, (int)t))
            continue;
        s->stalls[i].price = price_uusd_h;
        s->stalls[i].pinned = true;
    }
    reprice(s);
    market_changed(s);
}

/* ---- The catalogue of the hour ---- */

static const char *copy_text(struct arena *a, const char *s)
{
    return s ? arena_cstr(a, str_from(s)) : NULL;
}

static struct resource_list copy_amounts(struct arena *a, const struct resource_list *l)
{
    struct resource_amount *v = ARENA_NEW_ARRAY(a, struct resource_amount, l->n);
    for (uint32_t i = 0; i < l->n; i++)
        v[i] = (struct resource_amount){copy_text(a, l->v[i].name), l->v[i].amount};
    return (struct resource_list){v, l->n};
}

static struct labels copy_labels(struct arena *a, const struct labels *l)
{
    struct label *v = ARENA_NEW_ARRAY(a, struct label, l->n);
    for (uint32_t i = 0; i < l->n; i++)
        v[i] = (struct label){copy_text(a, l->v[i].key), copy_text(a, l->v[i].value)};
    return (struct labels){v, l->n};
}

static void copy_type(struct arena *a, const struct instance_type *from, const struct stall *stalls,
                      const struct string_list *zones, struct instance_type *to)
{
    struct offering *v = ARENA_NEW_ARRAY(a, struct offering, from->n_offerings);
    uint32_t n = 0;
    for (uint32_t i = 0; i < from->n_offerings; i++) {
        if (zones && zones->n && !string_list_has(zones, from->offerings[i].zone))
            continue;
        v[n] = from->offerings[i];
        v[n].zone = copy_text(a, v[n].zone);
        v[n++].price_uusd_h = stalls[i].price;
    }
    *to = (struct instance_type){.name = copy_text(a, from->name),
                                 .arch = copy_text(a, from->arch),
                                 .os = copy_text(a, from->os),
                                 .capacity = copy_amounts(a, &from->capacity),
                                 .allocatable = copy_amounts(a, &from->allocatable),
                                 .labels = copy_labels(a, &from->labels),
                                 .offerings = v,
                                 .n_offerings = n};
}

static struct catalog *build(struct cloud_sim *s, const struct string_list *zones)
{
    struct catalog *c = xcalloc(1, sizeof(*c));
    c->refs = 1;
    arena_init(&c->arena, 0, 64 * 1024);
    struct instance_type *types =
        ARENA_NEW_ARRAY(&c->arena, struct instance_type, s->base->n_types);
    size_t at = 0;
    for (uint32_t i = 0; i < s->base->n_types; i++) {
        copy_type(&c->arena, &s->base->types[i], &s->stalls[at], zones, &types[i]);
        at += s->base->types[i].n_offerings;
    }
    c->region = copy_text(&c->arena, s->base->region);
    c->as_of = s->base->as_of;
    c->version = s->version;
    c->types = types;
    c->n_types = s->base->n_types;
    return c;
}

struct catalog *market_catalog(struct cloud_sim *s, const struct string_list *zones)
{
    market_walk(s);
    if (zones && zones->n)
        return build(s, zones);
    if (!s->current)
        s->current = build(s, NULL);
    return catalog_ref(s->current);
}
