/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The libcurl transport against servers that cut, stall, flood and lie: which code comes of it, and
 * that nothing is sent twice that must not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <unistd.h>

#include "test/unit/base/exchange.h"
#include "test/unit/base/peer.h"

struct scene {
    struct client c;
    struct peer p;
    char url[128];
};

static void scene_open(struct scene *s, void (*serve)(struct peer_conn *c), const void *arg)
{
    client_open(&s->c);
    peer_start(&s->p, serve, (void *)(uintptr_t)arg, NULL);
    peer_url(&s->p, "/", s->url);
}

static void scene_close(struct scene *s)
{
    peer_stop(&s->p);
    client_close(&s->c);
}

/* Answers with arg and closes. */
static void serve_once(struct peer_conn *c)
{
    if (peer_read_request(c))
        peer_write(c, c->peer->arg);
}

static void test_cut(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        int status;
    } cases[] = {
        {"", 0},
        {"HTTP/1.1 2", 0},
        {"HTTP/1.1 200 OK\r\nContent-Le", 200},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", 200},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 200},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", 200},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n", 200},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", 200},
        {"SSH-2.0-OpenSSH_9.2\r\n", 0},
        {"\x15\x03\x03", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene s;
        scene_open(&s, serve_once, cases[i].answer);
        struct exchange x = {0};
        exchange_get(&s.c, &x, s.url);
        if (x.err.code != ERR_UNKNOWN)
            fail_msg("answer %zu: %s: %s", i, err_code_name(x.err.code), x.err.msg);
        assert_true(strlen(x.err.msg) > 0);
        assert_null(strstr(x.err.msg, "certificate")); /* there is no TLS here */
        assert_int_equal(x.dones, 1);
        assert_true(x.status == cases[i].status || cases[i].status == 0);
        exchange_release(&x);
        scene_close(&s);
    }
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, serve_once, "");
    peer_stop(&s.p);
    struct exchange x = {0};
    const struct http_request req = {
        .method = STR("POST"), .url = str_from(s.url), .body = STR("{}"), .proxy = ""};
    exchange_run(&s.c, &x, &req);
    assert_int_equal(x.err.code, ERR_RETRY);
    assert_int_equal(x.status, 0);
    exchange_release(&x);
    const struct http_request nameless = {
        .method = STR("GET"), .url = STR("http://name.invalid/"), .proxy = ""};
    exchange_run(&s.c, &x, &nameless);
    assert_int_equal(x.err.code, ERR_RETRY);
    assert_non_null(strstr(x.err.msg, "name.invalid"));
    exchange_release(&x);
    client_close(&s.c);
}

static void serve_flood(struct peer_conn *c)
{
    static const char chunk[] = "1000\r\n";
    char body[4096 + 2];
    memset(body, 'f', sizeof(body));
    memcpy(body + 4096, "\r\n", 2);
    if (!peer_read_request(c) ||
        !peer_write(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
        return;
    while (peer_write(c, chunk) && peer_write_bytes(c, body, sizeof(body)))
        ;
}

static void test_endless_body(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, serve_flood, NULL);
    struct exchange x = {0};
    const struct http_request req = {
        .method = STR("GET"), .url = str_from(s.url), .body_bytes_max = 1000000, .proxy = ""};
    exchange_run(&s.c, &x, &req);
    assert_int_equal(x.err.code, ERR_INVALID);
    assert_non_null(strstr(x.err.msg, "1000000"));
    assert_true(x.body.len > 900000 && x.body.len <= 1000000);
    exchange_release(&x);
    scene_close(&s);
}

static void serve_headers(struct peer_conn *c)
{
    if (!peer_read_request(c) || !peer_write(c, "HTTP/1.1 200 OK\r\n"))
        return;
    while (peer_write(c, "X-Again: and again and again and again and again and again\r\n"))
        ;
}

static void serve_heads(struct peer_conn *c)
{
    if (!peer_read_request(c))
        return;
    while (peer_write(c, "HTTP/1.1 102 Processing\r\n\r\n"))
        ;
}

static void serve_long_header(struct peer_conn *c)
{
    char text[4096];
    memset(text, 'h', sizeof(text));
    if (!peer_read_request(c) || !peer_write(c, "HTTP/1.1 200 OK\r\nX: "))
        return;
    while (peer_write_bytes(c, text, sizeof(text)))
        ;
}

static void test_endless_headers(void **state)
{
    (void)state;
    void (*const floods[])(struct peer_conn *) = {serve_headers, serve_heads, serve_long_header};
    for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
        struct scene s;
        scene_open(&s, floods[i], NULL);
        struct exchange x = {0};
        exchange_get(&s.c, &x, s.url);
        assert_int_equal(x.err.code, i < 2 ? ERR_INVALID : ERR_UNKNOWN);
        assert_int_equal(x.heads, 0);
        exchange_release(&x);
        scene_close(&s);
    }
}

