/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Building the world: pools, their offerings, and what daemonsets take of them. */

#include "base/bits.h"
#include "provisioner/model/builder.h"

/* The taints that every DaemonSet pod tolerates by decree of its controller share this prefix. */
static bool daemon_tolerates(const struct pod_spec *s, const struct taint *t)
{
    if (str_has_prefix(str_from(t->key), STR("node.kubernetes.io/")))
        return true;
    return podset_untolerated(s, t, 1) == NULL;
}

static bool daemon_tolerates_all(const struct pod_spec *s, const struct taint *taints, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!daemon_tolerates(s, &taints[i]))
            return false;
    return true;
}

void builder_daemons(struct world_builder *b)
{
    struct arena *a = &b->world->arena;
    vec_each(&b->daemons, struct daemon *, it) {
        const struct pod_spec *s = &it->workload->template_.spec;
        it->set.spec = s;
        it->set.requests = builder_dense(b, &it->workload->template_.requests);
        it->set.alternatives = podset_alternatives(s, &it->set.n_alternatives, a);
        it->set.ports = podset_ports(s, &it->set.n_ports, a);
    }
}

int64_t *builder_daemon_sum(struct world_builder *b, const uint64_t *set)
{
    uint32_t n = b->world->resources.n;
    int64_t *sum = ARENA_NEW_ARRAY(&b->world->arena, int64_t, n);
    for (size_t i = 0; i < b->daemons.len; i++) {
        if (!bits_get(set, i))
            continue;
        resources_sum(sum, b->daemons.v[i].set.requests, n);
        sum[RESOURCE_PODS]++;
    }
    return sum;
}

/* ---- Pools ---- */

static const char *own_block(const struct nodepool *p, const char *blocked, const struct catalog *c)
{
    if (p->obj.meta.deletion)
        return "it is being deleted";
    if (p->invalid)
        return p->invalid;
    if (p->replicas >= 0)
        return "it is static: its replicas are set, not computed";
    if (blocked)
        return blocked;
    return c ? NULL : "no instance types are known for it";
}

static struct requirements template_requirements(const struct nodepool *p, struct arena *a)
{
    const struct node_template *t = &p->template_;
    struct requirements wants = requirements_from_selectors(t->requirements, t->n_requirements, a);
    struct requirements labels = requirements_from_labels(&t->labels, a);
    wants = requirements_merge(&wants, &labels, a);
    struct requirement name = requirement_equals(LABEL_NODEPOOL, p->obj.meta.name, a);
    wants = requirements_merge(&wants, &(struct requirements){&name, 1}, a);
    if (!requirements_find(&wants, LABEL_CAPACITY_TYPE)) {
        struct requirement on_demand = requirement_equals(LABEL_CAPACITY_TYPE, "on-demand", a);
        wants = requirements_merge(&wants, &(struct requirements){&on_demand, 1}, a);
    }
    return wants;
}

static int by_weight(const void *x, const void *y)
{
    const struct pool_input *p = x, *q = y;
    if (p->pool->weight != q->pool->weight)
        return p->pool->weight > q->pool->weight ? -1 : 1;
    return strcmp(p->pool->obj.meta.name, q->pool->obj.meta.name);
}

static void set_limits(struct world_builder *b, struct world_pool *to)
{
    struct resources *r = &b->world->resources;
    to->limit_left = ARENA_NEW_ARRAY(&b->world->arena, int64_t, r->n);
    to->used = ARENA_NEW_ARRAY(&b->world->arena, int64_t, r->n);
    for (uint32_t i = 0; i < r->n; i++)
        to->limit_left[i] = INT64_MAX;
    to->nodes_left = INT64_MAX;
    for (uint32_t i = 0; i < to->pool->limits.n; i++) {
        const struct resource_amount *limit = &to->pool->limits.v[i];
        if (strcmp(limit->name, "nodes") == 0)
            to->nodes_left = limit->amount;
        else
            to->limit_left[resources_find(r, limit->name)] = limit->amount;
    }
}

void builder_pools(struct world_builder *b)
{
    struct world *w = b->world;
    if (b->pools.len)
        qsort(b->pools.v, b->pools.len, sizeof(*b->pools.v), by_weight);
    w->pools = ARENA_NEW_ARRAY(&w->arena, struct world_pool, b->pools.len + 1);
    vec_each(&b->pools, struct pool_input *, it) {
        struct world_pool *to = &w->pools[w->n_pools++];
        to->pool = it->pool;
        to->name = it->pool->obj.meta.name;
        to->catalog = it->catalog;
        to->blocked = own_block(it->pool, it->blocked, it->catalog);
        to->weight = it->pool->weight;
        to->taints = it->pool->template_.taints;
        to->n_taints = it->pool->template_.n_taints;
        to->requirements = template_requirements(it->pool, &w->arena);
        set_limits(b, to);
    }
}

