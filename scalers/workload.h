/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The scaling controller: annotated workloads in, replica counts out.
 *
 * Deployments and StatefulSets that carry weft.sh/triggers or weft.sh/spec are polled once an
 * interval, all triggers of one workload together, the workloads spread over the interval by the
 * hash of their names. When a round has ended the pure decision is taken, and a count that differs
 * is written at once through the scale subresource, under the version it was decided on; a conflict
 * reads again and decides again. That write is also the hand-over to the provisioner, which plans
 * for replicas beyond live pods.
 *
 * A configuration that cannot be used leaves the last good one in force. A workload that a live
 * HorizontalPodAutoscaler or ScaledObject targets is left alone. Nothing is polled or written
 * unless leading and synced. Files: workload.c (what is managed), workload_poll.c (rounds),
 * workload_act.c (decisions and writes), workload_tell.c (status, events, log, metrics), rivals.c.
 */
#ifndef SCALERS_WORKLOAD_H
#define SCALERS_WORKLOAD_H

#include "kube/client/informer.h"
#include "kube/client/recorder.h"
#include "scalers/scaler.h"

struct scalers;

struct scalers_options {
    bool observe;                                /* decide and log, write nothing */
    const char *namespace_;                      /* NULL: all */
    struct informer *deployments, *statefulsets; /* shared, not started yet; NULL: its own */
    struct http *http;                           /* for triggers; NULL: none */
    struct worker *worker;   /* for name resolution; NULL: numeric addresses only */
    struct metrics *metrics; /* NULL: none */
    uint64_t seed;
    /* One line of JSON for each scale decision, taken or refused (product.md "Decision log"),
     * without a newline. NULL: none. */
    void (*decision)(void *arg, struct str line);
    void *decision_arg;
};

/* `recorder` may be NULL: no events. Both must outlive it. */
struct scalers *scalers_new(struct client *c, struct recorder *recorder,
                            const struct scalers_options *o);
/* Starts its own informers; shared ones are started by their owner. Not leading yet. */
void scalers_start(struct scalers *s);
/* Polls and writes while true. */
void scalers_lead(struct scalers *s, bool leading);
void scalers_free(struct scalers *s); /* cancels everything under way */

bool scalers_synced(const struct scalers *s);
size_t scalers_count(const struct scalers *s); /* workloads managed now */

/* What is known of one workload, for `weft explain` and the pages: appends a JSON object (that of
 * the status annotation). False: not managed. */
bool scalers_describe(const struct scalers *s, const char *kind, const char *namespace_,
                      const char *name, struct buf *out);

#endif
