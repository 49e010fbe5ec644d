/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The HTTP seam: requests arrive after half their latency, take effect at once, and are answered
 * after the other half. Faults are decided here; what a request means is decided in write.c,
 * watch.c and subresources.c.
 *
 * Any callback may cancel any operation, its own and its whole seam included. An operation is
 * therefore freed only when nothing on the stack holds it (`holds`). */

#include "kube/sim/api.h"

#define CHUNK_BYTES (64 * 1024)

struct seam {
    struct http http; /* first */
    struct sim *sim;
    char *name;
    int64_t lag;
    struct http_op *ops;
    struct seam *next;
};

struct http_op {
    struct seam *seam;
    struct http_op *next, *previous;
    struct http_handler handler;
    void *arg;
    char *method, *url, *body, *authorization, *content_type;
    size_t body_len;
    int64_t deadline, half; /* loop_now; the way back */
    struct loop_timer timer, timeout;
    struct watcher *watcher;
    struct answer answer;
    unsigned holds;
    bool dead, lost, refused;
};

/* ---- Life of an operation ---- */

static void op_free(struct http_op *op)
{
    free(op->method);
    free(op->url);
    free(op->body);
    free(op->authorization);
    free(op->content_type);
    buf_release(&op->answer.body);
    free(op);
}

static void op_end(struct http_op *op)
{
    struct loop *l = op->seam->sim->loop;
    if (op->dead)
        return;
    op->dead = true;
    loop_timer_cancel(l, &op->timer);
    loop_timer_cancel(l, &op->timeout);
    if (op->watcher) {
        struct watcher *w = op->watcher;
        op->watcher = NULL;
        watch_stop(w);
    }
    if (op->previous)
        op->previous->next = op->next;
    else
        op->seam->ops = op->next;
    if (op->next)
        op->next->previous = op->previous;
}

static void op_hold(struct http_op *op)
{
    op->holds++;
}

static void op_let(struct http_op *op)
{
    if (--op->holds == 0 && op->dead)
        op_free(op);
}

static void op_done(struct http_op *op, int status, const struct err *err)
{
    if (op->dead)
        return;
    op_end(op);
    if (op->handler.done)
        op->handler.done(op->arg, status, err);
}

static void op_head(struct http_op *op)
{
    char seconds[24];
    struct http_header headers[2] = {{STR("Content-Type"), STR("application/json")}};
    size_t n = 1;
    if (op->answer.retry_after_s > 0) {
        snprintf(seconds, sizeof(seconds), "%lld", (long long)op->answer.retry_after_s);
        headers[n++] = (struct http_header){STR("Retry-After"), str_from(seconds)};
    }
    struct http_response head = {.status = op->answer.status, .headers = headers, .n_headers = n};
    if (op->handler.head)
        op->handler.head(op->arg, &head);
}

static void op_answer(void *arg)
{
    struct http_op *op = arg;
    struct err err = ERR_INIT;
    op_hold(op);
    if (op->refused || op->lost) {
        err_set(&err, op->refused ? ERR_RETRY : ERR_UNKNOWN,
                op->refused ? "connection refused"
                            : "the connection closed before the answer came");
        op_done(op, 0, &err);
        op_let(op);
        return;
    }
    op_head(op);
    struct str body = buf_view(&op->answer.body);
    for (size_t at = 0; at < body.len && !op->dead; at += CHUNK_BYTES)
        if (op->handler.chunk)
            op->handler.chunk(op->arg, str_sub(body, at, at + CHUNK_BYTES));
    op_done(op, op->answer.status, NULL);
    op_let(op);
}

/* ---- Watches ---- */

static void stream_send(void *arg, struct str line)
{
    struct http_op *op = arg;
    op_hold(op);
    if (!op->dead && op->handler.chunk)
        op->handler.chunk(op->arg, line);
    op_let(op);
}

static void stream_end(void *arg)
{
    struct http_op *op = arg;
    op_hold(op);
    op_done(op, 200, NULL);
    op_let(op);
}

static int64_t stream_lag(void *arg)
{
    const struct http_op *op = arg;
    return op->seam->lag + op->seam->sim->faults.event_lag;
}

static bool fault(struct sim *s, uint32_t per_million)
{
    bool hit = per_million && rng_chance(&s->chance, per_million);
    s->counters.faults += hit;
    return hit;
}

