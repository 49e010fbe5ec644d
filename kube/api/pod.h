/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Pods. */
#ifndef KUBE_API_POD_H
#define KUBE_API_POD_H

#include "kube/api/kind.h"
#include "kube/api/podspec.h"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_PHASE_UNKNOWN };

struct pod {
    struct object obj;
    struct pod_spec spec;
    /* Effective requests, derived when decoded (pod_spec_requests). The containers' own amounts,
     * and volumes and conditions that no decision reads, are dropped then. */
    struct resource_list requests;
    enum pod_phase phase;
    const char *nominated_node;
    int64_t start_time;
    struct conditions conditions; /* PodScheduled, Ready and the rest that decisions read */
};

extern const struct kind kind_pod;

static inline struct pod *pod_of(struct object *o)
{
    return (struct pod *)(void *)o;
}

bool pod_is_terminal(const struct pod *p);    /* Succeeded or Failed */
bool pod_is_terminating(const struct pod *p); /* deletion set */
bool pod_is_mirror(const struct pod *p);      /* a static pod's mirror */
bool pod_is_daemon(const struct pod *p);      /* owned by a DaemonSet */
bool pod_is_ready(const struct pod *p);
/* Not bound, and the scheduler said Unschedulable (reference/karpenter.md §2.1). */
bool pod_is_provisionable(const struct pod *p);

#endif
