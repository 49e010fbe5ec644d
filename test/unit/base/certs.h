/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Certificates made at run time: authorities, servers and clients with keys of P-256. */
#ifndef TEST_UNIT_BASE_CERTS_H
#define TEST_UNIT_BASE_CERTS_H

#include <openssl/ssl.h>

struct cert {
    X509 *x509;
    EVP_PKEY *key;
    char *cert_pem, *key_pem;
};

/* Signed by `issuer`, or an authority signed by itself when that is NULL. `san` is OpenSSL's form,
 * "DNS:localhost,IP:127.0.0.1", or NULL. */
void cert_make(struct cert *ret, const char *common_name, const char *san,
               const struct cert *issuer);
void cert_release(struct cert *c);

/* A server's context; with `client_ca` it demands a client certificate. */
SSL_CTX *cert_server(const struct cert *c, const struct cert *client_ca);

/* Writes the text to a new file that takes the place of `path` in one step. */
void write_file(const char *path, const char *text);

#endif
