/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Sockets, addresses and the life of a stream. TLS works on memory (stream_tls.c), so that one
 * place reads and writes the socket and a broken pipe never raises a signal. */
#include "scalers/stream.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "scalers/stream_tls.h"

#define OUT_BYTES_MAX (1024 * 1024)
#define READ_BYTES 16384
#define READS_A_TURN 16

enum stream_state { STREAM_RESOLVING, STREAM_CONNECTING, STREAM_HANDSHAKE, STREAM_OPEN };

/* What the resolving thread works on: on its own, since it may outlive the stream. */
struct resolve {
    struct stream *stream; /* NULL: nobody waits any more */
    char *host;
    char port[8];
    int flags, result;
    struct addrinfo *list;
};

struct stream {
    struct loop *loop;
    struct worker *worker;
    struct stream_handler handler;
    void *arg;
    char *host;
    uint16_t port;
    enum stream_state state;
    struct resolve *resolve;
    struct worker_job *job;
    struct addrinfo *list, *next; /* addresses and the one to try */
    struct loop_fd fd;
    struct loop_timer timer; /* the deadline of connecting; before that, the first step */
    int64_t deadline;
    struct stream_tls_session *tls; /* NULL: plain */
    struct buf out;                 /* bytes for the socket */
    struct buf early;               /* plain bytes written before the handshake ended */
    struct err last;                /* why the last address failed */
    unsigned busy;                  /* callbacks of ours on the stack */
    bool dead;
};

static void advance(struct stream *s);

/* ---- Ends ---- */

static void resolve_dispose(void *arg)
{
    struct resolve *r = arg;
    if (r->list)
        freeaddrinfo(r->list);
    free(r->host);
    free(r);
}

static void close_fd(struct stream *s)
{
    if (s->fd.fd < 0)
        return;
    loop_fd_remove(s->loop, &s->fd);
    close(s->fd.fd);
    s->fd.fd = -1;
}

static void destroy(struct stream *s)
{
    if (s->list)
        freeaddrinfo(s->list);
    stream_tls_free(s->tls);
    buf_release(&s->out);
    buf_release(&s->early);
    free(s->host);
    free(s);
}

static void leave(struct stream *s)
{
    if (--s->busy == 0 && s->dead)
        destroy(s);
}

static void stop(struct stream *s)
{
    s->dead = true;
    if (s->resolve)
        s->resolve->stream = NULL;
    s->resolve = NULL;
    if (s->job)
        worker_cancel(s->job);
    s->job = NULL;
    loop_timer_cancel(s->loop, &s->timer);
    close_fd(s);
}

void stream_close(struct stream *s)
{
    if (!s || s->dead)
        return;
    s->busy++;
    stop(s);
    leave(s);
}

static void fail(struct stream *s, const struct err *err)
{
    if (s->dead)
        return;
    s->busy++;
    stop(s);
    s->handler.closed(s->arg, err);
    leave(s);
}

static void fail_with(struct stream *s, enum err_code code, const char *what)
{
    struct err err = ERR_INIT;
    err_set(&err, code, "%s:%u: %s", s->host, s->port, what);
    fail(s, &err);
}

/* ---- Addresses ---- */

static bool link_local(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a;
        return (ntohl(v4->sin_addr.s_addr) >> 16) == 0xa9fe;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)a;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return v6->sin6_addr.s6_addr[12] == 0xa9 && v6->sin6_addr.s6_addr[13] == 0xfe;
    return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

static void resolve_run(void *arg)
{
    struct resolve *r = arg;
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | r->flags};
    r->result = getaddrinfo(r->host, r->port, &hints, &r->list);
}

static void resolved(void *arg)
{
    struct resolve *r = arg;
    struct stream *s = r->stream;
    if (!s)
        return;
    s->job = NULL;
    s->resolve = NULL;
    if (r->result != 0) {
        err_set(&s->last, ERR_RETRY, "%s:%u: name does not resolve: %s", s->host, s->port,
                gai_strerror(r->result));
    } else {
        s->list = s->next = r->list;
        r->list = NULL;
    }
    s->state = STREAM_CONNECTING;
    advance(s);
}

