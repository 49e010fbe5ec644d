/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The web server, asked by the real transport on the same loop and by raw sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/serve.h"
#include "test/unit/base/exchange.h"

struct site {
    struct client c;
    struct serve *s;
    char base[64];
    int calls;
};

/* Says what it was asked, and in which route. */
static void echo(void *arg, const struct serve_request *req, struct serve_response *ret)
{
    buf_printf(&ret->body, "%s|%.*s|%.*s|%.*s|%.*s", (const char *)arg, STR_ARG(req->method),
               STR_ARG(req->path), STR_ARG(req->query), STR_ARG(req->body));
}

static void teapot(void *arg, const struct serve_request *req, struct serve_response *ret)
{
    (void)req;
    ++*(int *)arg;
    ret->status = 418;
    ret->content_type = "application/json";
    buf_cstr(&ret->body, "{}");
}

static void large(void *arg, const struct serve_request *req, struct serve_response *ret)
{
    (void)arg;
    (void)req;
    for (int i = 0; i < 200000; i++)
        buf_printf(&ret->body, "%09d\n", i);
}

static void site_open(struct site *s, const char *address)
{
    struct err err = ERR_INIT;
    client_open(&s->c);
    s->calls = 0;
    s->s = serve_new(s->c.loop, address, 0, &err);
    if (!s->s)
        fail_msg("%s", err.msg);
    assert_true(serve_port(s->s) != 0);
    snprintf(s->base, sizeof(s->base), "http://127.0.0.1:%u", (unsigned)serve_port(s->s));
    serve_route(s->s, "/", echo, "root");
    serve_route(s->s, "/exact", echo, "exact");
    serve_route(s->s, "/deep/", echo, "deep");
    serve_route(s->s, "/deep/er/", echo, "deeper");
    serve_route(s->s, "/tea", teapot, &s->calls);
    serve_route(s->s, "/large", large, NULL);
}

static void site_close(struct site *s)
{
    serve_free(s->s);
    client_close(&s->c);
}

static void ask(struct site *s, struct exchange *x, const char *method, const char *path,
                struct str body)
{
    CLEANUP(buf_release) struct buf url = BUF_INIT;
    buf_printf(&url, "%s%s", s->base, path);
    const struct http_request req = {
        .method = str_from(method), .url = buf_view(&url), .body = body, .proxy = ""};
    exchange_run(&s->c, x, &req);
    if (x->err.code)
        fail_msg("%s %s: %s", method, path, x->err.msg);
}

static void test_routes(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *body, *answer;
    } cases[] = {
        {"GET", "/", "", "root|GET|/||"},
        {"GET", "/other", "", "root|GET|/other||"},
        {"GET", "/exact", "", "exact|GET|/exact||"},
        {"GET", "/exact/", "", "root|GET|/exact/||"},
        {"GET", "/exactly", "", "root|GET|/exactly||"},
        {"GET", "/deep/x", "", "deep|GET|/deep/x||"},
        {"GET", "/deep/er/x", "", "deeper|GET|/deep/er/x||"},
        {"GET", "/deep", "", "root|GET|/deep||"},
        {"GET", "/exact?a=b%20c&d=%2F&e", "", "exact|GET|/exact|a=b c&d=/&e|"},
        {"GET", "/deep/%41", "", "deep|GET|/deep/A||"},
        {"POST", "/exact", "some=body", "exact|POST|/exact||some=body"},
        {"PUT", "/exact", "", "exact|PUT|/exact||"},
        {"DELETE", "/exact", "", "exact|DELETE|/exact||"},
    };
    struct site s;
    site_open(&s, "127.0.0.1");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct exchange x = {0};
        ask(&s, &x, cases[i].method, cases[i].path, str_from(cases[i].body));
        assert_int_equal(x.status, 200);
        assert_string_equal(x.body.data, cases[i].answer);
        assert_string_equal(x.content_type, "text/plain; charset=utf-8");
        exchange_release(&x);
    }
    site_close(&s);
}

