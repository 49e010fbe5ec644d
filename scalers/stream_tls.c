/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* TLS over memory. */
#include "scalers/stream_tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/arena.h"

struct stream_tls_session {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out; /* belong to ssl */
};

/* What OpenSSL says went wrong, and forgets. */
static int tls_error(struct err *err, enum err_code code, const char *what)
{
    unsigned long e = ERR_get_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    ERR_clear_error();
    return err_set(err, code, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
}

static BIO *pem_source(struct str pem)
{
    return BIO_new_mem_buf(pem.p, (int)MIN(pem.len, (size_t)INT32_MAX));
}

static int add_authorities(SSL_CTX *context, struct str pem, struct err *err)
{
    if (!pem.len) {
        SSL_CTX_set_default_verify_paths(context);
        return 0;
    }
    BIO *source = pem_source(pem);
    X509 *certificate;
    int n = 0;
    while ((certificate = PEM_read_bio_X509(source, NULL, NULL, NULL))) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate);
        X509_free(certificate);
        n++;
    }
    BIO_free(source);
    ERR_clear_error(); /* the end of the text is an error to the reader */
    return n ? 0 : err_set(err, ERR_INVALID, "ca: holds no PEM certificate");
}

/* A copy of the password with its length, as OpenSSL wants it. */
static int give_password(char *out, int size, int writing, void *arg)
{
    (void)writing;
    const struct str *password = arg;
    int n = (int)MIN(password->len, (size_t)size);
    if (n)
        memcpy(out, password->p, (size_t)n);
    return n;
}

static int use_certificate(SSL_CTX *context, struct str pem, struct err *err)
{
    BIO *source = pem_source(pem);
    X509 *leaf = PEM_read_bio_X509(source, NULL, NULL, NULL);
    int ok = leaf && SSL_CTX_use_certificate(context, leaf) == 1;
    X509_free(leaf);
    X509 *chain;
    while (ok && (chain = PEM_read_bio_X509(source, NULL, NULL, NULL)))
        if (SSL_CTX_add0_chain_cert(context, chain) != 1) {
            X509_free(chain);
            ok = 0;
        }
    BIO_free(source);
    if (!ok)
        return tls_error(err, ERR_INVALID, "cert: cannot be read");
    ERR_clear_error();
    return 0;
}

static int use_key(SSL_CTX *context, struct str pem, struct str password, struct err *err)
{
    BIO *source = pem_source(pem);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(source, NULL, give_password, &password);
    BIO_free(source);
    int ok =
        key && SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
    EVP_PKEY_free(key);
    return ok ? 0 : tls_error(err, ERR_INVALID, "key: cannot be read, or does not belong to cert");
}

static int set_up(SSL_CTX *context, const struct stream_tls *tls, struct err *err)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, tls->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (!tls->insecure && add_authorities(context, tls->ca_pem, err) < 0)
        return -1;
    if (!tls->cert_pem.len != !tls->key_pem.len)
        return err_set(err, ERR_INVALID, "cert and key go together");
    if (tls->cert_pem.len && (use_certificate(context, tls->cert_pem, err) < 0 ||
                              use_key(context, tls->key_pem, tls->key_password, err) < 0))
        return -1;
    return 0;
}

/* The name the certificate must carry; an address is compared as an address and sends no SNI. */
static void expect_name(SSL *ssl, const char *name, bool insecure)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool numeric =
        inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    if (!numeric)
        SSL_set_tlsext_host_name(ssl, name);
    if (insecure)
        return;
    if (numeric)
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
    else
        SSL_set1_host(ssl, name);
}

struct stream_tls_session *stream_tls_new(const struct stream_tls *tls, const char *host,
                                          struct err *err)
{
    struct stream_tls_session *s = xcalloc(1, sizeof(*s));
    s->context = SSL_CTX_new(TLS_client_method());
    if (!s->context || set_up(s->context, tls, err) < 0 || !(s->ssl = SSL_new(s->context))) {
        stream_tls_free(s);
        return NULL;
    }
    s->in = BIO_new(BIO_s_mem());
    s->out = BIO_new(BIO_s_mem());
    SSL_set_bio(s->ssl, s->in, s->out);
    SSL_set_connect_state(s->ssl);
    expect_name(s->ssl, tls->server_name ? tls->server_name : host, tls->insecure);
    return s;
}

void stream_tls_free(struct stream_tls_session *s)
{
    if (!s)
        return;
    SSL_free(s->ssl);
    SSL_CTX_free(s->context);
    free(s);
}

static int handshake(struct stream_tls_session *s, bool *ret_done, struct err *err)
{
    int n = SSL_do_handshake(s->ssl);
    if (n == 1) {
        *ret_done = true;
        return 0;
    }
    int why = SSL_get_error(s->ssl, n);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    long verdict = SSL_get_verify_result(s->ssl);
    if (verdict != X509_V_OK) {
        ERR_clear_error();
        return err_set(err, ERR_DENIED, "TLS: the server's certificate is not trusted: %s",
                       X509_verify_cert_error_string(verdict));
    }
    return tls_error(err, ERR_RETRY, "TLS handshake");
}

int stream_tls_input(struct stream_tls_session *s, struct str bytes, bool *ret_done,
                     void (*data)(void *arg, struct str plain), void *arg, bool handshaking,
                     struct err *err)
{
    if (bytes.len)
        BIO_write(s->in, bytes.p, (int)bytes.len);
    ERR_clear_error();
    if (handshaking)
        return handshake(s, ret_done, err);
    char plain[16384];
    for (;;) {
        int n = SSL_read(s->ssl, plain, sizeof(plain));
        if (n > 0) {
            data(arg, (struct str){plain, (size_t)n});
            continue;
        }
        int why = SSL_get_error(s->ssl, n);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
            return 0;
        if (why == SSL_ERROR_ZERO_RETURN)
            return err_set(err, ERR_RETRY, "the server closed the connection");
        return tls_error(err, ERR_RETRY, "TLS");
    }
}

void stream_tls_write(struct stream_tls_session *s, struct str plain)
{
    /* Over memory a write always completes; what fails is reported by the next read. */
    if (plain.len)
        SSL_write(s->ssl, plain.p, (int)plain.len);
    ERR_clear_error();
}

void stream_tls_output(struct stream_tls_session *s, struct buf *out)
{
    char bytes[16384];
    int n;
    while ((n = BIO_read(s->out, bytes, sizeof(bytes))) > 0)
        buf_add(out, bytes, (size_t)n);
}
