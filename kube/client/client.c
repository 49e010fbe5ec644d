/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* One call, one answer: credentials, limits, fences and retries around the transport. */

#include "kube/client/client.h"

#include <assert.h>

#include "base/num.h"
#include "kube/client/internal.h"

#define QPS_STANDARD 200.0
#define BURST_STANDARD 300
#define TIMEOUT_STANDARD (30 * NS_PER_S)
#define RETRY_FOR_STANDARD (60 * NS_PER_S)
#define ANSWER_BYTES_MAX ((size_t)64 << 20)

struct client_op {
    struct client *client;
    struct client_op *next, *prev;
    const struct kind *kind;
    char *method, *path, *content_type, *body;
    size_t body_len;
    bool writes, is_eviction, refreshed, fenced;
    client_done *done;
    void *arg;
    int64_t give_up, started;
    struct backoff backoff;
    struct loop_timer timer;
    struct auth_waiter waiter;
    struct http_op *http;
    struct buf answer;
    int64_t retry_after;
};

struct loop *client_loop(const struct client *c)
{
    return c->loop;
}

static void make_metrics(struct client *c, struct metrics *m)
{
    static const double buckets[] = {0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30};
    c->requests = metrics_family(m, METRIC_COUNTER, "weft_kube_requests_total",
                                 "Requests to the API server.", "verb,kind,code", NULL, 0);
    c->seconds = metrics_family(m, METRIC_HISTOGRAM, "weft_kube_request_seconds",
                                "How long answers of the API server took.", "verb", buckets,
                                ARRAY_LEN(buckets));
    c->restarts = metrics_family(m, METRIC_COUNTER, "weft_kube_watch_restarts_total",
                                 "Watches that ended and began again.", "kind,reason", NULL, 0);
}

struct client *client_new(struct loop *l, struct http *h, struct worker *w,
                          const struct kube_config *config, const struct client_options *o,
                          struct err *err)
{
    if (config->exec && !w) {
        err_set(err, ERR_INVALID, "%s: an exec plugin needs a worker",
                config->source ? config->source : "kubeconfig");
        return NULL;
    }
    struct client *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->http = h;
    c->config = config;
    if (o)
        c->options = *o;
    c->options.qps = c->options.qps > 0 ? c->options.qps : QPS_STANDARD;
    c->options.burst = c->options.burst > 0 ? c->options.burst : BURST_STANDARD;
    c->options.timeout = c->options.timeout ? c->options.timeout : TIMEOUT_STANDARD;
    c->options.retry_for = c->options.retry_for ? c->options.retry_for : RETRY_FOR_STANDARD;
    c->user_agent = xstrdup(c->options.user_agent ? c->options.user_agent : "weft/" WEFT_VERSION);
    limit_init(&c->limit, c->options.qps, c->options.burst);
    rng_split(&c->rng, c->options.seed, "kube/client");
    c->auth = auth_new(l, w, config);
    if (c->options.metrics)
        make_metrics(c, c->options.metrics);
    return c;
}

/* ---- Shared pieces ---- */

void client_headers(struct client *c, struct request_headers *ret, const char *content_type)
{
    *ret = (struct request_headers){0};
    auth_header(c->auth, &ret->authorization);
    ret->v[ret->n++] = (struct http_header){STR("Accept"), STR("application/json")};
    ret->v[ret->n++] = (struct http_header){STR("User-Agent"), str_from(c->user_agent)};
    if (ret->authorization.len)
        ret->v[ret->n++] =
            (struct http_header){STR("Authorization"), buf_view(&ret->authorization)};
    if (c->config->impersonate)
        ret->v[ret->n++] =
            (struct http_header){STR("Impersonate-User"), str_from(c->config->impersonate)};
    if (content_type)
        ret->v[ret->n++] = (struct http_header){STR("Content-Type"), str_from(content_type)};
}

void request_headers_release(struct request_headers *h)
{
    if (h->authorization.data)
        explicit_bzero(h->authorization.data, h->authorization.len);
    buf_release(&h->authorization);
}

