/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Which nodes are empty, and since when they have been quiet.
 *
 * DaemonSet pods, mirror pods and pods that have finished do not keep a node. A node that is not
 * initialised, carries a startup taint, or is expected by a pod is never empty: that is capacity on
 * its way, not capacity left over. The quiet period runs from the last coming or going of any other
 * pod, or from initialisation where there was none. */
#ifndef PROVISIONER_DISRUPT_EMPTY_H
#define PROVISIONER_DISRUPT_EMPTY_H

#include "kube/api/node.h"
#include "kube/api/nodeclaim.h"
#include "kube/api/pod.h"

/* Whether the pod keeps its node: it runs or is ending there and would have to go elsewhere. */
bool pod_keeps_node(const struct pod *p);

struct empty_view {
    const struct nodeclaim *claim;
    const struct node *node;
    const struct nodepool *pool;
    const struct pod *const *pods; /* bound to the node */
    size_t n_pods;
    size_t nominated;       /* pods that are expected on it and not yet bound */
    int64_t last_pod_event; /* ns since 1970; 0: none seen. The claim's own status counts too */
};

enum empty_verdict {
    EMPTY_NOT_MANAGED,   /* no claim, no pool, or a pool that never removes empty nodes */
    EMPTY_NOT_READY_YET, /* not initialised, or startup taints remain */
    EMPTY_IN_USE,        /* a pod runs on it */
    EMPTY_EXPECTED,      /* a pod is nominated to it */
    EMPTY_PROTECTED,     /* karpenter.sh/do-not-disrupt on the node */
    EMPTY_QUIET,         /* empty, but not for long enough: see `at` */
    EMPTY_REMOVABLE,
};

struct empty_answer {
    enum empty_verdict verdict;
    int64_t since; /* QUIET and REMOVABLE: start of the quiet period */
    int64_t at;    /* QUIET: when the node becomes removable */
};

struct empty_answer empty_judge(const struct empty_view *v, int64_t now);
const char *empty_verdict_text(enum empty_verdict v); /* "a pod runs on it" … */

#endif
