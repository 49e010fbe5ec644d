/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The libcurl transport: what goes out, what comes in, and the contract of callbacks and cancels
 * (base/op.h), against servers that answer byte for byte as told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <zlib.h>

#include "test/unit/base/exchange.h"
#include "test/unit/base/peer.h"

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nhello"

/* ---- What goes out ---- */

/* Answers each request with its own bytes. */
static void serve_mirror(struct peer_conn *c)
{
    while (peer_read_request(c)) {
        char head[128];
        struct str r = peer_request(c);
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", r.len);
        if (!peer_write(c, head) || !peer_write_bytes(c, r.p, r.len))
            return;
    }
}

static bool contains(const struct exchange *x, const char *text)
{
    return str_find(buf_view(&x->body), str_from(text), 0) != SIZE_MAX;
}

/* The first line, the named header lines and the body must be there; the others must not. */
static void check_sent(struct client *c, const struct http_request *req,
                       const char *const *expected, const char *const *absent)
{
    struct exchange x = {0};
    exchange_run(c, &x, req);
    assert_int_equal(x.dones, 1);
    assert_int_equal(x.status, 200);
    for (size_t i = 0; expected[i]; i++)
        if (!contains(&x, expected[i]))
            fail_msg("no '%s' in:\n%s", expected[i], x.body.data);
    for (size_t i = 0; absent[i]; i++)
        if (contains(&x, absent[i]))
            fail_msg("'%s' in:\n%s", absent[i], x.body.data);
    exchange_release(&x);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_requests(void **state)
{
    (void)state;
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_mirror, NULL, NULL);
    peer_url(&p, "/a%20b?c=d&e", url);
    const char *const bodyless[] = {"Content-Length", "Content-Type", "Transfer-Encoding", "Expect",
                                    NULL};
    struct http_request req = {.method = STR("GET"), .url = str_from(url), .proxy = ""};
    check_sent(&c, &req, LIST("GET /a%20b?c=d&e HTTP/1.1\r\n", "Accept-Encoding: gzip\r\n"),
               bodyless);
    req.body = STR(""); /* present but empty: still a GET without one */
    check_sent(&c, &req, LIST("GET /a%20b"), bodyless);
    req.body = STR("{}");
    check_sent(&c, &req, LIST("GET /a%20b", "Content-Length: 2\r\n", "\r\n\r\n{}"),
               LIST("Content-Type", "Expect"));
    req = (struct http_request){.method = STR("DELETE"), .url = str_from(url), .proxy = ""};
    check_sent(&c, &req, LIST("DELETE /a%20b"), bodyless);
    req.method = STR("POST"); /* without a body: its length must be told */
    check_sent(&c, &req, LIST("POST /a%20b", "Content-Length: 0\r\n"),
               LIST("Content-Type", "Expect", "Transfer-Encoding"));
    const struct http_header headers[] = {{STR("Content-Type"), STR("application/json")},
                                          {STR("Authorization"), STR("Bearer x")},
                                          {STR("X-Empty"), STR("")}};
    req.headers = headers;
    req.n_headers = ARRAY_LEN(headers);
    req.method = STR("PATCH");
    req.body = STR("{\"a\":1}");
    check_sent(&c, &req,
               LIST("PATCH /a%20b", "Content-Type: application/json\r\n",
                    "Authorization: Bearer x\r\n", "X-Empty:\r\n", "Content-Length: 7\r\n",
                    "\r\n\r\n{\"a\":1}"),
               LIST("Expect", "urlencoded"));
    assert_int_equal(peer_connections(&p), 1); /* kept */
    peer_stop(&p);
    client_close(&c);
}

