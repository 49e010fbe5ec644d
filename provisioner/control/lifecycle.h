/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The life of a NodeClaim, as a pure step: what is seen, and the time, give the one next thing to
 * do.
 *
 * The state is the claim itself (conditions, annotations, labels), so that a restart continues
 * where the last process stopped. Each step is one effect; the next look decides again. A claim
 * that misses one of its three deadlines is deleted and says why; its pods are planned for again.
 * Source: Karpenter's nodeclaim lifecycle controllers; the initialisation deadline is weft's. */
#ifndef PROVISIONER_CONTROL_LIFECYCLE_H
#define PROVISIONER_CONTROL_LIFECYCLE_H

#include "kube/api/node.h"
#include "kube/api/nodeclaim.h"

#define CONDITION_LAUNCHED "Launched"
#define CONDITION_REGISTERED "Registered"
#define CONDITION_INITIALIZED "Initialized"
#define CONDITION_READY "Ready"
#define CONDITION_CONSOLIDATABLE "Consolidatable"
#define CONDITION_DISRUPTION_REASON "DisruptionReason"
#define CONDITION_DRAINED "Drained"
#define CONDITION_VOLUMES_DETACHED "VolumesDetached"
#define CONDITION_INSTANCE_TERMINATING "InstanceTerminating"

struct lifecycle_options {
    int64_t launch_deadline;         /* ns since creation until Launched */
    int64_t registration_deadline;   /* ns from Launched until Registered */
    int64_t initialization_deadline; /* ns from Registered until Initialized */
};

struct lifecycle_view {
    const struct nodeclaim *claim; /* not being deleted */
    const struct node *node;       /* with the claim's provider id; NULL: none */
    bool several_nodes;            /* more than one Node has that provider id */
    const char *launch_reason;     /* why the last launch call failed; NULL: it did not */
    const char *launch_message;
};

enum lifecycle_verb {
    LIFECYCLE_WAIT,       /* for a change, or until `at` */
    LIFECYCLE_FINALIZER,  /* put the finalizer on the claim */
    LIFECYCLE_ATTEMPT,    /* write attempt, token and offerings down */
    LIFECYCLE_LAUNCH,     /* call the cloud with what is written down */
    LIFECYCLE_REGISTER,   /* sync the Node: labels, annotations, taints, owner, finalizer */
    LIFECYCLE_INITIALIZE, /* label the Node initialised */
    LIFECYCLE_DELETE,     /* delete the claim */
};

/* A condition as it should be; `reason` NULL: its type. */
struct wanted_condition {
    const char *type;
    enum condition_status status;
    const char *reason, *message;
};

enum { LIFECYCLE_CONDITIONS = 4 };

struct lifecycle_step {
    enum lifecycle_verb verb;
    int64_t at;         /* WAIT: ns since 1970, TIME_NEVER: only a change matters */
    const char *reason; /* DELETE: "LaunchTimeout" "RegistrationTimeout" "InitializationTimeout"
                           "Expired" */
    char message[256];
    struct wanted_condition
        conditions[LIFECYCLE_CONDITIONS]; /* Launched Registered Initialized Ready */
    unsigned n_conditions;
};

void lifecycle_step(const struct lifecycle_view *v, const struct lifecycle_options *o, int64_t now,
                    struct lifecycle_step *ret);

/* Taints that come and go by themselves while a node starts. */
bool taint_is_ephemeral(const struct taint *t);
/* Whether the Node lacks something that registration gives it. */
bool lifecycle_node_unsynced(const struct nodeclaim *c, const struct node *n);

#endif
