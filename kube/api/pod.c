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
    F_DERIVED(FIELD_RESOURCES, struct pod, requests),
    F_END,
};

/* Only volumes that may tie the pod to a place are kept. */
static void drop_volumes(struct pod_spec *s)
{
    struct pod_volume *v = (struct pod_volume *)(uintptr_t)s->volumes;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_volumes; i++)
        if (v[i].pvc || v[i].ephemeral)
            v[n++] = v[i];
    s->n_volumes = n;
}

/* Conditions that no decision reads. */
static void drop_conditions(struct conditions *c)
{
    static const char *const unread[] = {"Initialized", "ContainersReady",
                                         "PodReadyToStartContainers"};
    struct condition *v = (struct condition *)(uintptr_t)c->v;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool kept = v[i].type != NULL;
        for (size_t k = 0; kept && k < ARRAY_LEN(unread); k++)
            kept = strcmp(v[i].type, unread[k]) != 0;
        if (kept)
            v[n++] = v[i];
    }
    c->n = n;
}

static void drop_container_amounts(const struct container *v, uint32_t n)
{
    struct container *c = (struct container *)(uintptr_t)v;
    for (uint32_t i = 0; i < n; i++)
        c[i].requests = c[i].limits = (struct resource_list){0};
}

/* A cluster has more pods than anything else, so a pod keeps what decisions read and no more: what
 * its containers ask for is in `requests`. */
static void finish(void *object, struct arena *a)
{
    struct pod *p = object;
    p->requests = pod_spec_requests(&p->spec, a);
    drop_volumes(&p->spec);
    drop_conditions(&p->conditions);
    drop_container_amounts(p->spec.containers, p->spec.n_containers);
    drop_container_amounts(p->spec.init_containers, p->spec.n_init_containers);
    if (p->obj.meta.name)
        p->obj.meta.generate_name = NULL;
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
