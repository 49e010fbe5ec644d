/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The table of kinds, and the decoders of whole objects, lists and watch streams. */

#include "kube/api/kind.h"

#include "base/num.h"
#include "kube/api/decode.h"
#include "kube/api/misc.h"
#include "kube/api/node.h"
#include "kube/api/nodeclaim.h"
#include "kube/api/nodeclass.h"
#include "kube/api/pdb.h"
#include "kube/api/pod.h"
#include "kube/api/workload.h"

static const struct kind *const all[] = {
    &kind_pod,           &kind_node,
    &kind_nodepool,      &kind_nodeclaim,
    &kind_sim_nodeclass, &kind_ec2_nodeclass,
    &kind_gce_nodeclass, &kind_deployment,
    &kind_replicaset,    &kind_statefulset,
    &kind_daemonset,     &kind_job,
    &kind_cronjob,       &kind_pdb,
    &kind_lease,         &kind_secret,
    &kind_configmap,     &kind_priority_class,
    &kind_namespace,     &kind_volume_attachment,
    &kind_pvc,           &kind_pv,
    &kind_storage_class, &kind_csi_node,
    &kind_event,
};

const struct kind *const *kind_all(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(all);
    return all;
}

struct str kind_api_version(char out[128], const struct kind *k)
{
    int n = snprintf(out, 128, "%s%s%s", k->group, *k->group ? "/" : "", k->version);
    return (struct str){out, (size_t)n};
}

const struct kind *kind_find(struct str api_version, struct str kind, bool exact)
{
    size_t slash = str_find_char(api_version, '/', 0);
    struct str group = slash == SIZE_MAX ? STR("") : str_sub(api_version, 0, slash);
    struct str version =
        slash == SIZE_MAX ? api_version : str_sub(api_version, slash + 1, api_version.len);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (str_eq_c(kind, all[i]->kind) && str_eq_c(group, all[i]->group) &&
            (!exact || str_eq_c(version, all[i]->version)))
            return all[i];
    return NULL;
}

const struct kind *kind_find_plural(struct str group, struct str plural)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (str_eq_c(plural, all[i]->plural) && str_eq_c(group, all[i]->group))
            return all[i];
    return NULL;
}

struct str object_key(char out[512], const struct object *o)
{
    const char *ns = o->meta.namespace_;
    int n = snprintf(out, 512, "%s%s%s", ns && *ns ? ns : "", ns && *ns ? "/" : "", o->meta.name);
    return (struct str){out, MIN((size_t)n, (size_t)511)};
}

/* ---- The cache ---- */

struct decode_cache {
    struct intern *texts;
};

struct decode_cache *decode_cache_new(void)
{
    struct decode_cache *c = xcalloc(1, sizeof(*c));
    c->texts = intern_new();
    return c;
}

void decode_cache_free(struct decode_cache *c)
{
    if (!c)
        return;
    intern_free(c->texts);
    free(c);
}

size_t decode_cache_bytes(const struct decode_cache *c)
{
    return intern_bytes(c->texts);
}

/* ---- Whole objects ---- */

struct object *object_decode(const struct kind *k, struct str text, struct decode_cache *c UNUSED,
                             struct err *err)
{
    struct decoder *d = decoder_new();
    struct json_parser *p = json_parser_new(decoder_begin(d, k), false);
    struct object *o = NULL;
    if (json_parser_feed(p, text, err) == 0 && json_parser_finish(p, err) == 0) {
        if (!decoder_is_complete(d))
            err_set(err, ERR_INVALID, "there is no object");
        else if (decoder_end(d, &o, err) < 0)
            o = NULL;
    }
    json_parser_free(p);
    decoder_free(d);
    return o;
}

struct object *object_from_json(const struct kind *k, const struct json *j,
                                struct decode_cache *c UNUSED, struct err *err)
{
    struct decoder *d = decoder_new();
    struct object *o = NULL;
    if (json_replay(j, decoder_begin(d, k), err) == 0 && decoder_end(d, &o, err) < 0)
        o = NULL;
    decoder_free(d);
    return o;
}

/* ---- Lists and watch streams ---- */

/* Both are an outer object, one of whose members holds what a decoder takes. The outer levels are
 * read here: a path of at most OUTER_DEPTH keys. A decoder that finds fault is abandoned, and the
 * rest of its object passes unread. */
struct outer {
    struct json_sink sink;
    struct decoder *decoder;
    struct json_sink *inner; /* NULL: not within an object */
    unsigned inner_depth;
    bool inner_failed;
    struct err inner_err;
    char inner_name[256]; /* metadata.name of the object that failed, if it had come */
    unsigned depth;
    char key[3][32]; /* the key under way of each outer depth */
};

static bool opens(const struct json_event *ev)
{
    return ev->type == JSON_EV_OBJECT || ev->type == JSON_EV_ARRAY;
}

static bool closes(const struct json_event *ev)
{
    return ev->type == JSON_EV_OBJECT_END || ev->type == JSON_EV_ARRAY_END;
}

