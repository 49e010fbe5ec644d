/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The double's store, its calls, and the few functions of informer, queue and recorder. */
#include "test/unit/scalers/cluster_double.h"

#include <assert.h>
#include <stdarg.h>

#include "base/crypto.h"
#include "base/map.h"
#include "base/vec.h"
#include "kube/api/misc.h"
#include "kube/api/workload.h"
#include "kube/client/informer.h"
#include "kube/client/queue.h"
#include "kube/client/recorder.h"

#define DELAY (10 * NS_PER_MS)
#define DEPLOYMENTS_MAX 8
#define INFORMERS_MAX 16

struct double_counts double_counts;
char double_status[8192];
char double_events[16384];
enum err_code double_scale_errors[8];
int64_t double_scale_surprise = -1;
const char *double_hpas;
bool double_lists_fail;

struct informer {
    struct client *client;
    const struct kind *kind;
    char name[64]; /* field selector; empty: all */
    bool started, synced;
    struct map objects;
    struct {
        informer_changed *fn;
        void *arg;
    } change[4];
    struct {
        void (*fn)(void *arg);
        void *arg;
    } sync[4];
    unsigned n_change, n_sync;
};

struct client {
    struct loop *loop;
    bool synced;
    struct decode_cache *cache;
    struct double_deployment deployments[DEPLOYMENTS_MAX];
    unsigned n;
    struct map secrets; /* name -> JSON */
    struct informer *informers[INFORMERS_MAX];
};

static struct client *the_client;

/* ---- Store ---- */

struct double_deployment *double_get(const char *name)
{
    for (unsigned i = 0; i < the_client->n; i++)
        if (!strcmp(the_client->deployments[i].name, name))
            return &the_client->deployments[i];
    return NULL;
}

static void put_object(struct informer *i, const char *name, struct object *o)
{
    struct object *before =
        o ? map_put(&i->objects, str_from(name), o) : map_remove(&i->objects, str_from(name));
    if (i->synced && (before || o))
        for (unsigned k = 0; k < i->n_change; k++)
            i->change[k].fn(i->change[k].arg, before, o);
    object_unref(before);
}

static struct object *decode(const struct kind *k, struct str text)
{
    struct err err = ERR_INIT;
    struct object *o = object_decode(k, text, the_client->cache, &err);
    if (!o) {
        fprintf(stderr, "%s\n%.*s\n", err.msg, STR_ARG(text));
        abort();
    }
    return o;
}

static struct object *deployment_object(const struct double_deployment *d)
{
    struct buf b = BUF_INIT;
    buf_printf(&b,
               "{\"apiVersion\":\"apps/"
               "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
               "\"default\",\"uid\":\"u-%s\","
               "\"resourceVersion\":\"%lld\",\"generation\":%lld,\"creationTimestamp\":\"2026-01-"
               "01T00:00:00Z\",\"annotations\":%s},"
               "\"spec\":{\"replicas\":%lld,\"selector\":{\"matchLabels\":{\"app\":\"x\"}},"
               "\"template\":{\"metadata\":{\"labels\":{\"app\":\"x\"}},"
               "\"spec\":{\"containers\":[{\"name\":\"main\",\"env\":%s}]}}},\"status\":{"
               "\"replicas\":%lld,\"readyReplicas\":%lld}}",
               d->name, d->name, (long long)d->version, (long long)d->generation, d->annotations,
               (long long)d->replicas, d->env ? d->env : "[]", (long long)d->status_replicas,
               (long long)d->status_replicas);
    struct object *o = decode(&kind_deployment, buf_view(&b));
    buf_release(&b);
    return o;
}

static void publish(struct client *c, const char *name)
{
    const struct double_deployment *d = double_get(name);
    for (unsigned i = 0; i < INFORMERS_MAX; i++)
        if (c->informers[i] && c->informers[i]->kind == &kind_deployment)
            put_object(c->informers[i], name, d ? deployment_object(d) : NULL);
}

struct late {
    struct loop_timer timer;
    struct client *client;
    char name[64];
};

static void publish_late(void *arg)
{
    struct late *l = arg;
    if (l->client == the_client)
        publish(l->client, l->name);
    free(l);
}

static void changed(struct client *c, struct double_deployment *d)
{
    static int64_t version = 100;
    d->version = ++version;
    struct late *l = xcalloc(1, sizeof(*l));
    l->client = c;
    snprintf(l->name, sizeof(l->name), "%s", d->name);
    loop_timer_in(c->loop, &l->timer, DELAY, publish_late, l);
}