static void test_large_body(void **state)
{
    (void)state;
    struct client c;
    struct peer p;
    char url[128];
    enum { SIZE = 60000 };
    static char body[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)('a' + i % 23);
    client_open(&c);
    peer_start(&p, serve_mirror, NULL, NULL);
    peer_url(&p, "/", url);
    struct exchange x = {0};
    const struct http_request req = {
        .method = STR("PUT"), .url = str_from(url), .body = {body, SIZE}, .proxy = ""};
    exchange_run(&c, &x, &req);
    assert_int_equal(x.status, 200);
    struct str got = buf_view(&x.body);
    assert_true(got.len > SIZE);
    assert_memory_equal(got.p + got.len - SIZE, body, SIZE);
    exchange_release(&x);
    peer_stop(&p);
    client_close(&c);
}

static void test_refused_requests(void **state)
{
    (void)state;
    struct client c;
    client_open(&c);
    static const struct http_header split[] = {{STR_INIT("A"), STR_INIT("b\r\nC: d")}};
    static const struct http_header nul[] = {{STR_INIT("A"), STR_INIT("b\0c")}};
    static const struct http_header nameless[] = {{STR_INIT(""), STR_INIT("x")}};
    const struct http_tls lost_ca = {.ca_file = "/nowhere/ca.crt"};
    const struct http_request requests[] = {
        {.method = STR("GET"), .url = STR("ftp://127.0.0.1/")},
        {.method = STR("GET"), .url = STR("file:///etc/hostname")},
        {.method = STR("GET"), .url = STR("http://")},
        {.method = STR("GET"), .url = STR("http://a b/")},
        {.method = STR(""), .url = STR("http://127.0.0.1:1/")},
        {.method = STR("GETGETGETGETGETGET"), .url = STR("http://127.0.0.1:1/")},
        {.method = STR("GET"), .url = STR("http://127.0.0.1:1/"), .headers = split, .n_headers = 1},
        {.method = STR("GET"), .url = STR("http://127.0.0.1:1/"), .headers = nul, .n_headers = 1},
        {.method = STR("GET"),
         .url = STR("http://127.0.0.1:1/"),
         .headers = nameless,
         .n_headers = 1},
        {.method = STR("GET"), .url = STR("https://127.0.0.1:1/"), .tls = &lost_ca},
    };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct exchange x = {0};
        exchange_run(&c, &x, &requests[i]);
        if (x.err.code != ERR_INVALID)
            fail_msg("request %zu: %s: %s", i, err_code_name(x.err.code), x.err.msg);
        assert_int_equal(x.heads, 0);
        if (requests[i].tls)
            assert_non_null(strstr(x.err.msg, "/nowhere/ca.crt"));
        exchange_release(&x);
    }
    client_close(&c);
}

/* ---- What comes in ---- */

static void serve_text(struct peer_conn *c)
{
    while (peer_read_request(c))
        if (!peer_write(c, c->peer->arg))
            return;
}

/* Answers with arg to every request and closes after the first when it has no length. */
static void get_text(const char *answer, struct exchange *x)
{
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_text, (void *)(uintptr_t)answer, NULL);
    peer_url(&p, "/", url);
    exchange_get(&c, x, url);
    peer_stop(&p);
    client_close(&c);
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *body;
        int status;
        size_t n_headers;
    } cases[] = {
        {OK_HELLO, "hello", 200, 2},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "no", 404, 1},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", 204, 0},
        {"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", "", 304, 1},
        {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "", 500, 1},
        /* Never followed. */
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "",
         302, 2},
        /* Heads before the head. */
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" OK_HELLO,
         "hello", 200, 2},
        /* Chunks, with a trailer that is no header any more. */
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
         "2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n",
         "hello", 200, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct exchange x = {0};
        get_text(cases[i].answer, &x);
        if (x.err.code)
            fail_msg("answer %zu: %s", i, x.err.msg);
        assert_int_equal(x.dones, 1);
        assert_int_equal(x.status, cases[i].status);
        assert_int_equal(x.head_status, cases[i].status);
        assert_int_equal(x.n_headers, cases[i].n_headers);
        assert_string_equal(x.body.data ? x.body.data : "", cases[i].body);
        exchange_release(&x);
    }
}

