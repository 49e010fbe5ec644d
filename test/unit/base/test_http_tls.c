/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The libcurl transport over TLS: whom it trusts, which name it asks for, which certificate it
 * shows, and that files which change are used as they are now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <unistd.h>

#include "test/unit/base/certs.h"
#include "test/unit/base/exchange.h"
#include "test/unit/base/peer.h"

static struct cert ca, other_ca, server, misnamed, self_signed, client_one, client_two;
static char folder[] = "/tmp/weft-tls-XXXXXX";

static int make_certs(void **state)
{
    (void)state;
    cert_make(&ca, "One Authority", NULL, NULL);
    cert_make(&other_ca, "Another Authority", NULL, NULL);
    cert_make(&server, "server", "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1", &ca);
    cert_make(&misnamed, "misnamed", "DNS:elsewhere.example", &ca);
    cert_make(&self_signed, "alone", "IP:127.0.0.1", NULL);
    cert_make(&client_one, "client-one", NULL, &ca);
    cert_make(&client_two, "client-two", NULL, &ca);
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_certs(void **state)
{
    (void)state;
    struct cert *const all[] = {&ca,          &other_ca,   &server,    &misnamed,
                                &self_signed, &client_one, &client_two};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        cert_release(all[i]);
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        unlink(path);
    }
    closedir(d);
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char paths[8][128];
    static size_t n;
    char *out = paths[n++ % 8];
    snprintf(out, 128, "%s/%s", folder, name);
    return out;
}

/* Answers with what the server saw: the name asked for, the client's subject, then the request. */
static void serve_seen(struct peer_conn *c)
{
    const char *name = SSL_get_servername(c->ssl, TLSEXT_NAMETYPE_host_name);
    X509 *shown = SSL_get1_peer_certificate(c->ssl);
    char subject[64] = "nobody";
    if (shown)
        X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, subject,
                                  sizeof(subject));
    X509_free(shown);
    while (peer_read_request(c)) {
        char text[4096], head[128];
        struct str r = peer_request(c);
        int n = snprintf(text, sizeof(text), "name=%s client=%s\n%.*s", name ? name : "none",
                         subject, STR_ARG(r));
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n);
        if (!peer_write(c, head) || !peer_write(c, text))
            return;
    }
}

struct scene {
    struct client c;
    struct peer p;
    char url[128];
    struct exchange x;
};

static void scene_open(struct scene *s, const struct cert *cert, const struct cert *client_ca)
{
    *s = (struct scene){0};
    client_open(&s->c);
    peer_start(&s->p, serve_seen, NULL, cert_server(cert, client_ca));
    peer_url(&s->p, "/x", s->url);
}

static void scene_close(struct scene *s)
{
    exchange_release(&s->x);
    peer_stop(&s->p);
    client_close(&s->c);
}

static void get(struct scene *s, const struct http_tls *tls)
{
    exchange_release(&s->x);
    const struct http_request req = {
        .method = STR("GET"), .url = str_from(s->url), .tls = tls, .proxy = ""};
    exchange_run(&s->c, &s->x, &req);
}

#define EXPECT_CODE(s, expected)                                                                   \
    do {                                                                                           \
        if ((s)->x.err.code != (expected))                                                         \
            fail_msg("%s, not %s: %s", err_code_name((s)->x.err.code), err_code_name(expected),    \
                     (s)->x.err.msg);                                                              \
    } while (0)

#define EXPECT_SEEN(s, text)                                                                       \
    do {                                                                                           \
        EXPECT_CODE(s, ERR_NONE);                                                                  \
        if (!strstr((s)->x.body.data, text))                                                       \
            fail_msg("no '%s' in: %s", text, (s)->x.body.data);                                    \
    } while (0)

