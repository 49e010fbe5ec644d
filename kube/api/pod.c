/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/pod.h"

#include "kube/api/decode.h"

static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown", NULL};

static const struct field fields_status[] = {
    F_ENUM(struct pod, phase, "phase", phases),
    F(FIELD_TEXT, struct pod, nominated_node, "nominatedNodeName"),
    F(FIELD_TIME, struct pod, start_time, "startTime"),
    F_LIST(struct pod, conditions.v, conditions.n, "conditions", struct condition,
           fields_condition),
    F_END,
};

static const struct field fields_pod[] = {
    F_STRUCT(struct pod, obj.meta, "metadata", fields_meta),
    F_STRUCT(struct pod, spec, "spec", fields_pod_spec),
    F_INLINE("status", fields_status),
    F_END,
};

static void finish(void *object, struct arena *a)
{
    struct pod *p = object;
    p->requests = pod_spec_requests(&p->spec, a);
}

const struct kind kind_pod = {"Pod",      "",    "v1", "pods", true, sizeof(struct pod),
                              fields_pod, finish};

bool pod_is_terminal(const struct pod *p)
{
    return p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

bool pod_is_terminating(const struct pod *p)
{
    return p->obj.meta.deletion != 0;
}

bool pod_is_mirror(const struct pod *p)
{
    return labels_has(&p->obj.meta.annotations, "kubernetes.io/config.mirror");
}

bool pod_is_daemon(const struct pod *p)
{
    const struct owner_ref *o = meta_controller(&p->obj.meta);
    return o && o->kind && strcmp(o->kind, "DaemonSet") == 0;
}

bool pod_is_ready(const struct pod *p)
{
    return condition_is(&p->conditions, "Ready", CONDITION_TRUE);
}

bool pod_is_provisionable(const struct pod *p)
{
    if ((p->spec.node_name && *p->spec.node_name) || (p->nominated_node && *p->nominated_node))
        return false;
    if (pod_is_terminal(p) || pod_is_terminating(p) || pod_is_mirror(p) || pod_is_daemon(p) ||
        p->spec.scheduling_gates.n)
        return false;
    const struct condition *c = condition_find(&p->conditions, "PodScheduled");
    return c && c->status == CONDITION_FALSE && c->reason &&
           strcmp(c->reason, "Unschedulable") == 0;
}
