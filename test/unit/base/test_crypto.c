/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Hashes and encodings against the vectors of their standards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/crypto.h"
#include "base/rng.h"

static void check_hex(const uint8_t digest[32], const char *expected)
{
    char hex[65];
    crypto_hex(digest, 32, hex);
    assert_string_equal(hex, expected);
}

/* FIPS 180-4 examples. */
static void test_sha256(void **state)
{
    (void)state;
    uint8_t d[32];
    crypto_sha256(STR_NONE, d);
    check_hex(d, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    crypto_sha256(STR("abc"), d);
    check_hex(d, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    crypto_sha256(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), d);
    check_hex(d, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char hex[65] = "xxxxxxxxxxxxxxxxxxxx";
    crypto_sha256_hex(STR("abc"), 10, hex);
    assert_string_equal(hex, "ba7816bf8f");
    crypto_sha256_hex(STR("abc"), 0, hex);
    assert_string_equal(hex, "");
    crypto_sha256_hex(STR("abc"), 64, hex);
    assert_int_equal(strlen(hex), 64);
}

/* RFC 4231, cases 1, 2 and 6. */
static void test_hmac(void **state)
{
    (void)state;
    uint8_t d[32];
    char key[131];
    memset(key, 0x0b, 20);
    crypto_hmac_sha256((struct str){key, 20}, STR("Hi There"), d);
    check_hex(d, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    crypto_hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), d);
    check_hex(d, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    crypto_hmac_sha256((struct str){key, 131},
                       STR("Test Using Larger Than Block-Size Key - Hash Key First"), d);
    check_hex(d, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    crypto_hmac_sha256(STR_NONE, STR_NONE, d);
    check_hex(d, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

/* RFC 4648, section 10. */
static void test_base64(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_release) struct buf b = BUF_INIT;
        crypto_base64(&b, str_from(rows[i][0]));
        assert_true(str_eq_c(buf_view(&b), rows[i][1]));
    }
    CLEANUP(buf_release) struct buf url = BUF_INIT;
    crypto_base64url(&url, STR("\xfb\xff\xfe?"));
    assert_string_equal(url.data, "-__-Pw");
}

static void test_base64_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 1);
    for (int i = 0; i < 3000; i++) {
        CLEANUP(buf_release) struct buf text = BUF_INIT, back = BUF_INIT;
        char data[200];
        size_t n = rng_below(&r, sizeof(data));
        for (size_t k = 0; k < n; k++)
            data[k] = (char)rng_u64(&r);
        (i % 2 ? crypto_base64 : crypto_base64url)(&text, (struct str){data, n});
        assert_int_equal(text.len, i % 2 ? (n + 2) / 3 * 4 : (n * 8 + 5) / 6);
        assert_int_equal(crypto_base64_decode(&back, buf_view(&text), NULL), 0);
        assert_true(str_eq(buf_view(&back), (struct str){data, n}));
    }
    static const char *const bad[] = {
        "A", "AAAAA", "AA*A", "AA AA", "A=AA", "\xff\xff\xff\xff", "AAAA\nAAAA"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP(buf_release) struct buf b = BUF_INIT;
        struct err e = ERR_INIT;
        assert_int_equal(crypto_base64_decode(&b, str_from(bad[i]), &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void test_random(void **state)
{
    (void)state;
    uint8_t a[32] = {0}, b[32] = {0};
    crypto_random(a, sizeof(a));
    crypto_random(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256), cmocka_unit_test(test_hmac),
        cmocka_unit_test(test_base64), cmocka_unit_test(test_base64_round_trip),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
