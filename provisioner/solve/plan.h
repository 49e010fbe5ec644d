/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A plan: what to launch, which pod goes where, what cannot be placed and why, and what it costs
 * against the least it could cost.
 *
 * Made by solve() and owned by the caller. It points into the world it was made from, which must
 * live as long. Prices are micro-dollars per hour. */
#ifndef SOLVE_PLAN_H
#define SOLVE_PLAN_H

#include "base/buf.h"
#include "provisioner/model/world.h"

#define PLAN_ALTERNATIVES_MAX 60

struct plan_alternative {
    uint32_t offer; /* index into world.offers */
    const char *instance_type, *zone, *capacity_type;
    int64_t price_uusd_h;
};

struct plan_launch {
    const char
        *name;     /* "pool-0001": unique in the plan; the executor gives the claim its real name */
    uint32_t pool; /* index into world.pools */
    const char *node_pool;
    /* Ranked, the chosen one first; each holds exactly these pods. */
    const struct plan_alternative *alternatives;
    uint32_t n_alternatives;
    const uint32_t *pods;        /* indexes into world.pods, ascending */
    const char *const *pod_keys; /* "namespace/name" of each */
    uint32_t n_pods;
    struct resource_list requests;    /* of its pods, themselves counted in "pods" */
    struct resource_list allocatable; /* of the chosen one, less daemonsets */
    struct labels
        labels; /* values chosen for open keys of the pool, beyond its template's labels */
};

struct plan_placement {
    uint32_t pod;
    const char *pod_key, *node;
};

struct plan_refusal {
    uint32_t pod;
    const char *pod_key, *reason;
    struct string_list detail; /* one line per NodePool */
};

struct plan_class {
    uint32_t id;   /* of the world's class */
    uint32_t pods; /* that are launched for */
    const char *example;
    int64_t value_nusd_h; /* nano-dollars per hour */
};

struct plan {
    struct arena arena;
    const struct plan_launch *launches;  /* by name */
    const struct plan_placement *places; /* by pod */
    const struct plan_refusal *refusals; /* by pod */
    const struct plan_class *classes;    /* the certificate */
    uint32_t n_launches, n_places, n_refusals, n_classes;
    int64_t launch_uusd_h, objective_uusd_h, bound_uusd_h;
    const char *binding; /* one line on what holds the price up */
    struct {
        uint32_t pods, pending, nodes, pools, offers, classes;
    } input;
    struct {
        int64_t decode_us, greedy_us, solve_us; /* filled in by the caller */
    } timing;
};

void plan_free(struct plan *p); /* NULL is harmless */

/* Hundredths of a percent that the objective lies above the bound; 0 when there is nothing to
 * launch. */
int64_t plan_gap(const struct plan *p);

/* The one printer. */
struct plan_print_options {
    unsigned columns; /* width of the text; 0: 100 */
    bool colour;
    bool certificate; /* in JSON */
};
void plan_print_text(const struct plan *p, const struct plan_print_options *o, struct buf *out);
void plan_print_json(const struct plan *p, const struct plan_print_options *o, struct buf *out);

#endif
