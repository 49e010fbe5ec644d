/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* StatefulSets and DaemonSets. */

#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

/* ---- StatefulSet ---- */

static struct item *ordinal_pod(struct sim *s, struct item *it, int64_t i)
{
    char name[300];
    snprintf(name, sizeof(name), "%s-%lld", it->name, (long long)i);
    return store_find(s->pods, str_from(it->namespace_), str_from(name));
}

static void create_ordinal(struct sim *s, struct item *it, int64_t i)
{
    char name[300], index[24];
    snprintf(name, sizeof(name), "%s-%lld", it->name, (long long)i);
    snprintf(index, sizeof(index), "%lld", (long long)i);
    struct version *v = pod_from_template(it, json_at(it->now->root, "spec", "template", NULL),
                                          str_from(name), false);
    struct json *labels = tree_object(&v->arena, tree_get(v->root, "metadata"), "labels");
    tree_cstr(&v->arena, labels, "statefulset.kubernetes.io/pod-name", name);
    tree_cstr(&v->arena, labels, "apps.kubernetes.io/pod-index", index);
    store_create(s->pods, v, NULL);
}

/* One step: the first ordinal that is missing is made, then waited for unless pods are parallel. */
static void fill_ordinals(struct sim *s, struct item *it, int64_t want, bool parallel)
{
    for (int64_t i = 0; i < want; i++) {
        struct item *pod = ordinal_pod(s, it, i);
        if (!pod)
            create_ordinal(s, it, i);
        else if (pod_at(pod) && pod_is_terminal(pod_at(pod)))
            store_delete(pod, -1);
        if (!parallel && (!pod || !pod_at(pod) || !pod_is_ready(pod_at(pod)) || item_deleting(pod)))
            return;
    }
}

static void statefulset_status(struct item *it, int64_t replicas, int64_t ready)
{
    struct version *v = version_edit(it);
    struct json *status = tree_object(&v->arena, v->root, "status");
    tree_i64(&v->arena, status, "replicas", replicas);
    tree_i64(&v->arena, status, "readyReplicas", ready);
    tree_i64(&v->arena, status, "availableReplicas", ready);
    tree_i64(&v->arena, status, "currentReplicas", replicas);
    tree_i64(&v->arena, status, "updatedReplicas", replicas);
    tree_i64(&v->arena, status, "observedGeneration", workload_at(it)->obj.meta.generation);
    store_commit(it, v);
}

void statefulset_reconcile(struct sim *s, struct item *it)
{
    struct workload *w = workload_at(it);
    struct vec_item pods;
    if (!w || item_deleting(it))
        return;
    int64_t want = w->replicas, ready = 0;
    bool parallel = str_eq_c(json_text(json_at(it->now->root, "spec", "podManagementPolicy", NULL)),
                             "Parallel");
    children_of(it, s->pods, &pods);
    bool leaving = false;
    int64_t n = (int64_t)pods.len;
    vec_each(&pods, struct item **, p) {
        ready += pod_at(*p) && pod_is_ready(pod_at(*p)) && !item_deleting(*p);
        leaving |= item_deleting(*p);
    }
    items_release(&pods);
    fill_ordinals(s, it, want, parallel);
    /* The highest ordinal goes first, one at a time. */
    for (int64_t i = want + n; i >= want && (parallel || !leaving); i--) {
        struct item *pod = ordinal_pod(s, it, i);
        if (!pod || item_deleting(pod))
            continue;
        store_delete(pod, -1);
        leaving = true;
    }
    statefulset_status(it, MIN(want, n), ready);
}

/* ---- DaemonSet ---- */

/* What every daemon's pod tolerates, whatever its template says. */
static const struct {
    const char *key, *effect;
} daemon_tolerations[] = {
    {"node.kubernetes.io/not-ready", "NoExecute"},
    {"node.kubernetes.io/unreachable", "NoExecute"},
    {"node.kubernetes.io/disk-pressure", "NoSchedule"},
    {"node.kubernetes.io/memory-pressure", "NoSchedule"},
    {"node.kubernetes.io/pid-pressure", "NoSchedule"},
    {"node.kubernetes.io/unschedulable", "NoSchedule"},
    {"node.kubernetes.io/network-unavailable", "NoSchedule"},
};

static bool tolerated_by_nature(const struct taint *t)
{
    for (size_t i = 0; i < ARRAY_LEN(daemon_tolerations); i++)
        if (strcmp(t->key, daemon_tolerations[i].key) == 0 &&
            strcmp(taint_effect_name(t->effect), daemon_tolerations[i].effect) == 0)
            return true;
    /* The lifecycle controller adds both effects of these two; the real one lets daemons pass. */
    return strcmp(t->key, "node.kubernetes.io/not-ready") == 0 ||
           strcmp(t->key, "node.kubernetes.io/unreachable") == 0;
}