static bool stream_broken(void *arg)
{
    struct sim *s = ((struct http_op *)arg)->seam->sim;
    return s->faults.api_down || fault(s, s->faults.watch_drop);
}

/* The head of a stream goes out as soon as the watch is set up. */
static void stream_open(void *arg)
{
    struct http_op *op = arg;
    op_hold(op);
    op_head(op);
    op_let(op);
}

static void start_stream(struct http_op *op, struct request *r)
{
    struct sim *s = op->seam->sim;
    if (fault(s, s->faults.gone_410) && request_query(r, "resourceVersion").len) {
        answer_fail(&op->answer, 410, "Expired", "too old resource version");
        return;
    }
    struct watch_sink sink = {stream_send, stream_end, stream_lag, stream_broken, op};
    op->watcher = watch_start(s, r, &sink, &op->answer);
    if (!op->watcher)
        return;
    op->answer.status = 200;
    stream_open(op);
}

/* ---- Calls ---- */

static bool is_read(const struct request *r)
{
    return str_eq_c(r->method, "GET") || str_eq_c(r->method, "HEAD");
}

static const char *verb_of(const struct request *r)
{
    if (str_eq_c(r->method, "POST"))
        return "create";
    if (str_eq_c(r->method, "PUT"))
        return "update";
    return str_eq_c(r->method, "PATCH") ? "patch" : "delete";
}

static struct sim_call call_of(struct http_op *op, struct request *r)
{
    return (struct sim_call){
        .at = sim_now(op->seam->sim),
        .client = op->seam->name,
        .verb = verb_of(r),
        .group = r->res ? r->res->group : "",
        .plural = r->res ? r->res->plural : "",
        .subresource = r->subresource.len ? arena_cstr(&r->arena, r->subresource) : NULL,
        .namespace_ = r->namespace_.len ? arena_cstr(&r->arena, r->namespace_) : NULL,
        .name = r->name.len ? arena_cstr(&r->arena, r->name) : NULL,
    };
}

/* The name of what a POST made, from the answer. */
static const char *created_name(struct http_op *op, struct request *r)
{
    struct json *j = json_parse(&r->arena, buf_view(&op->answer.body), NULL);
    struct str name = json_text(json_at(j, "metadata", "name", NULL));
    return name.len ? arena_cstr(&r->arena, name) : NULL;
}

static void run_write(struct http_op *op, struct request *r)
{
    struct sim *s = op->seam->sim;
    struct sim_call call = call_of(op, r);
    if (s->effect)
        s->effect(s->effect_arg, &call, false);
    if (op->dead)
        return;
    handle_write(s, r, &op->answer);
    s->counters.writes++;
    call.status = op->answer.status;
    if (!call.name && s->effect && call.status < 300)
        call.name = created_name(op, r);
    if (s->effect)
        s->effect(s->effect_arg, &call, true);
    if (!op->dead)
        op->lost = fault(s, s->faults.lost_answer);
}

/* Faults that strike before anything happened. */
static bool early_fault(struct sim *s, const struct request *r, struct answer *a)
{
    bool changes = str_eq_c(r->method, "PUT") || str_eq_c(r->method, "PATCH");
    if (fault(s, s->faults.throttle_429)) {
        a->retry_after_s = 1;
        answer_fail(a, 429, "TooManyRequests", "Too many requests, please try again later.");
        return true;
    }
    if (fault(s, s->faults.error_5xx)) {
        answer_fail(a, 500, "InternalError", "etcdserver: request timed out");
        return true;
    }
    if (changes && fault(s, s->faults.conflict_409)) {
        answer_fail(a, 409, "Conflict",
                    "Operation cannot be fulfilled: the object has been modified; please apply "
                    "your changes to the latest version and try again");
        return true;
    }
    if (str_eq_c(r->method, "GET") && request_query(r, "continue").len &&
        fault(s, s->faults.gone_410)) {
        answer_fail(a, 410, "Expired", "The provided continue parameter is too old");
        return true;
    }
    return false;
}

