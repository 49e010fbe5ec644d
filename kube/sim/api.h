/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Between the seam and the verbs: a request taken apart, and the answer to it. */
#ifndef KUBE_SIM_API_H
#define KUBE_SIM_API_H

#include "base/buf.h"
#include "kube/sim/internal.h"

#define QUERY_MAX 16

struct request {
    struct str method, path, body, content_type;
    struct query {
        struct str key, value;
    } query[QUERY_MAX];
    size_t n_query;
    struct resource *res; /* NULL: not a resource's path */
    struct str namespace_, name, subresource;
    struct arena arena; /* for what the request needs while it is answered */
};

struct answer {
    int status;
    struct buf body;
    int64_t retry_after_s; /* 0: not told */
    bool stream;           /* a watch: `watch` says of what */
};

struct str request_query(const struct request *r, const char *key); /* STR_NONE: absent */

/* Splits the URL, decodes it, finds the resource. False: no such path (a 404 was made). */
bool request_parse(struct sim *s, struct str url, struct request *r, struct answer *ret);

/* A Status of failure. reason as the API server has it ("NotFound"). */
void answer_fail(struct answer *a, int status, const char *reason, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void answer_not_found(struct answer *a, const struct request *r);
void answer_object(struct answer *a, int status, struct version *v);
void answer_success(struct answer *a, int status);

/* Reads: get, list, discovery. handle_read may leave `ret->stream` set. */
void handle_read(struct sim *s, struct request *r, struct answer *ret);
void handle_discovery(struct sim *s, struct str path, struct answer *ret);
void handle_list(struct sim *s, struct request *r, struct answer *ret);
/* Writes. */
void handle_write(struct sim *s, struct request *r, struct answer *ret);
/* subresources.c; a GET of scale too. */
void handle_scale(struct sim *s, struct request *r, struct item *it, struct answer *ret);
void handle_eviction(struct sim *s, struct request *r, struct item *it, struct answer *ret);
void handle_binding(struct sim *s, struct request *r, struct item *it, struct answer *ret);
/* Deletes with the options of the body and the query; also what an eviction ends in. */
void handle_delete_options(struct request *r, struct item *it, const struct json *options,
                           struct answer *ret);
/* Reads the body as JSON; NULL: a 400 was made. */
struct json *request_json(struct request *r, struct answer *ret);

/* ---- Which objects a list or watch is about ---- */

struct filter {
    struct str namespace_; /* empty: all */
    struct label_selector selector;
    bool has_selector;
    struct field_term {
        struct str path, value;
        bool not_equal;
    } fields[8];
    size_t n_fields;
};
/* Texts live in the arena. False: a 400 was made. */
bool filter_parse(struct request *r, struct arena *a, struct filter *ret, struct answer *answer);
bool filter_matches(const struct filter *f, struct version *v);

/* ---- Watches ---- */

struct watcher;
struct watch_sink {
    void (*send)(void *arg, struct str line); /* may end the watch: false afterwards means stop */
    void (*end)(void *arg);
    int64_t (*lag)(void *arg);
    bool (*broken)(void *arg); /* a fault cuts the stream after this event */
    void *arg;
};
/* Takes the request's arena over. NULL: `ret` holds the refusal (410). */
struct watcher *watch_start(struct sim *s, struct request *r, const struct watch_sink *sink,
                            struct answer *ret);
void watch_stop(struct watcher *w);

#endif
