/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The decision log: one JSON object for every launch, removal, expiry, interruption and refusal. */
#ifndef PROVISIONER_CONTROL_DECISION_H
#define PROVISIONER_CONTROL_DECISION_H

#include "provisioner/control/internal.h"

struct decision {
    const char *decision; /* "launch" "refuse" "empty" "expire" "replace" "interrupt" "gc" */
    const char *reason, *outcome, *blocked_by, *evidence; /* NULL: absent */
    const char *const *nodes;
    size_t n_nodes;
    const char *const *pods;
    size_t n_pods;
    const char *node_pool, *instance_type, *zone, *capacity_type;
    int64_t price_uusd_h; /* of what is launched or removed; 0: not known */
    int64_t saving_uusd_h;
    int64_t payback_s;          /* 0: none */
    int64_t lower_bound_uusd_h; /* of the plan; 0: none */
};

/* Writes the line; in observe mode the outcome is "observed". */
void decision_log(struct control *c, const struct decision *d);

#endif
