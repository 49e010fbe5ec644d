/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A small web server for health, metrics and pages (libmicrohttpd, only in serve.c), on the loop.
 */
#ifndef BASE_SERVE_H
#define BASE_SERVE_H

#include "base/buf.h"
#include "base/loop.h"

struct serve;

struct serve_request {
    struct str method, path;
    struct str query; /* "a=b&c", percent-decoded */
    struct str body;  /* at most 64 KiB; larger is refused with 413 */
};

struct serve_response {
    int status;               /* starts as 200 */
    const char *content_type; /* starts as "text/plain; charset=utf-8"; a static string */
    struct buf body;
};

/* Listens on `address` ("0.0.0.0", "127.0.0.1", "::") and `port` (0: any free one). */
struct serve *serve_new(struct loop *l, const char *address, uint16_t port, struct err *err);
void serve_free(struct serve *s);
uint16_t serve_port(const struct serve *s);

/* Exact path, or a prefix when it ends in '/'. The longest match wins; none: 404. */
void serve_route(struct serve *s, const char *path,
                 void (*fn)(void *arg, const struct serve_request *req, struct serve_response *ret),
                 void *arg);

#endif
