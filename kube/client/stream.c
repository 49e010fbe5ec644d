/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* One GET whose answer is taken as it arrives: what lists and watches are made of. */

#include "kube/client/internal.h"

struct stream {
    struct client *client;
    struct stream *next, *prev;
    char *path, *verb, *kind;
    int64_t timeout, idle_timeout, started;
    struct stream_handler handler;
    void *arg;
    struct loop_timer timer;
    struct auth_waiter waiter;
    struct http_op *http;
    int64_t retry_after;
};

static void free_stream(struct stream *s)
{
    struct client *c = s->client;
    loop_timer_cancel(c->loop, &s->timer);
    auth_unwait(c->auth, &s->waiter);
    if (s->http)
        http_cancel(c->http, s->http);
    if (s->prev)
        s->prev->next = s->next;
    else
        c->streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    free(s->path);
    free(s->verb);
    free(s->kind);
    free(s);
}

void client_stream_cancel(struct stream *s)
{
    if (s)
        free_stream(s);
}

static void finish(struct stream *s, int status, const struct err *err)
{
    void (*done)(void *, int, int64_t, const struct err *) = s->handler.done;
    void *arg = s->arg;
    int64_t retry_after = s->retry_after;
    free_stream(s);
    done(arg, status, retry_after, err);
}

static void on_head(void *arg, const struct http_response *r)
{
    struct stream *s = arg;
    s->retry_after = http_retry_after(r, loop_wall(s->client->loop));
    client_count(s->client, s->verb, s->kind, r->status, loop_now(s->client->loop) - s->started);
    s->handler.head(s->arg, r->status);
}

static void on_chunk(void *arg, struct str data)
{
    struct stream *s = arg;
    s->handler.chunk(s->arg, data);
}

static void on_done(void *arg, int status, const struct err *err)
{
    struct stream *s = arg;
    s->http = NULL;
    if (status == 401)
        auth_refused(s->client->auth);
    finish(s, status, err);
}

static void send_now(void *arg)
{
    struct stream *s = arg;
    struct client *c = s->client;
    struct request_headers headers;
    client_headers(c, &headers, NULL);
    CLEANUP(buf_release) struct buf url = BUF_INIT;
    buf_printf(&url, "%s%s", c->config->server, s->path);
    const struct http_request request = {
        .method = STR("GET"),
        .url = buf_view(&url),
        .headers = headers.v,
        .n_headers = headers.n,
        .timeout = s->timeout,
        .idle_timeout = s->idle_timeout,
        .body_bytes_max = SIZE_MAX,
        .tls = auth_tls(c->auth),
        .proxy = c->config->proxy,
    };
    static const struct http_handler handler = {on_head, on_chunk, on_done};
    struct err err = ERR_INIT;
    s->started = loop_now(c->loop);
    s->http = http_start(c->http, &request, &handler, s, &err);
    request_headers_release(&headers);
    if (!s->http)
        finish(s, 0, &err);
}

static void after_auth(void *arg, const struct err *err)
{
    struct stream *s = arg;
    if (err)
        finish(s, 0, err);
    else
        send_now(s);
}

static void attempt(void *arg)
{
    struct stream *s = arg;
    struct client *c = s->client;
    if (!auth_is_ready(c->auth)) {
        auth_wait(c->auth, &s->waiter, after_auth, s);
        return;
    }
    int64_t pause = limit_reserve(&c->limit, loop_now(c->loop));
    if (pause > 0)
        loop_timer_in(c->loop, &s->timer, pause, send_now, s);
    else
        send_now(s);
}

struct stream *client_stream(struct client *c, const char *path, const char *verb, const char *kind,
                             int64_t timeout, int64_t idle_timeout,
                             const struct stream_handler *handler, void *arg)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    *s = (struct stream){
        .client = c,
        .next = c->streams,
        .path = xstrdup(path),
        .verb = xstrdup(verb),
        .kind = xstrdup(kind),
        .timeout = timeout,
        .idle_timeout = idle_timeout,
        .handler = *handler,
        .arg = arg,
        .retry_after = -1,
    };
    if (c->streams)
        c->streams->prev = s;
    c->streams = s;
    loop_timer_in(c->loop, &s->timer, 0, attempt, s);
    return s;
}
