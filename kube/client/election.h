/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Leader election on a Lease, with fencing.
 *
 * As client-go does it: the holder renews every retry period; whoever sees the record unchanged for
 * a whole lease duration by its own clock may take it. The leader counts itself out when it could
 * not renew within the renew deadline, which is shorter than the lease, so that two never act at
 * once: election_is_leader is the fence that client writes and cloud calls ask. */
#ifndef KUBE_CLIENT_ELECTION_H
#define KUBE_CLIENT_ELECTION_H

#include "kube/client/client.h"

struct election;

struct election_options {
    const char *namespace_, *name, *identity;
    int64_t lease_duration, renew_deadline, retry_period; /* ns; 0: 15 s, 10 s, 2 s */
};

/* `changed` is called on every gain and loss. The client given here must not be fenced by this
 * election (it writes the Lease itself). */
struct election *election_new(struct client *c, const struct election_options *o,
                              void (*changed)(void *arg, bool leader), void *arg);
void election_start(struct election *e);
bool election_is_leader(const struct election *e); /* true only within the renew deadline */
int64_t
election_transitions(const struct election *e); /* fencing token: grows with every new holder */
/* Gives the Lease up so that the other replica need not wait, then calls done (may be NULL). */
void election_release(struct election *e, void (*done)(void *arg), void *arg);
void election_free(struct election *e); /* without releasing */

#endif
