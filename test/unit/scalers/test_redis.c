/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The redis trigger against a real redis-server, and against servers that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scalers/redis_link.h"
#include "test/unit/scalers/redis_server.h"

#define PASSWORD "correct-horse-canary"

static struct redis_server_process server;
static const char *missing; /* why there is no server */

#define NEED_SERVER()                                                                              \
    do {                                                                                           \
        if (missing) {                                                                             \
            print_message("SKIPPED: %s\n", missing);                                               \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

/* ---- Opening and polling ---- */

struct answer {
    struct loop *loop;
    unsigned waiting;
    bool failed;
    int64_t value, target, activation;
    char metric[128];
    struct err err;
};

static void done(void *arg, const struct scaler_value *values, size_t n, const struct err *err)
{
    struct answer *a = arg;
    a->failed = err != NULL;
    if (err)
        a->err = *err;
    else {
        assert_int_equal(n, 1);
        a->value = values->value;
        a->target = values->target;
        a->activation = values->activation;
        snprintf(a->metric, sizeof(a->metric), "%s", values->metric);
    }
    if (--a->waiting == 0)
        loop_stop(a->loop);
}

static struct answer poll_once(struct scaler_host *h, struct scaler *s)
{
    struct answer a = {.loop = h->loop, .waiting = 1};
    scaler_poll(s, done, &a);
    assert_int_equal(a.waiting, 1); /* never before poll has returned */
    loop_run_until(h->loop, loop_now(h->loop) + 10 * NS_PER_S);
    assert_int_equal(a.waiting, 0);
    if (a.failed)
        assert_null(strstr(a.err.msg, "canary"));
    return a;
}

/* Pairs of parameter and value. */
static struct scaler *open_with(struct scaler_host *h, struct err *err, const char *const *pairs)
{
    struct arena a = ARENA_INIT;
    struct json *parameters = json_new_object(&a);
    for (; pairs[0]; pairs += 2)
        json_object_set(&a, parameters, str_from(pairs[0]),
                        json_new_string(&a, str_from(pairs[1])));
    struct scaler *s = scaler_open(h, scaler_type_find("redis"), 0, parameters, err);
    arena_release(&a);
    return s;
}

#define OPEN(h, err, ...) open_with(h, err, (const char *const[]){__VA_ARGS__, NULL})

static void begin(struct scaler_host *h)
{
    struct err err = ERR_INIT;
    *h = (struct scaler_host){.loop = loop_new_epoll(&err), .seed = 5};
    assert_non_null(h->loop);
}

static void end(struct scaler_host *h)
{
    scaler_host_release(h);
    loop_free(h->loop);
}

static const char *address(uint16_t port)
{
    static char text[32];
    snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    return text;
}

/* ---- A real server ---- */

static void test_right_database(void **state)
{
    (void)state;
    NEED_SERVER();
    redis_server_do(&server, PASSWORD,
                    "FLUSHALL\r\nRPUSH jobs a b c d e f g\r\nSELECT 3\r\nRPUSH other x\r\n", 4);
    struct scaler_host h;
    begin(&h);
    struct err err = ERR_INIT;
    struct scaler *s = OPEN(&h, &err, "address", address(server.port), "password", PASSWORD,
                            "listName", "jobs", "databaseIndex", "3");
    assert_non_null(s);
    struct answer a = poll_once(&h, s);
    assert_false(a.failed);
    assert_int_equal(a.value, 0); /* an absent key is an empty list, not the decoy of database 0 */
    assert_int_equal(a.target, 5000);
    assert_string_equal(a.metric, "s0-redis-jobs");
    redis_server_do(&server, PASSWORD, "SELECT 3\r\nRPUSH jobs one\r\n", 2);
    assert_int_equal(poll_once(&h, s).value, 1000);
    scaler_close(s);
    end(&h);
}

static void test_types(void **state)
{
    (void)state;
    NEED_SERVER();
    redis_server_do(&server, PASSWORD,
                    "FLUSHALL\r\nRPUSH l a b\r\nSADD s a b c\r\nZADD z 1 a 2 b 3 c 4 d\r\nHSET h a "
                    "1 b 2 c 3 d 4 e 5\r\nSET t text\r\n",
                    6);
    static const struct {
        const char *key;
        int64_t length; /* -1: refused */
    } rows[] = {{"l", 2}, {"s", 3}, {"z", 4}, {"h", 5}, {"t", -1}, {"none", 0}};
    struct scaler_host h;
    begin(&h);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        struct scaler *s =
            OPEN(&h, &err, "host", "127.0.0.1", "port", strrchr(address(server.port), ':') + 1,
                 "password", PASSWORD, "listName", rows[i].key, "listLength", "2",
                 "activationListLength", "7");
        assert_non_null(s);
        for (int k = 0; k < 2; k++) { /* the second poll knows the type */
            struct answer a = poll_once(&h, s);
            assert_int_equal(a.failed, rows[i].length < 0);
            if (a.failed)
                assert_non_null(strstr(a.err.msg, "holds a string"));
            else
                assert_int_equal(a.value, rows[i].length * 1000);
        }
        scaler_close(s);
    }
    struct err err = ERR_INIT;
    struct scaler *s =
        OPEN(&h, &err, "address", address(server.port), "password", PASSWORD, "listName", "l");
    assert_int_equal(poll_once(&h, s).value, 2000);
    redis_server_do(&server, PASSWORD, "DEL l\r\nZADD l 1 a\r\n", 2);
    assert_int_equal(poll_once(&h, s).value, 1000); /* another type by now */
    scaler_close(s);
    end(&h);
}

static void test_passwords(void **state)
{
    (void)state;
    NEED_SERVER();
    struct scaler_host h;
    begin(&h);
    struct err err = ERR_INIT;
    struct scaler *s = OPEN(&h, &err, "address", address(server.port), "listName", "l");
    struct answer a = poll_once(&h, s);
    assert_true(a.failed);
    assert_non_null(strstr(a.err.msg, "NOAUTH"));
    assert_non_null(strstr(a.err.msg, "127.0.0.1"));
    assert_int_equal(a.err.code, ERR_DENIED);
    scaler_close(s);
    s = OPEN(&h, &err, "address", address(server.port), "listName", "l", "password",
             "wrong-canary");
    a = poll_once(&h, s);
    assert_true(a.failed);
    assert_non_null(strstr(a.err.msg, "WRONGPASS"));
    scaler_close(s);
    s = OPEN(&h, &err, "address", address(server.port), "listName", "l", "username", "default",
             "password", PASSWORD);
    assert_false(poll_once(&h, s).failed);
    scaler_close(s);
    end(&h);
}

static void test_one_round_trip(void **state)
{
    (void)state;
    NEED_SERVER();
    redis_server_do(&server, PASSWORD,
                    "FLUSHALL\r\nRPUSH k0 a\r\nRPUSH k7 a b\r\nSELECT 2\r\nRPUSH k8 a b c\r\n", 5);
    enum { KEYS = 200 };
    struct scaler_host h;
    begin(&h);
    struct scaler *s[KEYS];
    static struct answer a[KEYS];
    for (int round = 0; round < 2; round++) {
        struct redis_counts before = redis_counts(&h);
        for (int i = 0; i < KEYS; i++) {
            char key[16], database[4];
            snprintf(key, sizeof(key), "k%d", i);
            snprintf(database, sizeof(database), "%d", i % 8 == 0 && i ? 2 : 0);
            struct err err = ERR_INIT;
            if (!round)
                s[i] = OPEN(&h, &err, "address", address(server.port), "password", PASSWORD,
                            "listName", key, "databaseIndex", database);
            assert_non_null(s[i]);
            a[i] = (struct answer){.loop = h.loop, .waiting = 1};
            scaler_poll(s[i], done, &a[i]);
        }
        for (int i = 0; i < KEYS; i++)
            while (a[i].waiting)
                loop_run_until(h.loop, loop_now(h.loop) + 10 * NS_PER_S);
        for (int i = 0; i < KEYS; i++) {
            assert_false(a[i].failed);
            assert_int_equal(a[i].value, i == 0 ? 1000 : i == 7 ? 2000 : i == 8 ? 3000 : 0);
        }
        struct redis_counts after = redis_counts(&h);
        assert_int_equal(after.links, 1);
        assert_int_equal(after.connects, 1);
        assert_int_equal(after.writes - before.writes, round ? 1 : 2); /* the first has AUTH too */
        assert_int_equal(after.calls - before.calls, KEYS);
    }
    for (int i = 0; i < KEYS; i++)
        scaler_close(s[i]);
    assert_int_equal(redis_counts(&h).links, 0);
    end(&h);
}

static void test_tls(void **state)
{
    (void)state;
    NEED_SERVER();
    redis_server_do(&server, PASSWORD, "FLUSHALL\r\nRPUSH l a b\r\n", 2);
    struct scaler_host h;
    begin(&h);
    struct err err = ERR_INIT;
#define TLS "address", address(server.tls_port), "password", PASSWORD, "listName", "l"
#define CLIENT "cert", server.cert_pem, "key", server.key_pem
    struct scaler *s = OPEN(&h, &err, TLS, "enableTLS", "true", "ca", server.ca_pem, CLIENT);
    assert_non_null(s);
    struct answer a = poll_once(&h, s);
    assert_false(a.failed);
    assert_int_equal(a.value, 2000);
    scaler_close(s);
    s = OPEN(&h, &err, TLS, "tls", "enable", "ca", server.other_ca_pem, CLIENT);
    a = poll_once(&h, s);
    assert_true(a.failed);
    assert_int_equal(a.err.code, ERR_DENIED);
    assert_non_null(strstr(a.err.msg, "not trusted"));
    scaler_close(s);
    s = OPEN(&h, &err, TLS, "tls", "enable", "unsafeSsl", "true", CLIENT);
    assert_false(poll_once(&h, s).failed);
    scaler_close(s);
    s = OPEN(&h, &err, TLS, "tls", "enable", "ca",
             server.ca_pem); /* the server asks for a certificate */
    a = poll_once(&h, s);
    assert_true(a.failed);
    scaler_close(s);
    s = OPEN(&h, &err, TLS); /* plain bytes to a TLS port */
    a = poll_once(&h, s);
    assert_true(a.failed);
    scaler_close(s);
    s = OPEN(&h, &err, "address", address(server.port), "listName", "l", "enableTLS",
             "true"); /* and the other way */
    a = poll_once(&h, s);
    assert_true(a.failed);
    scaler_close(s);
    s = OPEN(&h, &err, TLS, "enableTLS", "true", "tls", "enable");
    assert_null(s);
    s = OPEN(&h, &err, TLS, "enableTLS", "true", "ca", "no certificate");
    assert_null(s);
    assert_non_null(strstr(err.msg, "ca"));
    s = OPEN(&h, &err, TLS, "enableTLS", "true", "ca", server.ca_pem, "cert", server.other_ca_pem,
             "key", server.key_pem);
    assert_null(s);
    end(&h);
}

/* ---- No server, and strange ones ---- */

static void test_unreachable_then_pause(void **state)
{
    (void)state;
    struct scaler_host h;
    begin(&h);
    struct err err = ERR_INIT;
    struct scaler *s = OPEN(&h, &err, "address", "127.0.0.1:1", "listName", "l");
    struct answer a = poll_once(&h, s);
    assert_true(a.failed);
    assert_non_null(strstr(a.err.msg, "127.0.0.1:1"));
    assert_null(strstr(a.err.msg, "next attempt"));
    a = poll_once(&h, s);
    assert_non_null(strstr(a.err.msg, "next attempt in"));
    assert_int_equal(redis_counts(&h).connects, 1); /* the breaker is open */
    scaler_close(s);
    end(&h);
}

static void test_bad_parameters(void **state)
{
    (void)state;
    struct scaler_host h;
    begin(&h);
    static const char *const rows[][9] = {
        {"listName", "l"},
        {"listName", "l", "host", "a"},
        {"listName", "l", "address", "nohost"},
        {"listName", "l", "address", "a:70000"},
        {"listName", "l", "address", "::1:6379"},
        {"address", "a:1"},
        {"listName", "l", "address", "a:1", "listLength", "0"},
        {"listName", "l", "address", "a:1", "databaseIndex", "-1"},
        {"listName", "l", "address", "a:1", "username", "u"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        assert_null(open_with(&h, &err, rows[i]));
        assert_int_equal(err.code, ERR_INVALID);
    }
    struct err err = ERR_INIT;
    struct scaler *s = OPEN(&h, &err, "address", "[::1]:1", "listName", "l");
    assert_non_null(s);
    scaler_close(s);
    s = OPEN(&h, &err, "address", "169.254.169.254:80", "listName", "l");
    struct answer a = poll_once(&h, s);
    assert_true(a.failed);
    assert_non_null(strstr(a.err.msg, "link-local"));
    scaler_close(s);
    end(&h);
}

/* A listener on the loop that says one thing to everybody. */
struct fake {
    struct loop *loop;
    struct loop_fd listen;
    const char *says; /* NULL: nothing at all; "": closes */
    uint16_t port;
    int client;
};

static void on_client(void *arg, int events)
{
    struct fake *f = arg;
    (void)events;
    int fd = accept4(f->listen.fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (f->client >= 0)
        close(f->client);
    f->client = fd;
    if (f->says && *f->says)
        assert_true(write(fd, f->says, strlen(f->says)) > 0);
    if (f->says) {
        shutdown(fd, *f->says ? SHUT_WR : SHUT_RDWR);
    }
}

static void fake_start(struct fake *f, struct loop *l, const char *says)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    struct err err = ERR_INIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 8) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *f = (struct fake){.loop = l,
                       .says = says,
                       .port = ntohs(a.sin_port),
                       .client = -1,
                       .listen = {.fd = fd, .fn = on_client, .arg = f}};
    assert_int_equal(loop_fd_set(l, &f->listen, LOOP_READ, &err), 0);
}

static void fake_stop(struct fake *f)
{
    loop_fd_remove(f->loop, &f->listen);
    close(f->listen.fd);
    if (f->client >= 0)
        close(f->client);
}

static void test_strange_servers(void **state)
{
    (void)state;
    static const struct {
        const char *says, *message;
    } rows[] = {
        {"HTTP/1.1 400 Bad Request canary\r\n\r\n", "redis"},
        {"+list\r\n+list\r\n", "no length"},
        {"+list\r\n:-4\r\n", "no length"},
        {"+list\r\n$-1\r\n", "no length"},
        {"+list\r\n-WRONGTYPE Operation against a key\r\n", "WRONGTYPE"},
        {"-canary is no redis error\r\n:1\r\n", "answers with an error"},
        {"-LOADING Redis is loading the dataset in memory\r\n:1\r\n", "LOADING"},
        {":3\r\n:3\r\n", "something else"},
        {"*1025\r\n", "too many"},
        {"*1000000000\r\n", "redis"},
        {"$99999999999999\r\n", "redis"},
        {"", "closed"},
        {NULL, "no answer within 3 s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct scaler_host h;
        begin(&h);
        struct fake f;
        fake_start(&f, h.loop, rows[i].says);
        struct err err = ERR_INIT;
        struct scaler *s = OPEN(&h, &err, "address", address(f.port), "listName", "l");
        struct answer a = poll_once(&h, s);
        if (!a.failed || !strstr(a.err.msg, rows[i].message))
            fail_msg("row %zu: %s", i, a.failed ? a.err.msg : "no failure");
        scaler_close(s);
        fake_stop(&f);
        end(&h);
    }
}

/* A server that comes back is found again after the pause, which the calls do not wait for. */
static void test_comes_back(void **state)
{
    (void)state;
    struct scaler_host h;
    begin(&h);
    struct fake f;
    fake_start(&f, h.loop, NULL);
    uint16_t port = f.port;
    fake_stop(&f);
    struct err err = ERR_INIT;
    struct scaler *s = OPEN(&h, &err, "address", address(port), "listName", "l");
    assert_true(poll_once(&h, s).failed);
    assert_true(poll_once(&h, s).failed);
    assert_int_equal(redis_counts(&h).connects, 1);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    assert_true(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 8) == 0);
    f = (struct fake){.loop = h.loop,
                      .says = "+list\r\n:7\r\n",
                      .port = port,
                      .client = -1,
                      .listen = {.fd = fd, .fn = on_client, .arg = &f}};
    assert_int_equal(loop_fd_set(h.loop, &f.listen, LOOP_READ, &err), 0);
    loop_run_until(h.loop, loop_now(h.loop) + NS_PER_S); /* the first pause is at most this long */
    struct answer a = poll_once(&h, s);
    assert_false(a.failed);
    assert_int_equal(a.value, 7000);
    scaler_close(s);
    fake_stop(&f);
    end(&h);
}

/* Names are resolved on the worker's thread. */
static void test_names(void **state)
{
    (void)state;
    struct scaler_host h;
    begin(&h);
    h.worker = worker_new(h.loop, 1);
    struct fake f;
    fake_start(&f, h.loop, "+list\r\n:7\r\n");
    struct err err = ERR_INIT;
    char text[64];
    snprintf(text, sizeof(text), "localhost:%u", f.port);
    struct scaler *s = OPEN(&h, &err, "address", text, "listName", "l");
    struct answer a = poll_once(&h, s);
    if (a.failed)
        fail_msg("%s", a.err.msg);
    assert_int_equal(a.value, 7000);
    scaler_close(s);
    s = OPEN(&h, &err, "address", "no-such-host.invalid:1", "listName", "l");
    a = poll_once(&h, s);
    assert_true(a.failed);
    assert_non_null(strstr(a.err.msg, "no-such-host.invalid"));
    scaler_close(s);
    s = OPEN(&h, &err, "address", "no-such-host.invalid:1", "listName", "l");
    struct answer never = {.loop = h.loop, .waiting = 1};
    scaler_poll(s, done, &never);
    loop_run_until(h.loop, loop_now(h.loop) + NS_PER_MS);
    unsigned waiting = never.waiting; /* the name may have failed to resolve already */
    scaler_close(s);                  /* while the thread may still be at it */
    loop_run_until(h.loop, loop_now(h.loop) + 100 * NS_PER_MS);
    assert_int_equal(never.waiting, waiting);
    fake_stop(&f);
    worker_free(h.worker);
    end(&h);
}

static void test_close_during_poll(void **state)
{
    (void)state;
    struct scaler_host h;
    begin(&h);
    struct fake f;
    fake_start(&f, h.loop, NULL);
    struct err err = ERR_INIT;
    struct scaler *one = OPEN(&h, &err, "address", address(f.port), "listName", "l");
    struct scaler *two = OPEN(&h, &err, "address", address(f.port), "listName", "m");
    struct answer a = {.loop = h.loop, .waiting = 1}, b = a;
    scaler_poll(one, done, &a);
    scaler_poll(two, done, &b);
    loop_run_until(h.loop, loop_now(h.loop) + 50 * NS_PER_MS);
    scaler_close(one); /* silent */
    loop_run_until(h.loop, loop_now(h.loop) + 10 * NS_PER_S);
    assert_int_equal(a.waiting, 1);
    assert_int_equal(b.waiting, 0);
    assert_true(b.failed);
    scaler_close(two);
    fake_stop(&f);
    end(&h);
}

static int start(void **state)
{
    (void)state;
    missing = redis_server_start(&server, PASSWORD);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_database),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_passwords),
        cmocka_unit_test(test_one_round_trip),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_unreachable_then_pause),
        cmocka_unit_test(test_bad_parameters),
        cmocka_unit_test(test_strange_servers),
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_close_during_poll),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
