/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Classes of equal pods: solve five classes, not five thousand pods.
 *
 * Two pods are of one class when nothing that scheduling reads tells them apart: requests,
 * selectors, affinity, tolerations, spread, ports, and the labels that somebody's selector looks
 * at. */
#ifndef MODEL_PODSET_H
#define MODEL_PODSET_H

#include "base/arena.h"
#include "kube/api/podspec.h"
#include "provisioner/model/requirement.h"
#include "provisioner/model/topology.h"

struct host_port {
    int32_t port;
    const char *ip, *protocol; /* never NULL; "0.0.0.0" is any address */
};

bool host_port_conflicts(const struct host_port *a, const struct host_port *b);

struct world;
struct world_pod;

struct podset {
    uint32_t id;
    const uint32_t *pods; /* indexes into world.pods, in their order */
    uint32_t n_pods;
    const struct world_pod *example; /* the first */
    const struct pod_spec *spec;
    const struct labels *labels;
    const char *namespace_;
    const int64_t *requests; /* dense, with 1 in "pods" */
    /* What the node must be: any one of these (nodeSelector merged into each term of the required
     * node affinity). Never empty: a pod without wishes has one without requirements. */
    const struct requirements *alternatives;
    uint32_t n_alternatives;
    const struct host_port *ports;
    uint32_t n_ports;
    uint32_t where; /* classes with the same number may run on the same nodes and offerings, room
                       aside */
    const struct topology_use *spreads;            /* DoNotSchedule only */
    const struct topology_use *affinities, *antis; /* required terms */
    uint32_t n_spreads, n_affinities, n_antis;
    const uint64_t *matches; /* bit per group of the world whose selector its pods match */
    const char *refused;     /* a constraint that is not understood; such pods are never placed */
};

/* Whether some alternative is satisfied by a node described by `node`. On failure *ret_key (may be
 * NULL) is the key that failed in the alternative that came furthest. */
bool podset_compatible(const struct podset *c, const struct requirements *node,
                       const char **ret_key);
/* The first taint that is not tolerated (NoSchedule, NoExecute), or NULL. */
const struct taint *podset_untolerated(const struct pod_spec *s, const struct taint *taints,
                                       uint32_t n);
/* The alternatives of a specification; never none. */
const struct requirements *podset_alternatives(const struct pod_spec *s, uint32_t *ret_n,
                                               struct arena *a);
const struct host_port *podset_ports(const struct pod_spec *s, uint32_t *ret_n, struct arena *a);
bool podset_ports_conflict(const struct podset *c, const struct host_port *ports, uint32_t n);

#endif
