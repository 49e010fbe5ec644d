/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/workload.h"

#include "kube/api/decode.h"

static const struct field fields_template_meta[] = {
    F(FIELD_LABELS, struct pod_template, labels, "labels"),
    F(FIELD_NOTES, struct pod_template, annotations, "annotations"),
    F_END,
};

static const struct field fields_template[] = {
    F_INLINE("metadata", fields_template_meta),
    F_STRUCT(struct pod_template, spec, "spec", fields_pod_template_spec),
    F_END,
};

static const struct field fields_rolling[] = {
    F(FIELD_TEXT, struct workload, max_surge, "maxSurge"),
    F(FIELD_TEXT, struct workload, max_unavailable, "maxUnavailable"),
    F_END,
};

static const struct field fields_strategy[] = {
    F_IS(struct workload, recreate, "type", "Recreate"),
    F_INLINE("rollingUpdate", fields_rolling),
    F_END,
};

/* A Job's fields; those of a CronJob's job, too. */
static const struct field fields_job_spec[] = {
    F_POINTER(struct workload, selector, "selector", struct label_selector, fields_label_selector),
    F_STRUCT(struct workload, template_, "template", fields_template),
    F(FIELD_INT64, struct workload, parallelism, "parallelism"),
    F(FIELD_INT64, struct workload, completions, "completions"),
    F(FIELD_INT64, struct workload, backoff_limit, "backoffLimit"),
    F(FIELD_BOOL, struct workload, suspend, "suspend"),
    F_END,
};

static const struct field fields_job_template[] = {F_INLINE("spec", fields_job_spec), F_END};

static const struct field fields_cron_spec[] = {
    F(FIELD_TEXT, struct workload, schedule, "schedule"),
    F(FIELD_BOOL, struct workload, suspend, "suspend"),
    F_INLINE("jobTemplate", fields_job_template),
    F_END,
};

static const struct field fields_spec[] = {
    F(FIELD_INT64, struct workload, replicas, "replicas"),
    F_POINTER(struct workload, selector, "selector", struct label_selector, fields_label_selector),
    F_STRUCT(struct workload, template_, "template", fields_template),
    F_INLINE("strategy", fields_strategy),
    F_INLINE("updateStrategy", fields_strategy),
    F_END,
};

static const struct field fields_status[] = {
    F(FIELD_INT64, struct workload, observed_generation, "observedGeneration"),
    F(FIELD_INT64, struct workload, status_replicas, "replicas"),
    F(FIELD_INT64, struct workload, ready_replicas, "readyReplicas"),
    F(FIELD_INT64, struct workload, updated_replicas, "updatedReplicas"),
    F(FIELD_INT64, struct workload, available_replicas, "availableReplicas"),
    F(FIELD_INT64, struct workload, active, "active"),
    F(FIELD_INT64, struct workload, succeeded, "succeeded"),
    F(FIELD_INT64, struct workload, failed, "failed"),
    F(FIELD_INT64, struct workload, desired_scheduled, "desiredNumberScheduled"),
    F_LIST(struct workload, conditions.v, conditions.n, "conditions", struct condition,
           fields_condition),
    F_END,
};

/* A CronJob's status.active is a list; it is not read. */
#define WORKLOAD_FIELDS(spec_table)                                                                \
    F_PRESET(struct workload, replicas, 1), F_PRESET(struct workload, parallelism, -1),            \
        F_PRESET(struct workload, completions, -1), F_PRESET(struct workload, backoff_limit, -1),  \
        F_DERIVED(FIELD_RESOURCES, struct workload, template_.requests),                           \
        F_STRUCT(struct workload, obj.meta, "metadata", fields_meta), F_INLINE("spec", spec_table)

static const struct field fields_workload[] = {WORKLOAD_FIELDS(fields_spec),
                                               F_INLINE("status", fields_status), F_END};
static const struct field fields_job[] = {WORKLOAD_FIELDS(fields_job_spec),
                                          F_INLINE("status", fields_status), F_END};
static const struct field fields_cronjob[] = {WORKLOAD_FIELDS(fields_cron_spec), F_END};

static void finish(void *object, struct arena *a)
{
    struct workload *w = object;
    w->template_.requests = pod_spec_requests(&w->template_.spec, a);
}

#define WORKLOAD(kind, group, plural, table)                                                       \
    {                                                                                              \
        kind, group, "v1", plural, true, sizeof(struct workload), table, finish                    \
    }
const struct kind kind_deployment = WORKLOAD("Deployment", "apps", "deployments", fields_workload);
const struct kind kind_replicaset = WORKLOAD("ReplicaSet", "apps", "replicasets", fields_workload);
const struct kind kind_statefulset =
    WORKLOAD("StatefulSet", "apps", "statefulsets", fields_workload);
const struct kind kind_daemonset = WORKLOAD("DaemonSet", "apps", "daemonsets", fields_workload);
const struct kind kind_job = WORKLOAD("Job", "batch", "jobs", fields_job);
const struct kind kind_cronjob = WORKLOAD("CronJob", "batch", "cronjobs", fields_cronjob);
