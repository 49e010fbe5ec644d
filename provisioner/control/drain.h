/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The end of a NodeClaim, as a pure step: taint, drain in tiers, detach volumes, terminate, let go.
 *
 * As lifecycle.h: the state is in the objects, each step is one effect (evictions of one tier go
 * together). Nothing loses its finalizer while its instance lives. Tiers: other pods, then daemons,
 * then critical pods, then critical daemons; a tier ends before the next begins. PDBs are the API
 * server's word: an eviction that it refuses is tried again after a growing pause. With a
 * terminationGracePeriod the drain ends at its deadline, whoever refuses.
 * Source: Karpenter's node termination controller. */
#ifndef PROVISIONER_CONTROL_DRAIN_H
#define PROVISIONER_CONTROL_DRAIN_H

#include "kube/api/misc.h"
#include "kube/api/pod.h"
#include "provisioner/control/lifecycle.h"

#define DRAIN_LEAST (5 * NS_PER_S)  /* between the taint and the end of a drain */
#define DRAIN_STUCK (60 * NS_PER_S) /* past its own end a terminating pod is ignored */
#define DRAIN_POLL (5 * NS_PER_S)   /* of the terminating instance */
#define DRAIN_PODS_MAX 256          /* evictions handed out in one step */

enum drain_instance {
    INSTANCE_NEVER,      /* no launch was ever tried, or it is known to have failed */
    INSTANCE_UNRESOLVED, /* a launch may have happened: the cloud has to be asked */
    INSTANCE_LIVES,      /* or is not known to be gone */
    INSTANCE_GONE,       /* confirmed */
};

struct drain_view {
    const struct nodeclaim *claim; /* being deleted */
    const struct node *node;       /* NULL: none */
    const struct pod *const *pods; /* bound to the node */
    size_t n_pods;
    const struct volume_attachment *const *attachments; /* on the node */
    size_t n_attachments;
    enum drain_instance instance;
    int64_t drain_started; /* when the taint was seen first, ns since 1970; 0: not yet */
};

enum drain_verb {
    DRAIN_WAIT,
    DRAIN_STAMP,         /* write the termination timestamp on the claim */
    DRAIN_TAINT,         /* disrupted taint and the load balancer label on the Node */
    DRAIN_DELETE_NODE,   /* so that everybody sees that it is going; its finalizer holds it */
    DRAIN_EVICT,         /* `pods` */
    DRAIN_TERMINATE,     /* ask the cloud, until it says that there is no such instance */
    DRAIN_RESOLVE,       /* look in the cloud for an instance of this claim */
    DRAIN_RELEASE_NODE,  /* finalizer off the Node */
    DRAIN_RELEASE_CLAIM, /* finalizer off the claim */
};

struct drain_pod {
    const struct pod *pod;
    int64_t grace_s; /* -1: evict, with the pod's own grace; else delete with this one */
};

enum { DRAIN_CONDITIONS = 3 };

struct drain_step {
    enum drain_verb verb;
    int64_t at;       /* when to look again at the latest */
    int64_t deadline; /* STAMP: the timestamp to write */
    struct drain_pod pods[DRAIN_PODS_MAX];
    size_t n_pods;
    struct wanted_condition
        conditions[DRAIN_CONDITIONS]; /* Drained, VolumesDetached, InstanceTerminating */
    unsigned n_conditions;
    char message[256];
};

void drain_step(const struct drain_view *v, int64_t now, struct drain_step *ret);

/* karpenter.sh/do-not-disrupt: "true", or a duration since the pod's start that has not passed.
 * Such a pod is not evicted before the claim's deadline. */
bool drain_protects_pod(const struct pod *p, int64_t now);
/* Whether the pod would be made to leave: not finished, no mirror, does not tolerate the taint. */
bool drain_moves_pod(const struct pod *p);
unsigned drain_tier(const struct pod *p); /* 0 first … 3 last */
/* The termination timestamp of a claim; TIME_NEVER: none. */
int64_t drain_deadline(const struct nodeclaim *c);

#endif