static void add_part(struct buf *out, const char *part)
{
    buf_char(out, '/');
    http_escape(out, str_from(part));
}

void client_path(struct buf *out, const struct kind *k, const char *namespace_, const char *name,
                 const char *subresource)
{
    buf_printf(out, *k->group ? "/apis/%s/%s" : "/api%s/%s", k->group, k->version);
    if (k->namespaced && namespace_) {
        buf_cstr(out, "/namespaces");
        add_part(out, namespace_);
    }
    add_part(out, k->plural);
    if (name)
        add_part(out, name);
    if (subresource)
        add_part(out, subresource);
}

void client_status_text(struct str body, char *ret_reason, size_t reason_size, char *ret_message,
                        size_t message_size)
{
    CLEANUP(arena_release) struct arena a = {.cap_bytes = 1 << 20};
    const struct json *status = json_parse(&a, body, NULL);
    struct str reason = json_text(json_get(status, "reason")),
               message = json_text(json_get(status, "message"));
    snprintf(ret_reason, reason_size, "%.*s", STR_ARG(reason));
    snprintf(ret_message, message_size, "%.*s", STR_ARG(message));
}

enum err_code client_code_of_status(int status, const char *reason)
{
    switch (status) {
    case 401:
    case 403:
        return ERR_DENIED;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return reason && strcmp(reason, "AlreadyExists") == 0 ? ERR_EXISTS : ERR_CONFLICT;
    case 410:
        return ERR_GONE;
    case 429:
        return ERR_THROTTLED;
    default:
        return status >= 500 ? ERR_RETRY : ERR_INVALID;
    }
}

void client_count(struct client *c, const char *verb, const char *kind, int status, int64_t took)
{
    if (!c->requests)
        return;
    char code[16];
    int n = snprintf(code, sizeof(code), "%d", status);
    const struct str labels[] = {str_from(verb), str_from(kind), {code, (size_t)n}};
    metric_add(metric_of(c->requests, labels, 3), 1);
    metric_observe(metric_of(c->seconds, labels, 1), (double)took / 1e9);
}

/* ---- An operation ---- */

static void free_op(struct client_op *op)
{
    struct client *c = op->client;
    loop_timer_cancel(c->loop, &op->timer);
    auth_unwait(c->auth, &op->waiter);
    if (op->http)
        http_cancel(c->http, op->http);
    if (op->prev)
        op->prev->next = op->next;
    else
        c->ops = op->next;
    if (op->next)
        op->next->prev = op->prev;
    if (op->body)
        explicit_bzero(op->body, op->body_len);
    free(op->method);
    free(op->path);
    free(op->content_type);
    free(op->body);
    if (op->answer.data)
        explicit_bzero(op->answer.data, op->answer.len);
    buf_release(&op->answer);
    free(op);
}

static void finish(struct client_op *op, const struct client_answer *answer, const struct err *err)
{
    client_done *done = op->done;
    void *arg = op->arg;
    /* The answer's texts live in the operation's buffer, which outlives the callback. */
    struct buf kept = op->answer;
    op->answer = (struct buf)BUF_INIT;
    free_op(op);
    if (done)
        done(arg, answer, err);
    if (kept.data)
        explicit_bzero(kept.data, kept.len);
    buf_release(&kept);
}

static void fail(struct client_op *op, enum err_code code, const char *message)
{
    struct err err = ERR_INIT;
    struct client_answer answer = {.retry_after = -1};
    err_set(&err, code, "%s %s: %s", op->method, op->path, message);
    finish(op, &answer, &err);
}

static void attempt(void *arg);

/* Tries again after the server's pause or our own; false when it is too late for that. */
static bool retry(struct client_op *op, int64_t pause)
{
    struct client *c = op->client;
    if (pause < 0)
        pause = backoff_next(&op->backoff, &c->rng);
    else
        pause += rng_between(&c->rng, 0, MAX(pause / 4, NS_PER_MS));
    if (loop_now(c->loop) + pause > op->give_up)
        return false;
    buf_clear(&op->answer);
    loop_timer_in(c->loop, &op->timer, pause, attempt, op);
    return true;
}

