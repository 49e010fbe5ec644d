/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* From a world to a plan.
 *
 * Pure and deterministic: the same world, options and work give the same plan. Work is counted, not
 * timed. The ladder (each step keeps the best so far): existing and in-flight nodes are filled at
 * price 0, dominated offerings pruned, nodes bought by value per dollar, each launch changed to its
 * cheapest fit; then the lower bound. */
#ifndef SOLVE_SOLVE_H
#define SOLVE_SOLVE_H

#include "provisioner/solve/plan.h"

struct solve_options {
    int64_t work; /* steps that may be spent beyond the first answer; 0: the standard */
    unsigned
        alternatives; /* offers a launch may name, at most PLAN_ALTERNATIVES_MAX; 0: all of those */
    bool no_bound;    /* skip the lower bound: bound_uusd_h is then 0 and classes empty */
    bool no_launch;   /* only place on what there is */
};

struct plan *solve(const struct world *w, const struct solve_options *o); /* o may be NULL */

#endif
