/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* List, then watch, for ever. */

#include "kube/client/informer.h"

#include "base/num.h"
#include "base/vec.h"
#include "kube/client/internal.h"
#include "kube/client/store.h"

#define PAGE_STANDARD 500
#define LIST_TIMEOUT (5 * NS_PER_MIN)
#define LIST_IDLE (60 * NS_PER_S)
#define WATCH_SECONDS_MIN 300
#define WATCH_SECONDS_MAX 600
#define ERROR_BODY_MAX (64 * 1024)
#define OPTIONAL_AGAIN (30 * NS_PER_S)

struct listener {
    informer_changed *changed;
    void (*synced)(void *arg);
    void *arg;
};

struct informer {
    struct client *client;
    const struct kind *kind;
    char *namespace_, *label_selector, *field_selector;
    int64_t page_size;
    bool optional, started, synced, absent;
    struct store store;
    struct {
        VEC(struct listener);
    } listeners;
    char *version;      /* to watch from; NULL: list first */
    uint64_t seen;      /* the newest version told by list or watch, as a number; 0: not numeric */
    int64_t last_heard; /* loop_now; INT64_MIN: never */
    struct backoff backoff;
    struct loop_timer timer;
    /* The list or watch under way. */
    struct stream *stream;
    struct list_decoder *list;
    struct watch_decoder *watch;
    struct store fresh; /* what the list has brought so far */
    char *continue_token;
    int status;
    struct buf error_body;
    bool failed; /* the stream could not be read: begin again */
    bool gone;   /* 410: list again */
};

/* Since Kubernetes 1.35 versions of one resource are decimal numbers that compare (KEP-5504); other
 * servers' are opaque, and then nothing is concluded from them. */
static uint64_t version_number(const char *v)
{
    uint64_t n;
    return v && num_parse_u64(str_from(v), &n, NULL) == 0 ? n : 0;
}

struct informer *informer_new(struct client *c, const struct kind *k,
                              const struct informer_options *o)
{
    struct informer *i = xcalloc(1, sizeof(*i));
    i->client = c;
    i->kind = k;
    i->last_heard = INT64_MIN;
    i->backoff = (struct backoff){.base = 500 * NS_PER_MS, .cap = 30 * NS_PER_S};
    i->page_size = o && o->page_size ? o->page_size : PAGE_STANDARD;
    if (o) {
        i->namespace_ = o->namespace_ ? xstrdup(o->namespace_) : NULL;
        i->label_selector = o->label_selector ? xstrdup(o->label_selector) : NULL;
        i->field_selector = o->field_selector ? xstrdup(o->field_selector) : NULL;
        i->optional = o->optional;
    }
    buf_init(&i->error_body, ERROR_BODY_MAX);
    return i;
}

static void end_stream(struct informer *i)
{
    client_stream_cancel(i->stream);
    i->stream = NULL;
    list_decoder_free(i->list);
    i->list = NULL;
    watch_decoder_free(i->watch);
    i->watch = NULL;
}

void informer_free(struct informer *i)
{
    if (!i)
        return;
    loop_timer_cancel(i->client->loop, &i->timer);
    end_stream(i);
    store_release(&i->store);
    store_release(&i->fresh);
    vec_release(&i->listeners);
    buf_release(&i->error_body);
    free(i->namespace_);
    free(i->label_selector);
    free(i->field_selector);
    free(i->version);
    free(i->continue_token);
    free(i);
}

void informer_on_change(struct informer *i, informer_changed *fn, void *arg)
{
    vec_push(&i->listeners, (struct listener){.changed = fn, .arg = arg});
}

void informer_on_sync(struct informer *i, void (*fn)(void *arg), void *arg)
{
    vec_push(&i->listeners, (struct listener){.synced = fn, .arg = arg});
}

static void tell(struct informer *i, struct object *before, struct object *after)
{
    for (size_t k = 0; k < i->listeners.len; k++)
        if (i->listeners.v[k].changed)
            i->listeners.v[k].changed(i->listeners.v[k].arg, before, after);
}

