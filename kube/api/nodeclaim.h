/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* NodeClaims (karpenter.sh/v1): one per instance, spec immutable. reference/karpenter.md §4, §7.2.
 */
#ifndef KUBE_API_NODECLAIM_H
#define KUBE_API_NODECLAIM_H

#include "kube/api/nodepool.h"

/* weft's write-ahead record on a claim (docs/architecture.md, execution). */
#define ANNOTATION_LAUNCH_ATTEMPT                                                                  \
    "weft.sh/launch-attempt"                           /* decimal number of the attempt under way */
#define ANNOTATION_LAUNCH_TOKEN "weft.sh/launch-token" /* idempotency token of that attempt */
#define ANNOTATION_LAUNCH_OFFERING                                                                 \
    "weft.sh/launch-offering"                          /* type/zone/capacity type of that attempt */
#define ANNOTATION_ALTERNATIVES "weft.sh/alternatives" /* ranked offerings, comma-separated */
#define ANNOTATION_PODS "weft.sh/nominated-pods"       /* count, for people */

struct nodeclaim {
    struct object obj;
    struct node_template spec; /* labels and annotations unused */
    struct resource_list requests;
    /* status */
    const char *provider_id, *node_name, *image_id;
    struct resource_list capacity, allocatable;
    struct conditions conditions;
    int64_t last_pod_event;
};

extern const struct kind kind_nodeclaim;
static inline struct nodeclaim *nodeclaim_of(struct object *o)
{
    return (struct nodeclaim *)(void *)o;
}

#endif