static void on_head(void *arg, const struct http_response *r)
{
    struct client_op *op = arg;
    op->retry_after = http_retry_after(r, loop_wall(op->client->loop));
}

static void on_chunk(void *arg, struct str data)
{
    struct client_op *op = arg;
    buf_str(&op->answer, data);
}

/* What may be sent again after an answer that says nothing was done. */
static bool is_retried(const struct client_op *op, int status)
{
    if (op->is_eviction && (status == 429 || status == 500))
        return false; /* a disruption budget said no, or several of them cover the pod */
    if (status == 429 || status == 503)
        return true;
    return !op->writes && (status == 500 || status == 502 || status == 504);
}

static void answer_error(struct client_op *op, int status)
{
    char reason[64], message[300];
    client_status_text(buf_view(&op->answer), reason, sizeof(reason), message, sizeof(message));
    enum err_code code = client_code_of_status(status, reason);
    if (op->writes && (status == 502 || status == 504))
        code = ERR_UNKNOWN; /* a gateway lost the answer */
    struct client_answer answer = {.status = status,
                                   .body = buf_view(&op->answer),
                                   .reason = *reason ? reason : NULL,
                                   .retry_after = op->retry_after};
    struct err err = ERR_INIT;
    err_set(&err, code, "%s %s: %d%s%s", op->method, op->path, status, *message ? ": " : "",
            message);
    finish(op, &answer, &err);
}

static void answer_success(struct client_op *op, int status)
{
    struct client_answer answer = {
        .status = status, .body = buf_view(&op->answer), .retry_after = -1};
    struct object *object = NULL;
    if (op->kind) {
        struct err err = ERR_INIT;
        object = object_decode(op->kind, buf_view(&op->answer), NULL, &err);
        /* A delete may answer with a Status; the caller sees no object then. A write that succeeded
         * is not turned into a failure because its answer could not be read. */
        if (!object && !op->writes) {
            err_prefix(&err, "%s %s: the answer", op->method, op->path);
            finish(op, &answer, &err);
            return;
        }
        answer.object = object;
    }
    finish(op, &answer, NULL);
    object_unref(object);
}

static void on_done(void *arg, int status, const struct err *err)
{
    struct client_op *op = arg;
    struct client *c = op->client;
    op->http = NULL;
    client_count(c, op->method, op->kind ? op->kind->kind : "", status,
                 loop_now(c->loop) - op->started);
    if (err) {
        bool repeatable = err->code == ERR_RETRY || (err->code == ERR_UNKNOWN && !op->writes);
        if (repeatable && retry(op, -1))
            return;
        fail(op, err->code == ERR_UNKNOWN && !op->writes ? ERR_RETRY : err->code, err->msg);
        return;
    }
    if (op->answer.overflow) {
        fail(op, ERR_INVALID, "the answer is too large");
        return;
    }
    if (status >= 200 && status < 300) {
        answer_success(op, status);
        return;
    }
    if (status == 401 && !op->refreshed) {
        op->refreshed = true;
        auth_refused(c->auth);
        buf_clear(&op->answer);
        loop_timer_in(c->loop, &op->timer, 0, attempt, op);
        return;
    }
    if (is_retried(op, status) && retry(op, op->retry_after))
        return;
    answer_error(op, status);
}

