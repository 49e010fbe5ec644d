/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* NodePools (karpenter.sh/v1) and the names Karpenter's world is labelled with.
 * Schema and rules: reference/karpenter.md §7.1. */
#ifndef KUBE_API_NODEPOOL_H
#define KUBE_API_NODEPOOL_H

#include "kube/api/kind.h"
#include "kube/api/podspec.h"

#define LABEL_NODEPOOL "karpenter.sh/nodepool"
#define LABEL_CAPACITY_TYPE "karpenter.sh/capacity-type"
#define LABEL_REGISTERED "karpenter.sh/registered"
#define LABEL_INITIALIZED "karpenter.sh/initialized"
#define LABEL_DO_NOT_SYNC_TAINTS "karpenter.sh/do-not-sync-taints"
#define LABEL_INSTANCE_TYPE "node.kubernetes.io/instance-type"
#define LABEL_ZONE "topology.kubernetes.io/zone"
#define LABEL_REGION "topology.kubernetes.io/region"
#define LABEL_ARCH "kubernetes.io/arch"
#define LABEL_OS "kubernetes.io/os"
#define LABEL_HOSTNAME "kubernetes.io/hostname"
#define LABEL_EXCLUDE_BALANCERS "node.kubernetes.io/exclude-from-external-load-balancers"
#define ANNOTATION_DO_NOT_DISRUPT "karpenter.sh/do-not-disrupt"
#define ANNOTATION_NODEPOOL_HASH "karpenter.sh/nodepool-hash"
#define ANNOTATION_NODEPOOL_HASH_VERSION "karpenter.sh/nodepool-hash-version"
#define ANNOTATION_TERMINATION_TIMESTAMP "karpenter.sh/nodeclaim-termination-timestamp"
#define ANNOTATION_POD_DELETION_COST "controller.kubernetes.io/pod-deletion-cost"
#define TAINT_UNREGISTERED "karpenter.sh/unregistered"
#define TAINT_DISRUPTED "karpenter.sh/disrupted"
#define FINALIZER_TERMINATION "karpenter.sh/termination"

struct node_class_ref {
    const char *group, *kind, *name;
};

/* spec.template of a NodePool, and most of a NodeClaim's spec. */
struct node_template {
    struct labels labels, annotations; /* NodePool: template metadata. NodeClaim: unused */
    const struct selector_requirement *requirements;
    const struct taint *taints, *startup_taints;
    uint32_t n_requirements, n_taints, n_startup_taints;
    struct node_class_ref class_ref;
    int64_t expire_after;      /* ns; TIME_NEVER: never. Default 720h */
    int64_t termination_grace; /* ns; -1: unset */
};

enum consolidation_policy {
    CONSOLIDATE_WHEN_EMPTY_OR_UNDERUTILIZED,
    CONSOLIDATE_WHEN_EMPTY,
    CONSOLIDATE_BALANCED
};
enum disruption_reason {
    DISRUPT_UNDERUTILIZED = 1,
    DISRUPT_EMPTY = 2,
    DISRUPT_DRIFTED = 4,
    DISRUPT_ALL = 7
};

struct disruption_budget {
    const char *nodes;    /* "10%" or "3", validated text */
    unsigned reasons;     /* set of disruption_reason; DISRUPT_ALL when absent */
    const char *schedule; /* NULL: always */
    int64_t duration;     /* ns, with a schedule */
};

struct nodepool {
    struct object obj;
    struct node_template template_;
    enum consolidation_policy policy;
    int64_t consolidate_after;               /* ns; TIME_NEVER: Never */
    const struct disruption_budget *budgets; /* the default of one 10 % is filled in */
    uint32_t n_budgets;
    struct resource_list limits; /* resources and "nodes" */
    int32_t weight;              /* 0: unset */
    int64_t replicas;            /* -1: dynamic */
    /* status */
    struct resource_list used;
    int64_t nodes, class_observed_generation;
    struct conditions conditions;
    /* Text of what the decoder could not read, "path: message"; NULL: valid so far. The object is
     * still handed out, so that the controller can say so on it. */
    const char *invalid;
};

extern const struct kind kind_nodepool;
static inline struct nodepool *nodepool_of(struct object *o)
{
    return (struct nodepool *)(void *)o;
}

/* The rules of reference/karpenter.md §7.1 that the schema states, plus the runtime ones: -1 with
 * "spec.path: value: rule". The first fault in field order. */
int nodepool_validate(const struct nodepool *p, struct err *err);

/* The static hash that drift compares (fields that launch a different node). 16 hex digits. */
void nodepool_hash(const struct nodepool *p, char ret[17]);
#define NODEPOOL_HASH_VERSION "weft-v1"

#endif
