/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Workloads that own pods: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob. One struct
 * serves all, since decisions read the same things of each. */
#ifndef KUBE_API_WORKLOAD_H
#define KUBE_API_WORKLOAD_H

#include "kube/api/kind.h"
#include "kube/api/podspec.h"

struct pod_template {
    struct labels labels, annotations;
    struct pod_spec spec;
    struct resource_list requests; /* derived: pod_spec_requests */
};

struct workload {
    struct object obj;
    int64_t replicas; /* Deployment, ReplicaSet, StatefulSet; default 1 */
    const struct label_selector *selector;
    struct pod_template template_; /* of a CronJob: its job's */
    /* Job */
    int64_t parallelism, completions, backoff_limit; /* -1: absent */
    bool suspend;
    const char *schedule; /* CronJob */
    /* Deployment strategy, as text ("25%", "1"); NULL: default */
    const char *max_surge, *max_unavailable;
    bool recreate;
    /* status */
    int64_t observed_generation;
    int64_t status_replicas, ready_replicas, updated_replicas, available_replicas;
    int64_t active, succeeded, failed; /* Job */
    int64_t desired_scheduled;         /* DaemonSet */
    struct conditions conditions;
};

extern const struct kind kind_deployment, kind_replicaset, kind_statefulset, kind_daemonset,
    kind_job, kind_cronjob;
static inline struct workload *workload_of(struct object *o)
{
    return (struct workload *)(void *)o;
}

#endif
