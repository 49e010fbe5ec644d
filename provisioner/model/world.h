/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The world: all that a decision may know, frozen at one instant.
 *
 * A builder takes decoded objects and catalogues, in any order, and makes the world of them: pools
 * with what is left of their limits, offerings with what a pod can have of them (after daemonsets),
 * nodes with what is free, and the pods that need a place, grouped in classes of equals. The
 * controller feeds it from informers, `weft plan -f` from manifests. Deciding functions take the
 * world and nothing else; nothing in it changes once built, so a worker may read it.
 *
 * The world keeps a reference to every object. Catalogues are borrowed: their owner keeps them
 * until the world is freed. Build and free on one thread. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "cloud/catalog.h"
#include "kube/api/misc.h"
#include "kube/api/node.h"
#include "kube/api/nodeclaim.h"
#include "kube/api/nodepool.h"
#include "kube/api/pod.h"
#include "kube/api/workload.h"
#include "provisioner/model/podset.h"
#include "provisioner/model/requirement.h"
#include "provisioner/model/resources.h"

#define WORLD_NONE UINT32_MAX

struct world_pool {
    const struct nodepool *pool;
    const char *name;
    const struct catalog *catalog; /* NULL: none known */
    const char *blocked;           /* why nothing may be launched from it; NULL: it may */
    int32_t weight;
    struct requirements
        requirements; /* of the template, with its labels, pool name, default capacity type */
    /* Of those, the keys that no instance type has: labels of its nodes, some perhaps still open.
     */
    struct requirements extra;
    const struct taint *taints; /* without startup taints */
    uint32_t n_taints;
    int64_t *limit_left; /* dense; INT64_MAX where there is no limit; may be negative */
    int64_t nodes_left;  /* INT64_MAX: no limit */
    int64_t *used;       /* dense, capacity of its nodes and claims */
    int64_t nodes;
    uint32_t n_types_matched; /* instance types that satisfy the template */
};

/* One purchasable node of one pool. */
struct world_offer {
    uint32_t pool;
    const struct instance_type *type;
    const struct offering *offering;
    int64_t price_uusd_h;
    bool usable;                /* priced, offered, not remembered as exhausted */
    const int64_t *capacity;    /* dense */
    const int64_t *allocatable; /* before daemonsets */
    const int64_t *room; /* what pods may use: allocatable less daemonsets; may be negative */
    const struct host_port *ports; /* taken by daemonsets */
    uint32_t n_ports;
    /* What the instance type is labelled with (shared by its offerings): without zone and capacity
     * type, which are above, and without what the template adds, which is in world_pool.extra. */
    const struct requirements *type_labels;
};

enum world_node_state {
    WORLD_NODE_IN_FLIGHT, /* launched or being launched; its Node is not there yet */
    WORLD_NODE_STARTING,  /* the Node is there and not yet initialised */
    WORLD_NODE_READY,
    WORLD_NODE_CLOSED, /* cordoned, not Ready, out of room by decree: keeps its pods, takes none */
    WORLD_NODE_DELETING, /* its pods need another place */
};

struct world_node {
    const char *name;              /* of the Node, or of the claim while in flight */
    const struct node *node;       /* NULL: in flight */
    const struct nodeclaim *claim; /* NULL: not ours, or read from a manifest */
    enum world_node_state state;
    uint32_t pool;                    /* WORLD_NONE: foreign */
    const struct instance_type *type; /* NULL: unknown to the catalogue */
    const char *zone, *capacity_type; /* "" when not known */
    int64_t price_uusd_h;             /* of its offering; 0 unknown */
    struct requirements labels;       /* single values */
    const struct taint *taints;       /* those a pod must tolerate */
    uint32_t n_taints;
    int64_t *capacity;    /* dense */
    int64_t *allocatable; /* what the node has or will have */
    int64_t *used;        /* requests of its pods, themselves counted in "pods" */
    int64_t *room;        /* allocatable - used - daemonset pods still to come; may be negative */
    const struct host_port *ports; /* in use, or kept for daemonsets */
    uint32_t n_ports;
    const struct pod *const *pods; /* on it, terminal ones left out */
    uint32_t n_pods;
};

enum world_pod_origin {
    WORLD_POD_PENDING, /* exists, is not bound */
    WORLD_POD_MOVING,  /* bound to a node that goes away */
    WORLD_POD_COMING,  /* announced by its workload, does not exist yet */
};

