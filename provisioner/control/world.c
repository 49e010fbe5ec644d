/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* From the caches to the immutable world of a plan. */
#include "provisioner/control/provision.h"

static void add_pools(struct control *c, struct world_builder *b, struct pass *p)
{
    size_t n = informer_count(c->cluster.caches[CACHE_NODEPOOL]);

    p->catalogs = xcalloc(n + 1, sizeof(struct catalog *));
    cluster_each(c, CACHE_NODEPOOL, nodepool, pool)
    {
        const struct nodepool *good = pools_last_good(c, pool->obj.meta.name);
        struct catalog *cat = good ? pools_catalog(c, &good->template_.class_ref) : NULL;

        if (!good)
            continue;
        if (cat && p->n_catalogs < n)
            p->catalogs[p->n_catalogs++] = catalog_ref(cat);
        world_builder_pool(b, (struct nodepool *)good, cat, pools_blocked(c, pool->obj.meta.name));
    }
}

static void add_nodes(struct control *c, struct world_builder *b)
{
    cluster_each(c, CACHE_NODE, node, n)
    {
        struct nodeclaim *claim = cluster_claim_of_id(c, n->provider_id);
        struct world_node_options o = {.deleting = n->obj.meta.deletion ||
                                                   (claim && claim->obj.meta.deletion)};

        world_builder_node(b, n, claim, o);
    }
    cluster_each(c, CACHE_NODECLAIM, nodeclaim, claim)
    {
        struct world_node_options o = {.deleting = claim->obj.meta.deletion != 0};

        if (!claim->provider_id || !cluster_node_of_id(c, claim->provider_id, NULL))
            world_builder_node(b, NULL, claim, o);
    }
}

/* A pod that the scheduler has not looked at yet may fit where we cannot know; only for workloads
 * that weft scales is its place planned before. */
static bool planned_for(const struct control *c, const struct pod *p)
{
    const struct workload *w;

    if ((p->spec.node_name && p->spec.node_name[0]) || pod_is_provisionable(p))
        return true;
    w = cluster_workload_of(c, p);
    return w && coming_scaled(w);
}

static void add_pods(struct control *c, struct world_builder *b)
{
    struct coming_pods coming;
    size_t cursor = 0;

    cluster_each(c, CACHE_POD, pod, p)
    {
        if (planned_for(c, p))
            world_builder_pod(b, p);
    }
    cluster_each(c, CACHE_DAEMONSET, workload, w) world_builder_daemonset(b, w);
    while (coming_next(c, &cursor, &coming))
        world_builder_coming(b, coming.workload, coming.first, coming.count);
    for (size_t i = 0;;) {
        struct object *ns = informer_next(c->cluster.caches[CACHE_NAMESPACE], &i);

        if (!ns)
            break;
        world_builder_namespace(b, ns);
    }
}

static const struct pod *pod_by_key(const struct control *c, struct str key)
{
    char namespace_[256];
    struct str ns;
    const struct object *o;

    (void)str_split(&key, '/', &ns);
    snprintf(namespace_, sizeof(namespace_), "%.*s", STR_ARG(ns));
    o = informer_get(c->cluster.caches[CACHE_POD], namespace_, key.p);
    return (const struct pod *)(const void *)o;
}

/* What was promised stays: planned again from scratch, pods that filled nodes tightly might not. */
static void add_promises(struct control *c, struct world_builder *b)
{
    map_each(&c->provision->nominations, it) {
        const struct nomination *n = it->value;
        const struct pod *p = n->stale ? NULL : pod_by_key(c, map_key(it));
        const struct nodeclaim *claim = n->claim ? cluster_claim(c, n->target) : NULL;
        const struct node *node =
            claim && claim->provider_id ? cluster_node_of_id(c, claim->provider_id, NULL) : NULL;

        if (p)
            world_builder_promise(b, p, node ? node->obj.meta.name : n->target);
    }
}

static void add_unavailable(void *arg, const struct launch_offering *l)
{
    world_builder_unavailable(arg, l->instance_type, l->zone, l->capacity_type);
}

struct pass *pass_new(struct control *c, struct err *err)
{
    struct world_builder *b = world_builder_new();
    struct pass *p = xcalloc(1, sizeof(*p));

    p->c = c;
    p->generation = c->cluster.generation;
    p->options.work = c->o.solve_budget;
    add_pools(c, b, p);
    add_nodes(c, b);
    add_pods(c, b);
    add_promises(c, b);
    offers_each(&c->offers, control_now(c), add_unavailable, b);
    p->world = world_build(b, control_now(c), err);
    if (p->world)
        return p;
    pass_free(p);
    return NULL;
}

void pass_free(struct pass *p)
{
    if (!p)
        return;
    plan_free(p->plan);
    world_free(p->world);
    for (size_t i = 0; i < p->n_catalogs; i++)
        catalog_unref(p->catalogs[i]);
    free(p->catalogs);
    free(p);
}
