/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What every HTTP client needs: headers by name, Retry-After in both forms, percent-encoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/http.h"
#include "base/rng.h"
#include "base/time.h"

static void test_header(void **state)
{
    (void)state;
    static const struct http_header headers[] = {{STR_INIT("Content-Type"), STR_INIT("a/b")},
                                                 {STR_INIT("ETag"), STR_INIT("")},
                                                 {STR_INIT("content-type"), STR_INIT("second")}};
    const struct http_response r = {200, headers, ARRAY_LEN(headers)};
    assert_true(str_eq_c(http_header(&r, "CONTENT-type"), "a/b"));
    assert_non_null(http_header(&r, "etag").p);
    assert_int_equal(http_header(&r, "etag").len, 0);
    assert_null(http_header(&r, "Content").p);
    assert_null(http_header(&r, "Content-Type2").p);
}

static int64_t retry_after(const char *value, int64_t now)
{
    const struct http_header h = {STR("Retry-After"), str_from(value)};
    const struct http_response r = {429, &h, 1};
    return http_retry_after(&r, now);
}

static void test_retry_after(void **state)
{
    (void)state;
    const int64_t now = INT64_C(784111717) * NS_PER_S; /* Sun, 06 Nov 1994 08:48:37 GMT */
    static const struct {
        const char *value;
        int64_t seconds; /* -1: not understood */
    } cases[] = {
        {"0", 0},
        {"120", 120},
        {" 7 ", 7},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 60},
        {"Sun, 06 Nov 1994 08:48:37 GMT", 0},
        {"Sun, 06 Nov 1994 08:47:37 GMT", 0}, /* over already */
        {"Mon, 07 Nov 1994 08:48:37 GMT", 86400},
        {"Sat, 31 Dec 1994 23:59:60 GMT", INT64_C(788918400) - 784111717}, /* a leap second */
        {"-1", -1},
        {"1.5", -1},
        {"soon", -1},
        {"", -1},
        {"99999999999999999999", -1},
        {"Sun, 06 Nov 1994 08:49:37 UTC", -1},
        {"Sun, 06 Nix 1994 08:49:37 GMT", -1},
        {"Sun, 36 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1994 28:49:37 GMT", -1},
        {"Sun, 06 Nov 1994", -1},
        {"Sun, 30 Feb 1994 08:49:37 GMT", -1},
        {"Sun. 06-Nov-1994 08.49.37 GMT", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t got = retry_after(cases[i].value, now);
        int64_t expected = cases[i].seconds < 0 ? -1 : cases[i].seconds * NS_PER_S;
        if (got != expected)
            fail_msg("'%s': %lld, not %lld", cases[i].value, (long long)got, (long long)expected);
    }
    const struct http_response none = {429, NULL, 0};
    assert_true(http_retry_after(&none, now) == -1);
}

/* Every instant of four years comes back, whatever the month's length. */
static void test_retry_after_dates(void **state)
{
    (void)state;
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    const int64_t now = INT64_C(1767225600) * NS_PER_S;
    for (int64_t after = 0; after < 4 * 366 * NS_PER_DAY; after += 12345 * NS_PER_S) {
        struct time_civil c;
        char text[64];
        time_to_civil(now + after, &c);
        snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[c.weekday], c.day,
                 months[c.month - 1], (int)c.year, c.hour, c.minute, c.second);
        if (retry_after(text, now) != after)
            fail_msg("%s", text);
    }
}

/* RFC 3986 §2.3 by its own list, and decoding gives the bytes back. */
static void test_escape(void **state)
{
    (void)state;
    const char *unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (int c = 0; c < 256; c++) {
        CLEANUP(buf_release) struct buf out = BUF_INIT;
        const char byte = (char)c;
        http_escape(&out, (struct str){&byte, 1});
        if (c && strchr(unreserved, c)) {
            assert_int_equal(out.len, 1);
            assert_int_equal(out.data[0], byte);
        } else {
            char expected[8];
            snprintf(expected, sizeof(expected), "%%%02X", (unsigned)c);
            assert_string_equal(out.data, expected);
        }
    }
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    http_escape(&out, STR("a b/é"));
    assert_string_equal(out.data, "a%20b%2F%C3%A9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_retry_after_dates),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