static void start_resolving(struct stream *s)
{
    struct resolve *r = xcalloc(1, sizeof(*r));
    *r = (struct resolve){.stream = s, .host = xstrdup(s->host), .flags = AI_NUMERICHOST};
    snprintf(r->port, sizeof(r->port), "%u", s->port);
    s->resolve = r;
    resolve_run(r);
    if (r->result == 0 || !s->worker) { /* an address needs no thread */
        resolved(r);
        resolve_dispose(r);
        return;
    }
    r->flags = 0;
    s->job = worker_start(s->worker, 0, resolve_run, resolve_dispose, resolved, r);
}

/* ---- Socket ---- */

static void watch(struct stream *s)
{
    struct err err = ERR_INIT;
    int events =
        s->state == STREAM_CONNECTING ? LOOP_WRITE : LOOP_READ | (s->out.len ? LOOP_WRITE : 0);
    if (s->fd.fd >= 0 && loop_fd_set(s->loop, &s->fd, events, &err) < 0)
        fail(s, &err);
}

static void flush(struct stream *s)
{
    if (s->tls)
        stream_tls_output(s->tls, &s->out);
    if (s->out.overflow) {
        fail_with(s, ERR_RETRY, "the server does not read what it is sent");
        return;
    }
    while (s->out.len && s->state >= STREAM_HANDSHAKE) {
        ssize_t n = send(s->fd.fd, s->out.data, s->out.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            fail_with(s, ERR_RETRY, strerrordesc_np(errno));
            return;
        }
        buf_consume(&s->out, (size_t)n);
    }
    watch(s);
}

static void became_open(struct stream *s)
{
    s->state = STREAM_OPEN;
    loop_timer_cancel(s->loop, &s->timer);
    s->handler.ready(s->arg);
    if (s->dead)
        return;
    struct buf early = s->early;
    s->early = (struct buf)BUF_INIT;
    if (early.len)
        stream_write(s, buf_view(&early));
    buf_release(&early);
}

static void deliver(void *arg, struct str bytes)
{
    struct stream *s = arg;
    if (!s->dead)
        s->handler.data(s->arg, bytes);
}

static void received(struct stream *s, struct str bytes)
{
    if (!s->tls) {
        deliver(s, bytes);
        return;
    }
    struct err err = ERR_INIT;
    bool done = false;
    if (stream_tls_input(s->tls, bytes, &done, deliver, s, s->state == STREAM_HANDSHAKE, &err) <
        0) {
        err_prefix(&err, "%s:%u", s->host, s->port);
        if (!s->dead)
            flush(s); /* the alert, so that the server's log says why */
        fail(s, &err);
        return;
    }
    if (s->dead)
        return;
    if (s->state == STREAM_HANDSHAKE && done) {
        became_open(s);
        if (!s->dead) /* records that came with the last one of the handshake */
            received(s, STR(""));
        return;
    }
    flush(s);
}

static void read_some(struct stream *s)
{
    char bytes[READ_BYTES];
    for (int i = 0; i < READS_A_TURN && !s->dead; i++) {
        ssize_t n = recv(s->fd.fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            received(s, (struct str){bytes, (size_t)n});
        else if (n == 0)
            fail_with(s, ERR_RETRY,
                      s->state == STREAM_HANDSHAKE ? "closed during the TLS handshake"
                                                   : "the server closed the connection");
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        else if (errno != EINTR)
            fail_with(s, ERR_RETRY, strerrordesc_np(errno));
    }
}

static void connected(struct stream *s)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(s->fd.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error) {
        err_set(&s->last, ERR_RETRY, "%s:%u: %s", s->host, s->port, strerrordesc_np(error));
        close_fd(s);
        advance(s);
        return;
    }
    s->state = STREAM_HANDSHAKE;
    if (s->tls)
        received(s, STR("")); /* writes the first flight */
    else
        became_open(s);
    if (!s->dead)
        flush(s);
}

static void on_fd(void *arg, int events)
{
    struct stream *s = arg;
    s->busy++;
    if (s->state == STREAM_CONNECTING)
        connected(s);
    else {
        if (events & LOOP_READ)
            read_some(s);
        if (!s->dead && (events & LOOP_WRITE))
            flush(s);
    }
    leave(s);
}