static void serve_many_headers(struct peer_conn *c)
{
    if (!peer_read_request(c) || !peer_write(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"))
        return;
    for (int i = 0; i < 700; i++) {
        char line[64];
        snprintf(line, sizeof(line), "X-%d: value %d\r\n", i, i);
        peer_write(c, line);
    }
    peer_write(c, "Content-Type: the-last\r\n\r\n");
}

static void test_many_headers(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, serve_many_headers, NULL);
    struct exchange x = {0};
    exchange_get(&s.c, &x, s.url);
    assert_int_equal(x.err.code, ERR_NONE);
    assert_int_equal(x.n_headers, 702);
    assert_string_equal(x.content_type, "the-last");
    exchange_release(&x);
    scene_close(&s);
}

/* ---- Time ---- */

static void serve_silence(struct peer_conn *c)
{
    peer_read_request(c);
    peer_write(c, c->peer->arg);
    sem_wait(&c->peer->go);
}

static void test_timeouts(void **state)
{
    (void)state;
    static const char *const before[] = {
        "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};
    for (int i = 0; i < 4; i++) {
        struct scene s;
        scene_open(&s, serve_silence, before[i % 2]);
        struct exchange x = {0};
        struct http_request req = {.method = STR("GET"), .url = str_from(s.url), .proxy = ""};
        if (i < 2) {
            req.timeout = 200 * NS_PER_MS;
        } else {
            req.timeout = TIME_NEVER;
            req.idle_timeout = 200 * NS_PER_MS;
        }
        int64_t began = loop_now(s.c.loop);
        exchange_run(&s.c, &x, &req);
        assert_true(loop_now(s.c.loop) - began >= 199 * NS_PER_MS);
        assert_int_equal(x.err.code, ERR_UNKNOWN);
        assert_int_equal(x.dones, 1);
        assert_int_equal(x.status, i % 2 ? 200 : 0);
        assert_int_equal(x.chunks, i % 2);
        if (i >= 2)
            assert_string_equal(x.err.msg, "no byte came for 200ms");
        exchange_release(&x);
        scene_close(&s);
    }
}

enum { DRIPS = 60, DRIP_US = 20000 };

static void serve_drip(struct peer_conn *c)
{
    if (!peer_read_request(c) || !peer_write(c, "HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n"))
        return;
    for (int i = 0; i < DRIPS; i++) {
        usleep(DRIP_US);
        if (!peer_write(c, "d"))
            return;
    }
}

/* The whole takes longer than the idle timeout, no pause between two bytes does. */
static void test_drip(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, serve_drip, NULL);
    struct exchange x = {0};
    const struct http_request req = {.method = STR("GET"),
                                     .url = str_from(s.url),
                                     .timeout = TIME_NEVER,
                                     .idle_timeout = NS_PER_S,
                                     .proxy = ""};
    int64_t began = loop_now(s.c.loop);
    exchange_run(&s.c, &x, &req);
    assert_int_equal(x.err.code, ERR_NONE);
    assert_int_equal(x.body.len, DRIPS);
    assert_true(loop_now(s.c.loop) - began > NS_PER_S);
    exchange_release(&x);
    scene_close(&s);
}

/* ---- Connections that are used again ---- */

/* The first request of a connection is answered; the second is read and the connection cut. */
static void serve_one_each(struct peer_conn *c)
{
    if (!peer_read_request(c) || !peer_write(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
        return;
    peer_read_request(c);
}

/* What has a body and may have been read is not sent a second time behind the caller's back; a GET
 * may be. */
static void test_cut_when_used_again(void **state)
{
    (void)state;
    for (int is_get = 0; is_get < 2; is_get++) {
        struct scene s;
        scene_open(&s, serve_one_each, NULL);
        struct exchange x = {0};
        exchange_get(&s.c, &x, s.url);
        assert_int_equal(x.status, 200);
        exchange_release(&x);
        const struct http_request req = {.method = is_get ? STR("GET") : STR("POST"),
                                         .url = str_from(s.url),
                                         .body = is_get ? STR_NONE : STR("{}"),
                                         .proxy = ""};
        exchange_run(&s.c, &x, &req);
        if (is_get) {
            assert_int_equal(x.err.code, ERR_NONE);
            assert_int_equal(x.status, 200);
        } else {
            assert_int_equal(x.err.code, ERR_UNKNOWN);
            assert_int_equal(x.heads, 0);
        }
        assert_int_equal(peer_requests(&s.p), is_get ? 3 : 2);
        exchange_release(&x);
        scene_close(&s);
    }
}

static void serve_hello(struct peer_conn *c)
{
    while (peer_read_request(c))
        if (!peer_write(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
            return;
}

static void test_many_at_once(void **state)
{
    (void)state;
    enum { MANY = 300, ROUNDS = 3 };
    struct scene s;
    scene_open(&s, serve_hello, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        static struct exchange x[MANY];
        const struct http_request req = {.method = STR("GET"), .url = str_from(s.url), .proxy = ""};
        for (int i = 0; i < MANY; i++)
            assert_true(exchange_start(&s.c, &x[i], &req));
        client_run(&s.c);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(x[i].dones, 1);
            assert_int_equal(x[i].err.code, ERR_NONE);
            assert_string_equal(x[i].body.data, "hello");
            exchange_release(&x[i]);
        }
    }
    assert_int_equal(peer_requests(&s.p), MANY * ROUNDS);
    assert_true(peer_connections(&s.p) <= 64); /* bounded, and kept from round to round */
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),          cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_endless_body), cmocka_unit_test(test_endless_headers),
        cmocka_unit_test(test_many_headers), cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_drip),         cmocka_unit_test(test_cut_when_used_again),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