static void heard(struct informer *i)
{
    i->last_heard = loop_now(i->client->loop);
}

static void keep_version(struct informer *i, const char *version)
{
    if (!version || !*version)
        return;
    if (i->version && strcmp(i->version, version) == 0)
        return;
    free(i->version);
    i->version = xstrdup(version);
    i->seen = MAX(i->seen, version_number(version));
}

static void begin(void *arg);

static void again(struct informer *i, const char *reason, int64_t pause)
{
    end_stream(i);
    if (i->client->restarts && *reason) {
        const struct str labels[] = {str_from(i->kind->kind), str_from(reason)};
        metric_add(metric_of(i->client->restarts, labels, 2), 1);
    }
    if (pause < 0)
        pause = backoff_next(&i->backoff, &i->client->rng);
    loop_timer_in(i->client->loop, &i->timer, pause, begin, i);
}

static void list_again(struct informer *i)
{
    free(i->version);
    i->version = NULL;
    free(i->continue_token);
    i->continue_token = NULL;
    store_release(&i->fresh);
}

/* ---- List ---- */

static void take_item(void *arg, struct object *o)
{
    struct informer *i = arg;
    object_unref(store_put(&i->fresh, o));
}

/* What our own writes have put into the store after the list was made is newer than the list. */
static void keep_newer(struct informer *i)
{
    uint64_t listed = version_number(i->version);
    for (size_t k = 0; listed && k < i->store.len; k++) {
        struct object *o = i->store.v[k];
        if (version_number(o->meta.resource_version) > listed)
            object_unref(store_put(&i->fresh, object_ref(o)));
    }
}

/* Puts the new list in the place of the old, telling the differences in key order. */
static void take_list(struct informer *i)
{
    keep_newer(i);
    struct store before = i->store;
    i->store = i->fresh;
    i->fresh = (struct store){0};
    size_t a = 0, b = 0;
    while (a < before.len || b < i->store.len) {
        int c = a == before.len     ? 1
                : b == i->store.len ? -1
                                    : store_compare(before.v[a], i->store.v[b]);
        struct object *old = c <= 0 ? before.v[a] : NULL, *new = c >= 0 ? i->store.v[b] : NULL;
        a += c <= 0;
        b += c >= 0;
        bool same = old && new &&
                    old->meta.resource_version &&new->meta.resource_version &&strcmp(
                        old->meta.resource_version, new->meta.resource_version) == 0;
        if (!same)
            tell(i, old, new);
    }
    store_release(&before);
}

static void set_synced(struct informer *i)
{
    if (i->synced)
        return;
    i->synced = true;
    for (size_t k = 0; k < i->listeners.len; k++)
        if (i->listeners.v[k].synced)
            i->listeners.v[k].synced(i->listeners.v[k].arg);
}

static void list_head(void *arg, int status)
{
    struct informer *i = arg;
    i->status = status;
    buf_clear(&i->error_body);
    if (status == 200)
        heard(i);
}

static void list_chunk(void *arg, struct str data)
{
    struct informer *i = arg;
    struct err err = ERR_INIT;
    if (i->status != 200) {
        buf_str(&i->error_body, data);
        return;
    }
    heard(i);
    if (!i->failed && list_decoder_feed(i->list, data, &err) < 0)
        i->failed = true;
}

static void list_page_done(struct informer *i)
{
    struct list_meta meta;
    struct err err = ERR_INIT;
    if (i->failed || list_decoder_finish(i->list, &meta, &err) < 0) {
        list_again(i);
        again(i, "unreadable list", -1);
        return;
    }
    free(i->continue_token);
    i->continue_token = meta.continue_token ? xstrdup(meta.continue_token) : NULL;
    if (i->continue_token) {
        end_stream(i);
        begin(i);
        return;
    }
    keep_version(i, meta.resource_version);
    if (!i->version)
        i->version = xstrdup("0");
    i->absent = false;
    backoff_reset(&i->backoff);
    take_list(i);
    set_synced(i);
    again(i, "", 0);
}

