/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Hashes, MACs and encodings (OpenSSL, only in crypto.c). */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

void crypto_sha256(struct str data, uint8_t ret_digest[32]);
void crypto_hmac_sha256(struct str key, struct str data, uint8_t ret_mac[32]);
void crypto_hex(const uint8_t *p, size_t n, char *ret_hex); /* 2n + 1 bytes, lower case */
/* The first `n` hex digits of the SHA-256 of the text; n <= 64, ret has n + 1 bytes. */
void crypto_sha256_hex(struct str data, size_t n, char *ret);
void crypto_base64(struct buf *out, struct str data);
void crypto_base64url(struct buf *out, struct str data); /* without padding */
/* Standard or URL alphabet, padding optional. */
int crypto_base64_decode(struct buf *out, struct str text, struct err *err);
/* Random bytes from the operating system: identities and tokens, never decisions. */
void crypto_random(void *p, size_t n);

#endif