/* ---- Instance types ---- */

/* Labels of the type's nodes, with those that follow from its other fields. */
static const struct requirements *type_labels(const struct catalog *c,
                                              const struct instance_type *t, struct arena *a)
{
    const struct label given[] = {{LABEL_INSTANCE_TYPE, t->name},
                                  {LABEL_ARCH, t->arch},
                                  {LABEL_OS, t->os},
                                  {LABEL_REGION, c->region}};
    struct requirement derived[ARRAY_LEN(given)];
    struct requirements own = requirements_from_labels(&t->labels, a);
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        if (!given[i].value || !*given[i].value || requirements_find(&own, given[i].key))
            continue;
        derived[0] = requirement_equals(given[i].key, given[i].value, a);
        own = requirements_merge(&own, &(struct requirements){derived, 1}, a);
    }
    struct requirements *to = ARENA_NEW(a, struct requirements);
    *to = own;
    return to;
}

static struct catalog_facts *facts_of(struct world_builder *b, const struct catalog *c)
{
    vec_each(&b->facts, struct catalog_facts *, it)
        if (it->catalog == c)
            return it;
    struct arena *a = &b->world->arena;
    struct catalog_facts f = {.catalog = c,
                              .types = ARENA_NEW_ARRAY(a, struct type_facts, c->n_types + 1)};
    for (uint32_t i = 0; i < c->n_types; i++) {
        const struct instance_type *t = &c->types[i];
        f.types[i] = (struct type_facts){type_labels(c, t, a), builder_dense(b, &t->capacity),
                                         builder_dense(b, &t->allocatable)};
        for (uint32_t j = 0; j < f.types[i].labels->n; j++)
            map_put(&f.keys, str_from(f.types[i].labels->v[j].key), &f);
    }
    vec_push(&b->facts, f);
    return &vec_last(&b->facts);
}

const struct type_facts *builder_type_facts(struct world_builder *b, const struct catalog *c,
                                            const struct instance_type *t)
{
    return &facts_of(b, c)->types[t - c->types];
}

/* Whether the cloud, rather than the template, decides the key's value. */
static bool cloud_decides(const struct catalog_facts *f, const char *key)
{
    return label_is_well_known(key) || map_has(&f->keys, str_from(key));
}