struct world_pod {
    const char *key; /* "namespace/name" */
    const char *namespace_, *name;
    enum world_pod_origin origin;
    const struct pod *pod;           /* NULL: coming */
    const struct workload *workload; /* of coming pods */
    const struct pod_spec *spec;
    const struct labels *labels;
    const struct resource_list *requests;
    int64_t creation;
    uint32_t class_;     /* index into world.classes; WORLD_NONE when it is not considered */
    const char *ignored; /* why it is not: gates, another scheduler …; NULL: considered */
};

/* A pod on `node` keeps pods of `group` out of the node's domain. */
struct world_anti {
    uint32_t group, node;
};

struct world {
    struct arena arena;
    int64_t now;
    struct resources resources;
    struct world_pool *pools;   /* by weight descending, then name */
    struct world_offer *offers; /* by pool, price, type, zone, capacity type */
    struct world_node *nodes;   /* ready ones first, then by name */
    struct world_pod *pods;     /* by namespace/name */
    struct podset *classes;
    struct topology_group *groups;
    struct world_anti *antis; /* required anti-affinity of pods on nodes */
    uint32_t n_pools, n_offers, n_nodes, n_pods, n_classes, n_groups, n_antis, n_wheres;
    uint32_t n_pods_seen;    /* of all pods given to the builder and not terminal */
    struct object **objects; /* references held */
    size_t n_objects;
};

/* Name of a capacity type, as label values have it. */
const char *world_capacity_type(enum capacity_type t);

struct world_builder;
struct world_builder *world_builder_new(void);
void world_builder_free(struct world_builder *b); /* without building; NULL is harmless */

/* `blocked`: why it may not launch now (invalid, node class not ready …), copied; NULL when it may.
 * A pool that is being deleted, static or invalid blocks itself. */
void world_builder_pool(struct world_builder *b, struct nodepool *p, const struct catalog *c,
                        const char *blocked);
/* One machine: a Node, its claim, or both. `deleting`: decided to go, though the objects do not say
 * so yet. `closed`: keep it, place nothing. State follows from the objects otherwise. */
struct world_node_options {
    bool deleting, closed;
};
void world_builder_node(struct world_builder *b, struct node *n, struct nodeclaim *c,
                        struct world_node_options o);
/* Bound or not, all of them: those on nodes use room, the others need it. */
void world_builder_pod(struct world_builder *b, struct pod *p);
/* An earlier plan gave the pod a place on this node (or claim in flight) and it is on its way
 * there: it counts as being on it. Without effect when there is no such node. Texts are copied. */
void world_builder_promise(struct world_builder *b, const struct pod *p, const char *node);
void world_builder_daemonset(struct world_builder *b, struct workload *w);
/* `count` pods of the template, named after the workload with indexes from `first`. */
void world_builder_coming(struct world_builder *b, struct workload *w, int64_t first,
                          int64_t count);
/* An offering that was out of capacity. `zone` NULL: all zones. */
void world_builder_unavailable(struct world_builder *b, const char *instance_type, const char *zone,
                               enum capacity_type t);
/* Labels of a namespace, for selectors over namespaces. */
void world_builder_namespace(struct world_builder *b, struct object *namespace_);

/* Consumes the builder. NULL (builder freed) when the input cannot be held: more than RESOURCES_MAX
 * resources. `now` is ns since 1970. */
struct world *world_build(struct world_builder *b, int64_t now, struct err *err);
void world_free(struct world *w); /* NULL is harmless */

const struct world_node *world_find_node(const struct world *w, const char *name); /* NULL: none */
const struct world_pod *world_find_pod(const struct world *w, const char *key);
/* Whether the class may run on such a node, room and topology aside. On failure *ret_key (may be
 * NULL) is the label key in the way, or NULL for a taint or port. */
bool world_offer_accepts(const struct world *w, const struct world_offer *o, const struct podset *c,
                         const char **ret_key);
bool world_node_accepts(const struct world_node *n, const struct podset *c, const char **ret_key);
/* Value of a topology key on it; NULL: none, or not decided before the launch. */
const char *world_offer_domain(const struct world *w, const struct world_offer *o, const char *key);
const char *world_node_domain(const struct world_node *n, const char *key);
uint32_t world_find_pool(const struct world *w, const char *name); /* WORLD_NONE */

#endif