void double_put(struct client *c, const struct double_deployment *d)
{
    struct double_deployment *old = double_get(d->name);
    if (!old) {
        assert(c->n < DEPLOYMENTS_MAX);
        old = &c->deployments[c->n++];
        *old = *d;
        old->generation = 1;
    } else {
        int64_t generation = old->generation + (old->replicas != d->replicas || old->env != d->env);
        if (old != d)
            *old = *d;
        old->generation = generation;
    }
    old->version += 1000;
    publish(c, d->name);
}

void double_remove(struct client *c, const char *name)
{
    struct double_deployment *d = double_get(name);
    *d = c->deployments[--c->n];
    publish(c, name);
}

void double_settle(struct client *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        struct double_deployment *d = &c->deployments[i];
        if (d->status_replicas != d->replicas) {
            d->status_replicas = d->replicas;
            changed(c, d);
        }
    }
}

static void publish_secret(struct informer *i, const char *name)
{
    const char *text = map_get(&i->client->secrets, str_from(name));
    if (i->kind == &kind_secret && !strcmp(i->name, name))
        put_object(i, name, text ? decode(&kind_secret, str_from(text)) : NULL);
}

void double_secret(struct client *c, const char *name, const char *key, const char *value)
{
    struct buf b = BUF_INIT, data = BUF_INIT;
    if (value) {
        crypto_base64(&data, str_from(value));
        buf_printf(&b,
                   "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"resourceVersion\":"
                   "\"1\"},\"data\":{\"%s\":\"%s\"}}",
                   name, key, data.data);
        free(map_put(&c->secrets, str_from(name), buf_detach(&b)));
    } else
        free(map_remove(&c->secrets, str_from(name)));
    buf_release(&data);
    for (unsigned i = 0; i < INFORMERS_MAX; i++)
        if (c->informers[i] && c->informers[i]->synced)
            publish_secret(c->informers[i], name);
}

/* ---- Informers ---- */

struct informer *informer_new(struct client *c, const struct kind *k,
                              const struct informer_options *o)
{
    struct informer *i = xcalloc(1, sizeof(*i));
    i->client = c;
    i->kind = k;
    if (o->field_selector)
        snprintf(i->name, sizeof(i->name), "%s", o->field_selector + strlen("metadata.name="));
    if (k == &kind_secret)
        double_counts.secret_watches++;
    for (unsigned n = 0; n < INFORMERS_MAX; n++)
        if (!c->informers[n]) {
            c->informers[n] = i;
            return i;
        }
    abort();
}

static void drop_object(void *o)
{
    object_unref(o);
}

void informer_free(struct informer *i)
{
    if (!i)
        return;
    for (unsigned n = 0; n < INFORMERS_MAX; n++)
        if (i->client->informers[n] == i)
            i->client->informers[n] = NULL;
    map_release(&i->objects, drop_object);
    free(i);
}

void informer_on_change(struct informer *i, informer_changed *fn, void *arg)
{
    i->change[i->n_change].fn = fn;
    i->change[i->n_change++].arg = arg;
}

void informer_on_sync(struct informer *i, void (*fn)(void *arg), void *arg)
{
    i->sync[i->n_sync].fn = fn;
    i->sync[i->n_sync++].arg = arg;
}

static void sync_informer(struct informer *i)
{
    if (i->synced || !i->started)
        return;
    i->synced = true;
    if (i->kind == &kind_deployment)
        for (unsigned n = 0; n < i->client->n; n++)
            put_object(i, i->client->deployments[n].name,
                       deployment_object(&i->client->deployments[n]));
    if (i->kind == &kind_secret)
        publish_secret(i, i->name);
    for (unsigned n = 0; n < i->n_sync; n++)
        i->sync[n].fn(i->sync[n].arg);
}

static void sync_later(void *arg)
{
    struct late *l = arg;
    for (unsigned n = 0; l->client == the_client && n < INFORMERS_MAX; n++)
        if (l->client->informers[n] && l->client->informers[n]->name[0])
            sync_informer(l->client->informers[n]);
    free(l);
}

void informer_start(struct informer *i)
{
    i->started = true;
    if (!i->name[0])
        return;
    struct late *l = xcalloc(1, sizeof(*l));
    l->client = i->client;
    loop_timer_in(i->client->loop, &l->timer, DELAY, sync_later, l);
}

