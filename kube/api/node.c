/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/node.h"

#include "kube/api/decode.h"

static const struct field fields_spec[] = {
    F(FIELD_TEXT, struct node, provider_id, "providerID"),
    F(FIELD_BOOL, struct node, unschedulable, "unschedulable"),
    F_LIST(struct node, taints, n_taints, "taints", struct taint, fields_taint),
    F_END,
};

static const struct field fields_status[] = {
    F(FIELD_RESOURCES, struct node, capacity, "capacity"),
    F(FIELD_RESOURCES, struct node, allocatable, "allocatable"),
    F_LIST(struct node, conditions.v, conditions.n, "conditions", struct condition,
           fields_condition),
    F_END,
};

static const struct field fields_node[] = {
    F_STRUCT(struct node, obj.meta, "metadata", fields_meta),
    F_INLINE("spec", fields_spec),
    F_INLINE("status", fields_status),
    F_END,
};

const struct kind kind_node = {"Node",      "",  "v1", "nodes", false, sizeof(struct node),
                               fields_node, NULL};

bool node_is_ready(const struct node *n)
{
    return condition_is(&n->conditions, "Ready", CONDITION_TRUE);
}
