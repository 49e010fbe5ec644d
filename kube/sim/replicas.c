/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* ReplicaSets and Deployments. */

#include "base/num.h"
#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

#define BURST 500 /* pods a ReplicaSet creates or deletes at a time, as the real one */

static bool active(struct item *it)
{
    const struct pod *p = pod_at(it);
    return p && !pod_is_terminating(p) && !pod_is_terminal(p);
}

/* ---- ReplicaSet ---- */

struct victim {
    struct item *it;
    int64_t rank; /* lower goes first */
    uint64_t born;
};

static int by_rank(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->born > y->born ? -1 : x->born < y->born; /* younger first */
}

/* Unbound, then pending, then not ready, then by pod-deletion-cost. */
static int64_t rank_of(struct item *it)
{
    const struct pod *p = pod_at(it);
    int64_t cost = 0;
    const char *text =
        labels_get(&p->obj.meta.annotations, "controller.kubernetes.io/pod-deletion-cost");
    if (!p->spec.node_name)
        return INT64_MIN;
    if (p->phase == POD_PENDING)
        return INT64_MIN + 1;
    if (!pod_is_ready(p))
        return INT64_MIN + 2;
    if (text)
        num_parse_range(str_from(text), INT32_MIN, INT32_MAX, &cost, NULL);
    return cost;
}

static void delete_pods(struct vec_item *pods, size_t n)
{
    struct victim *v = xcalloc(pods->len + 1, sizeof(*v));
    size_t len = 0;
    vec_each(pods, struct item **, it)
        if (active(*it))
            v[len++] = (struct victim){*it, rank_of(*it), (*it)->born};
    if (len > 1)
        qsort(v, len, sizeof(*v), by_rank);
    for (size_t i = 0; i < MIN(n, len); i++)
        store_delete(v[i].it, -1);
    free(v);
}

static void create_pods(struct sim *s, struct item *it, int64_t n)
{
    char name[280];
    snprintf(name, sizeof(name), "%s-", it->name);
    const struct json *template_ = json_at(it->now->root, "spec", "template", NULL);
    for (int64_t i = 0; i < n; i++)
        store_create(s->pods, pod_from_template(it, template_, str_from(name), true), NULL);
}

static void replicaset_status(struct item *it, int64_t replicas, int64_t ready, int64_t generation)
{
    struct version *v = version_edit(it);
    struct json *status = tree_object(&v->arena, v->root, "status");
    tree_i64(&v->arena, status, "replicas", replicas);
    tree_i64(&v->arena, status, "fullyLabeledReplicas", replicas);
    tree_i64(&v->arena, status, "readyReplicas", ready);
    tree_i64(&v->arena, status, "availableReplicas", ready);
    tree_i64(&v->arena, status, "observedGeneration", generation);
    store_commit(it, v);
}

void replicaset_reconcile(struct sim *s, struct item *it)
{
    struct workload *w = workload_at(it);
    struct vec_item pods;
    if (!w || item_deleting(it))
        return;
    children_of(it, s->pods, &pods);
    int64_t live = 0, ready = 0, want = w->replicas, generation = w->obj.meta.generation;
    vec_each(&pods, struct item **, p) {
        live += active(*p);
        ready += active(*p) && pod_is_ready(pod_at(*p));
    }
    if (want > live) {
        int64_t n = MIN(want - live, BURST);
        create_pods(s, it, n);
        live += n;
        if (live < want)
            controllers_dirty(s, it);
    } else if (want < live) {
        delete_pods(&pods, (size_t)MIN(live - want, BURST));
        live -= MIN(live - want, BURST);
    }
    items_release(&pods);
    replicaset_status(it, live, MIN(ready, live), generation);
}

/* ---- Deployment ---- */

static struct str template_hash(const struct json *template_, char out[17])
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    json_print(&text, template_, 0);
    snprintf(out, 17, "%010llx",
             (unsigned long long)(str_hash(buf_view(&text), 1) & 0xffffffffffULL));
    return str_from(out);
}

static void set_hash_label(struct version *v, struct json *metadata, const char *hash)
{
    tree_cstr(&v->arena, tree_object(&v->arena, metadata, "labels"), "pod-template-hash", hash);
}

static struct item *create_replicaset(struct item *it, struct resource *sets,
                                      const struct json *template_, const char *hash)
{
    char name[300];
    snprintf(name, sizeof(name), "%s-%s", it->name, hash);
    struct version *v = child_new(it, "apps/v1", "ReplicaSet", str_from(name), false);
    struct arena *a = &v->arena;
    struct json *spec = tree_object(a, v->root, "spec");
    tree_i64(a, spec, "replicas", 0);
    const struct json *selector = json_at(it->now->root, "spec", "selector", NULL);
    tree_set(a, spec, "selector", selector ? json_copy(a, selector) : json_new_object(a));
    tree_cstr(a, tree_object(a, tree_object(a, spec, "selector"), "matchLabels"),
              "pod-template-hash", hash);
    tree_set(a, spec, "template", json_copy(a, template_));
    struct json *meta = tree_get(v->root, "metadata");
    const struct json *labels = json_at(template_, "metadata", "labels", NULL);
    if (labels)
        tree_set(a, meta, "labels", json_copy(a, labels));
    set_hash_label(v, meta, hash);
    set_hash_label(v, tree_object(a, tree_get(spec, "template"), "metadata"), hash);
    return store_create(sets, v, NULL);
}

