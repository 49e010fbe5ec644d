/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* An independent judge of plans.
 *
 * Written from the rules of the Kubernetes scheduler and of NodePools, not from the solver: it
 * reads the world's objects by name and shares no arithmetic with it. */
#ifndef TEST_SUPPORT_PLAN_CHECK_H
#define TEST_SUPPORT_PLAN_CHECK_H

#include "base/buf.h"
#include "provisioner/solve/plan.h"

/* Number of faults; each is a line of `out`. */
unsigned plan_check(const struct world *w, const struct plan *p, struct buf *out);

#endif