static void begin_inner(struct outer *o, const struct kind *k)
{
    o->inner = decoder_begin(o->decoder, k);
    o->inner_depth = 0;
    o->inner_failed = false;
    o->inner_name[0] = '\0';
}

/* Passes an event on to the object under way. Returns 1 when it has ended, else 0, or JSON_SKIP. */
static int inner_event(struct outer *o, const struct json_event *ev, bool *ret_skip)
{
    *ret_skip = false;
    if (!o->inner_failed) {
        int answer = o->inner->event(o->inner, ev, &o->inner_err);
        o->inner_failed = answer < 0;
        *ret_skip = answer == JSON_SKIP && ev->type == JSON_EV_KEY;
    } else {
        *ret_skip = ev->type == JSON_EV_KEY;
    }
    o->inner_depth += opens(ev);
    o->inner_depth -= closes(ev);
    return o->inner_depth == 0;
}

static struct object *end_inner(struct outer *o)
{
    struct object *made = NULL;
    o->inner = NULL;
    if (!o->inner_failed && !decoder_is_complete(o->decoder)) {
        o->inner_failed = true;
        err_set(&o->inner_err, ERR_INVALID, "not an object");
    }
    if (!o->inner_failed && decoder_end(o->decoder, &made, &o->inner_err) < 0)
        o->inner_failed = true;
    if (o->inner_failed)
        decoder_abandon(o->decoder);
    return o->inner_failed ? NULL : made;
}

static void note_key(struct outer *o, struct str key)
{
    if (o->depth >= 1 && o->depth <= ARRAY_LEN(o->key))
        snprintf(o->key[o->depth - 1], sizeof(o->key[0]), "%.*s", STR_ARG(key));
}

static bool at_key(const struct outer *o, unsigned depth, const char *key)
{
    return strcmp(o->key[depth - 1], key) == 0;
}

struct list_decoder {
    struct outer outer;
    const struct kind *kind;
    struct json_parser *parser;
    void (*item)(void *arg, struct object *o);
    void (*bad)(void *arg, const char *name, const struct err *err);
    void *arg;
    char *resource_version, *continue_token;
    int64_t remaining;
};

static void keep_text(char **to, struct str text)
{
    free(*to);
    *to = text.len ? xstr_dup(text) : NULL;
}

static void end_item(struct list_decoder *d)
{
    struct object *made = end_inner(&d->outer);
    if (made)
        d->item(d->arg, made);
    else if (d->bad)
        d->bad(d->arg, d->outer.inner_name, &d->outer.inner_err);
}

static int list_event(struct json_sink *sink, const struct json_event *ev, struct err *err)
{
    struct outer *o = CONTAINER_OF(sink, struct outer, sink);
    struct list_decoder *d = CONTAINER_OF(o, struct list_decoder, outer);
    bool skip;
    if (o->inner) {
        if (inner_event(o, ev, &skip))
            end_item(d);
        return skip ? JSON_SKIP : 0;
    }
    if (o->depth == 2 && at_key(o, 1, "items") && !closes(ev)) {
        begin_inner(o, d->kind);
        if (inner_event(o, ev, &skip))
            end_item(d);
        return 0;
    }
    if (o->depth == 0 && ev->type != JSON_EV_OBJECT)
        return err_set(err, ERR_INVALID, "a list was expected");
    o->depth += opens(ev);
    o->depth -= closes(ev);
    if (ev->type == JSON_EV_KEY) {
        note_key(o, ev->text);
        bool wanted =
            o->depth == 1 ? at_key(o, 1, "items") || at_key(o, 1, "metadata") : o->depth == 2;
        return wanted ? 0 : JSON_SKIP;
    }
    if (o->depth == 2 && at_key(o, 1, "metadata")) {
        if (ev->type == JSON_EV_STRING && at_key(o, 2, "resourceVersion"))
            keep_text(&d->resource_version, ev->text);
        else if (ev->type == JSON_EV_STRING && at_key(o, 2, "continue"))
            keep_text(&d->continue_token, ev->text);
        else if (ev->type == JSON_EV_NUMBER && at_key(o, 2, "remainingItemCount"))
            num_parse_i64(ev->text, &d->remaining, NULL);
    }
    return 0;
}

struct list_decoder *
list_decoder_new(const struct kind *k, struct decode_cache *c UNUSED,
                 void (*item)(void *arg, struct object *o),
                 void (*bad)(void *arg, const char *name, const struct err *err), void *arg)
{
    struct list_decoder *d = xcalloc(1, sizeof(*d));
    *d = (struct list_decoder){.kind = k, .item = item, .bad = bad, .arg = arg, .remaining = -1};
    d->outer.sink.event = list_event;
    d->outer.decoder = decoder_new();
    d->parser = json_parser_new(&d->outer.sink, false);
    return d;
}

int list_decoder_feed(struct list_decoder *d, struct str chunk, struct err *err)
{
    return json_parser_feed(d->parser, chunk, err);
}

