/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/disrupt/empty.h"

#include "base/num.h"

bool pod_keeps_node(const struct pod *p)
{
    return !pod_is_terminal(p) && !pod_is_daemon(p) && !pod_is_mirror(p);
}

static bool startup_taints_remain(const struct nodeclaim *c, const struct node *n)
{
    for (uint32_t i = 0; i < c->spec.n_startup_taints; i++)
        for (uint32_t j = 0; j < n->n_taints; j++)
            if (strcmp(c->spec.startup_taints[i].key, n->taints[j].key) == 0 &&
                c->spec.startup_taints[i].effect == n->taints[j].effect)
                return true;
    return false;
}

static int64_t quiet_since(const struct empty_view *v)
{
    const struct condition *c = condition_find(&v->claim->conditions, "Initialized");
    int64_t since = c ? c->last_transition : v->claim->obj.meta.creation;

    since = MAX(since, v->claim->last_pod_event);
    return MAX(since, v->last_pod_event);
}

struct empty_answer empty_judge(const struct empty_view *v, int64_t now)
{
    struct empty_answer a = {.verdict = EMPTY_REMOVABLE};
    const char *protected_;

    if (!v->claim || !v->node || !v->pool || v->pool->replicas >= 0 ||
        v->pool->consolidate_after == TIME_NEVER)
        return (struct empty_answer){.verdict = EMPTY_NOT_MANAGED};
    if (!condition_is(&v->claim->conditions, "Initialized", CONDITION_TRUE) ||
        startup_taints_remain(v->claim, v->node))
        return (struct empty_answer){.verdict = EMPTY_NOT_READY_YET};
    for (size_t i = 0; i < v->n_pods; i++)
        if (pod_keeps_node(v->pods[i]))
            return (struct empty_answer){.verdict = EMPTY_IN_USE};
    if (v->nominated > 0)
        return (struct empty_answer){.verdict = EMPTY_EXPECTED};
    protected_ = labels_get(&v->node->obj.meta.annotations, ANNOTATION_DO_NOT_DISRUPT);
    if (protected_ && strcmp(protected_, "true") == 0)
        return (struct empty_answer){.verdict = EMPTY_PROTECTED};
    a.since = quiet_since(v);
    a.at = num_add_sat(a.since, v->pool->consolidate_after);
    if (now < a.at)
        a.verdict = EMPTY_QUIET;
    return a;
}

const char *empty_verdict_text(enum empty_verdict v)
{
    static const char *const text[] = {
        [EMPTY_NOT_MANAGED] = "not managed, or its NodePool never removes empty nodes",
        [EMPTY_NOT_READY_YET] = "not initialised yet",
        [EMPTY_IN_USE] = "a pod runs on it",
        [EMPTY_EXPECTED] = "a pod is expected on it",
        [EMPTY_PROTECTED] = ("annotated " ANNOTATION_DO_NOT_DISRUPT),
        [EMPTY_QUIET] = "empty, within consolidateAfter",
        [EMPTY_REMOVABLE] = "empty for longer than consolidateAfter",
    };

    return text[v];
}
