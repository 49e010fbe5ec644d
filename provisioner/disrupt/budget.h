/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Disruption budgets: how many nodes of a pool may be taken away now, for a reason.
 *
 * Of the budgets that are active and name the reason the smallest counts; percentages round up; a
 * schedule is in UTC and makes the budget active for `duration` from each of its hits. A budget
 * that cannot be read allows nothing. Source: karpenter.sh/v1 NodePool, spec.disruption.budgets. */
#ifndef PROVISIONER_DISRUPT_BUDGET_H
#define PROVISIONER_DISRUPT_BUDGET_H

#include "kube/api/nodepool.h"

struct budget_count {
    int64_t nodes;      /* managed, initialised, and not yet given back to the cloud */
    int64_t disrupting; /* of those: being deleted, chosen for removal, or not Ready */
};

/* Whether the budget's window is open at `now`. False also when its schedule cannot be read, and
 * then *ret_broken is true. */
bool budget_active(const struct disruption_budget *b, int64_t now, bool *ret_broken);
/* Nodes that the budget alone lets be away at once, of `nodes`. */
int64_t budget_nodes(const struct disruption_budget *b, int64_t nodes);
/* How many more nodes of the pool may be disrupted at `now` for the reason; never negative. */
int64_t budget_allowed(const struct nodepool *p, enum disruption_reason reason,
                       const struct budget_count *n, int64_t now);

#endif
