/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The controllers' common part: a queue of items to look at, ownership, garbage collection.
 *
 * A change marks the item itself dirty, and what depends on it: a pod's owner and budgets, a
 * node's daemons. An item waits once, at its earliest time. Controllers see the store as it is
 * when they run (level-triggered). */

#include "base/num.h"
#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

struct controllers {
    struct sim *sim;
    struct heap due;
    struct loop_timer timer;
};

/* ---- Queue ---- */

static void controllers_fire(void *arg);

static void arm(struct controllers *c)
{
    struct heap_node *first = heap_peek(&c->due);
    if (!first)
        loop_timer_cancel(c->sim->loop, &c->timer);
    else if (!loop_timer_active(&c->timer) || c->timer.node.key > first->key)
        loop_timer_at(c->sim->loop, &c->timer, MAX(first->key, sim_now(c->sim)), controllers_fire,
                      c);
}

void controllers_at(struct sim *s, struct item *it, int64_t when)
{
    struct controllers *c = s->control;
    if (heap_has(&it->due)) {
        if (it->due.key <= when)
            return;
        heap_remove(&c->due, &it->due);
    } else {
        item_ref(it);
    }
    heap_push(&c->due, &it->due, when);
    arm(c);
}

void controllers_dirty(struct sim *s, struct item *it)
{
    if (it->orphan || it->res->reconcile)
        controllers_at(s, it, sim_now(s) + s->o.controller_delay);
}

static void controllers_fire(void *arg)
{
    struct controllers *c = arg;
    struct sim *s = c->sim;
    struct heap_node *first;
    /* One item a turn: what it changed reaches the watchers before the next is looked at. */
    if ((first = heap_peek(&c->due)) && first->key <= sim_now(s)) {
        heap_pop(&c->due);
        struct item *it = CONTAINER_OF(first, struct item, due);
        if (it->gone)
            ;
        else if (it->orphan)
            store_delete(it, -1);
        else if (it->res->reconcile)
            it->res->reconcile(s, it);
        item_unref(it);
    }
    arm(c);
}

/* ---- Changes ---- */

/* A pod that only got on (bound, started, ready) changes no more than its owner's status: that may
 * wait longer, so that a thousand pods starting are counted a few times and not a thousand. */
#define STATUS_DELAYS 10

static void owner_dirty(struct sim *s, struct item *it, struct version *before,
                        struct version *after)
{
    if (!it->family || !it->family->owner || !it->family->owner->res->reconcile)
        return;
    struct object *o = before && after ? version_typed(s, it->res, after) : NULL;
    bool only_status =
        it->res == s->pods && o && !pod_is_terminating(pod_of(o)) && !pod_is_terminal(pod_of(o));
    controllers_at(s, it->family->owner,
                   sim_now(s) + s->o.controller_delay * (only_status ? STATUS_DELAYS : 1));
}

static void budgets_dirty(struct sim *s, struct item *it, struct version *before,
                          struct version *after)
{
    map_each(&s->pdbs->objects, e)
        if (budget_pod_changed(e->value, it, before, after))
            controllers_dirty(s, e->value);
}

static enum pod_phase phase_of(struct sim *s, struct item *it, struct version *v)
{
    struct object *o = v ? version_typed(s, it->res, v) : NULL;
    return o ? pod_of(o)->phase : POD_PENDING;
}

/* A daemon's pod that went leaves its node without one. */
static void daemon_node_dirty(struct sim *s, struct version *pod)
{
    const struct json *terms =
        json_at(pod->root, "spec", "affinity", "nodeAffinity",
                "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", NULL);
    const struct json *fields = terms && terms->n ? json_get(terms->items[0], "matchFields") : NULL;
    const struct json *values = fields && fields->n ? json_get(fields->items[0], "values") : NULL;
    struct item *node =
        values && values->n ? store_find(s->nodes, STR_NONE, json_text(values->items[0])) : NULL;
    if (node)
        controllers_dirty(s, node);
}

static void pod_changed(struct sim *s, struct item *it, struct version *before,
                        struct version *after)
{
    struct item *owner = it->family ? it->family->owner : NULL;
    if (owner && strcmp(owner->res->kind, "Job") == 0 && after) {
        enum pod_phase was = phase_of(s, it, before), is = phase_of(s, it, after);
        if (was != is && (is == POD_SUCCEEDED || is == POD_FAILED))
            job_pod_ended(owner, after->root, is == POD_SUCCEEDED);
    }
    if (owner && owner->res == s->daemonsets && !after)
        daemon_node_dirty(s, before);
    budgets_dirty(s, it, before, after);
}

static void orphans_dirty(struct sim *s, struct item *it)
{
    struct family *f = store_family(it);
    for (size_t i = 0; f && i < f->children.len; i++) {
        f->children.v[i]->orphan = true;
        controllers_dirty(s, f->children.v[i]);
    }
}