static void send_now(void *arg)
{
    struct client_op *op = arg;
    struct client *c = op->client;
    if (op->writes && op->fenced && c->options.may_write &&
        !c->options.may_write(c->options.may_write_arg)) {
        fail(op, ERR_DENIED, "not the leader: nothing is written");
        return;
    }
    struct request_headers headers;
    client_headers(c, &headers, op->content_type);
    CLEANUP(buf_release) struct buf url = BUF_INIT;
    buf_printf(&url, "%s%s", c->config->server, op->path);
    const struct http_request request = {
        .method = str_from(op->method),
        .url = buf_view(&url),
        .headers = headers.v,
        .n_headers = headers.n,
        .body = {op->body, op->body_len},
        .timeout = c->options.timeout,
        .body_bytes_max = ANSWER_BYTES_MAX,
        .tls = auth_tls(c->auth),
        .proxy = c->config->proxy,
    };
    static const struct http_handler handler = {on_head, on_chunk, on_done};
    struct err err = ERR_INIT;
    op->retry_after = -1;
    op->started = loop_now(c->loop);
    op->http = http_start(c->http, &request, &handler, op, &err);
    request_headers_release(&headers);
    if (!op->http)
        fail(op, err.code, err.msg);
}

static void after_auth(void *arg, const struct err *err)
{
    struct client_op *op = arg;
    if (err) {
        if (err->code == ERR_RETRY && retry(op, -1))
            return;
        fail(op, ERR_DENIED, err->msg);
        return;
    }
    send_now(op);
}

static void attempt(void *arg)
{
    struct client_op *op = arg;
    struct client *c = op->client;
    if (!auth_is_ready(c->auth)) {
        auth_wait(c->auth, &op->waiter, after_auth, op);
        return;
    }
    int64_t pause = limit_reserve(&c->limit, loop_now(c->loop));
    if (pause > 0)
        loop_timer_in(c->loop, &op->timer, pause, send_now, op);
    else
        send_now(op);
}

static struct client_op *start(struct client *c, const char *method, struct str path,
                               const struct kind *k, const char *content_type, struct str body,
                               client_done *done, void *arg)
{
    struct client_op *op = xcalloc(1, sizeof(*op));
    *op = (struct client_op){
        .client = c,
        .next = c->ops,
        .kind = k,
        .method = xstrdup(method),
        .path = xstr_dup(path),
        .content_type = content_type ? xstrdup(content_type) : NULL,
        .body = body.p ? xstr_dup(body) : NULL,
        .body_len = body.len,
        .writes = strcmp(method, "GET") != 0,
        .fenced = true,
        .done = done,
        .arg = arg,
        .give_up = num_add_sat(loop_now(c->loop), c->options.retry_for),
        .backoff = {.base = 200 * NS_PER_MS, .cap = 10 * NS_PER_S},
        .answer = {.cap = ANSWER_BYTES_MAX},
    };
    if (c->ops)
        c->ops->prev = op;
    c->ops = op;
    loop_timer_in(c->loop, &op->timer, 0, attempt, op);
    return op;
}

void client_cancel(struct client_op *op)
{
    if (op)
        free_op(op);
}

/* ---- The calls ---- */

struct client_op *client_get(struct client *c, const struct kind *k, const char *namespace_,
                             const char *name, client_done *done, void *arg)
{
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    client_path(&path, k, namespace_, name, NULL);
    return start(c, "GET", buf_view(&path), k, NULL, STR_NONE, done, arg);
}

struct client_op *client_create(struct client *c, const struct kind *k, const char *namespace_,
                                struct str body, client_done *done, void *arg)
{
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    client_path(&path, k, namespace_, NULL, NULL);
    buf_cstr(&path, "?fieldManager=weft");
    return start(c, "POST", buf_view(&path), k, "application/json", body, done, arg);
}

struct client_op *client_patch(struct client *c, const struct kind *k, const char *namespace_,
                               const char *name, const char *subresource, enum patch_type type,
                               struct str body, client_done *done, void *arg)
{
    static const char *const types[] = {"application/merge-patch+json",
                                        "application/apply-patch+yaml",
                                        "application/json-patch+json"};
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    client_path(&path, k, namespace_, name, subresource);
    buf_cstr(&path, type == PATCH_APPLY ? "?fieldManager=weft&force=true" : "?fieldManager=weft");
    bool scale = subresource && strcmp(subresource, "scale") == 0;
    return start(c, "PATCH", buf_view(&path), scale ? NULL : k, types[type], body, done, arg);
}

