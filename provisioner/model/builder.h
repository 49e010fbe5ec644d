/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* How a world is put together: what the builder has collected, and the stages of world_build.
 *
 * Stages run in this order, each reading what the ones before it wrote: names of resources, pools
 * and their offerings, nodes, pods and their classes. Private to provisioner/model. */
#ifndef MODEL_BUILDER_H
#define MODEL_BUILDER_H

#include "base/map.h"
#include "base/vec.h"
#include "provisioner/model/topology.h"
#include "provisioner/model/world.h"

struct pool_input {
    struct nodepool *pool;
    const struct catalog *catalog;
    const char *blocked;
};

struct node_input {
    struct node *node;
    struct nodeclaim *claim;
    struct world_node_options options;
};

struct coming_input {
    struct workload *workload;
    int64_t first, count;
};

struct unavailable_input {
    const char *instance_type, *zone; /* zone NULL: all */
    enum capacity_type capacity_type;
};

/* What is the same for all pools that use one catalogue. */
struct type_facts {
    const struct requirements *labels;
    const int64_t *capacity, *allocatable;
};

struct catalog_facts {
    const struct catalog *catalog;
    struct type_facts *types;
    struct map keys; /* label keys that some type has */
};

struct daemon {
    struct workload *workload;
    struct podset set; /* only what compatibility reads */
};

struct world_builder {
    struct world *world; /* its arena is used from the start */
    struct {
        VEC(struct pool_input);
    } pools;
    struct {
        VEC(struct node_input);
    } nodes;
    struct {
        VEC(struct pod *);
    } pods;
    struct {
        VEC(struct coming_input);
    } coming;
    struct {
        VEC(struct unavailable_input);
    } unavailable;
    struct {
        VEC(struct object *);
    } objects;
    struct {
        VEC(struct object *);
    } namespaces;
    struct {
        VEC(struct daemon);
    } daemons;
    /* while building */
    struct {
        VEC(struct catalog_facts);
    } facts;
    struct {
        VEC(struct world_offer);
    } offers;
    struct map promises;   /* uid of a pod to the name of its node, in the arena */
    struct map node_index; /* name to index + 1 into world.nodes */
    struct topology_table topology;
    bool too_many_resources;
};

void builder_add_resources(struct world_builder *b, const struct resource_list *l);
int64_t *builder_dense(struct world_builder *b, const struct resource_list *l);

void builder_daemons(struct world_builder *b);
void builder_pools(struct world_builder *b);
void builder_offers(struct world_builder *b);
void builder_nodes(struct world_builder *b);
void builder_pods(struct world_builder *b);
void builder_classes(struct world_builder *b);

/* Requests of the daemonsets in the set (bit per daemon), themselves counted in "pods"; in the
 * arena. */
int64_t *builder_daemon_sum(struct world_builder *b, const uint64_t *set);

const struct type_facts *builder_type_facts(struct world_builder *b, const struct catalog *c,
                                            const struct instance_type *t);

#endif
