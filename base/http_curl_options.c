/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* From a request to libcurl's options: URL, times, TLS, headers, body. */

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/file_cache.h"
#include "base/http_curl.h"

#define TIMEOUT_STANDARD (30 * NS_PER_S)
#define IDLE_STANDARD (300 * NS_PER_S) /* of a stream that names neither timeout */
#define CONNECT_TIMEOUT_MS 10000L
#define UNACKNOWLEDGED_MS_MAX 20000u /* bytes sent, no acknowledgement: the peer is gone */
#define KEEPALIVE_S 15L

static void set_blob(CURL *easy, CURLoption option, struct str pem)
{
    struct curl_blob blob = {(void *)(uintptr_t)pem.p, pem.len, CURL_BLOB_COPY};
    curl_easy_setopt(easy, option, &blob);
}

/* Passes PEM text as it is, or the file's bytes of this moment. */
static int set_pem(struct http_op *op, CURLoption option, struct str pem, const char *file,
                   struct err *err)
{
    if (!pem.len && file && file_cache_get(op->owner->files, file, &pem, err) < 0)
        return -1;
    if (pem.len)
        set_blob(op->easy, option, pem);
    return 0;
}

static int set_tls(struct http_op *op, const struct http_tls *t, struct err *err)
{
    curl_easy_setopt(op->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (!t)
        return 0;
    op->has_client_cert = t->cert_pem.len || t->cert_file;
    if (t->ca_file || t->ca_pem.len) /* whom the system trusts besides is not asked */
        curl_easy_setopt(op->easy, CURLOPT_CAPATH, NULL);
    /* A certificate file may hold the key as well. */
    bool joint = op->has_client_cert && !t->key_pem.len && !t->key_file;
    if (set_pem(op, CURLOPT_CAINFO_BLOB, t->ca_pem, t->ca_file, err) < 0 ||
        set_pem(op, CURLOPT_SSLCERT_BLOB, t->cert_pem, t->cert_file, err) < 0 ||
        set_pem(op, CURLOPT_SSLKEY_BLOB, joint ? t->cert_pem : t->key_pem,
                joint ? t->cert_file : t->key_file, err) < 0)
        return -1;
    if (t->insecure) {
        curl_easy_setopt(op->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(op->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    return 0;
}

static void add_to(struct curl_slist **list, const char *line)
{
    struct curl_slist *grown = curl_slist_append(*list, line);
    assert(grown);
    *list = grown;
}

/* libcurl takes the name for TLS from the URL. So that another one can be asked for, the URL gets
 * that name, the connection is pointed back at the real host, and the Host header says it too. */
static int set_server_name(struct http_op *op, CURLU *url, const char *name, struct err *err)
{
    char *host = NULL, *port = NULL, *given_port = NULL;
    CLEANUP(buf_release) struct buf line = BUF_INIT;
    curl_url_get(url, CURLUPART_HOST, &host, 0);
    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    curl_url_get(url, CURLUPART_PORT, &given_port, 0);
    int ret = 0;
    if (!host || !port || curl_url_set(url, CURLUPART_HOST, name, 0) != CURLUE_OK)
        ret = err_set(err, ERR_INVALID, "'%.200s' cannot be used as a server name", name);
    if (ret == 0) {
        buf_printf(&line, "Host: %s%s%s", host, given_port ? ":" : "",
                   given_port ? given_port : "");
        add_to(&op->headers, line.data);
        buf_clear(&line);
        buf_printf(&line, "%s:%s:%s:%s", name, port, host, port);
        add_to(&op->connect_to, line.data);
        curl_easy_setopt(op->easy, CURLOPT_CONNECT_TO, op->connect_to);
    }
    curl_free(host);
    curl_free(port);
    curl_free(given_port);
    return ret;
}

static int set_url(struct http_op *op, const struct http_request *req, struct err *err)
{
    CURLU *url = curl_url();
    char *text = xstr_dup(req->url), *scheme = NULL, *whole = NULL;
    int ret = 0;
    if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK)
        ret = err_set(err, ERR_INVALID, "a URL that cannot be used");
    if (ret == 0 && req->tls && req->tls->server_name && req->tls->server_name[0] &&
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        strcmp(scheme, "https") == 0)
        ret = set_server_name(op, url, req->tls->server_name, err);
    if (ret == 0 && curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK)
        curl_easy_setopt(op->easy, CURLOPT_URL, whole);
    curl_free(scheme);
    curl_free(whole);
    free(text);
    curl_url_cleanup(url);
    return ret;
}

static bool fits_a_line(struct str s)
{
    return str_find_char(s, '\n', 0) == SIZE_MAX && str_find_char(s, '\r', 0) == SIZE_MAX &&
           str_find_char(s, '\0', 0) == SIZE_MAX;
}

static int set_headers(struct http_op *op, const struct http_request *req, struct err *err)
{
    bool has_type = false;
    for (size_t i = 0; i < req->n_headers; i++) {
        const struct http_header *h = &req->headers[i];
        CLEANUP(buf_release) struct buf line = {.cap = 64 * 1024};
        /* libcurl's way to send a header without a value ends in a semicolon. */
        if (h->value.len)
            buf_printf(&line, "%.*s: %.*s", STR_ARG(h->name), STR_ARG(h->value));
        else
            buf_printf(&line, "%.*s;", STR_ARG(h->name));
        if (line.overflow || !h->name.len || !fits_a_line(h->name) || !fits_a_line(h->value))
            return err_set(err, ERR_INVALID, "the header '%.*s' cannot be sent",
                           (int)MIN(h->name.len, (size_t)60), h->name.p ? h->name.p : "");
        add_to(&op->headers, line.data);
        explicit_bzero(line.data, line.len);
        has_type |= str_eq_nocase(h->name, STR("content-type"));
    }
    add_to(&op->headers, "Expect:");
    if (!has_type)
        add_to(&op->headers, "Content-Type:"); /* libcurl would call every body a form */
    curl_easy_setopt(op->easy, CURLOPT_HTTPHEADER, op->headers);
    return 0;
}

static size_t on_send(char *out, size_t size, size_t n, void *arg)
{
    struct http_op *op = arg;
    size_t len = MIN(size * n, op->body_len - op->body_sent);
    if (len)
        memcpy(out, op->body + op->body_sent, len);
    op->body_sent += len;
    return len;
}

static int set_method(struct http_op *op, const struct http_request *req, struct err *err)
{
    char method[16];
    if (req->method.len == 0 || req->method.len >= sizeof(method))
        return err_set(err, ERR_INVALID, "'%.*s' is not a method", STR_ARG(req->method));
    snprintf(method, sizeof(method), "%.*s", STR_ARG(req->method));
    bool expects_body =
        strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
    if (req->body.len || expects_body) {
        op->body = xstr_dup(req->body);
        op->body_len = req->body.len;
        curl_easy_setopt(op->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(op->easy, CURLOPT_READFUNCTION, on_send);
        curl_easy_setopt(op->easy, CURLOPT_READDATA, op);
        curl_easy_setopt(op->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)op->body_len);
    } else if (strcmp(method, "HEAD") == 0) {
        curl_easy_setopt(op->easy, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(op->easy, CURLOPT_CUSTOMREQUEST, method);
    return 0;
}

/* A peer that vanished without a word is noticed by the kernel: unanswered bytes or, on a quiet
 * connection, unanswered keep-alive probes end it. */
static int on_new_socket(void *arg UNUSED, curl_socket_t s, curlsocktype purpose UNUSED)
{
    unsigned ms = UNACKNOWLEDGED_MS_MAX;
    setsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

static void set_times(struct http_op *op, const struct http_request *req)
{
    int64_t timeout = req->timeout ? req->timeout : TIMEOUT_STANDARD;
    op->idle_timeout = req->idle_timeout;
    if (timeout == TIME_NEVER && !op->idle_timeout)
        op->idle_timeout = IDLE_STANDARD;
    if (timeout != TIME_NEVER)
        curl_easy_setopt(op->easy, CURLOPT_TIMEOUT_MS,
                         (long)MIN(MAX(timeout / NS_PER_MS, (int64_t)1), (int64_t)INT32_MAX));
    curl_easy_setopt(op->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(op->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(op->easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
    curl_easy_setopt(op->easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S / 3);
    curl_easy_setopt(op->easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
}

int http_curl_options(struct http_op *op, const struct http_request *req, struct err *err)
{
    CURL *e = op->easy;
    curl_easy_setopt(e, CURLOPT_PRIVATE, op);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, op->message);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION,
                     (long)(req->http1_only ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, http_curl_on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, op);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, http_curl_on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, op);
    if (req->proxy)
        curl_easy_setopt(e, CURLOPT_PROXY, req->proxy);
    set_times(op, req);
    if (set_url(op, req, err) < 0 || set_tls(op, req->tls, err) < 0 || set_method(op, req, err) < 0)
        return -1;
    return set_headers(op, req, err);
}