static void test_head_method(void **state)
{
    (void)state;
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_text, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", NULL);
    peer_url(&p, "/", url);
    for (int i = 0; i < 2; i++) {
        struct exchange x = {0};
        const struct http_request req = {.method = STR("HEAD"), .url = str_from(url), .proxy = ""};
        exchange_run(&c, &x, &req);
        assert_int_equal(x.err.code, ERR_NONE);
        assert_int_equal(x.status, 200);
        assert_int_equal(x.chunks, 0);
        exchange_release(&x);
    }
    assert_int_equal(peer_connections(&p), 1);
    peer_stop(&p);
    client_close(&c);
}

static void let_go(void *arg)
{
    struct peer *p = arg;
    sem_post(&p->go);
}

/* The body only begins once the client has told the head, and goes on once it has told the first
 * chunk: a watch would stand still otherwise. */
static void serve_on_demand(struct peer_conn *c)
{
    if (!peer_read_request(c) ||
        !peer_write(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
        return;
    sem_wait(&c->peer->go);
    peer_write(c, "4\r\none\n\r\n");
    sem_wait(&c->peer->go);
    peer_write(c, "4\r\ntwo\n\r\n0\r\n\r\n");
}

static void test_streaming(void **state)
{
    (void)state;
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_on_demand, NULL, NULL);
    peer_url(&p, "/", url);
    struct exchange x = {.on_head = let_go, .on_chunk = let_go, .on_arg = &p};
    const struct http_request req = {.method = STR("GET"),
                                     .url = str_from(url),
                                     .timeout = TIME_NEVER,
                                     .idle_timeout = 60 * NS_PER_S,
                                     .proxy = ""};
    exchange_run(&c, &x, &req);
    assert_int_equal(x.err.code, ERR_NONE);
    assert_int_equal(x.chunks, 2);
    assert_string_equal(x.body.data, "one\ntwo\n");
    exchange_release(&x);
    peer_stop(&p);
    client_close(&c);
}

struct packed {
    size_t len;
    unsigned char bytes[65536];
};

/* `n` bytes of 'z' in gzip's format, behind a head. */
static void pack(struct packed *ret, size_t n)
{
    char *plain = malloc(n);
    memset(plain, 'z', n);
    unsigned char packed[60000];
    z_stream z = {.next_in = (Bytef *)plain,
                  .avail_in = (uInt)n,
                  .next_out = packed,
                  .avail_out = sizeof(packed)};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    int head = snprintf((char *)ret->bytes, sizeof(ret->bytes),
                        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %lu\r\n\r\n",
                        z.total_out);
    memcpy(ret->bytes + head, packed, z.total_out);
    ret->len = (size_t)head + z.total_out;
    deflateEnd(&z);
    free(plain);
}

static void serve_packed(struct peer_conn *c)
{
    const struct packed *packed = c->peer->arg;
    while (peer_read_request(c))
        if (!peer_write_bytes(c, packed->bytes, packed->len))
            return;
}

/* The cap counts what comes out, not what came over the wire. */
static void test_gzip(void **state)
{
    (void)state;
    enum { SIZE = 1000000 };
    static struct packed packed;
    pack(&packed, SIZE);
    assert_true(packed.len < SIZE / 100);
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_packed, &packed, NULL);
    peer_url(&p, "/", url);
    for (size_t cap = SIZE - 1; cap <= SIZE; cap++) {
        struct exchange x = {0};
        const struct http_request req = {
            .method = STR("GET"), .url = str_from(url), .body_bytes_max = cap, .proxy = ""};
        exchange_run(&c, &x, &req);
        assert_int_equal(x.err.code, cap < SIZE ? ERR_INVALID : ERR_NONE);
        assert_true(x.body.len <= cap);
        if (cap == SIZE)
            assert_true(x.body.len == SIZE && x.body.data[SIZE - 1] == 'z');
        exchange_release(&x);
    }
    peer_stop(&p);
    client_close(&c);
}

