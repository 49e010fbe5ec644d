/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The simulator's front: making it, reaching into it, looking at it. */

#include "kube/sim/sim.h"

#include <assert.h>

#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

/* ---- Life ---- */

static bool any_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static void add_kind(struct sim *s, const struct kind *k)
{
    static const char *const plain[] = {"leases",          "secrets",        "configmaps",
                                        "priorityclasses", "storageclasses", "csinodes",
                                        "events"};
    static const char *const scaled[] = {"deployments", "replicasets", "statefulsets"};
    struct sim_resource r = {.group = k->group,
                             .version = k->version,
                             .kind = k->kind,
                             .plural = k->plural,
                             .namespaced = k->namespaced,
                             .status = !any_of(k->plural, plain, ARRAY_LEN(plain)),
                             .scale = any_of(k->plural, scaled, ARRAY_LEN(scaled))};
    store_add_resource(s, &r, k);
}

static int64_t delay_or(int64_t given, int64_t standard)
{
    return given == 0 ? standard : MAX(given, 0);
}

static void set_options(struct sim *s, const struct sim_options *o)
{
    if (o)
        s->o = *o;
    s->o.call_latency = delay_or(s->o.call_latency, 4 * NS_PER_MS);
    s->o.controller_delay = delay_or(s->o.controller_delay, 20 * NS_PER_MS);
    s->o.pod_start = delay_or(s->o.pod_start, 2 * NS_PER_S);
    s->o.pod_stop = delay_or(s->o.pod_stop, NS_PER_S);
    s->o.node_not_ready = delay_or(s->o.node_not_ready, 40 * NS_PER_S);
    s->o.pod_gc = delay_or(s->o.pod_gc, 40 * NS_PER_S);
    s->o.scheduler_tick = delay_or(s->o.scheduler_tick, 20 * NS_PER_MS);
    if (s->o.scheduler_pods_s <= 0)
        s->o.scheduler_pods_s = 300;
    if (s->o.history == 0)
        s->o.history = 8192;
}

static void add_namespace(struct sim *s, struct str name)
{
    struct version *v = version_new();
    v->root = json_new_object(&v->arena);
    tree_cstr(&v->arena, v->root, "apiVersion", "v1");
    tree_cstr(&v->arena, v->root, "kind", "Namespace");
    struct json *meta = tree_object(&v->arena, v->root, "metadata");
    tree_str(&v->arena, meta, "name", name);
    tree_str(&v->arena, tree_object(&v->arena, meta, "labels"), "kubernetes.io/metadata.name",
             name);
    tree_cstr(&v->arena, tree_object(&v->arena, v->root, "status"), "phase", "Active");
    store_create(s->namespaces, v, NULL);
}

struct sim *sim_new(struct loop *l, uint64_t seed, const struct sim_options *o)
{
    struct sim *s = xcalloc(1, sizeof(*s));
    size_t n;
    s->loop = l;
    s->seed = seed;
    set_options(s, o);
    rng_split(&s->ids, seed, "kube/sim ids");
    rng_split(&s->latency, seed, "kube/sim latency");
    rng_split(&s->chance, seed, "kube/sim faults");
    rng_split(&s->starts, seed, "kube/sim pod starts");
    s->cache = decode_cache_new();
    const struct kind *const *kinds = kind_all(&n);
    for (size_t i = 0; i < n; i++)
        add_kind(s, kinds[i]);
    s->pods = store_resource(s, STR(""), STR("pods"));
    s->nodes = store_resource(s, STR(""), STR("nodes"));
    s->namespaces = store_resource(s, STR(""), STR("namespaces"));
    s->pdbs = store_resource(s, STR("policy"), STR("poddisruptionbudgets"));
    s->daemonsets = store_resource(s, STR("apps"), STR("daemonsets"));
    assert(s->pods && s->nodes && s->namespaces && s->pdbs && s->daemonsets);
    s->control = controllers_new(s);
    s->kubelets = kubelets_new(s);
    s->scheduler = scheduler_new(s);
    add_namespace(s, STR("default"));
    add_namespace(s, STR("kube-system"));
    return s;
}

void sim_free(struct sim *s)
{
    if (!s)
        return;
    assert(!s->seams);
    scheduler_free(s->scheduler);
    kubelets_free(s->kubelets);
    controllers_free(s->control);
    store_clear(s);
    decode_cache_free(s->cache);
    vec_release(&s->hooks);
    free(s);
}

struct loop *sim_loop(const struct sim *s)
{
    return s->loop;
}

