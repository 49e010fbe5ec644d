/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* OpenSSL's hashes and encodings. */

#include "base/crypto.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

void crypto_sha256(struct str data, uint8_t ret_digest[32])
{
    unsigned n = 0;
    int ok = EVP_Digest(data.len ? data.p : "", data.len, ret_digest, &n, EVP_sha256(), NULL);
    assert(ok == 1 && n == 32);
    (void)ok;
}

void crypto_hmac_sha256(struct str key, struct str data, uint8_t ret_mac[32])
{
    unsigned n = 0;
    const unsigned char *mac =
        HMAC(EVP_sha256(), key.len ? key.p : "", (int)key.len,
             (const unsigned char *)(data.len ? data.p : ""), data.len, ret_mac, &n);
    assert(mac && n == 32);
    (void)mac;
}

void crypto_hex(const uint8_t *p, size_t n, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        ret_hex[2 * i] = digits[p[i] >> 4];
        ret_hex[2 * i + 1] = digits[p[i] & 15];
    }
    ret_hex[2 * n] = '\0';
}

void crypto_sha256_hex(struct str data, size_t n, char *ret)
{
    uint8_t digest[32];
    char hex[65];
    assert(n <= 64);
    crypto_sha256(data, digest);
    crypto_hex(digest, 32, hex);
    memcpy(ret, hex, n);
    ret[n] = '\0';
}

static void encode(struct buf *out, struct str data, const char *alphabet, bool padding)
{
    for (size_t i = 0; i < data.len; i += 3) {
        size_t n = MIN(data.len - i, (size_t)3);
        uint32_t word = 0;
        for (size_t k = 0; k < 3; k++)
            word = word << 8 | (k < n ? (uint8_t)data.p[i + k] : 0u);
        for (size_t k = 0; k < 4; k++) {
            if (k <= n)
                buf_char(out, alphabet[word >> (18 - 6 * k) & 63]);
            else if (padding)
                buf_char(out, '=');
        }
    }
}

void crypto_base64(struct buf *out, struct str data)
{
    encode(out, data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", true);
}

void crypto_base64url(struct buf *out, struct str data)
{
    encode(out, data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", false);
}

static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

int crypto_base64_decode(struct buf *out, struct str text, struct err *err)
{
    while (text.len && text.p[text.len - 1] == '=')
        text.len--;
    if (text.len % 4 == 1)
        return err_set(err, ERR_INVALID, "base64 text of an impossible length");
    uint32_t word = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < text.len; i++) {
        int v = digit_value(text.p[i]);
        if (v < 0)
            return err_set(err, ERR_INVALID, "not base64 at byte %zu", i);
        word = word << 6 | (uint32_t)v;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            buf_char(out, (char)(word >> bits & 0xff));
        }
    }
    return 0;
}

void crypto_random(void *p, size_t n)
{
    if (RAND_bytes(p, (int)n) != 1)
        abort();
}