static void timed_out(void *arg)
{
    struct stream *s = arg;
    fail_with(s, ERR_RETRY,
              s->state == STREAM_RESOLVING    ? "name did not resolve in time"
              : s->state == STREAM_CONNECTING ? "connecting took too long"
                                              : "the TLS handshake took too long");
}

/* Tries the next address. */
static void advance(struct stream *s)
{
    while (s->next) {
        struct addrinfo *a = s->next;
        s->next = a->ai_next;
        if ((a->ai_family != AF_INET && a->ai_family != AF_INET6) || link_local(a->ai_addr)) {
            err_set(&s->last, ERR_DENIED, "%s:%u: link-local addresses are refused", s->host,
                    s->port);
            continue;
        }
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            err_errno(&s->last, errno, "%s:%u: socket", s->host, s->port);
            continue;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        s->fd = (struct loop_fd){.fd = fd, .fn = on_fd, .arg = s};
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS) {
            watch(s);
            return;
        }
        err_set(&s->last, ERR_RETRY, "%s:%u: %s", s->host, s->port, strerrordesc_np(errno));
        close(fd);
        s->fd.fd = -1;
    }
    struct err last = s->last;
    if (!last.code)
        err_set(&last, ERR_RETRY, "%s:%u: no address", s->host, s->port);
    fail(s, &last);
}

static void begin(void *arg)
{
    struct stream *s = arg;
    s->busy++;
    loop_timer_at(s->loop, &s->timer, s->deadline, timed_out, s);
    start_resolving(s);
    leave(s);
}

struct stream *stream_open(struct loop *l, struct worker *w, const struct stream_options *o,
                           const struct stream_handler *handler, void *arg, struct err *err)
{
    struct stream_tls_session *tls = NULL;
    if (o->tls && !(tls = stream_tls_new(o->tls, o->host, err)))
        return NULL;
    struct stream *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->worker = w;
    s->handler = *handler;
    s->arg = arg;
    s->host = xstrdup(o->host);
    s->port = o->port;
    s->tls = tls;
    s->fd.fd = -1;
    s->deadline = loop_now(l) + o->timeout;
    buf_init(&s->out, OUT_BYTES_MAX);
    buf_init(&s->early, OUT_BYTES_MAX);
    loop_timer_in(l, &s->timer, 0, begin, s);
    return s;
}

void stream_write(struct stream *s, struct str bytes)
{
    if (s->dead)
        return;
    if (s->state != STREAM_OPEN) {
        buf_str(&s->early, bytes);
        return;
    }
    if (s->tls)
        stream_tls_write(s->tls, bytes);
    else
        buf_str(&s->out, bytes);
    s->busy++;
    flush(s);
    leave(s);
}

int stream_parse_address(struct str text, struct str *ret_host, uint16_t *ret_port, struct err *err)
{
    struct str host, rest;
    size_t end = str_find_char(text, ']', 0);
    if (text.len && text.p[0] == '[' && end != SIZE_MAX) {
        host = str_sub(text, 1, end);
        rest = str_sub(text, end + 1, text.len);
    } else {
        size_t colon = str_find_char(text, ':', 0);
        if (colon != SIZE_MAX && str_find_char(text, ':', colon + 1) != SIZE_MAX)
            return err_set(err, ERR_INVALID, "\"%.*s\": an IPv6 address needs brackets",
                           STR_ARG(str_sub(text, 0, 80)));
        host = str_sub(text, 0, MIN(colon, text.len));
        rest = str_sub(text, host.len, text.len);
    }
    int64_t port;
    if (!host.len || !rest.len || rest.p[0] != ':' ||
        num_parse_range(str_sub(rest, 1, rest.len), 1, 65535, &port, NULL) < 0)
        return err_set(err, ERR_INVALID, "\"%.*s\" is not host:port",
                       STR_ARG(str_sub(text, 0, 80)));
    *ret_host = host;
    *ret_port = (uint16_t)port;
    return 0;
}