static void run_request(struct http_op *op, struct request *r)
{
    struct sim *s = op->seam->sim;
    if (s->allow && !s->allow(s->allow_arg, str_from(op->authorization))) {
        answer_fail(&op->answer, 401, "Unauthorized", "Unauthorized");
        return;
    }
    if (!request_parse(s, str_from(op->url), r, &op->answer) || early_fault(s, r, &op->answer))
        return;
    if (!is_read(r)) {
        run_write(op, r);
        return;
    }
    struct str watch = request_query(r, "watch");
    if (r->res && !r->name.len && (str_eq_c(watch, "true") || str_eq_c(watch, "1")))
        start_stream(op, r);
    else
        handle_read(s, r, &op->answer);
}

static void op_arrive(void *arg)
{
    struct http_op *op = arg;
    struct sim *s = op->seam->sim;
    struct request r = {.method = str_from(op->method),
                        .body = {op->body, op->body_len},
                        .content_type = str_from(op->content_type)};
    op_hold(op);
    s->counters.requests++;
    op->refused = s->faults.api_down;
    if (!op->refused)
        run_request(op, &r);
    arena_release(&r.arena);
    if (!op->dead && !op->watcher)
        loop_timer_in(s->loop, &op->timer, op->half, op_answer, op);
    op_let(op);
}

static void op_timeout(void *arg)
{
    struct http_op *op = arg;
    struct err err = ERR_INIT;
    err_set(&err, ERR_UNKNOWN, "no answer in time");
    op_hold(op);
    op_done(op, 0, &err);
    op_let(op);
}

/* ---- The vtable ---- */

static int64_t half_latency(struct sim *s)
{
    int64_t whole = s->o.call_latency;
    return whole <= 1 ? whole : rng_between(&s->latency, whole / 4, whole - whole / 4) / 2;
}

static char *copy_header(const struct http_request *req, const char *name)
{
    for (size_t i = 0; i < req->n_headers; i++)
        if (str_eq_nocase(req->headers[i].name, str_from(name)))
            return xstr_dup(req->headers[i].value);
    return NULL;
}

static struct http_op *seam_start(struct http *h, const struct http_request *req,
                                  const struct http_handler *handler, void *arg, struct err *err)
{
    struct seam *m = (struct seam *)(void *)h;
    struct sim *s = m->sim;
    if (str_find(req->url, STR("://"), 0) == SIZE_MAX &&
        (req->url.len == 0 || req->url.p[0] != '/')) {
        err_set(err, ERR_INVALID, "bad URL '%.*s'", STR_ARG(req->url));
        return NULL;
    }
    struct http_op *op = xcalloc(1, sizeof(*op));
    op->seam = m;
    op->handler = *handler;
    op->arg = arg;
    op->method = xstr_dup(req->method);
    op->url = xstr_dup(req->url);
    op->body = xstr_dup(req->body);
    op->body_len = req->body.len;
    op->authorization = copy_header(req, "Authorization");
    op->content_type = copy_header(req, "Content-Type");
    op->half = half_latency(s);
    op->next = m->ops;
    if (op->next)
        op->next->previous = op;
    m->ops = op;
    int64_t timeout = req->timeout ? req->timeout : 30 * NS_PER_S;
    if (timeout != TIME_NEVER)
        loop_timer_in(s->loop, &op->timeout, timeout, op_timeout, op);
    loop_timer_in(s->loop, &op->timer, op->half, op_arrive, op);
    return op;
}

static void seam_cancel(struct http *h, struct http_op *op)
{
    (void)h;
    op_hold(op);
    op_end(op);
    op_let(op);
}

static void seam_close(struct http *h)
{
    struct seam *m = (struct seam *)(void *)h;
    while (m->ops)
        seam_cancel(h, m->ops);
    for (struct seam **at = &m->sim->seams; *at; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    free(m->name);
    free(m);
}

static const struct http_vtable seam_vtable = {seam_start, seam_cancel, seam_close};

struct http *sim_http(struct sim *s, const char *name, int64_t watch_lag)
{
    struct seam *m = xcalloc(1, sizeof(*m));
    m->http.vt = &seam_vtable;
    m->sim = s;
    m->name = xstrdup(name ? name : "client");
    m->lag = watch_lag;
    m->next = s->seams;
    s->seams = m;
    return &m->http;
}

void sim_http_lag(struct http *h, int64_t watch_lag)
{
    ((struct seam *)(void *)h)->lag = watch_lag;
}
