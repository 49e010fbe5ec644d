/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The status of PodDisruptionBudgets (k8s.io/kubernetes, pkg/controller/disruption). */

#include "base/num.h"
#include "kube/api/pdb.h"
#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

/* A number, or a percentage of n rounded up. */
static int64_t scaled(const char *text, int64_t n)
{
    struct str s = str_from(text);
    int64_t v = 0;
    if (!str_has_suffix(s, STR("%"))) {
        num_parse_range(s, 0, INT32_MAX, &v, NULL);
        return v;
    }
    num_parse_range(str_sub(s, 0, s.len - 1), 0, 1000, &v, NULL);
    return (v * n + 99) / 100;
}

struct count {
    int64_t pods, healthy;
};

/* Pods that were evicted but are not yet seen to be deleted are not healthy. */
static void count_pods(struct sim *s, struct item *budget, const struct pdb *p, struct count *ret)
{
    map_each(&s->pods->objects, e) {
        struct item *it = e->value;
        if (strcmp(it->namespace_, budget->namespace_) != 0 ||
            !selector_matches(p->selector, version_labels(it->now)))
            continue;
        const struct pod *pod = pod_at(it);
        if (!pod || pod_is_terminal(pod))
            continue;
        ret->pods++;
        ret->healthy += pod_is_ready(pod) && !pod_is_terminating(pod);
    }
}

/* What the controllers of the pods want, which percentages and maxUnavailable are of. */
static int64_t expected(struct sim *s, struct item *budget, const struct pdb *p, int64_t pods)
{
    static const char *const kinds[][2] = {{"apps", "replicasets"}, {"apps", "statefulsets"}};
    int64_t sum = 0;
    bool any = false;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct resource *r = store_resource(s, str_from(kinds[k][0]), str_from(kinds[k][1]));
        map_each(&r->objects, e) {
            struct item *it = e->value;
            const struct workload *w = workload_at(it);
            if (!w || strcmp(it->namespace_, budget->namespace_) != 0 ||
                !selector_matches(p->selector, &w->template_.labels))
                continue;
            sum += w->replicas;
            any = true;
        }
    }
    return any ? sum : pods;
}

void budget_reconcile(struct sim *s, struct item *it)
{
    struct object *o = item_typed(it);
    struct count c = {0};
    if (!o)
        return;
    const struct pdb *p = pdb_of(o);
    if (p->selector)
        count_pods(s, it, p, &c);
    int64_t total = p->min_available && !str_has_suffix(str_from(p->min_available), STR("%"))
                        ? c.pods
                        : expected(s, it, p, c.pods);
    int64_t desired = 0;
    if (p->min_available)
        desired = scaled(p->min_available, total);
    else if (p->max_unavailable)
        desired = MAX(total - scaled(p->max_unavailable, total), 0);
    int64_t allowed = total > 0 ? MAX(c.healthy - desired, 0) : 0;
    struct version *v = version_edit(it);
    struct arena *a = &v->arena;
    struct json *status = tree_object(a, v->root, "status");
    tree_i64(a, status, "currentHealthy", c.healthy);
    tree_i64(a, status, "desiredHealthy", desired);
    tree_i64(a, status, "expectedPods", total);
    tree_i64(a, status, "disruptionsAllowed", allowed);
    tree_i64(a, status, "observedGeneration", p->obj.meta.generation);
    tree_drop(status, "disruptedPods");
    tree_condition(a, v->root, "DisruptionAllowed", allowed > 0 ? "True" : "False",
                   allowed > 0 ? "SufficientPods" : "InsufficientPods", NULL, sim_wall(s));
    store_commit(it, v);
}
