/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Nodes. */
#ifndef KUBE_API_NODE_H
#define KUBE_API_NODE_H

#include "kube/api/kind.h"
#include "kube/api/podspec.h"

struct node {
    struct object obj;
    const char *provider_id;
    bool unschedulable;
    const struct taint *taints;
    uint32_t n_taints;
    struct resource_list capacity, allocatable;
    struct conditions conditions;
};

extern const struct kind kind_node;
static inline struct node *node_of(struct object *o)
{
    return (struct node *)(void *)o;
}
bool node_is_ready(const struct node *n);

#endif
