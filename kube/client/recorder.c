/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Events, each written once a window. */

#include "kube/client/recorder.h"

#include <stdarg.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/limit.h"
#include "base/map.h"
#include "kube/api/misc.h"

#define MESSAGE_MAX 1024
#define WINDOW_STANDARD (2 * NS_PER_MIN)
#define ENTRIES_MAX 4096
#define OBJECT_PER_SECOND (1.0 / 10) /* of one object, after a burst */
#define OBJECT_BURST 25

struct entry {
    char *namespace_, *name; /* of the Event; name NULL: not written yet */
    int64_t count;
    int64_t first, last, written_at; /* wall; loop_now */
};

struct recorder {
    struct client *client;
    char *component, *instance, *cluster_namespace;
    int64_t window;
    struct map entries; /* object uid, reason, message -> entry */
    struct map limits;  /* object uid -> struct limit */
};

static const char *or_else(const char *s, const char *otherwise)
{
    return s && *s ? s : otherwise;
}

struct recorder *recorder_new(struct client *c, const struct recorder_options *o)
{
    struct recorder *r = xcalloc(1, sizeof(*r));
    r->client = c;
    r->component = xstrdup(or_else(o ? o->component : NULL, "weft"));
    r->instance = xstrdup(or_else(o ? o->instance : NULL, "weft"));
    r->cluster_namespace = xstrdup(or_else(o ? o->cluster_namespace : NULL, "default"));
    r->window = o && o->window ? o->window : WINDOW_STANDARD;
    return r;
}

static void free_entry(void *p)
{
    struct entry *e = p;
    free(e->namespace_);
    free(e->name);
    free(e);
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    map_release(&r->entries, free_entry);
    map_release(&r->limits, free);
    free(r->component);
    free(r->instance);
    free(r->cluster_namespace);
    free(r);
}

/* Entries past every window tell nothing any more; when the map is full they go, and if that does
 * not help, all do: an event more is better than memory without end. */
static void make_room(struct recorder *r, int64_t now)
{
    if (map_len(&r->entries) < ENTRIES_MAX)
        return;
    map_each(&r->entries, e) {
        struct entry *entry = e->value;
        if (now - entry->written_at > 15 * NS_PER_MIN)
            free_entry(map_remove(&r->entries, map_key(e)));
    }
    if (map_len(&r->entries) >= ENTRIES_MAX)
        map_clear(&r->entries, free_entry);
    map_clear(&r->limits, free);
}

static bool may_write(struct recorder *r, const char *uid, int64_t now)
{
    void **slot = map_slot(&r->limits, str_from(uid));
    if (!*slot) {
        struct limit *l = xcalloc(1, sizeof(*l));
        limit_init(l, OBJECT_PER_SECOND, OBJECT_BURST);
        *slot = l;
    }
    return limit_take(*slot, now) == 0;
}

static void write_reference(struct json_writer *w, const struct object *about)
{
    char version[128];
    json_w_kobject(w, "involvedObject");
    json_w_kcstr(w, "kind", about->kind->kind);
    json_w_kstr(w, "apiVersion", kind_api_version(version, about->kind));
    json_w_kcstr(w, "name", about->meta.name);
    if (about->meta.namespace_)
        json_w_kcstr(w, "namespace", about->meta.namespace_);
    if (about->meta.uid)
        json_w_kcstr(w, "uid", about->meta.uid);
    if (about->meta.resource_version)
        json_w_kcstr(w, "resourceVersion", about->meta.resource_version);
    json_w_object_end(w);
}

static void create(struct recorder *r, struct entry *e, const struct object *about, bool warning,
                   const char *reason, const char *message)
{
    char first[40], last[40];
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kcstr(&w, "kind", "Event");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", e->name);
    json_w_kcstr(&w, "namespace", e->namespace_);
    json_w_object_end(&w);
    write_reference(&w, about);
    json_w_kcstr(&w, "reason", reason);
    json_w_kcstr(&w, "message", message);
    json_w_kcstr(&w, "type", warning ? "Warning" : "Normal");
    json_w_kobject(&w, "source");
    json_w_kcstr(&w, "component", r->component);
    json_w_object_end(&w);
    json_w_kcstr(&w, "reportingComponent", r->component);
    json_w_kcstr(&w, "reportingInstance", r->instance);
    json_w_kstr(&w, "firstTimestamp", time_format(first, e->first));
    json_w_kstr(&w, "lastTimestamp", time_format(last, e->last));
    json_w_ki64(&w, "count", e->count);
    json_w_object_end(&w);
    client_create(r->client, &kind_event, e->namespace_, buf_view(&body), NULL, NULL);
}

static void count_up(struct recorder *r, struct entry *e)
{
    char last[40];
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_ki64(&w, "count", e->count);
    json_w_kstr(&w, "lastTimestamp", time_format(last, e->last));
    json_w_object_end(&w);
    client_patch(r->client, &kind_event, e->namespace_, e->name, NULL, PATCH_MERGE, buf_view(&body),
                 NULL, NULL);
}

/* Names are made of the object and the key of the entry, and of the time, so that an Event that
 * expired on the server is not met again. */
static char *event_name(const struct object *about, struct str key, int64_t wall)
{
    char digest[17];
    CLEANUP(buf_release) struct buf seed = BUF_INIT, name = BUF_INIT;
    buf_str(&seed, key);
    buf_printf(&seed, "\n%lld", (long long)wall);
    crypto_sha256_hex(buf_view(&seed), 16, digest);
    buf_printf(&name, "%.200s.%s", about->meta.name, digest);
    return buf_detach(&name);
}

void recorder_event(struct recorder *r, const struct object *about, bool warning,
                    const char *reason, int64_t window, const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    struct loop *l = client_loop(r->client);
    int64_t now = loop_now(l), wall = loop_wall(l);
    const char *uid = or_else(about->meta.uid, about->meta.name);
    make_room(r, now);
    CLEANUP(buf_release) struct buf key = BUF_INIT;
    buf_printf(&key, "%s\n%s\n%s", uid, reason, message);
    void **slot = map_slot(&r->entries, buf_view(&key));
    struct entry *e = *slot;
    if (!e) {
        e = *slot = xcalloc(1, sizeof(*e));
        e->namespace_ =
            xstrdup(about->meta.namespace_ ? about->meta.namespace_ : r->cluster_namespace);
        e->first = wall;
    }
    e->count++;
    e->last = wall;
    if (e->name && now - e->written_at < (window ? window : r->window))
        return;
    if (!may_write(r, uid, now))
        return;
    bool known = e->name != NULL;
    if (!known)
        e->name = event_name(about, buf_view(&key), wall);
    e->written_at = now;
    if (known)
        count_up(r, e);
    else
        create(r, e, about, warning, reason, message);
}
