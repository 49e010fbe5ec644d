/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The texts of what control writes: merge patches that touch what they mean to and nothing else.
 *
 * A merge patch replaces lists whole, so patches of lists carry the resourceVersion they were made
 * from: whoever changed the object meanwhile gets a 409 sent to us, and we look again. */
#ifndef PROVISIONER_CONTROL_BODY_H
#define PROVISIONER_CONTROL_BODY_H

#include "base/json.h"
#include "kube/api/node.h"
#include "kube/api/nodeclaim.h"
#include "provisioner/control/lifecycle.h"

/* Opens {"metadata":{…; close with body_end. */
void body_begin(struct json_writer *w, struct buf *out,
                const struct meta *m /* NULL: no resourceVersion */);
void body_metadata_end(struct json_writer *w);
void body_end(struct json_writer *w);

/* The finalizers of `m` with or without ours. */
void body_finalizer(struct buf *out, const struct meta *m, bool with);

/* True when a status patch is needed: `out` then has the conditions with the wanted ones in them.
 * `old` keeps what is not wanted otherwise. Transition times move only with the status. */
bool conditions_differ(const struct conditions *old, const struct wanted_condition *want,
                       unsigned n);
void body_conditions(struct json_writer *w, const struct conditions *old,
                     const struct wanted_condition *want, unsigned n, int64_t generation,
                     int64_t now);

/* Registration: what the claim gives its Node. Startup taints too, unless the Node was registered
 * before. */
void body_register(struct buf *out, const struct nodeclaim *c, const struct node *n);
/* The disrupted taint (and the label that takes the node out of load balancers) on or off. */
void body_disrupted(struct buf *out, const struct node *n, bool on);

void body_taint(struct json_writer *w, const struct taint *t);
void body_resources(struct json_writer *w, const char *key, const struct resource_list *l);

#endif
