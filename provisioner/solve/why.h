/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Why a pod has no place: for each pool the first requirement that fails, in words a user can act
 * on. */
#ifndef SOLVE_WHY_H
#define SOLVE_WHY_H

#include "base/buf.h"
#include "provisioner/model/world.h"

struct why {
    const char *reason;        /* one line */
    struct string_list detail; /* "nodepool default: no offering has nvidia.com/gpu" … */
};

/* Text is in the arena. `limits_left` per pool (dense, then nodes at index resources.n) is what the
 * plan left over; NULL: as the world has it. */
struct why why_refused(const struct world *w, const struct podset *c, int64_t *const *limits_left,
                       struct arena *a);

/* The trees of `weft explain`: all of what is known of one pod or node, as text. */
struct plan;
void why_explain_pod(const struct world *w, const struct plan *p, const struct world_pod *pod,
                     struct buf *out);
void why_explain_node(const struct world *w, const struct plan *p, const struct world_node *n,
                      struct buf *out);

#endif
