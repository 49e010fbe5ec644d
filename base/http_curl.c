/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The real transport: libcurl's multi interface on the loop.
 *
 * libcurl tells which sockets to watch and when to wake; the loop calls it back. Ends are told from
 * a timer of the loop, so that no `done` runs inside libcurl or before start has returned.
 *
 * What libcurl does by itself is not always what a controller needs:
 *   - It sends a POST again when a kept connection breaks under it, also after the server has read
 *     it. Bodies are therefore read from a callback that cannot rewind: the caller hears UNKNOWN.
 *   - It keeps verified CA files for a day and compares certificates by the names of their files.
 *     They are passed as bytes instead, read anew when they change, so that a connection made with
 *     an old certificate never serves a request with the new one (http_curl_options.c).
 *   - Its HTTP/2 streams outlive a peer that has gone silent: see hang_up_if_silent. */

#include "base/http_curl.h"

#include <arpa/inet.h>
#include <assert.h>
#include <sys/socket.h>

#include "base/file_cache.h"
#include "base/num.h"

#define BODY_BYTES_MAX ((size_t)1 << 30)
#define LOOK_AGAIN (2 * NS_PER_MS)
#define HEADER_BYTES_MAX ((size_t)256 << 10)
#define STREAMS_A_CONNECTION 200L
#define CONNECTIONS_A_HOST 64L /* in HTTP/1.1 each watch has one */
#define CONNECTIONS_KEPT 256L  /* idle; by itself libcurl keeps four a running transfer */
#define CONNECTIONS_MAX 4096L

/* libcurl's socket, watched by the loop. */
struct socket_watch {
    struct loop_fd fd;
    struct loop_timer again; /* HTTP/2: one more look, see on_again */
    struct http_curl *owner;
    struct socket_watch *next, **at;
};

static struct http_curl *of(struct http *h)
{
    return CONTAINER_OF(h, struct http_curl, http);
}

static void destroy(struct http_curl *c);

static void enter(struct http_curl *c)
{
    c->depth++;
}

/* The transport may be gone afterwards. */
static void leave(struct http_curl *c)
{
    if (--c->depth == 0 && c->closing)
        destroy(c);
}

/* ---- Descriptors and the timer ---- */

static void deliver(void *arg);

static void act(struct http_curl *c, curl_socket_t s, int bits)
{
    int running;
    enter(c);
    curl_multi_socket_action(c->multi, s, bits, &running);
    if (!loop_timer_active(&c->deliver))
        loop_timer_in(c->loop, &c->deliver, 0, deliver, c);
    leave(c);
}

/* libcurl 7.88 can leave the last frames of a stream in its own buffers, when they came while
 * another stream of the connection was being read, and wake nobody: no socket and no timer will
 * ever tell. So after each look at a connection of HTTP/2 there is another one, shortly after,
 * until one brings nothing. */
static void on_again(void *arg)
{
    struct socket_watch *w = arg;
    struct http_curl *c = w->owner;
    uint64_t before = c->arrivals;
    loop_timer_in(c->loop, &w->again, LOOK_AGAIN, on_again, w);
    c->looking = &w->again;
    enter(c);
    act(c, w->fd.fd, CURL_CSELECT_IN);
    if (c->looking && c->arrivals == before)
        loop_timer_cancel(c->loop, c->looking);
    c->looking = NULL;
    leave(c);
}

