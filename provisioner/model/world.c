/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Collecting objects, building the world of them, and looking things up in it. */

#include "provisioner/model/world.h"

#include "provisioner/model/builder.h"

const char *world_capacity_type(enum capacity_type t)
{
    static const char *const names[] = {[CAPACITY_ON_DEMAND] = "on-demand",
                                        [CAPACITY_SPOT] = "spot",
                                        [CAPACITY_RESERVED] = "reserved"};
    return names[t];
}

struct world_builder *world_builder_new(void)
{
    struct world_builder *b = xcalloc(1, sizeof(*b));
    b->world = xcalloc(1, sizeof(*b->world));
    resources_init(&b->world->resources);
    b->topology.arena = &b->world->arena;
    return b;
}

static void release_collections(struct world_builder *b)
{
    vec_each(&b->facts, struct catalog_facts *, it)
        map_release(&it->keys, NULL);
    vec_release(&b->facts);
    vec_release(&b->pools);
    vec_release(&b->nodes);
    vec_release(&b->pods);
    vec_release(&b->coming);
    vec_release(&b->unavailable);
    vec_release(&b->namespaces);
    vec_release(&b->daemons);
    vec_release(&b->offers);
    map_release(&b->promises, NULL);
    map_release(&b->node_index, NULL);
    topology_table_release(&b->topology);
    free(b);
}

void world_builder_free(struct world_builder *b)
{
    if (!b)
        return;
    b->world->objects = b->objects.v;
    b->world->n_objects = b->objects.len;
    world_free(b->world);
    release_collections(b);
}

static void keep(struct world_builder *b, struct object *o)
{
    vec_push(&b->objects, object_ref(o));
}

static const char *copy(struct world_builder *b, const char *s)
{
    return s ? arena_cstr(&b->world->arena, str_from(s)) : NULL;
}

void world_builder_promise(struct world_builder *b, const struct pod *p, const char *node)
{
    map_put(&b->promises, str_from(p->obj.meta.uid), arena_cstr(&b->world->arena, str_from(node)));
}

void world_builder_pool(struct world_builder *b, struct nodepool *p, const struct catalog *c,
                        const char *blocked)
{
    keep(b, &p->obj);
    vec_push(&b->pools, (struct pool_input){p, c, copy(b, blocked)});
}

void world_builder_node(struct world_builder *b, struct node *n, struct nodeclaim *c,
                        struct world_node_options o)
{
    if (n)
        keep(b, &n->obj);
    if (c)
        keep(b, &c->obj);
    if (n || c)
        vec_push(&b->nodes, (struct node_input){n, c, o});
}

void world_builder_pod(struct world_builder *b, struct pod *p)
{
    if (pod_is_terminal(p))
        return;
    keep(b, &p->obj);
    vec_push(&b->pods, p);
}

void world_builder_daemonset(struct world_builder *b, struct workload *w)
{
    if (w->obj.meta.deletion)
        return;
    keep(b, &w->obj);
    vec_push(&b->daemons, (struct daemon){.workload = w});
}

void world_builder_coming(struct world_builder *b, struct workload *w, int64_t first, int64_t count)
{
    if (count <= 0)
        return;
    keep(b, &w->obj);
    vec_push(&b->coming, (struct coming_input){w, first, count});
}

void world_builder_unavailable(struct world_builder *b, const char *instance_type, const char *zone,
                               enum capacity_type t)
{
    vec_push(&b->unavailable, (struct unavailable_input){copy(b, instance_type), copy(b, zone), t});
}

void world_builder_namespace(struct world_builder *b, struct object *namespace_)
{
    keep(b, namespace_);
    vec_push(&b->namespaces, namespace_);
}

void builder_add_resources(struct world_builder *b, const struct resource_list *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (resources_add(&b->world->resources, l->v[i].name) < 0)
            b->too_many_resources = true;
}

int64_t *builder_dense(struct world_builder *b, const struct resource_list *l)
{
    int64_t *v = ARENA_NEW_ARRAY(&b->world->arena, int64_t, b->world->resources.n);
    resources_dense(&b->world->resources, l, v);
    return v;
}

/* Every name that may be asked for or offered, before any vector is made. */
static void collect_resources(struct world_builder *b)
{
    const struct catalog *last = NULL;
    vec_each(&b->pools, struct pool_input *, it) {
        for (uint32_t i = 0; i < it->pool->limits.n; i++) {
            struct resource_list one = {&it->pool->limits.v[i], 1};
            if (strcmp(one.v->name, "nodes") != 0)
                builder_add_resources(b, &one);
        }
        if (!it->catalog || it->catalog == last)
            continue;
        last = it->catalog;
        for (uint32_t i = 0; i < it->catalog->n_types; i++) {
            builder_add_resources(b, &it->catalog->types[i].capacity);
            builder_add_resources(b, &it->catalog->types[i].allocatable);
        }
    }
    vec_each(&b->nodes, struct node_input *, it) {
        if (it->node) {
            builder_add_resources(b, &it->node->capacity);
            builder_add_resources(b, &it->node->allocatable);
        }
        if (it->claim) {
            builder_add_resources(b, &it->claim->capacity);
            builder_add_resources(b, &it->claim->allocatable);
            builder_add_resources(b, &it->claim->requests);
        }
    }
    const struct resource_amount *seen = NULL; /* equal pods share one list, often in a row */
    vec_each(&b->pods, struct pod **, it) {
        if ((*it)->requests.v == seen)
            continue;
        seen = (*it)->requests.v;
        builder_add_resources(b, &(*it)->requests);
    }
    vec_each(&b->coming, struct coming_input *, it)
        builder_add_resources(b, &it->workload->template_.requests);
    vec_each(&b->daemons, struct daemon *, it)
        builder_add_resources(b, &it->workload->template_.requests);
}