static void test_answers(void **state)
{
    (void)state;
    struct site s;
    site_open(&s, "127.0.0.1");
    struct exchange x = {0};
    ask(&s, &x, "GET", "/tea", STR_NONE);
    assert_int_equal(x.status, 418);
    assert_string_equal(x.content_type, "application/json");
    assert_string_equal(x.body.data, "{}");
    exchange_release(&x);
    ask(&s, &x, "HEAD", "/tea", STR_NONE);
    assert_int_equal(x.status, 418);
    assert_int_equal(x.body.len, 0);
    exchange_release(&x);
    assert_int_equal(s.calls, 2);
    ask(&s, &x, "GET", "/large", STR_NONE);
    assert_int_equal(x.body.len, 2000000);
    assert_string_equal(x.body.data + 2000000 - 10, "000199999\n");
    exchange_release(&x);
    site_close(&s);
    /* Without a root there is a 404. */
    client_open(&s.c);
    s.s = serve_new(s.c.loop, "127.0.0.1", 0, NULL);
    snprintf(s.base, sizeof(s.base), "http://127.0.0.1:%u", (unsigned)serve_port(s.s));
    serve_route(s.s, "/metrics", echo, "metrics");
    ask(&s, &x, "GET", "/metrics/", STR_NONE);
    assert_int_equal(x.status, 404);
    exchange_release(&x);
    ask(&s, &x, "GET", "/metrics", STR_NONE);
    assert_int_equal(x.status, 200);
    exchange_release(&x);
    site_close(&s);
}

/* ---- Raw clients ---- */

static int connect_raw(const struct site *s)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(serve_port(s->s))};
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

struct raw {
    struct loop *loop;
    struct loop_fd fd;
    struct str left; /* to send; then again and again when `endless` */
    struct str again;
    struct buf got;
    bool ended;
};

static void raw_ready(void *arg, int events)
{
    struct raw *r = arg;
    if (events & LOOP_READ) {
        char text[4096];
        ssize_t n = recv(r->fd.fd, text, sizeof(text), 0);
        if (n > 0) {
            buf_add(&r->got, text, (size_t)n);
        } else {
            r->ended = true;
            loop_fd_remove(r->loop, &r->fd);
            loop_stop(r->loop);
            return;
        }
    }
    if (events & LOOP_WRITE) {
        if (!r->left.len)
            r->left = r->again;
        ssize_t n = send(r->fd.fd, r->left.p, r->left.len, MSG_NOSIGNAL);
        if (n > 0)
            r->left = str_sub(r->left, (size_t)n, r->left.len);
        if (!r->left.len && !r->again.len)
            loop_fd_set(r->loop, &r->fd, LOOP_READ, NULL);
    }
}

static void lose_patience(void *arg)
{
    (void)arg;
    fail_msg("the server neither answers nor closes");
}

/* Sends the text, then `again` without end; runs until the server closes. */
static void talk(struct site *s, struct raw *r, struct str text, struct str again)
{
    *r = (struct raw){.loop = s->c.loop, .left = text, .again = again};
    r->fd = (struct loop_fd){.fd = connect_raw(s), .fn = raw_ready, .arg = r};
    struct loop_timer patience = {0};
    loop_timer_in(s->c.loop, &patience, 60 * NS_PER_S, lose_patience, NULL);
    assert_int_equal(loop_fd_set(s->c.loop, &r->fd, LOOP_READ | LOOP_WRITE, NULL), 0);
    loop_run(s->c.loop);
    loop_timer_cancel(s->c.loop, &patience);
    assert_true(r->ended);
    close(r->fd.fd);
}

#define LAST "Host: x\r\nConnection: close\r\n\r\n"

static void test_body_cap(void **state)
{
    (void)state;
    enum { CAP = 64 * 1024 };
    struct site s;
    site_open(&s, "127.0.0.1");
    char *body = calloc(1, CAP + 2);
    memset(body, 'b', CAP + 1);
    struct exchange x = {0};
    ask(&s, &x, "POST", "/exact", (struct str){body, CAP});
    assert_int_equal(x.status, 200);
    assert_int_equal(x.body.len, CAP + strlen("exact|POST|/exact||"));
    exchange_release(&x);
    struct raw r;
    /* Announced: refused before a byte of it is sent. */
    talk(&s, &r, STR("POST /exact HTTP/1.1\r\nContent-Length: 65537\r\n" LAST), STR_NONE);
    assert_true(str_has_prefix(buf_view(&r.got), STR("HTTP/1.1 413 ")));
    buf_release(&r.got);
    talk(&s, &r, STR("POST /exact HTTP/1.1\r\nContent-Length: 99999999999999999\r\n" LAST),
         STR_NONE);
    assert_true(str_has_prefix(buf_view(&r.got), STR("HTTP/1.1 413 ")));
    buf_release(&r.got);
    /* In chunks: read to its end, then refused. */
    CLEANUP(buf_release) struct buf chunks = BUF_INIT;
    buf_cstr(&chunks, "POST /exact HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" LAST);
    buf_printf(&chunks, "10001\r\n%.*s\r\n0\r\n\r\n", CAP + 1, body);
    talk(&s, &r, buf_view(&chunks), STR_NONE);
    assert_true(str_has_prefix(buf_view(&r.got), STR("HTTP/1.1 413 ")));
    buf_release(&r.got);
    /* Without end: hung up on. */
    talk(&s, &r, STR("POST /exact HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" LAST),
         STR("10\r\nfedcba9876543210\r\n"));
    buf_release(&r.got);
    assert_int_equal(s.calls, 0);
    free(body);
    site_close(&s);
}

