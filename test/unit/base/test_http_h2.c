/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* HTTP/2 against nghttpd, behind a relay that counts connections and can fall silent or cut: many
 * streams on one connection, the server's stream limit, and what becomes of a dead peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/base/certs.h"
#include "test/unit/base/exchange.h"
#include "test/unit/base/peer.h"

#define SKIPPED 77
#define LARGE_BYTES 3000000

static struct cert ca, cert;
static char folder[] = "/tmp/weft-h2-XXXXXX", program[64];

static void put(const char *name, const char *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    cert_make(&ca, "Authority", NULL, NULL);
    cert_make(&cert, "server", "IP:127.0.0.1", &ca);
    char *large = malloc(LARGE_BYTES);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)('a' + i % 26);
    put("large", large, LARGE_BYTES);
    free(large);
    put("hello", "hello\n", 6);
    put("cert", cert.cert_pem, strlen(cert.cert_pem));
    put("key", cert.key_pem, strlen(cert.key_pem));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"large", "hello", "cert", "key"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    cert_release(&cert);
    cert_release(&ca);
    return rmdir(folder);
}

/* ---- The server ---- */

static int connect_to(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

static uint16_t free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static pid_t spawn(uint16_t port, const char *streams)
{
    char key[128], certificate[128], number[16];
    snprintf(key, sizeof(key), "%s/key", folder);
    snprintf(certificate, sizeof(certificate), "%s/cert", folder);
    snprintf(number, sizeof(number), "%u", (unsigned)port);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* ends with the test, and holds none of its descriptors */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int nowhere = open("/dev/null", O_RDWR);
        dup2(nowhere, STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        execl(program, program, "-a", "127.0.0.1", "-d", folder, "-m", streams, "--echo-upload",
              number, key, certificate, (char *)NULL);
        _exit(127);
    }
    for (int tries = 0; tries < 2000; tries++) {
        int fd = connect_to(port);
        if (fd >= 0) {
            close(fd);
            return child;
        }
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        usleep(5000);
    }
    fail_msg("nghttpd does not listen");
    return -1;
}

/* ---- The relay ---- */

struct scene {
    struct client c;
    struct peer relay;
    uint16_t server_port;
    pid_t server;
    atomic_int silent_below; /* connections before this one pass nothing on */
    atomic_int cut_below;
    atomic_long cut_after_bytes; /* of an answer; 0: never */
    char base[64];
    struct http_tls tls;
};

static bool pass(int from, int to, long *passed)
{
    char bytes[16384];
    ssize_t n = recv(from, bytes, sizeof(bytes), 0);
    for (ssize_t at = 0; at < n;) {
        ssize_t sent = send(to, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
    }
    *passed += n > 0 ? n : 0;
    return n > 0;
}

static void relay(struct peer_conn *c)
{
    struct scene *s = c->peer->arg;
    int up = connect_to(s->server_port);
    long sent = 0, answered = 0;
    struct pollfd fds[2] = {{c->fd, POLLIN, 0}, {up, POLLIN, 0}};
    while (up >= 0 && poll(fds, 2, 10) >= 0) {
        long cut = atomic_load(&s->cut_after_bytes);
        if (c->nth < atomic_load(&s->cut_below) || (cut && answered >= cut))
            break;
        if (c->nth < atomic_load(&s->silent_below)) { /* takes what comes and says nothing */
            char bytes[4096];
            if (fds[0].revents && recv(c->fd, bytes, sizeof(bytes), 0) <= 0)
                break;
            fds[1].events = 0;
            continue;
        }
        if ((fds[0].revents && !pass(c->fd, up, &sent)) ||
            (fds[1].revents && !pass(up, c->fd, &answered)))
            break;
    }
    if (up >= 0)
        close(up);
}

static void scene_open(struct scene *s, const char *streams)
{
    memset(s, 0, sizeof(*s));
    s->server_port = free_port();
    s->server = spawn(s->server_port, streams);
    client_open(&s->c);
    peer_start(&s->relay, relay, s, NULL);
    snprintf(s->base, sizeof(s->base), "https://127.0.0.1:%u", (unsigned)s->relay.port);
    s->tls = (struct http_tls){.ca_pem = str_from(ca.cert_pem)};
}

static void scene_close(struct scene *s)
{
    http_close(s->c.http);
    s->c.http = NULL;
    peer_stop(&s->relay);
    client_close(&s->c);
    kill(s->server, SIGKILL);
    waitpid(s->server, NULL, 0);
}

static void begin(struct scene *s, struct exchange *x, const char *path, struct http_request req)
{
    CLEANUP(buf_release) struct buf url = BUF_INIT;
    buf_printf(&url, "%s%s", s->base, path);
    req.url = buf_view(&url);
    req.tls = &s->tls;
    req.proxy = "";
    if (!req.method.p)
        req.method = STR("GET");
    assert_true(exchange_start(&s->c, x, &req));
}

static void get(struct scene *s, const char *path, enum err_code code, int64_t timeout)
{
    struct exchange x = {0};
    begin(s, &x, path, (struct http_request){.timeout = timeout});
    client_run(&s->c);
    if (x.err.code != code)
        fail_msg("%s, not %s: %s", err_code_name(x.err.code), err_code_name(code), x.err.msg);
    if (code == ERR_NONE)
        assert_int_equal(x.status, 200);
    exchange_release(&x);
}

/* ---- Tests ---- */

static void test_one_connection(void **state)
{
    (void)state;
    enum { MANY = 100 };
    struct scene s;
    scene_open(&s, "250");
    static struct exchange x[MANY];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++)
            begin(&s, &x[i], i % 10 ? "/hello" : "/large", (struct http_request){0});
        client_run(&s.c);
        for (int i = 0; i < MANY; i++) {
            if (x[i].err.code)
                fail_msg("%d: %s", i, x[i].err.msg);
            assert_int_equal(x[i].body.len, i % 10 ? 6 : LARGE_BYTES);
            if (i % 10 == 0)
                for (size_t at = 0; at < LARGE_BYTES; at += 997)
                    assert_int_equal(x[i].body.data[at], 'a' + (int)(at % 26));
            exchange_release(&x[i]);
        }
    }
    assert_int_equal(peer_connections(&s.relay), 1);
    scene_close(&s);
}