static void on_ready(void *arg, int events)
{
    struct socket_watch *w = arg;
    if (w->owner->seen_http2 && !loop_timer_active(&w->again))
        loop_timer_in(w->owner->loop, &w->again, LOOK_AGAIN, on_again, w);
    act(w->owner, w->fd.fd,
        (events & LOOP_READ ? CURL_CSELECT_IN : 0) | (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static struct socket_watch *watch_new(struct http_curl *c, curl_socket_t s)
{
    struct socket_watch *w = xcalloc(1, sizeof(*w));
    *w = (struct socket_watch){.owner = c, .next = c->watches, .at = &c->watches};
    w->fd = (struct loop_fd){.fd = s, .fn = on_ready, .arg = w};
    if (w->next)
        w->next->at = &w->next;
    c->watches = w;
    curl_multi_assign(c->multi, s, w);
    return w;
}

static void watch_free(struct socket_watch *w)
{
    loop_fd_remove(w->owner->loop, &w->fd);
    loop_timer_cancel(w->owner->loop, &w->again);
    if (w->owner->looking == &w->again)
        w->owner->looking = NULL;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    free(w);
}

static int on_socket(CURL *easy UNUSED, curl_socket_t s, int what, void *arg, void *watch)
{
    struct http_curl *c = arg;
    struct socket_watch *w = watch;
    if (what == CURL_POLL_REMOVE) {
        curl_multi_assign(c->multi, s, NULL);
        if (w)
            watch_free(w);
        return 0;
    }
    if (!w)
        w = watch_new(c, s);
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

/* ---- The end of an operation ---- */

static void free_op(struct http_op *op)
{
    struct http_curl *c = op->owner;
    loop_timer_cancel(c->loop, &op->idle);
    curl_multi_remove_handle(c->multi, op->easy);
    curl_easy_cleanup(op->easy);
    curl_slist_free_all(op->headers);
    curl_slist_free_all(op->connect_to);
    if (op->body)
        explicit_bzero(op->body, op->body_len);
    free(op->body);
    vec_release(&op->answer);
    arena_release(&op->arena);
    *op->at = op->next;
    if (op->next)
        op->next->at = op->at;
    free(op);
}

/* Whether the server may have read some of the request. Bytes to a proxy that makes the tunnel do
 * not count: only after it is the transfer said to begin. */
static bool was_sent(const struct http_op *op)
{
    long bytes = 0;
    curl_off_t began = 0;
    curl_easy_getinfo(op->easy, CURLINFO_REQUEST_SIZE, &bytes);
    curl_easy_getinfo(op->easy, CURLINFO_PRETRANSFER_TIME_T, &began);
    return bytes > 0 && began > 0;
}

/* Where a connection goes from and to; libcurl 7.88 has no number for it. */
struct route {
    char ip[64];
    long port, local_port;
};

static bool route_of(const struct http_op *op, struct route *ret)
{
    const char *ip = NULL;
    memset(ret, 0, sizeof(*ret));
    curl_easy_getinfo(op->easy, CURLINFO_PRIMARY_IP, &ip);
    curl_easy_getinfo(op->easy, CURLINFO_PRIMARY_PORT, &ret->port);
    curl_easy_getinfo(op->easy, CURLINFO_LOCAL_PORT, &ret->local_port);
    if (!ip || !ip[0] || ret->local_port <= 0)
        return false;
    snprintf(ret->ip, sizeof(ret->ip), "%s", ip);
    return true;
}

static long describe_address(const struct sockaddr_storage *a, char *ip, socklen_t size)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    if (a->ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, ip, size))
        return ntohs(v4->sin_port);
    if (a->ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, ip, size))
        return ntohs(v6->sin6_port);
    return -1;
}

static bool is_route_of(int fd, const struct route *r)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_len = sizeof(here), there_len = sizeof(there);
    char ip[64] = "";
    return getsockname(fd, (struct sockaddr *)&here, &here_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_len) == 0 &&
           describe_address(&here, ip, sizeof(ip)) == r->local_port &&
           describe_address(&there, ip, sizeof(ip)) == r->port && strcmp(ip, r->ip) == 0;
}

/* An operation ran out of time on a connection of HTTP/2. libcurl would keep the connection and put
 * the next request on it; so when no byte has come for any of its streams since this one's last, it
 * is shut down, and the others end as they would have: later and one by one. */
static void hang_up_if_silent(const struct http_op *op)
{
    const struct http_curl *c = op->owner;
    struct route route, other;
    curl_socket_t s = CURL_SOCKET_BAD;
    if (!route_of(op, &route))
        return;
    for (const struct http_op *o = c->ops; o; o = o->next)
        if (o != op && o->last_byte > op->last_byte && o->status && route_of(o, &other) &&
            memcmp(&route, &other, sizeof(route)) == 0)
            return;
    curl_easy_getinfo(op->easy, CURLINFO_ACTIVESOCKET, &s);
    if (s != CURL_SOCKET_BAD && is_route_of(s, &route))
        shutdown(s, SHUT_RDWR);
    for (const struct socket_watch *w = c->watches; w; w = w->next)
        if (is_route_of(w->fd.fd, &route))
            shutdown(w->fd.fd, SHUT_RDWR);
}

/* Tells the end and frees the operation; the callback may close the transport. */
static void end(struct http_op *op, const struct err *err)
{
    void (*done)(void *, int, const struct err *) = op->handler.done;
    void *arg = op->arg;
    int status = op->status;
    free_op(op);
    if (done)
        done(arg, status, err);
}