static struct requirements extra_of(const struct requirements *all, const struct catalog_facts *f,
                                    struct arena *a)
{
    struct requirement *v = ARENA_NEW_ARRAY(a, struct requirement, all->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        if (!cloud_decides(f, all->v[i].key))
            v[n++] = all->v[i];
    return (struct requirements){v, n};
}

static bool template_takes_type(const struct world_pool *p, const struct catalog_facts *f,
                                const struct requirements *labels)
{
    for (uint32_t i = 0; i < p->requirements.n; i++) {
        const struct requirement *want = &p->requirements.v[i];
        if (!cloud_decides(f, want->key) || strcmp(want->key, LABEL_ZONE) == 0 ||
            strcmp(want->key, LABEL_CAPACITY_TYPE) == 0)
            continue;
        const struct requirement *is = requirements_find(labels, want->key);
        if (is ? !requirement_overlaps(is, want) : !requirement_allows_absent(want))
            return false;
    }
    return true;
}

static bool value_allowed(const struct world_pool *p, const char *key, const char *value)
{
    const struct requirement *want = requirements_find(&p->requirements, key);
    return !want || (value && requirement_has(want, value));
}

static bool remembered_unavailable(const struct world_builder *b, const struct instance_type *t,
                                   const struct offering *o)
{
    for (size_t i = 0; i < b->unavailable.len; i++) {
        const struct unavailable_input *u = &b->unavailable.v[i];
        if (u->capacity_type == o->capacity_type && strcmp(u->instance_type, t->name) == 0 &&
            (!u->zone || (o->zone && strcmp(u->zone, o->zone) == 0)))
            return true;
    }
    return false;
}

/* ---- Offerings ---- */

/* Daemonsets that will run on such a node, as a set; true when it has changed. */
static bool daemons_on(struct world_builder *b, const struct world_offer *o, uint64_t *set)
{
    const struct world_pool *p = &b->world->pools[o->pool];
    bool changed = false;
    for (size_t i = 0; i < b->daemons.len; i++) {
        struct podset bare = b->daemons.v[i].set;
        bool on = false;
        if (daemon_tolerates_all(bare.spec, p->taints, p->n_taints)) {
            struct pod_spec tolerant = *bare.spec;
            static const struct toleration all = {.exists = true};
            tolerant.tolerations = &all;
            tolerant.n_tolerations = 1;
            bare.spec = &tolerant;
            bare.n_ports = 0;
            on = world_offer_accepts(b->world, o, &bare, NULL);
        }
        if (on != bits_get(set, i)) {
            changed = true;
            if (on)
                bits_set(set, i);
            else
                bits_clear(set, i);
        }
    }
    return changed;
}

static const struct host_port *daemon_ports(struct world_builder *b, const uint64_t *set,
                                            uint32_t *ret_n)
{
    uint32_t n = 0;
    for (size_t i = 0; i < b->daemons.len; i++)
        n += bits_get(set, i) ? b->daemons.v[i].set.n_ports : 0;
    struct host_port *v = ARENA_NEW_ARRAY(&b->world->arena, struct host_port, n);
    *ret_n = 0;
    for (size_t i = 0; i < b->daemons.len; i++)
        for (uint32_t j = 0; bits_get(set, i) && j < b->daemons.v[i].set.n_ports; j++)
            v[(*ret_n)++] = b->daemons.v[i].set.ports[j];
    return v;
}

/* What daemonsets take, remembered from one offering to the next since it rarely changes. */
struct overhead {
    uint64_t *set;
    const int64_t *sum, *room, *room_of;
    const struct host_port *ports;
    uint32_t n_ports;
};

static void add_offer(struct world_builder *b, struct overhead *d, struct world_offer o)
{
    uint32_t n = b->world->resources.n;
    bool changed = daemons_on(b, &o, d->set);
    if (changed || !d->sum) {
        d->sum = builder_daemon_sum(b, d->set);
        d->ports = daemon_ports(b, d->set, &d->n_ports);
    }
    if (changed || d->room_of != o.allocatable) {
        int64_t *room = ARENA_NEW_ARRAY(&b->world->arena, int64_t, n);
        memcpy(room, o.allocatable, n * sizeof(*room));
        resources_subtract(room, d->sum, n);
        d->room = room;
        d->room_of = o.allocatable;
    }
    o.room = d->room;
    o.ports = d->ports;
    o.n_ports = d->n_ports;
    vec_push(&b->offers, o);
}

static void add_pool_offers(struct world_builder *b, uint32_t index, struct overhead *d)
{
    struct world_pool *p = &b->world->pools[index];
    if (!p->catalog)
        return;
    const struct catalog_facts *f = facts_of(b, p->catalog);
    p->extra = extra_of(&p->requirements, f, &b->world->arena);
    for (uint32_t i = 0; i < p->catalog->n_types; i++) {
        const struct instance_type *t = &p->catalog->types[i];
        if (!template_takes_type(p, f, f->types[i].labels))
            continue;
        p->n_types_matched++;
        for (uint32_t j = 0; j < t->n_offerings; j++) {
            const struct offering *x = &t->offerings[j];
            if (!value_allowed(p, LABEL_ZONE, x->zone) ||
                !value_allowed(p, LABEL_CAPACITY_TYPE, world_capacity_type(x->capacity_type)))
                continue;
            add_offer(b, d,
                      (struct world_offer){
                          .pool = index,
                          .type = t,
                          .offering = x,
                          .price_uusd_h = x->price_uusd_h,
                          .usable = x->available && x->price_uusd_h > 0 &&
                                    !remembered_unavailable(b, t, x),
                          .capacity = f->types[i].capacity,
                          .allocatable = f->types[i].allocatable,
                          .type_labels = f->types[i].labels,
                      });
        }
    }
}

static int by_price(const void *x, const void *y)
{
    const struct world_offer *p = x, *q = y;
    if (p->pool != q->pool)
        return p->pool < q->pool ? -1 : 1;
    if (p->price_uusd_h != q->price_uusd_h)
        return p->price_uusd_h < q->price_uusd_h ? -1 : 1;
    int c = strcmp(p->type->name, q->type->name);
    if (c == 0)
        c = str_cmp(str_from(p->offering->zone), str_from(q->offering->zone));
    return c ? c : (int)p->offering->capacity_type - (int)q->offering->capacity_type;
}

void builder_offers(struct world_builder *b)
{
    struct world *w = b->world;
    struct overhead d = {.set =
                             ARENA_NEW_ARRAY(&w->arena, uint64_t, BITS_WORDS(b->daemons.len) + 1)};
    for (uint32_t i = 0; i < w->n_pools; i++)
        add_pool_offers(b, i, &d);
    w->n_offers = (uint32_t)b->offers.len;
    w->offers = ARENA_NEW_ARRAY(&w->arena, struct world_offer, w->n_offers + 1);
    if (w->n_offers) {
        memcpy(w->offers, b->offers.v, w->n_offers * sizeof(*w->offers));
        qsort(w->offers, w->n_offers, sizeof(*w->offers), by_price);
    }
}
