/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the files of kube/client share: the client, and streams for lists and watches. */
#ifndef KUBE_CLIENT_INTERNAL_H
#define KUBE_CLIENT_INTERNAL_H

#include "base/backoff.h"
#include "base/limit.h"
#include "base/map.h"
#include "kube/client/auth.h"
#include "kube/client/client.h"

struct client {
    struct loop *loop;
    struct http *http;
    struct auth *auth;
    const struct kube_config *config;
    struct client_options options;
    char *user_agent;
    struct limit limit;
    struct rng rng;
    struct client_op *ops;
    struct stream *streams;
    struct map discovery; /* apiVersion -> struct discovery_list */
    struct metric_family *requests, *seconds, *restarts;
};

/* Headers that every request has. `ret` holds their texts until it is released. */
struct request_headers {
    struct http_header v[6];
    size_t n;
    struct buf authorization;
};
void client_headers(struct client *c, struct request_headers *ret, const char *content_type);
void request_headers_release(struct request_headers *h);

/* "/api/v1/namespaces/ns/pods/name/status". */
void client_path(struct buf *out, const struct kind *k, const char *namespace_, const char *name,
                 const char *subresource);
/* Reads a Status body: message and reason. */
void client_status_text(struct str body, char *ret_reason, size_t reason_size, char *ret_message,
                        size_t message_size);
enum err_code client_code_of_status(int status, const char *reason);
void client_count(struct client *c, const char *verb, const char *kind, int status, int64_t took);

/* One GET whose answer is taken as it arrives; no retries. */
struct stream;
struct stream_handler {
    void (*head)(void *arg, int status);
    void (*chunk)(void *arg, struct str data);
    /* err NULL: complete. Otherwise as http's, with credentials' faults besides. */
    void (*done)(void *arg, int status, int64_t retry_after, const struct err *err);
};
struct stream *client_stream(struct client *c, const char *path, const char *verb, const char *kind,
                             int64_t timeout, int64_t idle_timeout,
                             const struct stream_handler *handler, void *arg);
void client_stream_cancel(struct stream *s); /* NULL is harmless */

#endif
