/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* From a packed problem to a plan. Private to provisioner/solve. */
#ifndef SOLVE_EMIT_H
#define SOLVE_EMIT_H

#include "provisioner/solve/plan.h"
#include "provisioner/solve/problem.h"

struct plan *emit_plan(struct problem *p, unsigned alternatives_max);

#endif
