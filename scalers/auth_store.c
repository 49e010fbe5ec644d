/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Secrets and ConfigMaps by one informer each, so that weft holds no Secret nobody refers to.
 * TriggerAuthentications are read when first needed and once a minute, since their kind may not be
 * installed at all. */
#include "scalers/auth_store.h"

#include <assert.h>

#include "base/map.h"
#include "kube/client/informer.h"

#define SPEC_AGAIN (60 * NS_PER_S)
#define SPEC_RETRY (5 * NS_PER_S)

struct watcher {
    auth_changed *fn;
    void *arg;
};

struct auth_entry {
    struct auth_store *store;
    enum auth_kind kind;
    char *key, *namespace_, *name;
    unsigned refs;
    struct informer *informer; /* Secret, ConfigMap */
    /* TriggerAuthentication */
    struct client_op *get;
    struct loop_timer again;
    bool known;
    struct err failed;
    struct arena arena;
    const struct json *spec; /* NULL: absent */
    struct {
        VEC(struct watcher);
    } watchers;
    struct loop_timer tell;
};

struct auth_store {
    struct client *client;
    struct map entries;
};

const char *auth_kind_name(enum auth_kind k)
{
    return k == AUTH_SECRET       ? "Secret"
           : k == AUTH_CONFIG_MAP ? "ConfigMap"
                                  : "TriggerAuthentication";
}

/* ---- Telling ---- */

/* From a timer, so that many changes of one turn are told once and nobody is called from inside an
 * informer's own work. */
static void tell(void *arg)
{
    struct auth_entry *e = arg;
    struct {
        VEC(struct watcher);
    } all = {0};
    vec_each(&e->watchers, struct watcher *, w)
        vec_push(&all, *w);
    vec_each(&all, struct watcher *, w)
        w->fn(w->arg); /* may release the entry: nothing of it is read below */
    vec_release(&all);
}

static void changed(struct auth_entry *e)
{
    loop_timer_in(client_loop(e->store->client), &e->tell, 0, tell, e);
}

static void object_changed(void *arg, struct object *before, struct object *after)
{
    (void)before;
    (void)after;
    changed(arg);
}

static void synced(void *arg)
{
    changed(arg);
}

/* ---- TriggerAuthentication ---- */

static void ask_spec(void *arg);

static void got_spec(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct auth_entry *e = arg;
    struct loop *loop = client_loop(e->store->client);
    e->get = NULL;
    if (err && err->code != ERR_NOT_FOUND) {
        bool first = !e->known && !e->failed.code;
        e->failed = *err;
        err_prefix(&e->failed, "TriggerAuthentication %s/%s", e->namespace_, e->name);
        loop_timer_in(loop, &e->again, SPEC_RETRY, ask_spec, e);
        if (first)
            changed(e);
        return;
    }
    struct arena arena = ARENA_INIT;
    arena_init(&arena, 4 * ANNOTATION_BYTES_MAX, 0);
    struct err bad = ERR_INIT;
    const struct json *root = err ? NULL : json_parse(&arena, answer->body, &bad);
    const struct json *spec = json_get(root, "spec");
    bool same = e->known && !e->failed.code &&
                (spec && e->spec ? json_equal(spec, e->spec) : spec == e->spec);
    arena_release(&e->arena);
    e->arena = arena;
    e->spec = spec;
    e->known = true;
    e->failed.code = ERR_NONE;
    if (!same)
        changed(e);
    loop_timer_in(loop, &e->again, SPEC_AGAIN, ask_spec, e);
}

static void ask_spec(void *arg)
{
    struct auth_entry *e = arg;
    char path[600];
    snprintf(path, sizeof(path),
             "/apis/keda.sh/v1alpha1/namespaces/%.253s/triggerauthentications/%.253s",
             e->namespace_, e->name);
    e->get = client_raw(e->store->client, "GET", path, NULL, STR_NONE, got_spec, e);
}

/* ---- Entries ---- */

