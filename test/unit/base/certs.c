/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "test/unit/base/certs.h"

#include <assert.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/arena.h"

static char *pem_text(BIO *b)
{
    char *p = NULL;
    long n = BIO_get_mem_data(b, &p);
    assert(n > 0);
    char *text = xstr_dup((struct str){p, (size_t)n});
    BIO_free(b);
    return text;
}

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert(e);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

void cert_make(struct cert *ret, const char *common_name, const char *san,
               const struct cert *issuer)
{
    static long serial = 1;
    struct cert c = {.x509 = X509_new(), .key = EVP_EC_gen("P-256")};
    assert(c.x509 && c.key);
    X509_set_version(c.x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x509), serial++);
    X509_gmtime_adj(X509_getm_notBefore(c.x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(c.x509), 86400);
    X509_set_pubkey(c.x509, c.key);
    X509_NAME *name = X509_get_subject_name(c.x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1,
                               -1, 0);
    X509 *signer = issuer ? issuer->x509 : c.x509;
    X509_set_issuer_name(c.x509, X509_get_subject_name(signer));
    add_extension(c.x509, signer, NID_basic_constraints,
                  issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (!issuer)
        add_extension(c.x509, signer, NID_key_usage, "critical,keyCertSign,cRLSign");
    add_extension(c.x509, signer, NID_subject_key_identifier, "hash");
    if (san)
        add_extension(c.x509, signer, NID_subject_alt_name, san);
    int signed_bytes = X509_sign(c.x509, issuer ? issuer->key : c.key, EVP_sha256());
    assert(signed_bytes > 0);
    BIO *b = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(b, c.x509);
    c.cert_pem = pem_text(b);
    b = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(b, c.key, NULL, NULL, 0, NULL, NULL);
    c.key_pem = pem_text(b);
    *ret = c;
}

void cert_release(struct cert *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
    free(c->cert_pem);
    free(c->key_pem);
    *c = (struct cert){0};
}

SSL_CTX *cert_server(const struct cert *c, const struct cert *client_ca)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    assert(ctx);
    SSL_CTX_use_certificate(ctx, c->x509);
    SSL_CTX_use_PrivateKey(ctx, c->key);
    if (client_ca) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), client_ca->x509);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"test", 4);
    }
    return ctx;
}

void write_file(const char *path, const char *text)
{
    char next[512];
    snprintf(next, sizeof(next), "%s.next", path);
    FILE *f = fopen(next, "w");
    assert(f);
    fputs(text, f);
    fclose(f);
    int ret = rename(next, path);
    assert(ret == 0);
}
