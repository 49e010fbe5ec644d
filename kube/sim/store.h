/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The object store under the simulated API server: items, their versions and the watch history.
 *
 * An item is one object; a version is one immutable state of it, shared by the store, the history
 * and whoever is writing it to a stream. A change appends to the history of its resource and is
 * told to every part of the simulator at once (sim_changed); those mark their own work dirty and
 * never write from there. */
#ifndef KUBE_SIM_STORE_H
#define KUBE_SIM_STORE_H

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "kube/api/selector.h"
#include "kube/sim/sim.h"

struct version {
    uint32_t refs;
    uint64_t number; /* resourceVersion; 0: not stored yet */
    struct arena arena;
    struct json *root;
    struct str text;      /* made when first asked for */
    struct object *typed; /* likewise, for kinds of the table */
    bool tried;
    struct labels labels; /* likewise */
    bool has_labels;
};

struct change {
    uint64_t number;
    int64_t at;                     /* loop_now */
    struct version *before, *after; /* before NULL: added; after is the last state if removed */
    bool removed;
};

struct item;
struct watcher; /* watch.c */

struct resource {
    struct sim *sim;
    void (*reconcile)(struct sim *s, struct item *it); /* its controller; NULL: none */
    char *group, *version, *kind, *plural;
    bool namespaced, status, scale;
    const struct kind *typed;
    struct map objects; /* "namespace/name" or "name" -> struct item */
    struct item **sorted;
    size_t n_sorted;
    bool sorted_fresh;
    struct change *ring; /* of `ring_size`, made at the first change */
    uint32_t ring_size;
    uint64_t first, next; /* sequence numbers of the changes kept */
    uint64_t expired;     /* versions below it cannot be resumed from */
    struct watcher *watchers;
};

struct pod_state;
struct node_state;
struct job_state;
struct budget_state;

/* Objects by their owner: what to reconcile, and what to delete with it. */
VEC_DEFINE(vec_item, struct item *);
struct family {
    char *uid;          /* of the owner */
    struct item *owner; /* NULL: not seen, or gone */
    struct vec_item children;
};

struct item {
    struct resource *res;
    uint32_t refs;
    char *key, *uid;
    const char *namespace_; /* NULL: cluster scope */
    const char *name;
    struct version *now; /* the last state, also when gone */
    uint64_t born;       /* a number that only grows: creation order */
    bool gone;
    bool orphan;                 /* its owner went: to be deleted */
    struct heap_node due;        /* when its controller looks at it */
    struct job_state *job;       /* what a Job has done so far; jobs.c */
    struct budget_state *budget; /* what a PodDisruptionBudget covers; budget.c */
    struct family *family;       /* as a child */
    size_t family_index;
    struct pod_state *pod;
    struct node_state *node;
};

/* ---- Versions ---- */

struct version *version_new(void); /* empty: root is NULL */
/* A copy of an item's state to change and commit. */
struct version *version_edit(const struct item *it);
struct version *version_ref(struct version *v);
void version_unref(struct version *v);
struct str version_text(struct version *v);
/* NULL for kinds outside the table, and for objects that do not decode. */
struct object *version_typed(struct sim *s, const struct resource *r, struct version *v);
const struct labels *version_labels(struct version *v);

/* ---- Items ---- */

struct resource *store_resource(struct sim *s, struct str group, struct str plural);
struct resource *store_resource_kind(struct sim *s, struct str kind); /* any group: the first */
struct resource *store_resource_gvk(struct sim *s, struct str api_version, struct str kind);
struct resource *store_add_resource(struct sim *s, const struct sim_resource *r,
                                    const struct kind *typed);

struct item *store_find(const struct resource *r, struct str namespace_, struct str name);
struct item *store_find_uid(struct sim *s, struct str uid);
/* In key order; the array lives until the next create or remove of the resource. */
struct item **store_sorted(struct resource *r, size_t *ret_n);

/* The objects whose controlling (else first) owner is `it`; NULL: none ever. */
struct family *store_family(const struct item *it);

/* Takes the version over. metadata is completed: uid, creationTimestamp, generation, version.
 * ERR_EXISTS, or ERR_INVALID without a name. */
struct item *store_create(struct resource *r, struct version *v, struct err *err);
/* Takes the version over; it replaces the item's state. A change that changes nothing is dropped.
 * An item that is being deleted and has no finalizer (and no grace) left goes. */
void store_commit(struct item *it, struct version *v);
/* Out of the store, whatever its finalizers. */
void store_drop(struct item *it);
/* As a DELETE: grace and finalizers are kept. grace_s < 0: the object's own. True when it is gone.
 */
bool store_delete(struct item *it, int64_t grace_s);

/* Drops the history: older versions cannot be watched from any more. */
void store_forget(struct resource *r);

struct item *item_ref(struct item *it);
void item_unref(struct item *it);
static inline struct object *item_typed(struct item *it)
{
    return version_typed(it->res->sim, it->res, it->now);
}
bool item_deleting(const struct item *it);

void store_clear(struct sim *s);

#endif
