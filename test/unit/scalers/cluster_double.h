/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A cluster of a few Deployments, Secrets and answers, behind the functions of kube/client: what
 * the scaling controller's own test needs to provoke faults call by call. Linked instead of the
 * client. Writes take effect after 10 ms, watchers hear of them 10 ms later. */
#ifndef TEST_UNIT_SCALERS_CLUSTER_DOUBLE_H
#define TEST_UNIT_SCALERS_CLUSTER_DOUBLE_H

#include "kube/client/client.h"

struct double_deployment {
    const char *name;
    char annotations[8192]; /* JSON object */
    const char *env;        /* JSON list; NULL: none */
    int64_t replicas, status_replicas, generation, version;
};

struct double_counts {
    unsigned scale_writes, scale_reads, status_writes, events, secret_watches;
};

extern struct double_counts double_counts;
extern char double_status[8192];             /* the last status annotation written */
extern char double_events[16384];            /* "reason: message\n"… */
extern enum err_code double_scale_errors[8]; /* of the next scale writes, in order; NONE: works */
extern int64_t
    double_scale_surprise;      /* before the next scale write somebody sets this; -1: nobody */
extern const char *double_hpas; /* body of the HPA list; NULL: 404 */
extern bool double_lists_fail;  /* raw lists end with a failure */

struct client *double_start(struct loop *l);
void double_stop(struct client *c);
/* Adds or replaces, and tells the informers now. */
void double_put(struct client *c, const struct double_deployment *d);
void double_remove(struct client *c, const char *name);
struct double_deployment *double_get(const char *name);
/* Pods follow the count: status replicas and ready replicas become spec replicas. */
void double_settle(struct client *c);
/* A Secret with one key; value NULL removes it. */
void double_secret(struct client *c, const char *name, const char *key, const char *value);
/* The first list of Deployments is answered: informers are synced from here on. */
void double_sync(struct client *c);

#endif