struct client_op *client_update(struct client *c, const struct kind *k, const char *namespace_,
                                const char *name, const char *subresource, struct str body,
                                client_done *done, void *arg)
{
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    client_path(&path, k, namespace_, name, subresource);
    buf_cstr(&path, "?fieldManager=weft");
    bool scale = subresource && strcmp(subresource, "scale") == 0;
    return start(c, "PUT", buf_view(&path), scale ? NULL : k, "application/json", body, done, arg);
}

static void write_delete_options(struct buf *body, const char *uid, int64_t grace_s)
{
    struct json_writer w;
    json_writer_init(&w, body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kcstr(&w, "kind", "DeleteOptions");
    if (grace_s >= 0)
        json_w_ki64(&w, "gracePeriodSeconds", grace_s);
    if (uid) {
        json_w_kobject(&w, "preconditions");
        json_w_kcstr(&w, "uid", uid);
        json_w_object_end(&w);
    }
    json_w_object_end(&w);
}

struct client_op *client_delete(struct client *c, const struct kind *k, const char *namespace_,
                                const char *name, const char *uid, int64_t grace_s,
                                client_done *done, void *arg)
{
    CLEANUP(buf_release) struct buf path = BUF_INIT, body = BUF_INIT;
    client_path(&path, k, namespace_, name, NULL);
    write_delete_options(&body, uid, grace_s);
    return start(c, "DELETE", buf_view(&path), k, "application/json", buf_view(&body), done, arg);
}

struct client_op *client_evict(struct client *c, const char *namespace_, const char *pod,
                               const char *uid, int64_t grace_s, client_done *done, void *arg)
{
    CLEANUP(buf_release) struct buf path = BUF_INIT, body = BUF_INIT, options = BUF_INIT;
    buf_cstr(&path, "/api/v1/namespaces");
    add_part(&path, namespace_);
    buf_cstr(&path, "/pods");
    add_part(&path, pod);
    buf_cstr(&path, "/eviction");
    write_delete_options(&options, uid, grace_s);
    struct json_writer w;
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "policy/v1");
    json_w_kcstr(&w, "kind", "Eviction");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", pod);
    json_w_kcstr(&w, "namespace", namespace_);
    json_w_object_end(&w);
    json_w_key(&w, STR("deleteOptions"));
    json_w_number(&w, buf_view(&options)); /* JSON text as it is */
    json_w_object_end(&w);
    struct client_op *op =
        start(c, "POST", buf_view(&path), NULL, "application/json", buf_view(&body), done, arg);
    op->is_eviction = true;
    return op;
}

struct client_op *client_raw(struct client *c, const char *method, const char *path,
                             const char *content_type, struct str body, client_done *done,
                             void *arg)
{
    return start(c, method, str_from(path), NULL, content_type, body, done, arg);
}

struct client_op *client_scale(struct client *c, const char *api_version, const char *plural,
                               const char *namespace_, const char *name, int64_t replicas,
                               const char *resource_version, client_done *done, void *arg)
{
    CLEANUP(buf_release) struct buf path = BUF_INIT, body = BUF_INIT;
    buf_printf(&path, "%s/%s/namespaces", strchr(api_version, '/') ? "/apis" : "/api", api_version);
    add_part(&path, namespace_);
    add_part(&path, plural);
    add_part(&path, name);
    buf_cstr(&path, "/scale");
    if (replicas < 0)
        return start(c, "GET", buf_view(&path), NULL, NULL, STR_NONE, done, arg);
    struct json_writer w;
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    if (resource_version) {
        json_w_kobject(&w, "metadata");
        json_w_kcstr(&w, "resourceVersion", resource_version);
        json_w_object_end(&w);
    }
    json_w_kobject(&w, "spec");
    json_w_ki64(&w, "replicas", replicas);
    json_w_object_end(&w);
    json_w_object_end(&w);
    buf_cstr(&path, "?fieldManager=weft");
    return start(c, "PATCH", buf_view(&path), NULL, "application/merge-patch+json", buf_view(&body),
                 done, arg);
}
