/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* PodDisruptionBudgets (policy/v1). */
#ifndef KUBE_API_PDB_H
#define KUBE_API_PDB_H

#include "kube/api/kind.h"
#include "kube/api/selector.h"

struct pdb {
    struct object obj;
    const struct label_selector
        *selector; /* NULL matches nothing, empty matches all of the namespace */
    const char *min_available, *max_unavailable; /* text: "2" or "50%"; NULL: absent */
    bool always_allow_unhealthy;                 /* unhealthyPodEvictionPolicy: AlwaysAllow */
    /* status */
    int64_t disruptions_allowed, current_healthy, desired_healthy, expected_pods,
        observed_generation;
};

extern const struct kind kind_pdb;
static inline struct pdb *pdb_of(struct object *o)
{
    return (struct pdb *)(void *)o;
}

#endif
