/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Which API versions and resources exist. */

#include "base/vec.h"
#include "kube/client/internal.h"

#define FRESH_FOR (10 * NS_PER_MIN)

struct discovery_waiter {
    char *kind;
    discovery_done *done;
    void *arg;
};

/* The resources of one apiVersion. */
struct discovery_list {
    struct client *client;
    char *api_version;
    struct client_op *op;
    struct arena arena;
    const struct json *root; /* NULL: there is no such version, or it was not asked yet */
    bool known;
    int64_t asked;
    struct loop_timer timer;
    struct {
        VEC(struct discovery_waiter);
    } waiters;
};

static bool is_scale(struct str name, struct str plural)
{
    return name.len == plural.len + 6 && str_has_prefix(name, plural) &&
           str_has_suffix(name, STR("/scale"));
}

static void look_up(const struct discovery_list *d, const char *kind, struct discovery_answer *ret)
{
    *ret = (struct discovery_answer){0};
    const struct json *resources = json_get(d->root, "resources");
    struct str plural = STR_NONE;
    for (size_t i = 0; resources && resources->type == JSON_ARRAY && i < resources->n; i++) {
        const struct json *r = resources->items[i];
        struct str name = json_text(json_get(r, "name"));
        if (str_eq_c(json_text(json_get(r, "kind")), kind) &&
            str_find_char(name, '/', 0) == SIZE_MAX && name.len < sizeof(ret->plural)) {
            plural = name;
            ret->found = true;
            ret->namespaced = json_bool(json_get(r, "namespaced"), false);
            snprintf(ret->plural, sizeof(ret->plural), "%.*s", STR_ARG(name));
        }
    }
    for (size_t i = 0; ret->found && i < resources->n; i++)
        ret->has_scale |= is_scale(json_text(json_get(resources->items[i], "name")), plural);
}

static void answer_all(struct discovery_list *d, const struct err *err)
{
    while (d->waiters.len) {
        struct discovery_waiter w = d->waiters.v[0];
        vec_remove(&d->waiters, 0);
        struct discovery_answer answer;
        look_up(d, w.kind, &answer);
        free(w.kind);
        w.done(w.arg, err ? NULL : &answer, err);
    }
}

static void on_answer(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct discovery_list *d = arg;
    d->op = NULL;
    bool absent = err && err->code == ERR_NOT_FOUND;
    if (err && !absent) {
        answer_all(d, err);
        return;
    }
    struct err why = ERR_INIT;
    arena_clear(&d->arena);
    d->root = absent ? NULL : json_parse(&d->arena, answer->body, &why);
    d->known = absent || d->root;
    d->asked = loop_now(d->client->loop);
    answer_all(d, d->known ? NULL : &why);
}

static void answer_later(void *arg)
{
    answer_all(arg, NULL);
}

void client_discover(struct client *c, const char *api_version, const char *kind,
                     discovery_done *done, void *arg)
{
    void **slot = map_slot(&c->discovery, str_from(api_version));
    struct discovery_list *d = *slot;
    if (!d) {
        d = xcalloc(1, sizeof(*d));
        d->client = c;
        d->api_version = xstrdup(api_version);
        arena_init(&d->arena, 16u << 20, 0);
        *slot = d;
    }
    vec_push(&d->waiters, (struct discovery_waiter){xstrdup(kind), done, arg});
    if (d->op)
        return;
    if (d->known && loop_now(c->loop) - d->asked < FRESH_FOR) {
        loop_timer_in(c->loop, &d->timer, 0, answer_later, d);
        return;
    }
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s", strchr(api_version, '/') ? "/apis" : "/api", api_version);
    d->op = client_raw(c, "GET", path.data, NULL, STR_NONE, on_answer, d);
}

static void free_list(void *p)
{
    struct discovery_list *d = p;
    loop_timer_cancel(d->client->loop, &d->timer);
    for (size_t i = 0; i < d->waiters.len; i++)
        free(d->waiters.v[i].kind);
    vec_release(&d->waiters);
    arena_release(&d->arena);
    free(d->api_version);
    free(d);
}

void client_free(struct client *c)
{
    if (!c)
        return;
    map_release(&c->discovery, free_list);
    while (c->ops)
        client_cancel(c->ops);
    while (c->streams)
        client_stream_cancel(c->streams);
    auth_free(c->auth);
    free(c->user_agent);
    free(c);
}