static void test_trust(void **state)
{
    (void)state;
    const struct http_tls ours = {.ca_pem = str_from(ca.cert_pem)};
    const struct http_tls wrong = {.ca_pem = str_from(other_ca.cert_pem)};
    const struct http_tls garbage = {.ca_pem = STR("no certificate\n")};
    const struct http_tls blind = {.insecure = true};
    const struct {
        const struct cert *cert;
        const struct http_tls *tls;
        enum err_code code;
    } cases[] = {
        {&server, &ours, ERR_NONE},       {&server, &wrong, ERR_DENIED},
        {&server, &garbage, ERR_DENIED},  {&server, NULL, ERR_DENIED},
        {&server, &blind, ERR_NONE},      {&misnamed, &ours, ERR_DENIED},
        {&misnamed, &blind, ERR_NONE},    {&self_signed, &ours, ERR_DENIED},
        {&self_signed, &blind, ERR_NONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene s;
        scene_open(&s, cases[i].cert, NULL);
        get(&s, cases[i].tls);
        if (s.x.err.code != cases[i].code)
            fail_msg("case %zu: %s: %s", i, err_code_name(s.x.err.code), s.x.err.msg);
        assert_int_equal(peer_requests(&s.p), cases[i].code == ERR_NONE);
        scene_close(&s);
    }
}

/* A connection made without verification is not used by a request that wants it. */
static void test_insecure_is_not_contagious(void **state)
{
    (void)state;
    struct scene s;
    const struct http_tls blind = {.insecure = true};
    const struct http_tls wrong = {.ca_pem = str_from(other_ca.cert_pem)};
    scene_open(&s, &server, NULL);
    get(&s, &blind);
    EXPECT_CODE(&s, ERR_NONE);
    get(&s, &wrong);
    EXPECT_CODE(&s, ERR_DENIED);
    get(&s, &blind);
    EXPECT_CODE(&s, ERR_NONE);
    assert_int_equal(peer_requests(&s.p), 2);
    scene_close(&s);
}

/* Another name than the URL's: asked for, verified, and the Host header still says the URL's. */
static void test_server_name(void **state)
{
    (void)state;
    struct scene s;
    struct http_tls tls = {.ca_pem = str_from(ca.cert_pem)};
    char host[64];
    scene_open(&s, &server, NULL);
    snprintf(host, sizeof(host), "\r\nHost: 127.0.0.1:%u\r\n", (unsigned)s.p.port);
    get(&s, &tls);
    EXPECT_SEEN(&s, "name=none");
    EXPECT_SEEN(&s, host);
    tls.server_name = "kubernetes.default.svc";
    get(&s, &tls);
    EXPECT_SEEN(&s, "name=kubernetes.default.svc");
    EXPECT_SEEN(&s, host);
    EXPECT_SEEN(&s, "GET /x HTTP/1.1");
    tls.server_name = "elsewhere.example";
    get(&s, &tls);
    EXPECT_CODE(&s, ERR_DENIED);
    tls.server_name = "not a name";
    get(&s, &tls);
    EXPECT_CODE(&s, ERR_INVALID);
    scene_close(&s);
    scene_open(&s, &misnamed, NULL);
    tls.server_name = "elsewhere.example";
    get(&s, &tls);
    EXPECT_SEEN(&s, "name=elsewhere.example");
    scene_close(&s);
}

static void test_client_certificate(void **state)
{
    (void)state;
    struct scene s;
    const struct http_tls none = {.ca_pem = str_from(ca.cert_pem)};
    struct http_tls one = none, two = none, foreign = none;
    one.cert_pem = str_from(client_one.cert_pem);
    one.key_pem = str_from(client_one.key_pem);
    two.cert_pem = str_from(client_two.cert_pem);
    two.key_pem = str_from(client_two.key_pem);
    foreign.cert_pem = str_from(self_signed.cert_pem);
    foreign.key_pem = str_from(self_signed.key_pem);
    scene_open(&s, &server, &ca);
    get(&s, &one);
    EXPECT_SEEN(&s, "client=client-one");
    get(&s, &two); /* a connection of the first's is at hand, and is not its */
    EXPECT_SEEN(&s, "client=client-two");
    get(&s, &one);
    EXPECT_SEEN(&s, "client=client-one");
    int served = peer_requests(&s.p);
    get(&s, &none); /* TLS 1.3: told after the handshake */
    EXPECT_CODE(&s, ERR_DENIED);
    assert_non_null(strstr(s.x.err.msg, "none was given"));
    get(&s, &foreign);
    EXPECT_CODE(&s, ERR_DENIED);
    assert_null(strstr(s.x.err.msg, "none was given"));
    assert_int_equal(peer_requests(&s.p), served);
    scene_close(&s);
    scene_open(&s, &server, &ca);
    struct http_tls mismatched = one;
    mismatched.key_pem = two.key_pem;
    get(&s, &mismatched);
    EXPECT_CODE(&s, ERR_DENIED);
    scene_close(&s);
}

/* Certificate and key in one file or text. */
static void test_joint_file(void **state)
{
    (void)state;
    struct scene s;
    char joint[8192];
    snprintf(joint, sizeof(joint), "%s%s", client_one.cert_pem, client_one.key_pem);
    write_file(path_of("joint.pem"), joint);
    scene_open(&s, &server, &ca);
    struct http_tls tls = {.ca_pem = str_from(ca.cert_pem), .cert_file = path_of("joint.pem")};
    get(&s, &tls);
    EXPECT_SEEN(&s, "client=client-one");
    tls = (struct http_tls){.ca_pem = str_from(ca.cert_pem), .cert_pem = str_from(joint)};
    get(&s, &tls);
    EXPECT_SEEN(&s, "client=client-one");
    scene_close(&s);
}

/* New client certificate in the files: the very next request shows it, though connections made with
 * the old one are idle; a file that is gone for a moment changes nothing. */
static void test_client_rotation(void **state)
{
    (void)state;
    struct scene s;
    const struct http_tls tls = {.ca_pem = str_from(ca.cert_pem),
                                 .cert_file = path_of("client.crt"),
                                 .key_file = path_of("client.key")};
    write_file(tls.cert_file, client_one.cert_pem);
    write_file(tls.key_file, client_one.key_pem);
    scene_open(&s, &server, &ca);
    for (int i = 0; i < 3; i++) {
        get(&s, &tls);
        EXPECT_SEEN(&s, "client=client-one");
    }
    assert_int_equal(peer_connections(&s.p), 1);
    write_file(tls.key_file, client_two.key_pem);
    write_file(tls.cert_file, client_two.cert_pem);
    for (int i = 0; i < 3; i++) {
        get(&s, &tls);
        EXPECT_SEEN(&s, "client=client-two");
    }
    assert_int_equal(peer_connections(&s.p), 2);
    unlink(tls.cert_file);
    get(&s, &tls);
    EXPECT_SEEN(&s, "client=client-two");
    write_file(tls.cert_file, "");
    get(&s, &tls);
    EXPECT_SEEN(&s, "client=client-two");
    write_file(tls.cert_file, client_one.cert_pem);
    write_file(tls.key_file, client_one.key_pem);
    get(&s, &tls);
    EXPECT_SEEN(&s, "client=client-one");
    scene_close(&s);
}

/* The authority changes, on the server and in the file, while the transport lives. */
static void test_authority_rotation(void **state)
{
    (void)state;
    struct scene s;
    struct cert next;
    cert_make(&next, "next", "IP:127.0.0.1", &other_ca);
    const struct http_tls tls = {.ca_file = path_of("ca.crt")};
    write_file(tls.ca_file, ca.cert_pem);
    scene_open(&s, &server, NULL);
    get(&s, &tls);
    EXPECT_CODE(&s, ERR_NONE);
    write_file(tls.ca_file, other_ca.cert_pem);
    get(&s, &tls); /* the old connection is not good enough any more */
    EXPECT_CODE(&s, ERR_DENIED);
    peer_set_tls(&s.p, cert_server(&next, NULL));
    get(&s, &tls);
    EXPECT_CODE(&s, ERR_NONE);
    assert_int_equal(peer_requests(&s.p), 2);
    cert_release(&next);
    scene_close(&s);
}

/* A server cut after the handshake, without an alert, is of unknown outcome; the message names the
 * likely reason. */
static void serve_cut(struct peer_conn *c)
{
    peer_read_request(c);
}

static void test_cut_after_handshake(void **state)
{
    (void)state;
    struct scene s;
    const struct http_tls tls = {.ca_pem = str_from(ca.cert_pem)};
    scene_open(&s, &server, NULL);
    s.p.serve = serve_cut;
    get(&s, &tls);
    EXPECT_CODE(&s, ERR_UNKNOWN);
    assert_non_null(strstr(s.x.err.msg, "no client certificate was given"));
    scene_close(&s);
}

/* A plain server where TLS is expected: nothing was sent. */
static void test_plain_server(void **state)
{
    (void)state;
    struct scene s;
    const struct http_tls tls = {.ca_pem = str_from(ca.cert_pem)};
    s = (struct scene){0};
    client_open(&s.c);
    peer_start(&s.p, serve_cut, NULL, NULL);
    snprintf(s.url, sizeof(s.url), "https://127.0.0.1:%u/", (unsigned)s.p.port);
    const struct http_request req = {.method = STR("POST"),
                                     .url = str_from(s.url),
                                     .tls = &tls,
                                     .timeout = 300 * NS_PER_MS,
                                     .proxy = ""};
    exchange_run(&s.c, &s.x, &req);
    EXPECT_CODE(&s, ERR_RETRY);
    assert_int_equal(peer_requests(&s.p), 0);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_insecure_is_not_contagious),
        cmocka_unit_test(test_server_name),
        cmocka_unit_test(test_client_certificate),
        cmocka_unit_test(test_joint_file),
        cmocka_unit_test(test_client_rotation),
        cmocka_unit_test(test_authority_rotation),
        cmocka_unit_test(test_cut_after_handshake),
        cmocka_unit_test(test_plain_server),
    };
    return cmocka_run_group_tests(tests, make_certs, drop_certs);
}
