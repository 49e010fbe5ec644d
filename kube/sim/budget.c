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

/* Pods that a budget covers, kept up to date change by change: counting them all at each change
 * of one would cost a busy cluster more than everything else. */
struct budget_state {
    char *selector; /* the text of it that the counts are of */
    int64_t pods, healthy;
};

void budget_state_free(struct budget_state *b)
{
    if (b)
        free(b->selector);
    free(b);
}

struct share {
    bool counts, healthy;
};

static struct share share_of(const struct pdb *p, struct item *budget, struct item *pod,
                             struct version *v)
{
    struct share none = {false, false};
    if (!v || !p->selector || strcmp(pod->namespace_, budget->namespace_) != 0 ||
        !selector_matches(p->selector, version_labels(v)))
        return none;
    struct object *o = version_typed(budget->res->sim, pod->res, v);
    if (!o || pod_is_terminal(pod_of(o)))
        return none;
    return (struct share){true, pod_is_ready(pod_of(o)) && !pod_is_terminating(pod_of(o))};
}

bool budget_pod_changed(struct item *budget, struct item *pod, struct version *before,
                        struct version *after)
{
    struct object *o = item_typed(budget);
    if (!o || !budget->budget)
        return false;
    struct share a = share_of(pdb_of(o), budget, pod, before),
                 b = share_of(pdb_of(o), budget, pod, after);
    budget->budget->pods += b.counts - a.counts;
    budget->budget->healthy += b.healthy - a.healthy;
    return a.counts != b.counts || a.healthy != b.healthy;
}

/* A new budget, or one with another selector, counts once. */
void budget_changed(struct sim *s, struct item *it)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    struct object *o = item_typed(it);
    const struct json *selector = json_at(it->now->root, "spec", "selector", NULL);
    if (selector)
        json_print(&text, selector, 0);
    if (!o || (it->budget && strcmp(it->budget->selector, text.data ? text.data : "") == 0))
        return;
    budget_state_free(it->budget);
    it->budget = xcalloc(1, sizeof(*it->budget));
    it->budget->selector = xstrdup(text.data ? text.data : "");
    map_each(&s->pods->objects, e) {
        struct item *pod = e->value;
        struct share x = share_of(pdb_of(o), it, pod, pod->now);
        it->budget->pods += x.counts;
        it->budget->healthy += x.healthy;
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
    if (!o || !it->budget)
        return;
    const struct pdb *p = pdb_of(o);
    const struct budget_state c = *it->budget;
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