/* Asked for, one connection each, as in HTTP/1.1. */
static void test_http1_only(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, "250");
    struct exchange x = {0};
    begin(&s, &x, "/hello", (struct http_request){.http1_only = true});
    client_run(&s.c);
    assert_int_equal(x.dones, 1);
    assert_true(x.err.code != ERR_NONE); /* nghttpd speaks nothing else */
    exchange_release(&x);
    scene_close(&s);
}

/* The server takes ten streams at a time; all come through. libcurl opens more connections, up to
 * its cap, and the few that it closes meanwhile are counted as well. */
static void test_stream_limit(void **state)
{
    (void)state;
    enum { MANY = 300 };
    struct scene s;
    scene_open(&s, "10");
    static struct exchange x[MANY];
    for (int i = 0; i < MANY; i++)
        begin(&s, &x[i], "/hello", (struct http_request){0});
    client_run(&s.c);
    for (int i = 0; i < MANY; i++) {
        if (x[i].err.code)
            fail_msg("%d: %s", i, x[i].err.msg);
        assert_string_equal(x[i].body.data, "hello\n");
        exchange_release(&x[i]);
    }
    assert_true(peer_connections(&s.relay) <= 150);
    scene_close(&s);
}

static void test_uploads(void **state)
{
    (void)state;
    enum { MANY = 20, SIZE = 200000 };
    struct scene s;
    scene_open(&s, "250");
    static char body[MANY][SIZE];
    static struct exchange x[MANY];
    for (int i = 0; i < MANY; i++) {
        memset(body[i], 'A' + i, SIZE);
        begin(&s, &x[i], "/",
              (struct http_request){.method = i % 2 ? STR("POST") : STR("PUT"),
                                    .body = {body[i], SIZE}});
    }
    client_run(&s.c);
    for (int i = 0; i < MANY; i++) {
        if (x[i].err.code)
            fail_msg("%d: %s", i, x[i].err.msg);
        assert_int_equal(x[i].body.len, SIZE);
        assert_memory_equal(x[i].body.data, body[i], SIZE);
        exchange_release(&x[i]);
    }
    assert_int_equal(peer_connections(&s.relay), 1);
    scene_close(&s);
}

