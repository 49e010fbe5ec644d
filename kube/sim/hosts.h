/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The scheduler's view: nodes as hosts with what is used of them, pods as classes.
 *
 * Pods with the same namespace, labels and spec are one class, so that what holds for one of a
 * thousand replicas is found out once. Labels that number the pods of one owner are left out of
 * it: a selector on those is not seen. */
#ifndef KUBE_SIM_HOSTS_H
#define KUBE_SIM_HOSTS_H

#include "kube/sim/internal.h"

#define RESOURCES_MAX 48 /* different resource names in one cluster; more are not counted */

/* A selector over pods with the topology it is about. */
struct spread_term {
    const struct label_selector *selector;
    const struct pod_affinity_term *affinity; /* NULL: a spread constraint */
    const struct topology_spread *spread;
    const char *key;
    struct vec_match {
        VEC(uint8_t);
    } matches; /* by the other class's id: 0 not asked yet, 1 no, 2 yes */
};
VEC_DEFINE(vec_term, struct spread_term);

struct class
{
    uint32_t id, refs;
    char *key;
    struct object *sample;
    struct demand {
        uint16_t resource;
        int64_t amount;
    } * demands;
    size_t n_demands;
    struct vec_term spreads, affinities, anti; /* required only */
    bool ports, volumes;
    uint64_t failed; /* epoch of the last failure; 0: none */
    char message[256];
    struct vec_static {
        VEC(uint8_t);
    } fixed; /* by host slot: labels and taints; 0 not asked yet, else enum verdict + 1 */
};

struct tally {
    struct class *class_;
    uint32_t n, leaving; /* bound here; of those, being deleted */
};
VEC_DEFINE(vec_tally, struct tally);

struct host {
    struct node_state *node;
    uint32_t slot;
    int64_t allocatable[RESOURCES_MAX], used[RESOURCES_MAX];
    struct vec_tally tallies;
};
VEC_DEFINE(vec_host, struct host *);
VEC_DEFINE(vec_class, struct class *);

enum verdict {
    FIT,
    FIT_UNSCHEDULABLE,
    FIT_TAINT,
    FIT_LABELS,
    FIT_PORTS,
    FIT_RESOURCE,
    FIT_VOLUME,
    FIT_SPREAD,
    FIT_AFFINITY,
    FIT_ANTI,
    FIT_COUNT
};

struct hosts {
    struct sim *sim;
    struct vec_host slots;  /* NULL: free */
    struct map classes;     /* by key */
    struct vec_class by_id; /* NULL: free */
    const char *resources[RESOURCES_MAX];
    size_t n_resources;
    size_t n_hosts;
    size_t n_anti;  /* live classes with required anti-affinity */
    size_t n_picky; /* with any rule about other pods */
};

void hosts_init(struct hosts *h, struct sim *s);
void hosts_release(struct hosts *h);
/* A Node came, changed or went (`it->gone`). */
void hosts_node(struct hosts *h, struct item *it);
struct class *class_of(struct hosts *h, struct item *pod); /* one reference */
void class_unref(struct hosts *h, struct class *c);
/* Adds (sign 1) or takes away (-1) a pod of the class. */
void host_count(struct host *host, struct class *c, int sign, bool leaving);
void host_leaving(struct host *host, struct class *c);
static inline const struct pod *class_pod(const struct class *c)
{
    return pod_of(c->sample);
}
static inline const struct node *host_node(const struct host *host)
{
    return node_of(item_typed(host->node->item));
}

/* ---- Filters; filters.c ---- */

/* What one attempt needs to know of the whole cluster. */
struct round {
    struct hosts *hosts;
    struct class *class_;
    struct item *pod;
    struct arena arena;
    struct domain_rule *rules;
    size_t n_rules;
    const struct node_selector_term *const *volume_terms; /* each must match */
    bool volumes_ready;
    int resource; /* the resource that was short, of the last verdict */
};
void round_begin(struct round *r, struct hosts *h, struct class *c, struct item *pod);
void round_end(struct round *r);
enum verdict round_filter(struct round *r, struct host *host);
/* 0..100, more is better: the share left of cpu and memory, preferences on top. */
int64_t round_score(struct round *r, struct host *host);
/* Claims that wait for their first consumer get a volume in the host's zone. */
void volumes_bind(struct sim *s, struct item *pod, const struct node *n);

#endif