struct world *world_build(struct world_builder *b, int64_t now, struct err *err)
{
    struct world *w = b->world;
    w->now = now;
    collect_resources(b);
    if (b->too_many_resources) {
        err_set(err, ERR_INVALID, "more than %d different resource names", RESOURCES_MAX);
        world_builder_free(b);
        return NULL;
    }
    b->topology.namespaces = b->namespaces.v;
    b->topology.n_namespaces = b->namespaces.len;
    builder_daemons(b);
    builder_pools(b);
    builder_nodes(b);
    builder_offers(b);
    builder_pods(b);
    builder_classes(b);
    w->objects = b->objects.v;
    w->n_objects = b->objects.len;
    release_collections(b);
    return w;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_objects; i++)
        object_unref(w->objects[i]);
    free(w->objects);
    arena_release(&w->arena);
    free(w);
}

const struct world_node *world_find_node(const struct world *w, const char *name)
{
    for (uint32_t i = 0; i < w->n_nodes; i++)
        if (strcmp(w->nodes[i].name, name) == 0)
            return &w->nodes[i];
    return NULL;
}

const struct world_pod *world_find_pod(const struct world *w, const char *key)
{
    for (uint32_t i = 0; i < w->n_pods; i++)
        if (strcmp(w->pods[i].key, key) == 0)
            return &w->pods[i];
    return NULL;
}

uint32_t world_find_pool(const struct world *w, const char *name)
{
    for (uint32_t i = 0; i < w->n_pools; i++)
        if (strcmp(w->pools[i].name, name) == 0)
            return i;
    return WORLD_NONE;
}

/* ---- Fit ---- */

static bool value_ok(const struct requirement *want, const char *value)
{
    return value && *value ? requirement_has(want, value) : requirement_allows_absent(want);
}

static bool offer_satisfies(const struct world *w, const struct world_offer *o,
                            const struct requirement *want)
{
    if (strcmp(want->key, LABEL_ZONE) == 0)
        return value_ok(want, o->offering->zone);
    if (strcmp(want->key, LABEL_CAPACITY_TYPE) == 0)
        return value_ok(want, world_capacity_type(o->offering->capacity_type));
    if (strcmp(want->key, LABEL_HOSTNAME) == 0 || strcmp(want->key, REQUIREMENT_FIELD_NAME) == 0)
        return want->complement; /* the new node's name is not known, and is none of those listed */
    const struct requirement *is = requirements_find(o->type_labels, want->key);
    if (!is)
        is = requirements_find(&w->pools[o->pool].extra, want->key);
    if (!is)
        return requirement_allows_absent(want);
    return requirement_overlaps(is, want) ||
           (requirement_allows_absent(is) && requirement_allows_absent(want));
}

bool world_offer_accepts(const struct world *w, const struct world_offer *o, const struct podset *c,
                         const char **ret_key)
{
    const struct world_pool *pool = &w->pools[o->pool];
    const char *furthest = NULL;
    if (ret_key)
        *ret_key = NULL;
    if (podset_untolerated(c->spec, pool->taints, pool->n_taints) ||
        podset_ports_conflict(c, o->ports, o->n_ports))
        return false;
    for (uint32_t i = 0; i < c->n_alternatives; i++) {
        const struct requirements *wants = &c->alternatives[i];
        uint32_t at = 0;
        while (at < wants->n && offer_satisfies(w, o, &wants->v[at]))
            at++;
        if (at == wants->n)
            return true;
        if (!furthest)
            furthest = wants->v[at].key;
    }
    if (ret_key)
        *ret_key = furthest;
    return false;
}

bool world_node_accepts(const struct world_node *n, const struct podset *c, const char **ret_key)
{
    if (ret_key)
        *ret_key = NULL;
    if (n->state == WORLD_NODE_CLOSED || n->state == WORLD_NODE_DELETING)
        return false;
    if (podset_untolerated(c->spec, n->taints, n->n_taints) ||
        podset_ports_conflict(c, n->ports, n->n_ports))
        return false;
    return podset_compatible(c, &n->labels, ret_key);
}

static const char *single(const struct requirements *s, const char *key)
{
    const struct requirement *r = requirements_find(s, key);
    return r && !r->complement && r->n_values == 1 ? r->values[0] : NULL;
}

const char *world_offer_domain(const struct world *w, const struct world_offer *o, const char *key)
{
    if (strcmp(key, LABEL_ZONE) == 0)
        return o->offering->zone;
    if (strcmp(key, LABEL_CAPACITY_TYPE) == 0)
        return world_capacity_type(o->offering->capacity_type);
    const char *value = single(o->type_labels, key);
    return value ? value : single(&w->pools[o->pool].extra, key);
}

const char *world_node_domain(const struct world_node *n, const char *key)
{
    if (strcmp(key, LABEL_HOSTNAME) == 0)
        return n->name;
    return single(&n->labels, key);
}
