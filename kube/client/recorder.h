/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Kubernetes Events, de-duplicated: the same (object, reason, message) within the window counts up
 * instead of filling etcd, and each object has a token bucket. Failure to write is counted, never
 * waited for. */
#ifndef KUBE_CLIENT_RECORDER_H
#define KUBE_CLIENT_RECORDER_H

#include "kube/client/client.h"

struct recorder;

struct recorder_options {
    const char *component;         /* NULL: "weft" */
    const char *instance;          /* pod name */
    const char *cluster_namespace; /* events of cluster-scoped objects; NULL: "default" */
    int64_t window;                /* ns; 0: 2 min */
};

struct recorder *recorder_new(struct client *c, const struct recorder_options *o);
void recorder_free(struct recorder *r);

/* `message` is cut at 1,024 bytes. `window` 0: the default; FailedScheduling uses 5 min. */
void recorder_event(struct recorder *r, const struct object *about, bool warning,
                    const char *reason, int64_t window, const char *fmt, ...) PRINTF_LIKE(6, 7);

#endif
