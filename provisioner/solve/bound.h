/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The lower bound and its certificate.
 *
 * Values v >= 0 per class such that for every offering no set of pods that fits it is worth more
 * than its price: then the sum of v times the number of pods is at most the price of any plan. Weak
 * duality of the configuration LP; Farley's scaling makes any values feasible (A note on bounding a
 * class of linear programming problems, Operations Research 38, 1990). Values are whole
 * nano-dollars, and all checks are in integers. Private to provisioner/solve. */
#ifndef SOLVE_BOUND_H
#define SOLVE_BOUND_H

#include "provisioner/solve/plan.h"
#include "provisioner/solve/problem.h"

/* Sets bound_uusd_h, classes and binding of the plan. */
void bound_plan(struct problem *p, struct plan *plan, int64_t work);

#endif
