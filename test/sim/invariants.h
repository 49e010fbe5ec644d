/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Safety and liveness, checked from outside after every event by code that shares nothing with the
 * provisioner: it sees objects, calls and instances. A breach is recorded, not asserted, so that a
 * runner can print the seed and what happened. */
#ifndef TEST_SIM_INVARIANTS_H
#define TEST_SIM_INVARIANTS_H

#include "test/sim/fleet.h"

struct invariants *invariants_new(struct fleet *f);
void invariants_free(struct invariants *v);

void invariants_api_call(struct invariants *v, const struct sim_call *call, bool after);
void invariants_cloud_call(struct invariants *v, const struct cloud_sim_call *call, bool after);

/* Whether the cloud may lie or machines may die: relaxes what then cannot hold. */
void invariants_faulty(struct invariants *v, bool faulty);
/* The calm end: every pod that can run runs, nothing is wedged, leaked or empty. */
void invariants_calm(struct invariants *v);

/* The first breach ("S5: …"), or NULL. */
const char *invariants_breach(const struct invariants *v);
size_t invariants_evictions(const struct invariants *v);
size_t invariants_checks(const struct invariants *v); /* how often anything was compared */

#endif