static bool wants_node(const struct workload *w, const struct node *n)
{
    if (!fit_node_labels(&w->template_.spec, &n->obj.meta.labels, n->obj.meta.name))
        return false;
    for (uint32_t i = 0; i < n->n_taints; i++) {
        const struct taint *t = &n->taints[i];
        if (t->effect != TAINT_PREFER_NO_SCHEDULE && !tolerated_by_nature(t) &&
            !fit_taints(&w->template_.spec, t, 1))
            return false;
    }
    return true;
}

static void add_toleration(struct version *v, struct json *list, const char *key,
                           const char *effect)
{
    struct json *t = tree_add_object(&v->arena, list);
    tree_cstr(&v->arena, t, "key", key);
    tree_cstr(&v->arena, t, "operator", "Exists");
    tree_cstr(&v->arena, t, "effect", effect);
}

/* The pod may only be on its node: matchFields in every term of its required node affinity. */
static void pin(struct version *v, const char *node)
{
    struct arena *a = &v->arena;
    struct json *affinity =
        tree_object(a, tree_object(a, tree_get(v->root, "spec"), "affinity"), "nodeAffinity");
    struct json *required =
        tree_object(a, affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    struct json *terms = tree_array(a, required, "nodeSelectorTerms");
    if (terms->n == 0)
        tree_add_object(a, terms);
    for (size_t i = 0; i < terms->n; i++) {
        struct json *fields = json_new_array(a);
        struct json *f = tree_add_object(a, fields);
        tree_cstr(a, f, "key", "metadata.name");
        tree_cstr(a, f, "operator", "In");
        json_array_add(a, tree_array(a, f, "values"), json_new_string(a, str_from(node)));
        tree_set(a, terms->items[i], "matchFields", fields);
    }
}

/* One name for each pair of daemon set and node, so that there is one pod. */
static void daemon_name(const struct item *set, const struct item *node, char out[300])
{
    uint64_t h = str_hash(str_from(node->uid), str_hash(str_from(set->uid), 7));
    snprintf(out, 300, "%s-%08x", set->name, (unsigned)(h & 0xffffffffu));
}

static void create_daemon(struct sim *s, struct item *set, struct item *node, const char *name)
{
    struct version *v = pod_from_template(set, json_at(set->now->root, "spec", "template", NULL),
                                          str_from(name), false);
    struct json *list = tree_array(&v->arena, tree_get(v->root, "spec"), "tolerations");
    for (size_t i = 0; i < ARRAY_LEN(daemon_tolerations); i++)
        add_toleration(v, list, daemon_tolerations[i].key, daemon_tolerations[i].effect);
    add_toleration(v, list, "node.kubernetes.io/not-ready", "NoSchedule");
    add_toleration(v, list, "node.kubernetes.io/unreachable", "NoSchedule");
    pin(v, node->name);
    store_create(s->pods, v, NULL);
}

static void daemon_on_node(struct sim *s, struct item *set, struct item *node)
{
    char name[300];
    struct workload *w = workload_at(set);
    struct object *n = item_typed(node);
    if (!w || !n || item_deleting(set))
        return;
    daemon_name(set, node, name);
    struct item *pod = store_find(s->pods, str_from(set->namespace_), str_from(name));
    bool wanted = wants_node(w, node_of(n));
    if (!pod && wanted && !item_deleting(node))
        create_daemon(s, set, node, name);
    else if (pod && !item_deleting(pod) &&
             ((pod_at(pod) && pod_is_terminal(pod_at(pod))) ||
              !fit_node_labels(&w->template_.spec, &n->meta.labels, node->name)))
        store_delete(pod, -1);
}

void daemons_on_node(struct sim *s, struct item *node)
{
    map_each(&s->daemonsets->objects, e)
        daemon_on_node(s, e->value, node);
}

static void daemonset_status(struct sim *s, struct item *it)
{
    struct vec_item pods;
    int64_t ready = 0, n = 0;
    children_of(it, s->pods, &pods);
    vec_each(&pods, struct item **, p) {
        n += !item_deleting(*p);
        ready += pod_at(*p) && pod_is_ready(pod_at(*p)) && !item_deleting(*p);
    }
    items_release(&pods);
    struct version *v = version_edit(it);
    struct json *status = tree_object(&v->arena, v->root, "status");
    tree_i64(&v->arena, status, "desiredNumberScheduled", n);
    tree_i64(&v->arena, status, "currentNumberScheduled", n);
    tree_i64(&v->arena, status, "numberReady", ready);
    tree_i64(&v->arena, status, "numberAvailable", ready);
    tree_i64(&v->arena, status, "updatedNumberScheduled", n);
    tree_i64(&v->arena, status, "numberMisscheduled", 0);
    tree_i64(&v->arena, status, "observedGeneration", workload_at(it)->obj.meta.generation);
    store_commit(it, v);
}

/* All nodes when the set changed; otherwise its nodes are looked at one by one as they change. */
void daemonset_reconcile(struct sim *s, struct item *it)
{
    struct workload *w = workload_at(it);
    if (!w || item_deleting(it))
        return;
    if (w->observed_generation != w->obj.meta.generation)
        map_each(&s->nodes->objects, e)
            daemon_on_node(s, it, e->value);
    daemonset_status(s, it);
}