static void on_idle(void *arg)
{
    struct http_op *op = arg;
    struct err err = ERR_INIT;
    char text[40];
    struct str time = time_format_duration(text, op->idle_timeout);
    err_set(&err, was_sent(op) ? ERR_UNKNOWN : ERR_RETRY, "no byte came for %.*s", STR_ARG(time));
    hang_up_if_silent(op);
    end(op, &err);
}

static void touch(struct http_op *op)
{
    op->last_byte = loop_now(op->owner->loop);
    op->owner->arrivals++;
    if (op->idle_timeout)
        loop_timer_in(op->owner->loop, &op->idle, op->idle_timeout, on_idle, op);
}

/* ---- What arrives ---- */

static void send_head(struct http_op *op)
{
    op->head_sent = true;
    if (op->handler.head) {
        const struct http_response r = {op->status, op->answer.v, op->answer.len};
        op->handler.head(op->arg, &r);
    }
}

static void begin_head(struct http_op *op, struct str line)
{
    size_t space = str_find_char(line, ' ', 0);
    int64_t status = 0;
    if (space != SIZE_MAX)
        num_parse_range(str_sub(line, space + 1, space + 4), 100, 999, &status, NULL);
    op->status = (int)status;
    op->owner->seen_http2 |= str_has_prefix(line, STR("HTTP/2"));
    vec_clear(&op->answer);
}

/* Each line of the head, beginning with the status; a 100 Continue is a head of its own. The empty
 * line ends it: a stream's head is told before its first byte, which may be long in coming. */
size_t http_curl_on_header(char *data, size_t size, size_t n, void *arg)
{
    struct http_op *op = arg;
    struct str line = {data, size * n};
    if (op->dead)
        return 0;
    touch(op);
    op->header_bytes += line.len;
    if (op->header_bytes > HEADER_BYTES_MAX) {
        op->headers_too_large = true;
        return 0;
    }
    if (op->head_sent)
        return line.len; /* trailers */
    size_t colon = str_find_char(line, ':', 0);
    if (str_has_prefix(line, STR("HTTP/"))) {
        begin_head(op, line);
    } else if (str_trim(line).len == 0) {
        if (op->status >= 200)
            send_head(op);
    } else if (colon != SIZE_MAX) {
        struct http_header h = {
            .name = arena_str(&op->arena, str_sub(line, 0, colon)),
            .value = arena_str(&op->arena, str_trim(str_sub(line, colon + 1, line.len))),
        };
        vec_push(&op->answer, h);
    }
    return op->dead ? 0 : line.len;
}

size_t http_curl_on_body(char *data, size_t size, size_t n, void *arg)
{
    struct http_op *op = arg;
    size_t len = size * n;
    if (op->dead)
        return 0;
    touch(op);
    op->answer_bytes += len;
    if (op->answer_bytes > op->answer_bytes_max) {
        op->too_large = true;
        return 0;
    }
    if (op->handler.chunk)
        op->handler.chunk(op->arg, (struct str){data, len});
    return op->dead ? 0 : len;
}

/* ---- Ends ---- */

/* A server that refuses our certificate, or misses one, says so in TLS 1.3 only after the handshake
 * is over on our side: as an alert in place of the answer. */
static bool is_certificate_alert(const struct http_op *op)
{
    struct str s = str_from(op->message);
    return str_find(s, STR("alert"), 0) != SIZE_MAX &&
           (str_find(s, STR("certificate"), 0) != SIZE_MAX ||
            str_find(s, STR("unknown ca"), 0) != SIZE_MAX ||
            str_find(s, STR("access denied"), 0) != SIZE_MAX);
}

/* The same without the alert: cut before any answer, over TLS, and no certificate was shown. */
static bool is_bare_cut(const struct http_op *op, CURLcode result)
{
    const char *scheme = NULL;
    curl_easy_getinfo(op->easy, CURLINFO_SCHEME, &scheme);
    return str_eq_nocase(str_from(scheme), STR("https")) && !op->status && !op->has_client_cert &&
           (result == CURLE_RECV_ERROR || result == CURLE_SEND_ERROR ||
            result == CURLE_GOT_NOTHING);
}

static enum err_code code_of(const struct http_op *op, CURLcode result)
{
    enum err_code lost = was_sent(op) ? ERR_UNKNOWN : ERR_RETRY;
    switch (result) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: /* also an answer that is not HTTP */
        return lost == ERR_UNKNOWN ? ERR_UNKNOWN : ERR_INVALID;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
        return ERR_DENIED;
    default:
        return is_certificate_alert(op) ? ERR_DENIED : lost;
    }
}

