/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* libmicrohttpd on the loop: its epoll descriptor is one of ours. */

#include "base/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"

#define BODY_BYTES_MAX (64 * 1024)
#define DISCARD_BYTES_MAX (1024 * 1024) /* of a body without a length that is refused */
#define CONNECTIONS_MAX 256
#define CONNECTIONS_PER_ADDRESS_MAX 128
#define IDLE_SECONDS 30

struct route {
    char *path;
    void (*fn)(void *arg, const struct serve_request *req, struct serve_response *ret);
    void *arg;
};

struct serve {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct loop_fd fd;
    struct loop_timer timer;
    struct {
        VEC(struct route);
    } routes;
};

/* What is kept of one request while its body comes in. */
struct exchange {
    struct buf body;
    size_t discarded;
};

static void run(void *arg);

static void run_fd(void *arg, int events UNUSED)
{
    run(arg);
}

static void run(void *arg)
{
    struct serve *s = arg;
    MHD_run(s->daemon);
    MHD_UNSIGNED_LONG_LONG ms;
    if (MHD_get_timeout(s->daemon, &ms) == MHD_YES)
        loop_timer_in(s->loop, &s->timer, (int64_t)MIN(ms, 60000ULL) * NS_PER_MS, run, s);
    else
        loop_timer_cancel(s->loop, &s->timer);
}

static const struct route *find_route(const struct serve *s, struct str path)
{
    const struct route *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < s->routes.len; i++) {
        struct str route = str_from(s->routes.v[i].path);
        bool prefix = route.len && route.p[route.len - 1] == '/';
        bool matches = prefix ? str_has_prefix(path, route) : str_eq(path, route);
        if (matches && (!best || route.len >= best_len)) {
            best = &s->routes.v[i];
            best_len = route.len;
        }
    }
    return best;
}

static enum MHD_Result send_response(struct MHD_Connection *c, int status, const char *type,
                                     struct str body)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        body.len, (void *)(uintptr_t)(body.len ? body.p : ""), MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result refuse_body(struct MHD_Connection *c)
{
    return send_response(c, 413, "text/plain; charset=utf-8", STR("the body is too large\n"));
}

/* The query is put together again from what libmicrohttpd has taken apart, decoded: "a=b&c". */
static enum MHD_Result add_argument(void *arg, enum MHD_ValueKind kind UNUSED, const char *key,
                                    const char *value)
{
    struct buf *query = arg;
    buf_printf(query, "%s%s%s%s", query->len ? "&" : "", key, value ? "=" : "", value ? value : "");
    return MHD_YES;
}

static enum MHD_Result answer(struct serve *s, struct MHD_Connection *c, const char *url,
                              const char *method, struct exchange *x)
{
    const struct route *route = find_route(s, str_from(url));
    if (x->body.overflow)
        return refuse_body(c);
    if (!route)
        return send_response(c, 404, "text/plain; charset=utf-8", STR("there is no such page\n"));
    CLEANUP(buf_release) struct buf query = {.cap = 8192};
    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, add_argument, &query);
    struct serve_request request = {
        .method = str_from(method),
        .path = str_from(url),
        .query = buf_view(&query),
        .body = buf_view(&x->body),
    };
    struct serve_response response = {.status = 200, .content_type = "text/plain; charset=utf-8"};
    route->fn(route->arg, &request, &response);
    enum MHD_Result result =
        send_response(c, response.status, response.content_type, buf_view(&response.body));
    buf_release(&response.body);
    return result;
}

static bool announces_too_much(struct MHD_Connection *c)
{
    int64_t length;
    struct str text =
        str_from(MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH));
    return text.len && num_parse_range(text, 0, BODY_BYTES_MAX, &length, NULL) < 0;
}

/* Called once for the head, then for each piece of the body, then once more to answer. A body that
 * names its length is refused before it is sent; another is read to its end, within reason, for the
 * answer to be heard. */
static enum MHD_Result take_request(void *arg, struct MHD_Connection *c, const char *url,
                                    const char *method, const char *version UNUSED,
                                    const char *data, size_t *data_len, void **state)
{
    struct exchange *x = *state;
    if (!x) {
        x = xcalloc(1, sizeof(*x));
        buf_init(&x->body, BODY_BYTES_MAX);
        *state = x;
        return announces_too_much(c) ? refuse_body(c) : MHD_YES;
    }
    if (*data_len) {
        buf_add(&x->body, data, *data_len);
        x->discarded += x->body.overflow ? *data_len : 0;
        *data_len = 0;
        return x->discarded > DISCARD_BYTES_MAX ? MHD_NO : MHD_YES;
    }
    return answer(arg, c, url, method, x);
}

static void end_request(void *arg UNUSED, struct MHD_Connection *c UNUSED, void **state,
                        enum MHD_RequestTerminationCode why UNUSED)
{
    struct exchange *x = *state;
    if (!x)
        return;
    buf_release(&x->body);
    free(x);
    *state = NULL;
}

static int parse_address(const char *address, uint16_t port, struct sockaddr_storage *ret,
                         struct err *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        memcpy(ret, &v4, sizeof(v4));
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        memcpy(ret, &v6, sizeof(v6));
    else
        return err_set(err, ERR_INVALID, "'%.60s' is not an address to listen on", address);
    return 0;
}

struct serve *serve_new(struct loop *l, const char *address, uint16_t port, struct err *err)
{
    struct sockaddr_storage at;
    if (parse_address(address, port, &at, err) < 0)
        return NULL;
    struct serve *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    unsigned flags = MHD_USE_EPOLL;
    if (at.ss_family == AF_INET6) /* "::" takes IPv4 as well */
        flags |= strcmp(address, "::") == 0 ? (unsigned)MHD_USE_DUAL_STACK : (unsigned)MHD_USE_IPv6;
    errno = 0;
    s->daemon = MHD_start_daemon(
        flags, port, NULL, NULL, take_request, s, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_PER_ADDRESS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        err_errno(err, errno ? errno : EADDRINUSE, "cannot listen on %s port %u", address,
                  (unsigned)port);
        serve_free(s);
        return NULL;
    }
    s->fd = (struct loop_fd){.fd = info->epoll_fd, .fn = run_fd, .arg = s};
    if (loop_fd_set(l, &s->fd, LOOP_READ, err) < 0) {
        serve_free(s);
        return NULL;
    }
    return s;
}

void serve_free(struct serve *s)
{
    if (!s)
        return;
    loop_timer_cancel(s->loop, &s->timer);
    if (s->fd.active)
        loop_fd_remove(s->loop, &s->fd);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    for (size_t i = 0; i < s->routes.len; i++)
        free(s->routes.v[i].path);
    vec_release(&s->routes);
    free(s);
}

uint16_t serve_port(const struct serve *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void serve_route(struct serve *s, const char *path,
                 void (*fn)(void *arg, const struct serve_request *req, struct serve_response *ret),
                 void *arg)
{
    vec_push(&s->routes, (struct route){xstrdup(path), fn, arg});
}