int list_decoder_finish(struct list_decoder *d, struct list_meta *ret, struct err *err)
{
    if (json_parser_finish(d->parser, err) < 0)
        return -1;
    *ret = (struct list_meta){d->resource_version, d->continue_token, d->remaining};
    return 0;
}

void list_decoder_free(struct list_decoder *d)
{
    if (!d)
        return;
    json_parser_free(d->parser);
    decoder_free(d->outer.decoder);
    free(d->resource_version);
    free(d->continue_token);
    free(d);
}

struct watch_decoder {
    struct outer outer;
    const struct kind *kind;
    struct json_parser *parser;
    void (*event)(void *arg, const struct watch_event *ev);
    void (*bad)(void *arg, const char *name, const struct err *err);
    void *arg;
    int type; /* enum watch_type, or -1 before it is known */
    struct object *object;
    int status_code;
    char status_message[256];
    bool has_object;
};

static void end_event(struct watch_decoder *d)
{
    struct watch_event ev = {.type = (enum watch_type)d->type, .object = d->object};
    if (d->type == WATCH_ERROR) {
        ev.object = NULL;
        ev.status_code = d->status_code;
        ev.status_message = d->status_message;
        d->event(d->arg, &ev);
    } else if (d->type >= 0 && d->object) {
        d->event(d->arg, &ev);
    } else if (d->bad) {
        struct err missing = ERR_INIT;
        err_set(&missing, ERR_INVALID, "a watch event without type or object");
        d->bad(d->arg, d->outer.inner_name,
               d->has_object && !d->object ? &d->outer.inner_err : &missing);
    }
    object_unref(d->object);
    d->object = NULL;
    d->type = -1;
    d->has_object = false;
    d->status_code = 0;
    d->status_message[0] = '\0';
}

static void take_type(struct watch_decoder *d, struct str text)
{
    static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(text, names[i]))
            d->type = (int)i;
}

/* The API server writes `type` before `object`; should they come the other way round, the object is
 * read as one of the kind, which serves all but errors. */
static int watch_event_in(struct json_sink *sink, const struct json_event *ev, struct err *err)
{
    struct outer *o = CONTAINER_OF(sink, struct outer, sink);
    struct watch_decoder *d = CONTAINER_OF(o, struct watch_decoder, outer);
    bool skip;
    if (o->inner) {
        if (inner_event(o, ev, &skip))
            d->object = end_inner(o);
        return skip ? JSON_SKIP : 0;
    }
    bool object_next =
        o->depth == 1 && ev->type != JSON_EV_KEY && !closes(ev) && at_key(o, 1, "object");
    if (object_next && d->type != WATCH_ERROR) {
        d->has_object = true;
        object_unref(d->object);
        d->object = NULL;
        begin_inner(o, d->kind);
        if (d->type == WATCH_BOOKMARK)
            decoder_allow_nameless(o->decoder);
        if (inner_event(o, ev, &skip))
            d->object = end_inner(o);
        return 0;
    }
    if (o->depth == 0 && ev->type != JSON_EV_OBJECT)
        return err_set(err, ERR_INVALID, "a watch event was expected");
    o->depth += opens(ev);
    o->depth -= closes(ev);
    if (o->depth == 0 && closes(ev)) {
        end_event(d);
        return 0;
    }
    if (ev->type == JSON_EV_KEY) {
        note_key(o, ev->text);
        return o->depth > 2 ? JSON_SKIP : 0;
    }
    if (o->depth == 1 && ev->type == JSON_EV_STRING && at_key(o, 1, "type"))
        take_type(d, ev->text);
    else if (o->depth == 2 && ev->type == JSON_EV_STRING && at_key(o, 2, "message"))
        snprintf(d->status_message, sizeof(d->status_message), "%.*s",
                 STR_ARG(str_sub(ev->text, 0, 250)));
    else if (o->depth == 2 && ev->type == JSON_EV_NUMBER && at_key(o, 2, "code")) {
        int64_t code;
        if (num_parse_range(ev->text, 0, 999, &code, NULL) == 0)
            d->status_code = (int)code;
    }
    return 0;
}

struct watch_decoder *
watch_decoder_new(const struct kind *k, struct decode_cache *c UNUSED,
                  void (*event)(void *arg, const struct watch_event *ev),
                  void (*bad)(void *arg, const char *name, const struct err *err), void *arg)
{
    struct watch_decoder *d = xcalloc(1, sizeof(*d));
    *d = (struct watch_decoder){.kind = k, .event = event, .bad = bad, .arg = arg, .type = -1};
    d->outer.sink.event = watch_event_in;
    d->outer.decoder = decoder_new();
    d->parser = json_parser_new(&d->outer.sink, true);
    return d;
}

int watch_decoder_feed(struct watch_decoder *d, struct str chunk, struct err *err)
{
    return json_parser_feed(d->parser, chunk, err);
}

void watch_decoder_free(struct watch_decoder *d)
{
    if (!d)
        return;
    json_parser_free(d->parser);
    decoder_free(d->outer.decoder);
    object_unref(d->object);
    free(d);
}