void controllers_changed(struct sim *s, struct item *it, struct version *before,
                         struct version *after)
{
    if (s->o.no_controllers)
        return;
    if (it->res == s->pods)
        pod_changed(s, it, before, after);
    if (it->res == s->pdbs && after)
        budget_changed(s, it);
    owner_dirty(s, it, before, after);
    if (after)
        controllers_dirty(s, it);
    else
        orphans_dirty(s, it);
}

/* ---- Shared by the controllers ---- */

struct version *child_new(struct item *owner, const char *api_version, const char *kind,
                          struct str name, bool generate)
{
    struct version *v = version_new();
    struct arena *a = &v->arena;
    const struct json *root = owner->now->root;
    v->root = json_new_object(a);
    tree_cstr(a, v->root, "apiVersion", api_version);
    tree_cstr(a, v->root, "kind", kind);
    struct json *meta = tree_object(a, v->root, "metadata");
    tree_str(a, meta, generate ? "generateName" : "name", name);
    if (owner->namespace_)
        tree_cstr(a, meta, "namespace", owner->namespace_);
    struct json *ref = tree_add_object(a, tree_array(a, meta, "ownerReferences"));
    tree_str(a, ref, "apiVersion", json_text(json_get(root, "apiVersion")));
    tree_cstr(a, ref, "kind", owner->res->kind);
    tree_cstr(a, ref, "name", owner->name);
    tree_cstr(a, ref, "uid", owner->uid);
    tree_bool(a, ref, "controller", true);
    tree_bool(a, ref, "blockOwnerDeletion", true);
    return v;
}

struct version *pod_from_template(struct item *owner, const struct json *template_, struct str name,
                                  bool generate)
{
    static const char *const copied[] = {"labels", "annotations", "finalizers"};
    struct version *v = child_new(owner, "v1", "Pod", name, generate);
    struct json *meta = tree_get(v->root, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        const struct json *part = json_at(template_, "metadata", copied[i], NULL);
        if (part)
            tree_set(&v->arena, meta, copied[i], json_copy(&v->arena, part));
    }
    const struct json *spec = json_get(template_, "spec");
    tree_set(&v->arena, v->root, "spec",
             spec ? json_copy(&v->arena, spec) : json_new_object(&v->arena));
    tree_cstr(&v->arena, tree_object(&v->arena, v->root, "status"), "phase", "Pending");
    return v;
}

static int by_birth(const void *a, const void *b)
{
    uint64_t x = (*(struct item *const *)a)->born, y = (*(struct item *const *)b)->born;
    return x < y ? -1 : x > y;
}

void children_of(struct item *owner, const struct resource *r, struct vec_item *ret)
{
    struct family *f = store_family(owner);
    *ret = (struct vec_item){0};
    for (size_t i = 0; f && i < f->children.len; i++)
        if (f->children.v[i]->res == r)
            vec_push(ret, item_ref(f->children.v[i]));
    if (ret->len > 1)
        qsort(ret->v, ret->len, sizeof(*ret->v), by_birth);
}

void items_release(struct vec_item *v)
{
    vec_each(v, struct item **, it)
        item_unref(*it);
    vec_release(v);
}

/* ---- Life ---- */

static void set_reconcile(struct sim *s, const char *group, const char *plural,
                          void (*fn)(struct sim *, struct item *))
{
    struct resource *r = store_resource(s, str_from(group), str_from(plural));
    if (r)
        r->reconcile = fn;
}

static void node_step(struct sim *s, struct item *it)
{
    node_reconcile(s, it);
    if (!it->gone)
        daemons_on_node(s, it);
}

struct controllers *controllers_new(struct sim *s)
{
    struct controllers *c = xcalloc(1, sizeof(*c));
    c->sim = s;
    if (s->o.no_controllers)
        return c;
    set_reconcile(s, "apps", "replicasets", replicaset_reconcile);
    set_reconcile(s, "apps", "deployments", deployment_reconcile);
    set_reconcile(s, "apps", "statefulsets", statefulset_reconcile);
    set_reconcile(s, "apps", "daemonsets", daemonset_reconcile);
    set_reconcile(s, "batch", "jobs", job_reconcile);
    set_reconcile(s, "batch", "cronjobs", cronjob_reconcile);
    set_reconcile(s, "policy", "poddisruptionbudgets", budget_reconcile);
    set_reconcile(s, "", "nodes", node_step);
    return c;
}

void controllers_free(struct controllers *c)
{
    struct heap_node *n;
    loop_timer_cancel(c->sim->loop, &c->timer);
    while ((n = heap_pop(&c->due)))
        item_unref(CONTAINER_OF(n, struct item, due));
    heap_release(&c->due);
    free(c);
}

bool controllers_idle(const struct controllers *c)
{
    /* What waits beyond a minute is a schedule, not work. */
    for (size_t i = 0; i < c->due.len; i++)
        if (c->due.v[i]->key <= sim_now(c->sim) + NS_PER_MIN)
            return false;
    return true;
}
