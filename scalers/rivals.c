/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Listing other autoscalers, a namespace at a time. */
#include "scalers/rivals.h"

#include "base/map.h"

#define LIST_AGAIN (60 * NS_PER_S)
#define LIST_RETRY (5 * NS_PER_S)
#define LIST_BYTES_MAX (64 * 1024 * 1024)

static const struct {
    const char *kind, *group, *plural;
} lists[] = {
    {"HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers"},
    {"ScaledObject", "keda.sh/v1alpha1", "scaledobjects"},
};

struct place { /* a namespace */
    struct rivals *rivals;
    char *namespace_;
    struct client_op *op;
    struct loop_timer again;
    unsigned at; /* the list under way */
    bool known;
    struct map now, next; /* "kind/name" of a target -> text of its autoscaler */
    char why[256];        /* the last list failed; empty: it did not */
};

struct rivals {
    struct client *client;
    void (*changed)(void *arg, const char *namespace_);
    void *arg;
    struct map places;
};

static void list(void *arg);
static void ask(struct place *p);

static bool same(const struct map *a, const struct map *b)
{
    if (map_len(a) != map_len(b))
        return false;
    map_each(a, e) {
        const char *other = map_get(b, map_key(e));
        if (!other || strcmp(other, e->value) != 0)
            return false;
    }
    return true;
}

static void take(struct place *p, const char *kind, const struct json *items)
{
    for (size_t i = 0; items && items->type == JSON_ARRAY && i < items->n; i++) {
        const struct json *target = json_at(items->items[i], "spec", "scaleTargetRef", NULL);
        struct str of = json_text(json_get(target, "kind")),
                   name = json_text(json_get(target, "name"));
        struct str own = json_text(json_at(items->items[i], "metadata", "name", NULL));
        if (!of.len)
            of = STR("Deployment"); /* a ScaledObject's default */
        struct buf key = BUF_INIT, text = BUF_INIT;
        buf_printf(&key, "%.*s/%.*s", STR_ARG(of), STR_ARG(name));
        buf_printf(&text, "%s %.*s", kind, STR_ARG(own));
        free(map_put(&p->next, buf_view(&key), buf_detach(&text)));
        buf_release(&key);
    }
}

static void finished(struct place *p)
{
    bool news = !p->known || !same(&p->now, &p->next);
    map_release(&p->now, free);
    p->now = p->next;
    p->next = (struct map)MAP_INIT;
    p->known = true;
    p->why[0] = 0;
    loop_timer_in(client_loop(p->rivals->client), &p->again, LIST_AGAIN, list, p);
    if (news)
        p->rivals->changed(p->rivals->arg, p->namespace_);
}

static void listed(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct place *p = arg;
    p->op = NULL;
    struct err bad = ERR_INIT;
    struct arena arena = ARENA_INIT;
    arena_init(&arena, LIST_BYTES_MAX, 0);
    const struct json *root = err ? NULL : json_parse(&arena, answer->body, &bad);
    if (root)
        take(p, lists[p->at].kind, json_get(root, "items"));
    bool failed = err ? err->code != ERR_NOT_FOUND : !root;
    arena_release(&arena);
    if (failed) { /* what was known stays known */
        snprintf(p->why, sizeof(p->why), "%s cannot be listed: %.180s", lists[p->at].kind,
                 err ? err->msg : bad.msg);
        map_clear(&p->next, free);
        loop_timer_in(client_loop(p->rivals->client), &p->again, LIST_RETRY, list, p);
        return;
    }
    if (++p->at < ARRAY_LEN(lists))
        ask(p);
    else
        finished(p);
}

static void ask(struct place *p)
{
    char path[400];
    snprintf(path, sizeof(path), "/apis/%s/namespaces/%.253s/%s", lists[p->at].group, p->namespace_,
             lists[p->at].plural);
    p->op = client_raw(p->rivals->client, "GET", path, NULL, STR_NONE, listed, p);
}

static void list(void *arg)
{
    struct place *p = arg;
    p->at = 0;
    ask(p);
}

enum rivals_answer rivals_find(struct rivals *r, const char *namespace_, const char *kind,
                               const char *name, char ret_text[320])
{
    ret_text[0] = 0;
    struct place *p = map_get(&r->places, str_from(namespace_));
    if (!p) {
        p = xcalloc(1, sizeof(*p));
        p->rivals = r;
        p->namespace_ = xstrdup(namespace_);
        map_put(&r->places, str_from(namespace_), p);
        list(p);
    }
    if (!p->known) {
        snprintf(ret_text, 320, "%s", p->why);
        return RIVALS_UNKNOWN;
    }
    char key[320];
    snprintf(key, sizeof(key), "%.40s/%.253s", kind, name);
    const char *rival = map_get(&p->now, str_from(key));
    if (rival)
        snprintf(ret_text, 320, "%.300s", rival);
    return rival ? RIVALS_FOUND : RIVALS_NONE;
}

static void place_free(void *arg)
{
    struct place *p = arg;
    client_cancel(p->op);
    loop_timer_cancel(client_loop(p->rivals->client), &p->again);
    map_release(&p->now, free);
    map_release(&p->next, free);
    free(p->namespace_);
    free(p);
}

void rivals_forget(struct rivals *r)
{
    map_release(&r->places, place_free);
    r->places = (struct map)MAP_INIT;
}

struct rivals *rivals_new(struct client *c, void (*changed)(void *arg, const char *namespace_),
                          void *arg)
{
    struct rivals *r = xcalloc(1, sizeof(*r));
    *r = (struct rivals){.client = c, .changed = changed, .arg = arg};
    return r;
}

void rivals_free(struct rivals *r)
{
    if (!r)
        return;
    rivals_forget(r);
    free(r);
}
