/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Scale, eviction and binding. */

#include "base/num.h"
#include "kube/api/pdb.h"
#include "kube/sim/api.h"
#include "kube/sim/tree.h"

/* ---- Scale ---- */

static void write_selector(struct json_writer *w, const struct json *root)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    const struct json *labels = json_at(root, "spec", "selector", "matchLabels", NULL);
    for (size_t i = 0; labels && labels->type == JSON_OBJECT && i < labels->n; i++)
        buf_printf(&text, "%s%.*s=%.*s", i ? "," : "", STR_ARG(labels->members[i].key),
                   STR_ARG(json_text(labels->members[i].value)));
    json_w_kstr(w, "selector", buf_view(&text));
}

static void scale_body(const struct item *it, struct buf *out)
{
    struct json_writer w;
    const struct json *root = it->now->root, *meta = json_get(root, "metadata");
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "kind", "Scale");
    json_w_kcstr(&w, "apiVersion", "autoscaling/v1");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", it->name);
    if (it->namespace_)
        json_w_kcstr(&w, "namespace", it->namespace_);
    json_w_kcstr(&w, "uid", it->uid);
    json_w_kstr(&w, "resourceVersion", json_text(json_get(meta, "resourceVersion")));
    json_w_kstr(&w, "creationTimestamp", json_text(json_get(meta, "creationTimestamp")));
    json_w_object_end(&w);
    json_w_kobject(&w, "spec");
    json_w_ki64(&w, "replicas", json_i64(json_at(root, "spec", "replicas", NULL), 1));
    json_w_object_end(&w);
    json_w_kobject(&w, "status");
    json_w_ki64(&w, "replicas", json_i64(json_at(root, "status", "replicas", NULL), 0));
    write_selector(&w, root);
    json_w_object_end(&w);
    json_w_object_end(&w);
}

static struct json *new_scale(struct request *r, struct item *it, struct answer *ret)
{
    struct json *body = request_json(r, ret);
    if (!body || str_eq_c(r->method, "PUT"))
        return body;
    CLEANUP(buf_release) struct buf now = BUF_INIT;
    struct err err = ERR_INIT;
    scale_body(it, &now);
    struct json *scale = json_parse(&r->arena, buf_view(&now), NULL);
    if (body->type == JSON_OBJECT)
        return json_merge_patch(&r->arena, scale, body);
    if (tree_json_patch(&r->arena, &scale, body, &err) < 0) {
        answer_fail(ret, 422, "Invalid", "%s", err.msg);
        return NULL;
    }
    return scale;
}

void handle_scale(struct sim *s, struct request *r, struct item *it, struct answer *ret)
{
    (void)s;
    if (!str_eq_c(r->method, "GET")) {
        struct json *scale = new_scale(r, it, ret);
        if (!scale)
            return;
        const struct json *version = json_at(scale, "metadata", "resourceVersion", NULL);
        int64_t replicas = json_i64(json_at(scale, "spec", "replicas", NULL), 0);
        if (version &&
            !json_equal(version, json_at(it->now->root, "metadata", "resourceVersion", NULL))) {
            answer_fail(ret, 409, "Conflict",
                        "Operation cannot be fulfilled on %s \"%s\": the object has been modified",
                        it->res->plural, it->name);
            return;
        }
        if (replicas < 0) {
            answer_fail(ret, 422, "Invalid",
                        "spec.replicas: Invalid value: %lld: should be non-negative",
                        (long long)replicas);
            return;
        }
        struct version *v = version_edit(it);
        tree_i64(&v->arena, tree_object(&v->arena, v->root, "spec"), "replicas", replicas);
        store_commit(it, v);
    }
    ret->status = 200;
    buf_clear(&ret->body);
    scale_body(it, &ret->body);
}

/* ---- Eviction ---- */

static struct item *matching_budget(struct sim *s, struct item *pod, size_t *ret_n)
{
    struct item *found = NULL;
    *ret_n = 0;
    map_each(&s->pdbs->objects, e) {
        struct item *it = e->value;
        struct object *o = item_typed(it);
        if (!o || strcmp(it->namespace_, pod->namespace_) != 0 || !pdb_of(o)->selector ||
            !selector_matches(pdb_of(o)->selector, version_labels(pod->now)))
            continue;
        found = it;
        ++*ret_n;
    }
    return found;
}