void double_sync(struct client *c)
{
    c->synced = true;
    for (unsigned n = 0; n < INFORMERS_MAX; n++)
        if (c->informers[n] && !c->informers[n]->name[0])
            sync_informer(c->informers[n]);
}

bool informer_synced(const struct informer *i)
{
    return i->synced;
}

struct object *informer_get(const struct informer *i, const char *namespace_, const char *name)
{
    assert(!strcmp(namespace_, "default"));
    return map_get(&i->objects, str_from(name));
}

struct object *informer_next(const struct informer *i, size_t *cursor)
{
    struct map_entry *e = map_at(&i->objects, *cursor);
    if (!e)
        return NULL;
    *cursor = (size_t)(e - i->objects.entries) + 1;
    return e->value;
}

void informer_wrote(struct informer *i, struct object *written)
{
    (void)i;
    (void)written;
}

/* ---- Calls ---- */

struct client_op {
    struct loop_timer timer;
    struct client *client;
    enum { OP_SCALE, OP_PATCH, OP_RAW } what;
    char name[64], path[256], version[32];
    int64_t replicas;
    char *body;
    client_done *done;
    void *arg;
};

static void op_free(struct client_op *op)
{
    free(op->body);
    free(op);
}

static void answer(struct client_op *op, enum err_code code, const char *body)
{
    struct client_answer a = {.body = str_from(body), .retry_after = -1};
    struct err err = ERR_INIT;
    client_done *done = op->done;
    void *arg = op->arg;
    op_free(op);
    if (code)
        err_set(&err, code, "the double says %s", err_code_name(code));
    done(arg, &a, code ? &err : NULL);
}

static void run_scale(struct client_op *op)
{
    struct double_deployment *d = double_get(op->name);
    char body[256];
    if (op->replicas >= 0) {
        double_counts.scale_writes++;
        enum err_code code = double_scale_errors[0];
        memmove(double_scale_errors, double_scale_errors + 1,
                sizeof(double_scale_errors) - sizeof(double_scale_errors[0]));
        double_scale_errors[ARRAY_LEN(double_scale_errors) - 1] = ERR_NONE;
        if (double_scale_surprise >= 0) {
            d->replicas = double_scale_surprise;
            d->generation++;
            double_scale_surprise = -1;
            changed(op->client, d);
        }
        char version[32];
        snprintf(version, sizeof(version), "%lld", (long long)d->version);
        if (!code && op->version[0] && strcmp(version, op->version) != 0)
            code = ERR_CONFLICT;
        if (code) {
            answer(op, code, NULL);
            return;
        }
        if (d->replicas != op->replicas) {
            d->replicas = op->replicas;
            d->generation++;
            changed(op->client, d);
        }
    } else
        double_counts.scale_reads++;
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"resourceVersion\":\"%lld\"},\"spec\":{\"replicas\":%lld},\"status\":"
             "{\"replicas\":%lld}}",
             (long long)d->version, (long long)d->replicas, (long long)d->status_replicas);
    answer(op, ERR_NONE, body);
}

static void run_patch(struct client_op *op)
{
    struct arena a = ARENA_INIT;
    const struct json *root = json_parse(&a, str_from(op->body), NULL);
    struct str text = json_text(json_at(root, "metadata", "annotations", "weft.sh/status", NULL));
    assert(text.p);
    snprintf(double_status, sizeof(double_status), "%.*s", STR_ARG(text));
    double_counts.status_writes++;
    struct double_deployment *d = double_get(op->name);
    arena_release(&a);
    if (d)
        changed(op->client, d);
    answer(op, d ? ERR_NONE : ERR_NOT_FOUND, NULL);
}

static void run(void *arg)
{
    struct client_op *op = arg;
    if (op->what == OP_SCALE)
        run_scale(op);
    else if (op->what == OP_PATCH)
        run_patch(op);
    else if (double_lists_fail)
        answer(op, ERR_RETRY, NULL);
    else if (strstr(op->path, "horizontalpodautoscalers") && double_hpas)
        answer(op, ERR_NONE, double_hpas);
    else
        answer(op, ERR_NOT_FOUND, NULL);
}

