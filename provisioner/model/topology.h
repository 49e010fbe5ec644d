/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Topology groups: the sets of pods that spread, affinity and anti-affinity terms count.
 *
 * A group is (topology key, namespaces, selector). Terms of many pods that say the same share one
 * group, so that counting happens once. matchLabelKeys are worked into the selector (KEP-3243,
 * KEP-3633). */
#ifndef MODEL_TOPOLOGY_H
#define MODEL_TOPOLOGY_H

#include "base/map.h"
#include "kube/api/kind.h"
#include "kube/api/podspec.h"

struct topology_group {
    const char *key;
    const struct label_selector *selector; /* NULL matches nothing */
    bool any_namespace;
    struct string_list namespaces;
};

/* One constraint of a class on a group. Skews are of spreads only. */
struct topology_use {
    uint32_t group;
    int32_t max_skew, min_domains;
    bool affinity_ignore, taints_honor;
};

bool topology_group_matches(const struct topology_group *g, const char *namespace_,
                            const struct labels *labels);

/* Collects groups while a world is built. */
struct topology_table {
    struct arena *arena;
    struct topology_group *v;
    size_t len, cap;
    struct map by_text;               /* value: index + 1 */
    struct object *const *namespaces; /* known Namespace objects */
    size_t n_namespaces;
};

void topology_table_release(struct topology_table *t);
uint32_t topology_spread_group(struct topology_table *t, const struct topology_spread *s,
                               const char *namespace_, const struct labels *pod_labels);
/* False when it selects over namespaces whose labels are not known; the group then covers them all.
 */
bool topology_affinity_group(struct topology_table *t, const struct pod_affinity_term *term,
                             const char *namespace_, const struct labels *pod_labels,
                             uint32_t *ret_group);

#endif