static void describe(const struct http_op *op, CURLcode result, struct err *err)
{
    const char *why = op->message[0] ? op->message : curl_easy_strerror(result);
    enum err_code code = code_of(op, result);
    if (op->too_large)
        err_set(err, ERR_INVALID, "the answer is larger than %zu bytes", op->answer_bytes_max);
    else if (op->headers_too_large)
        err_set(err, ERR_INVALID, "the answer's headers are larger than %zu bytes",
                HEADER_BYTES_MAX);
    else if (code == ERR_DENIED && is_certificate_alert(op))
        err_set(err, code, "the server refuses our client certificate%s: %s",
                op->has_client_cert ? "" : " (none was given)", why);
    else if (is_bare_cut(op, result))
        err_set(err, code,
                "%s (no client certificate was given: a server that wants one may end a TLS 1.3 "
                "connection this way)",
                why);
    else
        err_set(err, code, "%s", why);
}

static void tell_end(struct http_op *op, CURLcode result)
{
    struct err err = ERR_INIT;
    if (op->dead) {
        free_op(op);
        return;
    }
    /* libcurl takes a head that was cut for a whole one. */
    if (result == CURLE_OK && !op->head_sent)
        result = CURLE_WEIRD_SERVER_REPLY;
    if (result != CURLE_OK)
        describe(op, result, &err);
    if (result == CURLE_OPERATION_TIMEDOUT)
        hang_up_if_silent(op);
    end(op, result == CURLE_OK ? NULL : &err);
}

static void deliver(void *arg)
{
    struct http_curl *c = arg;
    CURLMsg *m;
    int left;
    enter(c);
    while (!c->closing && (m = curl_multi_info_read(c->multi, &left)) != NULL) {
        struct http_op *op = NULL;
        CURLcode result = m->data.result; /* the message dies with its handle */
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &op);
        if (m->msg == CURLMSG_DONE)
            tell_end(op, result);
    }
    leave(c);
}

/* ---- The vtable ---- */

static struct http_op *curl_start(struct http *h, const struct http_request *req,
                                  const struct http_handler *handler, void *arg, struct err *err)
{
    struct http_curl *c = of(h);
    struct http_op *op = xcalloc(1, sizeof(*op));
    *op = (struct http_op){.owner = c,
                           .next = c->ops,
                           .at = &c->ops,
                           .handler = *handler,
                           .arg = arg,
                           .answer_bytes_max =
                               req->body_bytes_max ? req->body_bytes_max : BODY_BYTES_MAX};
    arena_init(&op->arena, 0, 1024);
    if (op->next)
        op->next->at = &op->next;
    c->ops = op;
    op->easy = curl_easy_init();
    assert(op->easy);
    if (http_curl_options(op, req, err) < 0) {
        free_op(op);
        return NULL;
    }
    if (c->closing || curl_multi_add_handle(c->multi, op->easy) != CURLM_OK) {
        err_set(err, ERR_RETRY, "the transport takes no request");
        free_op(op);
        return NULL;
    }
    touch(op);
    return op;
}

static void reap(void *arg)
{
    free_op(arg);
}

/* Inside one of its own callbacks an operation cannot be taken out of libcurl: it is marked, and
 * freed from the loop. */
static void curl_cancel(struct http *h, struct http_op *op)
{
    op->dead = true;
    op->handler = (struct http_handler){0};
    loop_timer_in(of(h)->loop, &op->idle, 0, reap, op);
}

static void destroy(struct http_curl *c)
{
    while (c->ops)
        free_op(c->ops);
    curl_multi_cleanup(c->multi);
    loop_timer_cancel(c->loop, &c->timer);
    loop_timer_cancel(c->loop, &c->deliver);
    while (c->watches)
        watch_free(c->watches);
    file_cache_free(c->files);
    free(c);
}

static void curl_close(struct http *h)
{
    struct http_curl *c = of(h);
    c->closing = true;
    for (struct http_op *op = c->ops; op; op = op->next)
        curl_cancel(h, op);
    if (c->depth == 0)
        destroy(c);
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
    c->files = file_cache_new();
    c->multi = curl_multi_init();
    assert(c->multi);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(c->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, STREAMS_A_CONNECTION);
    curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, CONNECTIONS_A_HOST);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
    curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, CONNECTIONS_MAX);
    return &c->http;
}