static void list_done(void *arg, int status, int64_t retry_after, const struct err *err)
{
    struct informer *i = arg;
    i->stream = NULL;
    if (!err && status == 200) {
        list_page_done(i);
        return;
    }
    list_again(i);
    if (!err && status == 404 && i->optional) {
        /* The kind is not installed: that is known, not missing knowledge. */
        i->absent = true;
        heard(i);
        take_list(i);
        set_synced(i);
        again(i, "", OPTIONAL_AGAIN);
        return;
    }
    again(i, !err && status == 410 ? "expired list" : "list failed", retry_after);
}

/* ---- Watch ---- */

/* An event that our own write has overtaken brings nothing new. */
static bool is_old(const struct object *stored, const struct object *event)
{
    uint64_t have = version_number(stored->meta.resource_version),
             got = version_number(event->meta.resource_version);
    return have && got && got < have;
}

static void take_change(struct informer *i, const struct watch_event *ev)
{
    struct object *o = ev->object;
    struct object *stored = store_get(&i->store, o->meta.namespace_, o->meta.name);
    if (stored && is_old(stored, o))
        return;
    if (ev->type == WATCH_DELETED) {
        struct object *before = store_remove(&i->store, o->meta.namespace_, o->meta.name);
        if (before)
            tell(i, before, NULL);
        object_unref(before);
        return;
    }
    struct object *before = store_put(&i->store, object_ref(o));
    bool same = before && before->meta.resource_version && o->meta.resource_version &&
                strcmp(before->meta.resource_version, o->meta.resource_version) == 0;
    if (!same)
        tell(i, before, o);
    object_unref(before);
}

static void watch_event(void *arg, const struct watch_event *ev)
{
    struct informer *i = arg;
    if (ev->type == WATCH_ERROR) {
        i->failed = true;
        i->gone = ev->status_code == 410;
        return;
    }
    if (i->failed)
        return;
    keep_version(i, ev->object->meta.resource_version);
    backoff_reset(&i->backoff);
    if (ev->type != WATCH_BOOKMARK)
        take_change(i, ev);
}

/* An event that cannot be decoded may have been any change: only a list tells the state. */
static void watch_bad(void *arg, const char *name UNUSED, const struct err *err UNUSED)
{
    struct informer *i = arg;
    i->failed = i->gone = true;
}

static void watch_head(void *arg, int status)
{
    struct informer *i = arg;
    i->status = status;
    if (status == 200)
        heard(i);
}

static void watch_chunk(void *arg, struct str data)
{
    struct informer *i = arg;
    struct err err = ERR_INIT;
    if (i->status != 200 || i->failed)
        return;
    heard(i);
    if (watch_decoder_feed(i->watch, data, &err) < 0)
        i->failed = i->gone = true;
    if (i->failed) {
        if (i->gone)
            list_again(i);
        again(i, i->gone ? "expired" : "error", -1);
    }
}

static void watch_done(void *arg, int status, int64_t retry_after, const struct err *err)
{
    struct informer *i = arg;
    i->stream = NULL;
    if (status == 410) {
        list_again(i);
        again(i, "expired", -1);
    } else if (status == 404 && i->optional) {
        list_again(i);
        again(i, "gone", -1);
    } else if (!err && status == 200) {
        /* Watches end regularly; a stream that ends at once over and over backs off. */
        again(i, "ended", -1);
    } else {
        again(i, "failed", retry_after);
    }
}

/* ---- Beginning either ---- */

static void add_parameter(struct buf *path, const char *name, struct str value)
{
    buf_char(path, str_find_char(buf_view(path), '?', 0) == SIZE_MAX ? '?' : '&');
    buf_printf(path, "%s=", name);
    http_escape(path, value);
}

static void base_path(const struct informer *i, struct buf *path)
{
    client_path(path, i->kind, i->namespace_, NULL, NULL);
    if (i->label_selector)
        add_parameter(path, "labelSelector", str_from(i->label_selector));
    if (i->field_selector)
        add_parameter(path, "fieldSelector", str_from(i->field_selector));
}

