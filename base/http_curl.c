/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The real transport: libcurl's multi interface on the loop. */

#include <assert.h>
#include <curl/curl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/http.h"
#include "base/num.h"

#define TIMEOUT_STANDARD (30 * NS_PER_S)
#define CONNECT_TIMEOUT_MS 10000L
#define BODY_BYTES_MAX ((size_t)1 << 30)
#define HEADERS_MAX 256

struct http_curl {
    struct http http;
    struct loop *loop;
    CURLM *multi;
    struct loop_timer timer;
    struct http_op *ops; /* all under way */
    struct loop_timer deliver;
    int64_t files_stamp; /* newest change of any TLS file seen: connections older than it are not
                            reused */
};

/* libcurl's socket, watched by the loop. */
struct socket_watch {
    struct loop_fd fd;
    struct http_curl *owner;
};

struct http_op {
    struct http_curl *owner;
    struct http_op *next, *prev;
    CURL *easy;
    struct curl_slist *headers;
    struct http_handler handler;
    void *arg;
    struct loop_timer idle;
    int64_t idle_timeout;
    size_t body_bytes, body_bytes_max;
    bool head_sent, too_large, dead;
    bool request_sent; /* some of the request went out on the connection */
    int status;
    struct arena arena; /* the answer's headers */
    struct http_header answer[HEADERS_MAX];
    size_t n_answer;
    CURLcode result;
    char message[CURL_ERROR_SIZE];
};

static struct http_curl *of(struct http *h)
{
    return CONTAINER_OF(h, struct http_curl, http);
}

/* ---- Descriptors and the timer ---- */

static void check_ended(struct http_curl *c);

static void act(struct http_curl *c, curl_socket_t s, int bits)
{
    int running;
    curl_multi_socket_action(c->multi, s, bits, &running);
    check_ended(c);
}

static void on_ready(void *arg, int events)
{
    struct socket_watch *w = arg;
    act(w->owner, w->fd.fd,
        (events & LOOP_READ ? CURL_CSELECT_IN : 0) | (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static int on_socket(CURL *easy UNUSED, curl_socket_t s, int what, void *arg, void *watch)
{
    struct http_curl *c = arg;
    struct socket_watch *w = watch;
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            loop_fd_remove(c->loop, &w->fd);
            free(w);
            curl_multi_assign(c->multi, s, NULL);
        }
        return 0;
    }
    if (!w) {
        w = xcalloc(1, sizeof(*w));
        w->owner = c;
        w->fd = (struct loop_fd){.fd = s, .fn = on_ready, .arg = w};
        curl_multi_assign(c->multi, s, w);
    }
    int events = (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);
    loop_fd_set(c->loop, &w->fd, events, NULL);
    return 0;
}

static void on_timeout(void *arg)
{
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi UNUSED, long ms, void *arg)
{
    struct http_curl *c = arg;
    if (ms < 0)
        loop_timer_cancel(c->loop, &c->timer);
    else
        loop_timer_in(c->loop, &c->timer, ms * NS_PER_MS, on_timeout, c);
    return 0;
}

/* ---- One operation ---- */

static void unlink_op(struct http_op *op)
{
    struct http_curl *c = op->owner;
    if (op->prev)
        op->prev->next = op->next;
    else if (c->ops == op)
        c->ops = op->next;
    if (op->next)
        op->next->prev = op->prev;
}

static void free_op(struct http_op *op)
{
    struct http_curl *c = op->owner;
    loop_timer_cancel(c->loop, &op->idle);
    curl_multi_remove_handle(c->multi, op->easy);
    curl_easy_cleanup(op->easy);
    curl_slist_free_all(op->headers);
    arena_release(&op->arena);
    unlink_op(op);
    free(op);
}

static void on_idle(void *arg)
{
    struct http_op *op = arg;
    op->dead = true;
    struct err err = ERR_INIT;
    char text[40];
    err_set(&err, op->request_sent ? ERR_UNKNOWN : ERR_RETRY, "no byte came for %s",
            time_format_duration(text, op->idle_timeout).p);
    void (*done)(void *, int, const struct err *) = op->handler.done;
    void *arg_of = op->arg;
    int status = op->status;
    free_op(op);
    done(arg_of, status, &err);
}

static void touch(struct http_op *op)
{
    if (op->idle_timeout)
        loop_timer_in(op->owner->loop, &op->idle, op->idle_timeout, on_idle, op);
}

static void send_head(struct http_op *op)
{
    if (op->head_sent)
        return;
    op->head_sent = true;
    if (op->handler.head) {
        const struct http_response r = {op->status, op->answer, op->n_answer};
        op->handler.head(op->arg, &r);
    }
}

/* Each header line, and the status line that begins a new set (after 100 Continue, say). */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    struct http_op *op = arg;
    struct str s = {line, size * n};
    if (op->dead)
        return 0;
    touch(op);
    if (str_has_prefix(s, STR("HTTP/"))) {
        size_t space = str_find_char(s, ' ', 0);
        int64_t status = 0;
        num_parse_range(str_sub(s, space + 1, space + 4), 100, 999, &status, NULL);
        op->status = (int)status;
        op->n_answer = 0;
        return s.len;
    }
    size_t colon = str_find_char(s, ':', 0);
    if (colon != SIZE_MAX && op->n_answer < HEADERS_MAX) {
        struct http_header *h = &op->answer[op->n_answer];
        h->name = arena_str(&op->arena, str_sub(s, 0, colon));
        h->value = arena_str(&op->arena, str_trim(str_sub(s, colon + 1, s.len)));
        op->n_answer += h->name.p && h->value.p;
    }
    return s.len;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct http_op *op = arg;
    size_t len = size * n;
    if (op->dead)
        return 0;
    touch(op);
    send_head(op);
    if (op->dead)
        return 0;
    op->body_bytes += len;
    if (op->body_bytes > op->body_bytes_max) {
        op->too_large = true;
        return 0;
    }
    if (op->handler.chunk)
        op->handler.chunk(op->arg, (struct str){data, len});
    return op->dead ? 0 : len;
}