/* ---- Knobs ---- */

void sim_set_auth(struct sim *s, bool (*allow)(void *arg, struct str authorization), void *arg)
{
    s->allow = allow;
    s->allow_arg = arg;
}

struct sim_faults *sim_faults(struct sim *s)
{
    return &s->faults;
}

void sim_on_effect(struct sim *s, void (*fn)(void *arg, const struct sim_call *call, bool after),
                   void *arg)
{
    s->effect = fn;
    s->effect_arg = arg;
}

void sim_register(struct sim *s, const struct sim_resource *r)
{
    store_add_resource(s, r, NULL);
}

void sim_expire_history(struct sim *s)
{
    vec_each(&s->resources, struct resource **, r)
        store_forget(*r);
}

/* ---- Changes ---- */

static void tell(struct sim *s, const struct sim_hook *h, struct item *it, struct version *before,
                 struct version *after)
{
    if (h->fn)
        h->fn(h->arg, it->res->kind, before ? before->root : NULL, after ? after->root : NULL);
    if (!h->typed || !it->res->typed)
        return;
    struct object *was = before ? version_typed(s, it->res, before) : NULL;
    struct object *is = after ? version_typed(s, it->res, after) : NULL;
    if (was || is)
        h->typed(h->arg, was, is);
}

void sim_changed(struct sim *s, struct item *it, struct version *before, struct version *after)
{
    kubelets_changed(s, it, before, after); /* first: it indexes pods by node for the others */
    scheduler_changed(s, it, before, after);
    controllers_changed(s, it, before, after);
    for (size_t i = 0; i < s->hooks.len; i++)
        tell(s, &s->hooks.v[i], it, before, after);
    if (!after)
        kubelets_forget(s, it);
}

void sim_on_change(struct sim *s, sim_change *fn, void *arg)
{
    vec_push(&s->hooks, (struct sim_hook){.fn = fn, .arg = arg});
}

void sim_on_object_change(struct sim *s, sim_object_change *fn, void *arg)
{
    vec_push(&s->hooks, (struct sim_hook){.typed = fn, .arg = arg});
}

/* ---- Direct access ---- */

static struct item *find(struct sim *s, const char *kind, const char *namespace_, const char *name)
{
    struct resource *r = store_resource_kind(s, str_from(kind));
    return store_find(r, str_from(namespace_ ? namespace_ : "default"), str_from(name));
}

static struct resource *resource_of(struct sim *s, const struct json *object, struct err *err)
{
    struct str version = json_text(json_get(object, "apiVersion")),
               kind = json_text(json_get(object, "kind"));
    struct resource *r = store_resource_gvk(s, version, kind);
    if (!r)
        err_set(err, ERR_INVALID, "the simulator knows no %.*s of %.*s", STR_ARG(kind),
                STR_ARG(version));
    return r;
}

const struct json *sim_create(struct sim *s, const struct json *object, struct err *err)
{
    struct resource *r = resource_of(s, object, err);
    if (!r)
        return NULL;
    struct version *v = version_new();
    v->root = json_copy(&v->arena, object);
    struct json *meta = tree_object(&v->arena, v->root, "metadata");
    if (r->namespaced) {
        if (!json_text(tree_get(meta, "namespace")).len)
            tree_cstr(&v->arena, meta, "namespace", "default");
        struct str namespace_ = json_text(tree_get(meta, "namespace"));
        if (!store_find(s->namespaces, STR_NONE, namespace_))
            add_namespace(s, namespace_);
    }
    if (r == s->pods && !json_at(v->root, "status", "phase", NULL))
        tree_cstr(&v->arena, tree_object(&v->arena, v->root, "status"), "phase", "Pending");
    struct item *it = store_create(r, v, err);
    return it ? it->now->root : NULL;
}

const struct json *sim_apply(struct sim *s, const struct json *object, struct err *err)
{
    struct resource *r = resource_of(s, object, err);
    if (!r)
        return NULL;
    const struct json *meta = json_get(object, "metadata");
    struct str namespace_ = json_text(json_get(meta, "namespace"));
    struct item *it = store_find(r, namespace_.len ? namespace_ : STR("default"),
                                 json_text(json_get(meta, "name")));
    if (!it)
        return sim_create(s, object, err);
    struct version *v = version_new();
    v->root = tree_apply(&v->arena, it->now->root, object);
    store_commit(it, v);
    return it->now->root;
}

const struct json *sim_apply_text(struct sim *s, const char *text, struct err *err)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct json *j = json_parse(&a, str_from(text), err);
    return j ? sim_apply(s, j, err) : NULL;
}