/* Takes one disruption from the budget, so that evictions between two updates of its status
 * cannot take it twice. */
static void spend(struct item *budget, const struct item *pod)
{
    struct version *v = version_edit(budget);
    struct json *status = tree_object(&v->arena, v->root, "status");
    tree_i64(&v->arena, status, "disruptionsAllowed",
             json_i64(json_get(status, "disruptionsAllowed"), 0) - 1);
    tree_time(&v->arena, tree_object(&v->arena, status, "disruptedPods"), pod->name,
              sim_wall(budget->res->sim));
    store_commit(budget, v);
}

/* The rules of the eviction subresource (k8s.io/kubernetes,
 * pkg/registry/core/pod/storage/eviction.go). */
static bool budget_allows(struct sim *s, struct item *it, const struct pod *pod, struct answer *ret)
{
    size_t n;
    struct item *budget = matching_budget(s, it, &n);
    if (n > 1) {
        answer_fail(ret, 500, "InternalError",
                    "This pod has more than one PodDisruptionBudget, which the eviction "
                    "subresource does not support.");
        return false;
    }
    if (n == 0)
        return true;
    const struct pdb *p = pdb_of(item_typed(budget));
    if (!pod_is_ready(pod) &&
        (p->always_allow_unhealthy ||
         (p->current_healthy >= p->desired_healthy && p->desired_healthy > 0)))
        return true;
    if (p->observed_generation < p->obj.meta.generation) {
        ret->retry_after_s = 10;
        answer_fail(ret, 429, "TooManyRequests",
                    "Cannot evict pod as it would violate the pod's disruption budget. The "
                    "disruption budget %s is still "
                    "being processed by the server.",
                    budget->name);
        return false;
    }
    if (p->disruptions_allowed <= 0) {
        answer_fail(ret, 429, "TooManyRequests",
                    "Cannot evict pod as it would violate the pod's disruption budget. The "
                    "disruption budget %s needs %lld "
                    "healthy pods and has %lld currently",
                    budget->name, (long long)p->desired_healthy, (long long)p->current_healthy);
        return false;
    }
    spend(budget, it);
    return true;
}

void handle_eviction(struct sim *s, struct request *r, struct item *it, struct answer *ret)
{
    struct json *body = request_json(r, ret);
    struct object *o = item_typed(it);
    if (!body)
        return;
    const struct json *options = json_get(body, "deleteOptions");
    struct str uid = json_text(json_at(options, "preconditions", "uid", NULL));
    if (uid.len && !str_eq_c(uid, it->uid)) {
        answer_fail(ret, 409, "Conflict",
                    "Precondition failed: UID in precondition: %.*s, UID in object meta: %s",
                    STR_ARG(uid), it->uid);
        return;
    }
    const struct pod *pod = o ? pod_of(o) : NULL;
    bool free_to_go =
        !pod || pod_is_terminal(pod) || pod->phase == POD_PENDING || pod_is_terminating(pod);
    if (!free_to_go && !budget_allows(s, it, pod, ret)) {
        s->counters.evictions_refused++;
        return;
    }
    s->counters.evictions++;
    handle_delete_options(r, it, options, ret);
    if (ret->status < 300)
        answer_success(ret, 201);
}

/* ---- Binding ---- */

void handle_binding(struct sim *s, struct request *r, struct item *it, struct answer *ret)
{
    struct json *body = request_json(r, ret);
    if (!body)
        return;
    struct str node = json_text(json_at(body, "target", "name", NULL));
    if (!node.len) {
        answer_fail(ret, 422, "Invalid", "target.name: Required value");
        return;
    }
    if (json_text(json_at(it->now->root, "spec", "nodeName", NULL)).len || item_deleting(it)) {
        answer_fail(ret, 409, "Conflict", "pod %s is already assigned to a node or being deleted",
                    it->name);
        return;
    }
    struct version *v = version_edit(it);
    tree_str(&v->arena, tree_object(&v->arena, v->root, "spec"), "nodeName", node);
    tree_condition(&v->arena, v->root, "PodScheduled", "True", NULL, NULL, sim_wall(s));
    store_commit(it, v);
    answer_success(ret, 201);
}
