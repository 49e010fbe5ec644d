/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The packing problem that a world poses, in the solver's own terms.
 *
 * Items are what is packed: a class of equal pods, or the part of one that topology sends to one
 * domain. Masks say where an item may go: a bit per offer and per node; items with equal wishes
 * share one. Choices are offers that nothing here tells apart (price, room, who may use them), with
 * dominated ones left out. A spot is a place that is being filled, a node or a launch.
 *
 * Private to provisioner/solve. */
#ifndef SOLVE_PROBLEM_H
#define SOLVE_PROBLEM_H

#include "base/map.h"
#include "base/vec.h"
#include "provisioner/model/world.h"

struct mask {
    uint64_t *offers, *nodes;
    /* Per pool: which wish the items have of the pool's open keys; 0 none. Two items of different
     * wishes do not share a node. */
    uint32_t *open;
};

struct item {
    const struct podset *class_;
    const uint32_t *pods; /* world pods; those from `taken` on have no place yet */
    uint32_t n, taken;
    uint32_t bundle;     /* pods that go as one; 1 but for pods that must share a node */
    const int64_t *need; /* dense, of one bundle */
    uint32_t mask;
    int64_t value_nusd_h; /* of one bundle; INT64_MAX / 4 when no offer takes it */
    const char *refusal; /* it is not packed, and why; "": the pools tell why; NULL: it is packed */
    uint32_t cell;       /* of domains.c; WORLD_NONE: the class is not dealt out */
    bool follower;       /* needs a node that already holds what its pod affinity selects */
};

static inline int64_t item_left(const struct item *i)
{
    return (int64_t)(i->n - i->taken) / i->bundle;
}

struct choice {
    uint32_t offer; /* the first of its offers */
    uint32_t pool;
    int64_t price_uusd_h;
    const int64_t *room, *capacity;
    const uint64_t *items; /* bit per item that may use it and fits alone */
};

struct content {
    uint32_t item;
    int64_t bundles;
};

struct spot {
    int64_t *room;         /* dense, what is left */
    uint32_t *host, *anti; /* per hostname group: pods that match it, pods that keep it away */
    struct content *v;
    uint32_t n, cap;
    uint32_t open;
    uint32_t pool, node,
        kind; /* kind is an index of choices; WORLD_NONE where one does not apply */
};

/* What an earlier attempt could place of a class in a cell. */
struct cell_cap {
    uint32_t class_, cell, most;
};

struct cell_caps {
    VEC(struct cell_cap);
};

struct problem {
    const struct world *w;
    const struct cell_caps *caps;
    struct arena arena;
    struct item *items;
    struct mask *masks;
    struct choice *choices; /* by pool, then price */
    uint32_t n_items, cap_items, n_masks, cap_masks, n_choices;
    size_t offer_words, node_words, item_words;
    const uint32_t *hosts; /* groups whose key is the hostname */
    uint32_t n_hosts;
    uint32_t *host_total; /* pods matching each of them, anywhere, that keep their place */
    struct spot *nodes;   /* one per world node */
    struct {
        VEC(struct spot);
    } bins;
    int64_t **limit_left; /* per pool: dense, then nodes */
    struct map mask_index;
    int64_t work; /* steps left */
};

void problem_init(struct problem *p, const struct world *w);
void problem_release(struct problem *p);
/* Items of all classes that topology does not split; the mask of a class. */
uint32_t problem_mask(struct problem *p, const struct podset *c);
/* The mask narrowed by `keep_offers` and `keep_nodes`, under a key of its own. */
uint32_t problem_mask_narrow(struct problem *p, uint32_t mask, const uint64_t *keep_offers,
                             const uint64_t *keep_nodes);
void problem_add_item(struct problem *p, struct item i);
/* Once all items are there. */
void problem_choices(struct problem *p);

/* ---- domains.c ---- */

/* Turns classes into items, splitting by topology domains. */
void domains_split(struct problem *p);
/* Adds what this attempt could not place where it was dealt to. False: all of it was placed, so
 * every rule over domains holds. */
bool domains_learn(const struct problem *p, struct cell_caps *caps);

/* ---- prune.c ---- */

/* Takes out pods whose rules over domains do not hold as things are. */
void prune(struct problem *p);

/* ---- spot.c ---- */

void spot_init_bin(struct problem *p, struct spot *s, uint32_t choice);
/* How many bundles of the item go in, at most `most`; eligibility is the caller's. */
int64_t spot_copies(const struct problem *p, const struct spot *s, uint32_t item, int64_t most);
void spot_put(struct problem *p, struct spot *s, uint32_t item, int64_t bundles);
void spot_take(struct problem *p, struct spot *s, uint32_t at, int64_t bundles);
/* An empty one over `room` again; memory is reused. */
void spot_reset(const struct problem *p, struct spot *s, const int64_t *room);

/* ---- pack.c ---- */

enum pack_aim { PACK_BY_PRICE, PACK_BY_NODES, PACK_BY_LIMITS };

void pack_nodes(struct problem *p);
void pack_launch(struct problem *p, enum pack_aim aim);
void pack_followers(struct problem *p);
int64_t pack_unplaced(const struct problem *p);
int64_t pack_price(const struct problem *p);
bool choice_within_limits(const struct problem *p, const struct choice *k);
void choice_charge(struct problem *p, const struct choice *k, int64_t times);

/* ---- improve.c ---- */

/* Empties launches into others, and changes each to its cheapest fit. */
void improve(struct problem *p);

#endif