/* ---- Cancelling and closing ---- */

static void test_cancel_before_running(void **state)
{
    (void)state;
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_mirror, NULL, NULL);
    peer_url(&p, "/", url);
    struct exchange cancelled = {0}, kept = {0};
    const struct http_request req = {.method = STR("GET"), .url = str_from(url), .proxy = ""};
    assert_true(exchange_start(&c, &cancelled, &req));
    http_cancel(c.http, cancelled.op);
    c.under_way--;
    assert_true(exchange_start(&c, &kept, &req));
    client_run(&c);
    assert_int_equal(cancelled.heads + cancelled.chunks + cancelled.dones, 0);
    assert_int_equal(kept.status, 200);
    exchange_release(&kept);
    peer_stop(&p);
    client_close(&c);
}

/* Each act inside each callback, with a second exchange under way on the same transport. */
static void test_act_inside_callbacks(void **state)
{
    (void)state;
    for (int act = CANCEL_IN_HEAD; act <= CLOSE_IN_DONE; act++) {
        struct client c;
        struct peer p;
        char url[128];
        client_open(&c);
        peer_start(&p, serve_text, OK_HELLO, NULL);
        peer_url(&p, "/", url);
        struct exchange x = {.act = (int)act}, other = {0};
        const struct http_request req = {.method = STR("GET"), .url = str_from(url), .proxy = ""};
        assert_true(exchange_start(&c, &x, &req));
        if (act < CLOSE_IN_HEAD)
            assert_true(exchange_start(&c, &other, &req));
        client_run(&c);
        assert_int_equal(x.heads, 1);
        assert_int_equal(x.dones, act == CLOSE_IN_DONE);
        assert_int_equal(x.chunks > 0, act != CANCEL_IN_HEAD && act != CLOSE_IN_HEAD);
        assert_int_equal(other.dones, act < CLOSE_IN_HEAD);
        assert_true((c.http == NULL) == (act >= CLOSE_IN_HEAD));
        exchange_release(&x);
        exchange_release(&other);
        peer_stop(&p);
        client_close(&c);
    }
}

static struct exchange *victim;

static void cancel_victim(void *arg)
{
    struct client *c = arg;
    if (victim && victim->op) {
        http_cancel(c->http, victim->op);
        victim->op = NULL;
        c->under_way--;
    }
    victim = NULL;
}

/* Of many, each cancels its neighbour when its own first bytes come. */
static void test_cancel_others(void **state)
{
    (void)state;
    enum { MANY = 40 };
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_text, OK_HELLO, NULL);
    peer_url(&p, "/", url);
    struct exchange x[MANY] = {0};
    const struct http_request req = {.method = STR("GET"), .url = str_from(url), .proxy = ""};
    for (int i = 0; i < MANY; i++) {
        x[i].on_head = cancel_victim;
        x[i].on_arg = &c;
        assert_true(exchange_start(&c, &x[i], &req));
    }
    victim = &x[MANY / 2];
    client_run(&c);
    int dones = 0;
    for (int i = 0; i < MANY; i++) {
        dones += x[i].dones;
        exchange_release(&x[i]);
    }
    assert_true(dones == MANY - 1 || dones == MANY); /* it may have ended before */
    assert_int_equal(c.under_way, 0);
    peer_stop(&p);
    client_close(&c);
}

static void serve_nothing(struct peer_conn *c)
{
    peer_read_request(c);
    sem_wait(&c->peer->go);
}

static void test_close_under_way(void **state)
{
    (void)state;
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_nothing, NULL, NULL);
    peer_url(&p, "/", url);
    struct exchange x[10] = {0};
    const struct http_request req = {.method = STR("GET"), .url = str_from(url), .proxy = ""};
    for (int i = 0; i < 10; i++)
        assert_true(exchange_start(&c, &x[i], &req));
    loop_run_until(c.loop, loop_now(c.loop) + 20 * NS_PER_MS);
    http_close(c.http);
    c.http = NULL;
    c.under_way = 0;
    client_run(&c);
    for (int i = 0; i < 10; i++)
        assert_int_equal(x[i].heads + x[i].dones, 0);
    peer_stop(&p);
    client_close(&c);
}