static void add_number(struct buf *path, const char *name, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%lld", (long long)v);
    add_parameter(path, name, (struct str){text, (size_t)n});
}

static void begin_list(struct informer *i)
{
    static const struct stream_handler handler = {list_head, list_chunk, list_done};
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    base_path(i, &path);
    add_number(&path, "limit", i->page_size);
    if (i->continue_token)
        add_parameter(&path, "continue", str_from(i->continue_token));
    i->list = list_decoder_new(i->kind, NULL, take_item, NULL, i);
    i->stream = client_stream(i->client, path.data, "LIST", i->kind->kind, LIST_TIMEOUT, LIST_IDLE,
                              &handler, i);
}

static void begin_watch(struct informer *i)
{
    static const struct stream_handler handler = {watch_head, watch_chunk, watch_done};
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    base_path(i, &path);
    int64_t seconds = rng_between(&i->client->rng, WATCH_SECONDS_MIN, WATCH_SECONDS_MAX);
    add_parameter(&path, "watch", STR("true"));
    add_parameter(&path, "allowWatchBookmarks", STR("true"));
    add_parameter(&path, "resourceVersion", str_from(i->version));
    add_number(&path, "timeoutSeconds", seconds);
    i->watch = watch_decoder_new(i->kind, NULL, watch_event, watch_bad, i);
    /* Bookmarks come about once a minute; five without any mean that the connection is dead. The
     * server ends the stream itself after `seconds`. */
    i->stream = client_stream(i->client, path.data, "WATCH", i->kind->kind,
                              (seconds + 30) * NS_PER_S, 5 * NS_PER_MIN, &handler, i);
}

static void begin(void *arg)
{
    struct informer *i = arg;
    i->failed = i->gone = false;
    i->status = 0;
    if (i->version)
        begin_watch(i);
    else
        begin_list(i);
}

void informer_start(struct informer *i)
{
    if (i->started)
        return;
    i->started = true;
    begin(i);
}

/* ---- Reading ---- */

bool informer_synced(const struct informer *i)
{
    return i->synced;
}

bool informers_synced(struct informer *const *v, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (v[k] && !v[k]->synced)
            return false;
    return true;
}

int64_t informer_age(const struct informer *i)
{
    return i->last_heard == INT64_MIN ? TIME_NEVER : loop_now(i->client->loop) - i->last_heard;
}

size_t informer_count(const struct informer *i)
{
    return i->store.len;
}

size_t informer_bytes(const struct informer *i)
{
    return i->store.bytes + i->store.cap * sizeof(*i->store.v);
}

const struct kind *informer_kind(const struct informer *i)
{
    return i->kind;
}

struct object *informer_get(const struct informer *i, const char *namespace_, const char *name)
{
    return name ? store_get(&i->store, namespace_, name) : NULL;
}

struct object *informer_next(const struct informer *i, size_t *cursor)
{
    return *cursor < i->store.len ? i->store.v[(*cursor)++] : NULL;
}

/* ---- Our own writes ---- */

void informer_wrote(struct informer *i, struct object *written)
{
    struct object *stored = store_get(&i->store, written->meta.namespace_, written->meta.name);
    uint64_t version = version_number(written->meta.resource_version);
    if (!i->synced || version == 0)
        return; /* the watch will tell */
    if (stored && version_number(stored->meta.resource_version) >= version)
        return;
    if (!stored && version <= i->seen)
        return; /* the watch has passed it, so it has been deleted since */
    struct object *before = store_put(&i->store, object_ref(written));
    tell(i, before, written);
    object_unref(before);
}

void informer_gone(struct informer *i, const char *namespace_, const char *name, const char *uid)
{
    struct object *stored = store_get(&i->store, namespace_, name);
    if (!stored || (uid && stored->meta.uid && strcmp(stored->meta.uid, uid) != 0))
        return;
    struct object *before = store_remove(&i->store, namespace_, name);
    tell(i, before, NULL);
    object_unref(before);
}