static void start_watching(struct auth_entry *e)
{
    if (e->kind == AUTH_TRIGGER) {
        ask_spec(e);
        return;
    }
    char selector[300];
    snprintf(selector, sizeof(selector), "metadata.name=%.253s", e->name);
    struct informer_options o = {.namespace_ = e->namespace_, .field_selector = selector};
    e->informer =
        informer_new(e->store->client, e->kind == AUTH_SECRET ? &kind_secret : &kind_configmap, &o);
    informer_on_change(e->informer, object_changed, e);
    informer_on_sync(e->informer, synced, e);
    informer_start(e->informer);
}

static void unref(struct auth_entry *e)
{
    if (--e->refs)
        return;
    struct loop *loop = client_loop(e->store->client);
    map_remove(&e->store->entries, str_from(e->key));
    loop_timer_cancel(loop, &e->again);
    loop_timer_cancel(loop, &e->tell);
    client_cancel(e->get);
    informer_free(e->informer);
    arena_release(&e->arena);
    vec_release(&e->watchers);
    free(e->key);
    free(e->namespace_);
    free(e->name);
    free(e);
}

struct auth_entry *auth_store_entry(struct auth_store *s, struct auth_lease *l, enum auth_kind kind,
                                    const char *namespace_, const char *name)
{
    char key[600];
    snprintf(key, sizeof(key), "%s/%.253s/%.253s", auth_kind_name(kind), namespace_, name);
    struct auth_entry *e = map_get(&s->entries, str_from(key));
    if (!e) {
        e = xcalloc(1, sizeof(*e));
        *e = (struct auth_entry){.store = s,
                                 .kind = kind,
                                 .key = xstrdup(key),
                                 .namespace_ = xstrdup(namespace_),
                                 .name = xstrdup(name)};
        map_put(&s->entries, str_from(key), e);
        start_watching(e);
    }
    for (size_t i = 0; i < l->len; i++)
        if (l->v[i] == e)
            return e;
    e->refs++;
    vec_push(l, e);
    return e;
}

enum auth_outcome auth_entry_config(const struct auth_entry *e, const struct config_data **ret)
{
    if (!informer_synced(e->informer))
        return AUTH_WAITING;
    *ret =
        (const struct config_data *)(const void *)informer_get(e->informer, e->namespace_, e->name);
    return *ret ? AUTH_READY : AUTH_FAILED;
}

enum auth_outcome auth_entry_spec(const struct auth_entry *e, const struct json **ret,
                                  struct err *err)
{
    if (e->known) {
        *ret = e->spec;
        return AUTH_READY;
    }
    if (!e->failed.code)
        return AUTH_WAITING;
    if (err)
        *err = e->failed;
    return AUTH_FAILED;
}

/* ---- Leases ---- */

void auth_lease_watch(struct auth_lease *l, auth_changed *fn, void *arg)
{
    vec_each(l, struct auth_entry **, e) {
        bool there = false;
        vec_each(&(*e)->watchers, struct watcher *, w)
            there = there || (w->fn == fn && w->arg == arg);
        if (!there)
            vec_push(&(*e)->watchers, (struct watcher){fn, arg});
    }
}

void auth_lease_unwatch(struct auth_lease *l, void *arg)
{
    vec_each(l, struct auth_entry **, e)
        for (size_t i = (*e)->watchers.len; i-- > 0;)
            if ((*e)->watchers.v[i].arg == arg)
                vec_remove(&(*e)->watchers, i);
}

void auth_lease_release(struct auth_store *s, struct auth_lease *l)
{
    (void)s;
    vec_each(l, struct auth_entry **, e)
        unref(*e);
    vec_release(l);
}

void auth_lease_replace(struct auth_store *s, struct auth_lease *l, struct auth_lease *fresh)
{
    struct auth_lease old = *l;
    *l = *fresh;
    *fresh = (struct auth_lease){0};
    auth_lease_release(s, &old);
}

struct auth_store *auth_store_new(struct client *c)
{
    struct auth_store *s = xcalloc(1, sizeof(*s));
    s->client = c;
    return s;
}

void auth_store_free(struct auth_store *s)
{
    if (!s)
        return;
    assert(!map_len(&s->entries));
    map_release(&s->entries, NULL);
    free(s);
}