static void test_nonsense(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\r\n\r\n\x01\x02\r\n\r\n",
        "GET\r\n\r\n",
        "GET /tea HTTP/9.9\r\n" LAST,
        "GET /tea HTTP/1.1\r\nContent-Length: -5\r\n" LAST,
        "GET /tea HTTP/1.1\r\nContent-Length: x\r\n" LAST,
    };
    struct site s;
    site_open(&s, "127.0.0.1");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct raw r;
        CLEANUP(buf_release) struct buf padding = BUF_INIT;
        talk(&s, &r, str_from(texts[i]), i == 0 ? STR("garbage\r\n") : STR("\r\n"));
        assert_false(str_has_prefix(buf_view(&r.got), STR("HTTP/1.1 200")));
        buf_release(&r.got);
    }
    struct raw r; /* a head without end */
    talk(&s, &r, STR("GET /tea HTTP/1.1\r\n"), STR("X-Again: and again\r\n"));
    buf_release(&r.got);
    struct exchange x = {0};
    ask(&s, &x, "GET", "/exact", STR_NONE); /* it lives */
    assert_int_equal(x.status, 200);
    exchange_release(&x);
    site_close(&s);
}

/* Asks again, with rounds of the loop in between, until the answer has this status (0: none came).
 */
static void ask_until(struct site *s, const struct http_request *req, int status)
{
    for (int tries = 0; tries < 5000; tries++) {
        struct exchange x = {0};
        exchange_run(&s->c, &x, req);
        int got = x.status;
        exchange_release(&x);
        if (got == status)
            return;
        loop_run_until(s->c.loop, loop_now(s->c.loop) + NS_PER_MS);
    }
    fail_msg("status %d never comes", status);
}

/* Idle connections of one address are bounded, and once they go others are served. */
static void test_many_connections(void **state)
{
    (void)state;
    enum { IDLE = 300, MANY = 100 };
    struct site s;
    site_open(&s, "127.0.0.1");
    static struct exchange x[MANY];
    CLEANUP(buf_release) struct buf url = BUF_INIT;
    buf_printf(&url, "%s/exact", s.base);
    const struct http_request req = {.method = STR("GET"), .url = buf_view(&url), .proxy = ""};
    for (int i = 0; i < MANY; i++)
        assert_true(exchange_start(&s.c, &x[i], &req));
    client_run(&s.c);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(x[i].status, 200);
        exchange_release(&x[i]);
    }
    http_close(s.c.http); /* and its idle connections */
    s.c.http = http_curl_new(s.c.loop, NULL);
    int fds[IDLE];
    for (int i = 0; i < IDLE; i++)
        fds[i] = connect_raw(&s);
    ask_until(&s, &req, 0); /* this address has as many as it may */
    for (int i = 0; i < IDLE; i++)
        close(fds[i]);
    ask_until(&s, &req, 200);
    site_close(&s);
}

static void test_addresses(void **state)
{
    (void)state;
    struct site s;
    struct err err = ERR_INIT;
    struct exchange x = {0};
    site_open(&s, "0.0.0.0");
    ask(&s, &x, "GET", "/exact", STR_NONE);
    exchange_release(&x);
    /* The port is taken. */
    assert_null(serve_new(s.c.loop, "127.0.0.1", serve_port(s.s), &err));
    assert_non_null(strstr(err.msg, "cannot listen on 127.0.0.1 port"));
    site_close(&s);
    client_open(&s.c);
    err = (struct err)ERR_INIT;
    assert_null(serve_new(s.c.loop, "localhost", 0, &err));
    assert_int_equal(err.code, ERR_INVALID);
    client_close(&s.c);
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    bool has_v6 = probe >= 0 && bind(probe, (struct sockaddr *)&loopback, sizeof(loopback)) == 0;
    if (probe >= 0)
        close(probe);
    if (!has_v6)
        return; /* a machine without IPv6: nothing to listen on */
    site_open(&s, "::");
    ask(&s, &x, "GET", "/exact", STR_NONE); /* by IPv4 */
    exchange_release(&x);
    snprintf(s.base, sizeof(s.base), "http://[::1]:%u", (unsigned)serve_port(s.s));
    ask(&s, &x, "GET", "/exact", STR_NONE);
    assert_int_equal(x.status, 200);
    exchange_release(&x);
    site_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),           cmocka_unit_test(test_answers),
        cmocka_unit_test(test_body_cap),         cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_many_connections), cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