/* libcurl tells when it sends; from then on the server may have acted. */
static int on_debug(CURL *easy UNUSED, curl_infotype type, char *data UNUSED, size_t n UNUSED,
                    void *arg)
{
    struct http_op *op = arg;
    if (type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT)
        op->request_sent = true;
    return 0;
}

static enum err_code code_of(const struct http_op *op)
{
    switch (op->result) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_OUT_OF_MEMORY:
        return ERR_INVALID;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
        return ERR_DENIED;
    default:
        return op->too_large ? ERR_INVALID : op->request_sent ? ERR_UNKNOWN : ERR_RETRY;
    }
}

static void describe(const struct http_op *op, struct err *err)
{
    const char *why = op->message[0] ? op->message : curl_easy_strerror(op->result);
    if (op->too_large)
        err_set(err, ERR_INVALID, "the answer is larger than %zu bytes", op->body_bytes_max);
    else if (op->result == CURLE_RECV_ERROR && op->request_sent)
        err_set(err, code_of(op),
                "%s (a server that wants a client certificate ends TLS 1.3 connections this way)",
                why);
    else
        err_set(err, code_of(op), "%s", why);
}

/* Ends are told from a timer of the loop, so that no callback runs inside libcurl or before start
 * has returned. */
static void deliver(void *arg)
{
    struct http_curl *c = arg;
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(c->multi, &left)) != NULL) {
        if (m->msg != CURLMSG_DONE)
            continue;
        struct http_op *op = NULL;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &op);
        op->result = m->data.result;
        struct err err = ERR_INIT;
        bool good = op->result == CURLE_OK;
        if (good)
            send_head(op);
        if (op->dead) {
            free_op(op);
            continue;
        }
        if (!good)
            describe(op, &err);
        void (*done)(void *, int, const struct err *) = op->handler.done;
        void *arg_of = op->arg;
        int status = op->status;
        op->dead = true;
        free_op(op);
        if (done)
            done(arg_of, status, good ? NULL : &err);
    }
}

static void check_ended(struct http_curl *c)
{
    if (!loop_timer_active(&c->deliver))
        loop_timer_in(c->loop, &c->deliver, 0, deliver, c);
}

/* ---- Options of a request ---- */

static void set_blob(CURL *easy, CURLoption option, struct str pem)
{
    struct curl_blob blob = {(void *)(uintptr_t)pem.p, pem.len, CURL_BLOB_COPY};
    curl_easy_setopt(easy, option, &blob);
}

static int64_t change_time(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec
                                        : 0;
}

/* A changed certificate file must not be bypassed by a connection that was made with the old one.
 */
static void watch_files(struct http_curl *c, CURL *easy, const struct http_tls *t)
{
    int64_t newest =
        MAX(change_time(t->ca_file), MAX(change_time(t->cert_file), change_time(t->key_file)));
    if (c->files_stamp && newest > c->files_stamp)
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    c->files_stamp = MAX(c->files_stamp, newest);
}