/* The peer takes everything and says nothing more: what waits fails, and the next request does not
 * go where the last one died. */
static void test_silent_peer(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, "250");
    get(&s, "/hello", ERR_NONE, 0);
    assert_int_equal(peer_connections(&s.relay), 1);
    atomic_store(&s.silent_below, 1);
    get(&s, "/hello", ERR_UNKNOWN, 300 * NS_PER_MS);
    get(&s, "/hello", ERR_NONE, 0);
    get(&s, "/hello", ERR_NONE, 0);
    assert_int_equal(peer_connections(&s.relay), 2);
    /* The same by idle time, with a stream beside it that would wait for an hour. */
    atomic_store(&s.silent_below, 2);
    struct exchange patient = {0}, watch = {0};
    begin(&s, &patient, "/hello",
          (struct http_request){.timeout = TIME_NEVER, .idle_timeout = NS_PER_HOUR});
    begin(&s, &watch, "/hello",
          (struct http_request){.timeout = TIME_NEVER, .idle_timeout = 300 * NS_PER_MS});
    client_run(&s.c);
    assert_int_equal(watch.err.code, ERR_UNKNOWN);
    assert_int_equal(patient.err.code, ERR_UNKNOWN);
    exchange_release(&patient);
    exchange_release(&watch);
    get(&s, "/hello", ERR_NONE, 0);
    assert_int_equal(peer_connections(&s.relay), 3);
    scene_close(&s);
}

static void test_cut(void **state)
{
    (void)state;
    enum { MANY = 10 };
    struct scene s;
    scene_open(&s, "250");
    static struct exchange x[MANY];
    atomic_store(&s.cut_after_bytes, 1000000);
    for (int i = 0; i < MANY; i++)
        begin(&s, &x[i], "/large", (struct http_request){0});
    client_run(&s.c);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(x[i].err.code, ERR_UNKNOWN);
        assert_true(x[i].body.len < LARGE_BYTES);
        exchange_release(&x[i]);
    }
    atomic_store(&s.cut_after_bytes, 0);
    get(&s, "/large", ERR_NONE, 0);
    /* Cut while idle: noticed, and the next request has a connection of its own. */
    atomic_store(&s.cut_below, peer_connections(&s.relay));
    for (int i = 0; i < 3; i++)
        get(&s, "/hello", ERR_NONE, 0);
    scene_close(&s);
}

static void test_cancel_streams(void **state)
{
    (void)state;
    enum { MANY = 30 };
    struct scene s;
    scene_open(&s, "250");
    static struct exchange x[MANY];
    for (int i = 0; i < MANY; i++) {
        x[i] = (struct exchange){.act = i % 3 == 0   ? CANCEL_IN_CHUNK
                                        : i % 3 == 1 ? CANCEL_IN_HEAD
                                                     : NOTHING};
        begin(&s, &x[i], "/large", (struct http_request){0});
    }
    client_run(&s.c);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(x[i].dones, i % 3 == 2);
        if (i % 3 == 2)
            assert_int_equal(x[i].body.len, LARGE_BYTES);
        exchange_release(&x[i]);
    }
    get(&s, "/hello", ERR_NONE, 0);
    assert_int_equal(peer_connections(&s.relay), 1); /* cancelling a stream spares the others */
    scene_close(&s);
}

int main(void)
{
    static const char *const places[] = {"/usr/sbin/nghttpd", "/usr/bin/nghttpd",
                                         "/usr/local/bin/nghttpd"};
    for (size_t i = 0; i < ARRAY_LEN(places) && !program[0]; i++)
        if (access(places[i], X_OK) == 0)
            snprintf(program, sizeof(program), "%s", places[i]);
    if (!program[0]) {
        printf("SKIPPED: nghttpd is not installed (package nghttp2-server)\n");
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_connection), cmocka_unit_test(test_http1_only),
        cmocka_unit_test(test_stream_limit),   cmocka_unit_test(test_uploads),
        cmocka_unit_test(test_silent_peer),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cancel_streams),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
