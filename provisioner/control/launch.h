/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Launching: from the attempt written on a claim to the instance written into its status. */
#ifndef PROVISIONER_CONTROL_LAUNCH_H
#define PROVISIONER_CONTROL_LAUNCH_H

#include "provisioner/control/internal.h"

#define LAUNCH_OFFERINGS_MAX 60 /* on a claim and in a call */

struct launched; /* a copy of the instance that a launch gave */
void launched_free(struct launched *l);

/* Writes the next attempt down: the offerings that are not known to be exhausted, and their token.
 * Deletes the claim when none is left. */
void launch_attempt(struct control *c, struct nodeclaim *claim, struct claim_memory *m);
/* Calls the cloud with what is written, then writes labels and status. */
void launch_call(struct control *c, struct nodeclaim *claim, struct claim_memory *m);
/* Writes the instance of m->launched: labels first, so that a status always has them, then status.
 */
void launch_record(struct control *c, struct nodeclaim *claim, struct claim_memory *m);
/* An instance of this claim was found by listing: into the status, as after a launch. */
void launch_adopt(struct control *c, struct nodeclaim *claim, struct claim_memory *m,
                  const struct instance *i);

/* "type/zone/capacity-type", comma-separated. Returns how many were read; texts live in the arena.
 */
size_t launch_parse_offerings(struct arena *a, const char *text, struct launch_offering *ret,
                              size_t max);
void launch_print_offerings(struct buf *out, const struct launch_offering *v, size_t n);
/* The idempotency token of an attempt: 64 hex digits. */
void launch_token(char ret[65], const char *cluster_uid, const char *claim_uid, int64_t attempt,
                  const char *offerings);

/* Fills status conditions when they differ; true: a patch is under way. */
bool claims_sync_conditions(struct control *c, const struct nodeclaim *claim,
                            const struct node *node, const struct wanted_condition *want,
                            unsigned n);
/* Price of the claim's offering in micro-dollars per hour; 0: not known. */
int64_t claims_price(const struct control *c, const struct nodeclaim *claim);

#endif