static void scale_set(struct item *it, int64_t replicas)
{
    struct version *v = version_edit(it);
    tree_i64(&v->arena, tree_object(&v->arena, v->root, "spec"), "replicas", replicas);
    store_commit(it, v);
}

/* "25%" of n, or a number; percentages round up for surge, down for unavailable. */
static int64_t amount(const char *text, const char *standard, int64_t n, bool up)
{
    struct str s = str_from(text ? text : standard);
    int64_t v = 0;
    if (!str_has_suffix(s, STR("%"))) {
        num_parse_range(s, 0, INT32_MAX, &v, NULL);
        return v;
    }
    num_parse_range(str_sub(s, 0, s.len - 1), 0, 1000, &v, NULL);
    return up ? (v * n + 99) / 100 : v * n / 100;
}

struct rollout {
    int64_t want, total, available; /* replicas asked for; in all sets; ready in all sets */
    int64_t surge, unavailable;
    bool recreate;
};

/* Scales the old sets down as far as availability allows: never more than the pods asked for in all
 * sets exceed the least number, those of the new set that are not ready aside. Pods that are not
 * ready go first. */
static void shrink_old(struct vec_item *sets, const struct item *current, struct rollout *r,
                       int64_t new_unready)
{
    int64_t least = r->want - r->unavailable;
    int64_t most = r->recreate ? INT64_MAX : r->total - least - new_unready;
    int64_t spare = r->recreate ? INT64_MAX : r->available - least;
    vec_each(sets, struct item **, it) {
        const struct workload *w = workload_at(*it);
        if (*it == current || !w || w->replicas == 0)
            continue;
        int64_t unready = MAX(w->replicas - w->ready_replicas, 0);
        int64_t go = MIN(MIN(w->replicas, num_add_sat(unready, MAX(spare, 0))), MAX(most, 0));
        spare -= MAX(go - unready, 0);
        most -= go;
        r->total -= go;
        if (go > 0)
            scale_set(*it, w->replicas - go);
    }
}

static void roll(struct vec_item *sets, struct item *current, struct rollout *r)
{
    const struct workload *now = workload_at(current);
    int64_t have = now ? now->replicas : 0;
    int64_t unready = now ? MAX(have - now->ready_replicas, 0) : 0;
    bool only = r->total == have;
    if (only || have > r->want) {
        if (have != r->want)
            scale_set(current, r->want);
    } else if (!r->recreate) {
        int64_t room = MAX(r->want + r->surge - r->total, 0);
        int64_t next = MIN(r->want, have + room);
        if (next != have) {
            scale_set(current, next);
            r->total += next - have;
            unready += next - have;
        }
    }
    if (!only)
        shrink_old(sets, current, r, unready);
}

static void deployment_status(struct sim *s, struct item *it, struct vec_item *sets,
                              struct item *current)
{
    struct version *v = version_edit(it);
    struct arena *a = &v->arena;
    int64_t replicas = 0, ready = 0, updated = 0, want = workload_at(it)->replicas;
    vec_each(sets, struct item **, set) {
        const struct workload *w = workload_at(*set);
        replicas += w ? w->status_replicas : 0;
        ready += w ? w->ready_replicas : 0;
        updated += w && *set == current ? w->status_replicas : 0;
    }
    struct json *status = tree_object(a, v->root, "status");
    tree_i64(a, status, "replicas", replicas);
    tree_i64(a, status, "readyReplicas", ready);
    tree_i64(a, status, "availableReplicas", ready);
    tree_i64(a, status, "updatedReplicas", updated);
    tree_i64(a, status, "unavailableReplicas", MAX(want - ready, 0));
    tree_i64(a, status, "observedGeneration", workload_at(it)->obj.meta.generation);
    bool enough = ready >= want - amount(workload_at(it)->max_unavailable, "25%", want, false);
    tree_condition(a, v->root, "Available", enough ? "True" : "False",
                   enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable", NULL,
                   sim_wall(s));
    store_commit(it, v);
}

void deployment_reconcile(struct sim *s, struct item *it)
{
    struct workload *w = workload_at(it);
    const struct json *template_ = json_at(it->now->root, "spec", "template", NULL);
    struct resource *r = store_resource(s, STR("apps"), STR("replicasets"));
    struct vec_item sets;
    char hash[17];
    if (!w || !template_ || item_deleting(it))
        return;
    template_hash(template_, hash);
    children_of(it, r, &sets);
    struct item *current = NULL;
    struct rollout roll_out = {.want = w->replicas, .recreate = w->recreate};
    vec_each(&sets, struct item **, set) {
        const struct workload *x = workload_at(*set);
        if (str_eq_c(json_text(json_at((*set)->now->root, "metadata", "labels", "pod-template-hash",
                                       NULL)),
                     hash))
            current = *set;
        roll_out.total += x ? x->replicas : 0;
        roll_out.available += x ? MIN(x->ready_replicas, x->replicas) : 0;
    }
    if (!current && (current = create_replicaset(it, r, template_, hash)))
        vec_push(&sets, item_ref(current));
    roll_out.surge = amount(w->max_surge, "25%", w->replicas, true);
    roll_out.unavailable = amount(w->max_unavailable, "25%", w->replicas, false);
    if (roll_out.surge == 0 && roll_out.unavailable == 0)
        roll_out.unavailable = 1;
    if (current) {
        roll(&sets, current, &roll_out);
        deployment_status(s, it, &sets, current);
    }
    items_release(&sets);
}
