/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "test/unit/base/exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PATIENCE (120 * NS_PER_S)

void client_open(struct client *c)
{
    struct err err = ERR_INIT;
    *c = (struct client){.loop = loop_new_epoll(&err)};
    assert_non_null(c->loop);
    c->http = http_curl_new(c->loop, &err);
    assert_non_null(c->http);
}

void client_close(struct client *c)
{
    http_close(c->http);
    loop_free(c->loop);
}

static void ended(struct exchange *x)
{
    x->op = NULL;
    if (--x->client->under_way == 0)
        loop_stop(x->client->loop);
}

static void close_all(struct exchange *x)
{
    http_close(x->client->http);
    x->client->http = NULL;
    x->client->under_way = 0;
    loop_stop(x->client->loop);
}

static void on_head(void *arg, const struct http_response *r)
{
    struct exchange *x = arg;
    assert_int_equal(x->heads++, 0);
    assert_int_equal(x->chunks + x->dones, 0);
    x->head_status = r->status;
    x->n_headers = r->n_headers;
    snprintf(x->content_type, sizeof(x->content_type), "%.*s",
             STR_ARG(http_header(r, "content-type")));
    if (x->on_head)
        x->on_head(x->on_arg);
    if (x->act == CANCEL_IN_HEAD) {
        http_cancel(x->client->http, x->op);
        ended(x);
    } else if (x->act == CLOSE_IN_HEAD) {
        close_all(x);
    }
}

static void on_chunk(void *arg, struct str data)
{
    struct exchange *x = arg;
    assert_int_equal(x->heads, 1);
    assert_int_equal(x->dones, 0);
    assert_true(x->act != CANCEL_IN_HEAD && x->act != CLOSE_IN_HEAD);
    x->chunks++;
    buf_str(&x->body, data);
    if (x->on_chunk)
        x->on_chunk(x->on_arg);
    if (x->act == CANCEL_IN_CHUNK) {
        assert_int_equal(x->chunks, 1);
        http_cancel(x->client->http, x->op);
        ended(x);
    } else if (x->act == CLOSE_IN_CHUNK) {
        close_all(x);
    }
}

static void on_done(void *arg, int status, const struct err *err)
{
    struct exchange *x = arg;
    assert_true(x->act == NOTHING || x->act == CLOSE_IN_DONE);
    assert_int_equal(x->dones++, 0);
    x->status = status;
    if (err)
        x->err = *err;
    else
        assert_int_equal(x->heads, 1);
    if (x->act == CLOSE_IN_DONE)
        close_all(x);
    else
        ended(x);
}

bool exchange_start(struct client *c, struct exchange *x, const struct http_request *req)
{
    static const struct http_handler handler = {on_head, on_chunk, on_done};
    x->client = c;
    x->op = http_start(c->http, req, &handler, x, &x->err);
    assert_int_equal(x->heads + x->chunks + x->dones, 0);
    c->under_way += x->op != NULL;
    return x->op != NULL;
}

static void lose_patience(void *arg)
{
    (void)arg;
    fail_msg("an exchange does not end");
}

void client_run(struct client *c)
{
    struct loop_timer patience = {0};
    loop_timer_in(c->loop, &patience, PATIENCE, lose_patience, NULL);
    if (c->under_way)
        loop_run(c->loop);
    /* Rounds in which a second `done`, or one after a cancel, would come. */
    for (int i = 0; i < 3; i++)
        loop_run_until(c->loop, loop_now(c->loop));
    loop_timer_cancel(c->loop, &patience);
}

void exchange_run(struct client *c, struct exchange *x, const struct http_request *req)
{
    if (exchange_start(c, x, req))
        client_run(c);
}

void exchange_get(struct client *c, struct exchange *x, const char *url)
{
    const struct http_request req = {.method = STR("GET"), .url = str_from(url), .proxy = ""};
    exchange_run(c, x, &req);
}

void exchange_release(struct exchange *x)
{
    buf_release(&x->body);
    *x = (struct exchange){0};
}
