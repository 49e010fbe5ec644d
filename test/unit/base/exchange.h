/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A client's side of one exchange: what was called, in which order, with what. */
#ifndef TEST_UNIT_BASE_EXCHANGE_H
#define TEST_UNIT_BASE_EXCHANGE_H

#include "base/buf.h"
#include "base/http.h"

struct client {
    struct loop *loop;
    struct http *http; /* NULL once closed inside a callback */
    int under_way;
};

struct exchange {
    struct client *client;
    struct http_op *op;
    int heads, chunks, dones;
    int head_status, status;
    char content_type[128];
    size_t n_headers;
    struct buf body;
    struct err err;
    /* What to do inside callbacks. */
    enum {
        NOTHING,
        CANCEL_IN_HEAD,
        CANCEL_IN_CHUNK,
        CLOSE_IN_HEAD,
        CLOSE_IN_CHUNK,
        CLOSE_IN_DONE
    } act;
    void (*on_head)(void *arg), (*on_chunk)(void *arg);
    void *on_arg;
};

void client_open(struct client *c);
void client_close(struct client *c);

/* Starts; asserts that no callback ran yet. False when start refused: then x->err says why. */
bool exchange_start(struct client *c, struct exchange *x, const struct http_request *req);
/* Runs the loop until nothing is under way any more. */
void client_run(struct client *c);
/* Start and run. */
void exchange_run(struct client *c, struct exchange *x, const struct http_request *req);
/* A plain GET, whole. */
void exchange_get(struct client *c, struct exchange *x, const char *url);
void exchange_release(struct exchange *x);

#endif