static struct client_op *start(struct client *c, client_done *done, void *arg)
{
    struct client_op *op = xcalloc(1, sizeof(*op));
    op->client = c;
    op->done = done;
    op->arg = arg;
    loop_timer_in(c->loop, &op->timer, DELAY, run, op);
    return op;
}

struct client_op *client_scale(struct client *c, const char *api_version, const char *plural,
                               const char *namespace_, const char *name, int64_t replicas,
                               const char *resource_version, client_done *done, void *arg)
{
    assert(!strcmp(api_version, "apps/v1") && !strcmp(plural, "deployments") &&
           !strcmp(namespace_, "default"));
    struct client_op *op = start(c, done, arg);
    op->what = OP_SCALE;
    op->replicas = replicas;
    snprintf(op->name, sizeof(op->name), "%s", name);
    snprintf(op->version, sizeof(op->version), "%s", resource_version ? resource_version : "");
    return op;
}

struct client_op *client_patch(struct client *c, const struct kind *k, const char *namespace_,
                               const char *name, const char *subresource, enum patch_type type,
                               struct str body, client_done *done, void *arg)
{
    assert(k == &kind_deployment && !strcmp(namespace_, "default") && !subresource &&
           type == PATCH_MERGE);
    struct client_op *op = start(c, done, arg);
    op->what = OP_PATCH;
    op->body = xstr_dup(body);
    snprintf(op->name, sizeof(op->name), "%s", name);
    return op;
}

struct client_op *client_raw(struct client *c, const char *method, const char *path,
                             const char *content_type, struct str body, client_done *done,
                             void *arg)
{
    assert(!strcmp(method, "GET") && !content_type && !body.len);
    struct client_op *op = start(c, done, arg);
    op->what = OP_RAW;
    snprintf(op->path, sizeof(op->path), "%s", path);
    return op;
}

void client_cancel(struct client_op *op)
{
    if (!op)
        return;
    loop_timer_cancel(op->client->loop, &op->timer);
    op_free(op);
}

struct loop *client_loop(const struct client *c)
{
    return c->loop;
}

/* ---- Queue: one key at a time, from the loop ---- */

struct queue {
    struct loop *loop;
    struct loop_timer timer;
    struct map keys;
    void (*process)(void *arg, struct str key);
    void *arg;
};

static void drain(void *arg)
{
    struct queue *q = arg;
    struct map_entry *e = map_at(&q->keys, 0);
    if (!e)
        return;
    char key[600];
    snprintf(key, sizeof(key), "%s", e->key);
    map_remove(&q->keys, str_from(key));
    loop_timer_in(q->loop, &q->timer, 0, drain, q);
    q->process(q->arg, str_from(key));
}

struct queue *queue_new(struct loop *l, uint64_t seed, unsigned parallel,
                        void (*process)(void *arg, struct str key), void *arg)
{
    (void)seed;
    (void)parallel;
    struct queue *q = xcalloc(1, sizeof(*q));
    *q = (struct queue){.loop = l, .process = process, .arg = arg};
    return q;
}

void queue_free(struct queue *q)
{
    loop_timer_cancel(q->loop, &q->timer);
    map_release(&q->keys, NULL);
    free(q);
}

void queue_add(struct queue *q, struct str key)
{
    map_put(&q->keys, key, q);
    loop_timer_in(q->loop, &q->timer, 0, drain, q);
}

void queue_done(struct queue *q, struct str key, bool ok)
{
    (void)q;
    (void)key;
    (void)ok;
}

/* ---- Recorder ---- */

void recorder_event(struct recorder *r, const struct object *about, bool warning,
                    const char *reason, int64_t window, const char *fmt, ...)
{
    (void)r;
    (void)about;
    (void)warning;
    (void)window;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    double_counts.events++;
    size_t len = strlen(double_events);
    snprintf(double_events + len, sizeof(double_events) - len, "%s: %s\n", reason, text);
}

/* ---- Life ---- */

struct client *double_start(struct loop *l)
{
    struct client *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->cache = decode_cache_new();
    the_client = c;
    double_counts = (struct double_counts){0};
    double_status[0] = double_events[0] = 0;
    memset(double_scale_errors, 0, sizeof(double_scale_errors));
    double_scale_surprise = -1;
    double_hpas = NULL;
    double_lists_fail = false;
    return c;
}

void double_stop(struct client *c)
{
    map_release(&c->secrets, free);
    decode_cache_free(c->cache);
    the_client = NULL;
    free(c);
}