static void set_tls(struct http_curl *c, CURL *easy, const struct http_tls *t)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (!t)
        return;
    watch_files(c, easy, t);
    if (t->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, t->ca_file);
    if (t->ca_pem.len)
        set_blob(easy, CURLOPT_CAINFO_BLOB, t->ca_pem);
    if (t->cert_file)
        curl_easy_setopt(easy, CURLOPT_SSLCERT, t->cert_file);
    if (t->key_file)
        curl_easy_setopt(easy, CURLOPT_SSLKEY, t->key_file);
    if (t->cert_pem.len)
        set_blob(easy, CURLOPT_SSLCERT_BLOB, t->cert_pem);
    if (t->key_pem.len)
        set_blob(easy, CURLOPT_SSLKEY_BLOB, t->key_pem);
    if (t->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static int set_headers(struct http_op *op, const struct http_request *req, struct err *err)
{
    for (size_t i = 0; i < req->n_headers; i++) {
        CLEANUP(buf_release) struct buf line = {.cap = 64 * 1024};
        buf_printf(&line, "%.*s: %.*s", STR_ARG(req->headers[i].name),
                   STR_ARG(req->headers[i].value));
        if (line.overflow || str_find_char(buf_view(&line), '\n', 0) != SIZE_MAX ||
            str_find_char(buf_view(&line), '\r', 0) != SIZE_MAX)
            return err_set(err, ERR_INVALID, "the header %.*s cannot be sent",
                           STR_ARG(req->headers[i].name));
        struct curl_slist *grown = curl_slist_append(op->headers, line.data);
        if (grown)
            op->headers = grown;
    }
    struct curl_slist *grown = curl_slist_append(op->headers, "Expect:");
    if (grown)
        op->headers = grown;
    curl_easy_setopt(op->easy, CURLOPT_HTTPHEADER, op->headers);
    return 0;
}

static void set_method(struct http_op *op, const struct http_request *req)
{
    char method[16];
    snprintf(method, sizeof(method), "%.*s", STR_ARG(req->method));
    if (req->body.p || req->body.len) {
        curl_easy_setopt(op->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.len);
        curl_easy_setopt(op->easy, CURLOPT_COPYPOSTFIELDS, req->body.len ? req->body.p : "");
    } else if (strcmp(method, "HEAD") == 0) {
        curl_easy_setopt(op->easy, CURLOPT_NOBODY, 1L);
    }
    if (strcmp(method, "GET") != 0 || req->body.len)
        curl_easy_setopt(op->easy, CURLOPT_CUSTOMREQUEST, method);
}

static int set_options(struct http_curl *c, struct http_op *op, const struct http_request *req,
                       struct err *err)
{
    CURL *e = op->easy;
    char *url = xstr_dup(req->url);
    CURLcode code = curl_easy_setopt(e, CURLOPT_URL, url);
    free(url);
    if (code != CURLE_OK)
        return err_set(err, ERR_INVALID, "a URL that cannot be used");
    curl_easy_setopt(e, CURLOPT_PRIVATE, op);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, op->message);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION,
                     (long)(req->http1_only ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, op);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, op);
    curl_easy_setopt(e, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(e, CURLOPT_DEBUGFUNCTION, on_debug);
    curl_easy_setopt(e, CURLOPT_DEBUGDATA, op);
    int64_t timeout = req->timeout ? req->timeout : TIMEOUT_STANDARD;
    if (timeout != TIME_NEVER)
        curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)MAX(timeout / NS_PER_MS, (int64_t)1));
    if (req->proxy)
        curl_easy_setopt(e, CURLOPT_PROXY, req->proxy);
    set_tls(c, e, req->tls);
    set_method(op, req);
    return set_headers(op, req, err);
}

static struct http_op *curl_start(struct http *h, const struct http_request *req,
                                  const struct http_handler *handler, void *arg, struct err *err)
{
    struct http_curl *c = of(h);
    struct http_op *op = xcalloc(1, sizeof(*op));
    op->owner = c;
    op->handler = *handler;
    op->arg = arg;
    op->idle_timeout = req->idle_timeout;
    op->body_bytes_max = req->body_bytes_max ? req->body_bytes_max : BODY_BYTES_MAX;
    arena_init(&op->arena, 1 << 20, 1024);
    op->next = c->ops;
    if (c->ops)
        c->ops->prev = op;
    c->ops = op;
    op->easy = curl_easy_init();
    assert(op->easy);
    if (set_options(c, op, req, err) < 0) {
        free_op(op);
        return NULL;
    }
    if (curl_multi_add_handle(c->multi, op->easy) != CURLM_OK) {
        err_set(err, ERR_RETRY, "the transport takes no request");
        free_op(op);
        return NULL;
    }
    touch(op);
    return op;
}

static void reap(void *arg)
{
    struct http_op *op = arg;
    free_op(op);
}

/* Within one of its own callbacks an operation cannot be taken out of libcurl: it is marked, and
 * freed from the loop. */
static void curl_cancel(struct http *h, struct http_op *op)
{
    struct http_curl *c = of(h);
    op->dead = true;
    op->handler = (struct http_handler){0};
    loop_timer_in(c->loop, &op->idle, 0, reap, op);
}

static void curl_close(struct http *h)
{
    struct http_curl *c = of(h);
    while (c->ops)
        free_op(c->ops);
    loop_timer_cancel(c->loop, &c->timer);
    loop_timer_cancel(c->loop, &c->deliver);
    curl_multi_cleanup(c->multi);
    loop_timer_cancel(c->loop, &c->timer);
    free(c);
}

static const struct http_vtable vtable = {curl_start, curl_cancel, curl_close};

struct http *http_curl_new(struct loop *l, struct err *err)
{
    static bool ready;
    if (!ready && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        err_set(err, ERR_RETRY, "libcurl cannot start");
        return NULL;
    }
    ready = true;
    struct http_curl *c = xcalloc(1, sizeof(*c));
    c->http.vt = &vtable;
    c->loop = l;
    c->multi = curl_multi_init();
    assert(c->multi);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(c->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 200L);
    return &c->http;
}
