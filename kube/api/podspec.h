/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A pod's specification: what scheduling reads, of pods and of workload templates. */
#ifndef KUBE_API_PODSPEC_H
#define KUBE_API_PODSPEC_H

#include "kube/api/quantity.h"
#include "kube/api/selector.h"

enum taint_effect {
    TAINT_ANY_EFFECT, /* tolerations only: the empty effect */
    TAINT_NO_SCHEDULE,
    TAINT_PREFER_NO_SCHEDULE,
    TAINT_NO_EXECUTE,
};

struct taint {
    const char *key, *value;
    enum taint_effect effect;
    int64_t time_added;
};

struct toleration {
    const char *key, *value;
    bool exists; /* operator Exists; else Equal */
    enum taint_effect effect;
    bool has_seconds;
    int64_t seconds;
};

bool toleration_tolerates(const struct toleration *t, const struct taint *taint);
const char *taint_effect_name(enum taint_effect e);

/* One term: all expressions and fields must match. */
struct node_selector_term {
    const struct selector_requirement *expressions;
    const struct selector_requirement *fields; /* matchFields, metadata.name only */
    uint32_t n_expressions, n_fields;
};

struct preferred_node_term {
    int32_t weight;
    struct node_selector_term term;
};

struct pod_affinity_term {
    const struct label_selector *selector;           /* NULL: matches nothing */
    const struct label_selector *namespace_selector; /* NULL: none */
    struct string_list namespaces;
    const char *topology_key;
    struct string_list match_label_keys, mismatch_label_keys;
    int32_t weight; /* preferred terms */
};

struct affinity {
    const struct node_selector_term *node_required; /* OR */
    uint32_t n_node_required;
    bool has_node_required; /* an empty list of terms matches nothing */
    const struct preferred_node_term *node_preferred;
    uint32_t n_node_preferred;
    const struct pod_affinity_term *pod_required, *pod_preferred, *anti_required, *anti_preferred;
    uint32_t n_pod_required, n_pod_preferred, n_anti_required, n_anti_preferred;
};

struct topology_spread {
    const char *topology_key;
    int32_t max_skew;
    int32_t min_domains;  /* 0: unset */
    bool schedule_anyway; /* else DoNotSchedule */
    bool affinity_ignore; /* nodeAffinityPolicy Ignore; default Honor */
    bool taints_honor;    /* nodeTaintsPolicy Honor; default Ignore */
    const struct label_selector *selector;
    struct string_list match_label_keys;
};

struct container_port {
    int32_t host_port;              /* 0: none */
    const char *host_ip, *protocol; /* NULL: 0.0.0.0, TCP */
};

/* Kept for workload templates only: triggers resolve *FromEnv against it. */
struct env_var {
    const char *name, *value;
    const char *secret, *secret_key, *config_map, *config_map_key; /* valueFrom; NULL: none */
    bool optional;
};

struct env_from {
    const char *prefix, *secret, *config_map;
    bool optional;
};

struct container {
    const char *name;
    struct resource_list requests, limits;
    bool restart_always; /* of an init container: a native sidecar */
    const struct container_port *host_ports;
    uint32_t n_host_ports;
    const struct env_var *env;
    uint32_t n_env;
    const struct env_from *env_from;
    uint32_t n_env_from;
};

struct pod_volume {
    const char *name;
    const char *pvc; /* claim name; of an ephemeral volume: "<pod>-<name>" once it exists */
    bool ephemeral;  /* a generic ephemeral volume */
    const char *storage_class; /* of the ephemeral template */
};

struct pod_spec {
    const char *node_name, *scheduler_name, *priority_class, *runtime_class, *service_account;
    const char *restart_policy;
    struct labels node_selector;
    const struct affinity *affinity; /* NULL: none */
    const struct toleration *tolerations;
    const struct topology_spread *spreads;
    const struct container *containers, *init_containers;
    const struct pod_volume *volumes;
    uint32_t n_tolerations, n_spreads, n_containers, n_init_containers, n_volumes;
    struct resource_list overhead;
    struct resource_list pod_requests, pod_limits; /* spec.resources, pod level */
    struct string_list scheduling_gates, resource_claims;
    int32_t priority;
    bool has_priority, host_network;
    bool preemption_never;
    int64_t grace_s; /* terminationGracePeriodSeconds; 30 when absent */
};

/* What the scheduler reserves for the pod: max(init, sum of containers and sidecars) by resource,
 * limits standing in for absent requests, pod-level resources over container sums, plus overhead.
 * Does not count the pod itself ("pods"). `ret` is sorted by name, in the arena.
 * Source: k8s.io/component-helpers/resource PodRequests; KEP-753 (sidecars), KEP-2837. */
struct resource_list pod_spec_requests(const struct pod_spec *s, struct arena *a);

#endif