const struct json *sim_patch(struct sim *s, const char *kind, const char *namespace_,
                             const char *name, const char *patch, struct err *err)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct item *it = find(s, kind, namespace_, name);
    if (!it) {
        err_set(err, ERR_NOT_FOUND, "there is no %s %s", kind, name);
        return NULL;
    }
    struct json *p = json_parse(&a, str_from(patch), err);
    if (!p)
        return NULL;
    struct version *v = version_new();
    v->root = json_copy(&v->arena, json_merge_patch(&a, it->now->root, p));
    item_ref(it);
    store_commit(it, v);
    const struct json *root = it->gone ? NULL : it->now->root;
    item_unref(it);
    if (!root)
        err_set(err, ERR_NOT_FOUND, "%s %s went with its last finalizer", kind, name);
    return root;
}

int sim_delete(struct sim *s, const char *kind, const char *namespace_, const char *name,
               int64_t grace_s, struct err *err)
{
    struct item *it = find(s, kind, namespace_, name);
    if (!it)
        return err_set(err, ERR_NOT_FOUND, "there is no %s %s", kind, name);
    store_delete(it, grace_s);
    return 0;
}

const struct json *sim_get(struct sim *s, const char *kind, const char *namespace_,
                           const char *name)
{
    struct item *it = find(s, kind, namespace_, name);
    return it ? it->now->root : NULL;
}

static struct resource *typed_resource(struct sim *s, const struct kind *k)
{
    return store_resource(s, str_from(k->group), str_from(k->plural));
}

struct object *sim_object(struct sim *s, const struct kind *k, const char *namespace_,
                          const char *name)
{
    struct item *it = store_find(typed_resource(s, k),
                                 str_from(namespace_ ? namespace_ : "default"), str_from(name));
    return it ? item_typed(it) : NULL;
}

size_t sim_count(struct sim *s, const char *kind)
{
    struct resource *r = store_resource_kind(s, str_from(kind));
    return r ? map_len(&r->objects) : 0;
}

static void snapshot(struct resource *r, struct vec_item *ret)
{
    size_t n;
    struct item **all = store_sorted(r, &n);
    for (size_t i = 0; i < n; i++)
        vec_push(ret, item_ref(all[i]));
}

static void each_item(struct resource *r, void (*fn)(void *arg, struct item *it), void *arg)
{
    struct vec_item items = {0};
    if (!r)
        return;
    snapshot(r, &items);
    vec_each(&items, struct item **, it) {
        if (!(*it)->gone)
            fn(arg, *it);
        item_unref(*it);
    }
    vec_release(&items);
}

struct each {
    void (*fn)(void *arg, const struct json *object);
    void (*typed)(void *arg, struct object *object);
    void *arg;
};

static void each_json(void *arg, struct item *it)
{
    const struct each *e = arg;
    struct version *v = version_ref(it->now);
    e->fn(e->arg, v->root);
    version_unref(v);
}

static void each_typed(void *arg, struct item *it)
{
    const struct each *e = arg;
    struct object *o = item_typed(it);
    if (!o)
        return;
    object_ref(o);
    e->typed(e->arg, o);
    object_unref(o);
}

void sim_each(struct sim *s, const char *kind, void (*fn)(void *arg, const struct json *object),
              void *arg)
{
    struct each e = {.fn = fn, .arg = arg};
    each_item(store_resource_kind(s, str_from(kind)), each_json, &e);
}

void sim_each_object(struct sim *s, const struct kind *k,
                     void (*fn)(void *arg, struct object *object), void *arg)
{
    struct each e = {.typed = fn, .arg = arg};
    each_item(typed_resource(s, k), each_typed, &e);
}

/* ---- Observation ---- */

const struct sim_counters *sim_counters(const struct sim *s)
{
    return &s->counters;
}

uint64_t sim_digest(struct sim *s)
{
    uint64_t h = str_hash(STR("sim"), s->number ^ (uint64_t)sim_now(s));
    vec_each(&s->resources, struct resource **, r) {
        size_t n;
        struct item **all = store_sorted(*r, &n);
        for (size_t i = 0; i < n; i++)
            h = str_hash(version_text(all[i]->now), h);
    }
    return h;
}

uint64_t sim_version(const struct sim *s)
{
    return s->number;
}

bool sim_idle(const struct sim *s)
{
    return controllers_idle(s->control) && kubelets_idle(s->kubelets) &&
           scheduler_idle(s->scheduler);
}