/* NULL members are skipped, also at an end by time. */
static void test_no_handlers(void **state)
{
    (void)state;
    struct client c;
    struct peer p;
    char url[128];
    client_open(&c);
    peer_start(&p, serve_nothing, NULL, NULL);
    peer_url(&p, "/", url);
    const struct http_handler none = {0};
    struct http_request req = {
        .method = STR("GET"), .url = str_from(url), .timeout = 5 * NS_PER_MS, .proxy = ""};
    assert_non_null(http_start(c.http, &req, &none, NULL, NULL));
    req.timeout = TIME_NEVER;
    req.idle_timeout = 5 * NS_PER_MS;
    assert_non_null(http_start(c.http, &req, &none, NULL, NULL));
    loop_run_until(c.loop, loop_now(c.loop) + 100 * NS_PER_MS);
    peer_stop(&p);
    client_close(&c);
}

/* ---- Proxies ---- */

static void test_proxies(void **state)
{
    (void)state;
    struct client c;
    struct peer proxy, server;
    char url[128], proxy_url[128];
    client_open(&c);
    peer_start(&proxy, serve_mirror, NULL, NULL);
    peer_start(&server, serve_text, OK_HELLO, NULL);
    peer_url(&server, "/x", url);
    peer_url(&proxy, "", proxy_url);
    struct exchange x = {0};
    struct http_request req = {.method = STR("GET"), .url = str_from(url), .proxy = proxy_url};
    exchange_run(&c, &x, &req);
    assert_true(contains(&x, "GET http://127.0.0.1:"));
    exchange_release(&x);
    setenv("http_proxy", proxy_url, 1);
    req.proxy = NULL; /* as the environment says */
    exchange_run(&c, &x, &req);
    assert_true(contains(&x, "GET http://127.0.0.1:"));
    exchange_release(&x);
    setenv("no_proxy", "127.0.0.0/8,localhost", 1);
    exchange_run(&c, &x, &req);
    assert_string_equal(x.body.data, "hello");
    exchange_release(&x);
    unsetenv("no_proxy");
    req.proxy = ""; /* none, whatever the environment says */
    exchange_run(&c, &x, &req);
    assert_string_equal(x.body.data, "hello");
    exchange_release(&x);
    unsetenv("http_proxy");
    peer_stop(&server);
    peer_stop(&proxy);
    client_close(&c);
}

/* A tunnel that is refused carried nothing of the request: it may be sent again. */
static void test_refused_tunnel(void **state)
{
    (void)state;
    struct client c;
    struct peer proxy;
    char proxy_url[128];
    client_open(&c);
    peer_start(&proxy, serve_text, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", NULL);
    peer_url(&proxy, "", proxy_url);
    struct exchange x = {0};
    const struct http_request req = {.method = STR("POST"),
                                     .url = STR("https://127.0.0.1:1/x"),
                                     .body = STR("{}"),
                                     .proxy = proxy_url};
    exchange_run(&c, &x, &req);
    assert_int_equal(x.err.code, ERR_RETRY);
    assert_int_equal(x.heads, 0);
    assert_int_equal(peer_requests(&proxy), 1);
    exchange_release(&x);
    peer_stop(&proxy);
    client_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_large_body),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_head_method),
        cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_cancel_before_running),
        cmocka_unit_test(test_act_inside_callbacks),
        cmocka_unit_test(test_cancel_others),
        cmocka_unit_test(test_close_under_way),
        cmocka_unit_test(test_no_handlers),
        cmocka_unit_test(test_proxies),
        cmocka_unit_test(test_refused_tunnel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
