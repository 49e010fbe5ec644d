/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Numbers and times: against 128-bit arithmetic, the C library's calendar and round trips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/time.h"

/* Any magnitude is as likely as any other, and the ends are frequent. */
static int64_t any_i64(struct rng *r)
{
    switch (rng_below(r, 8)) {
    case 0:
        return INT64_MAX - (int64_t)rng_below(r, 3);
    case 1:
        return INT64_MIN + (int64_t)rng_below(r, 3);
    default: {
        int64_t v = (int64_t)(rng_u64(r) >> rng_below(r, 64) >> 1);
        return rng_chance(r, 500000) ? v : -v;
    }
    }
}

static int64_t clamp(__int128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

/* ---- Integers ---- */

static void test_integers_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 1);
    for (int i = 0; i < 20000; i++) {
        char text[32];
        int64_t v = any_i64(&r), back = ~v;
        snprintf(text, sizeof(text), "%" PRId64, v);
        assert_int_equal(num_parse_i64(str_from(text), &back, NULL), 0);
        assert_true(back == v);
        uint64_t u = rng_u64(&r) >> rng_below(&r, 64), u_back = ~u;
        snprintf(text, sizeof(text), "%" PRIu64, u);
        assert_int_equal(num_parse_u64(str_from(text), &u_back, NULL), 0);
        assert_true(u_back == u);
    }
}

static void test_integers_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      " 1",
                                      "1 ",
                                      "1x",
                                      "0x10",
                                      "1.0",
                                      "1e3",
                                      "--1",
                                      "+-1",
                                      "1_000",
                                      "1,0",
                                      "inf",
                                      "１",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        int64_t v = 77;
        assert_int_equal(num_parse_i64(str_from(bad[i]), &v, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, "'"));
        assert_int_equal(v, 77); /* never written on the wrong path */
    }
    uint64_t u;
    assert_int_equal(num_parse_u64(STR("-1"), &u, NULL), -1);
    assert_int_equal(num_parse_u64(STR("18446744073709551616"), &u, NULL), -1);
    int64_t v;
    assert_int_equal(num_parse_range(STR("10"), 1, 10, &v, NULL), 0);
    assert_int_equal(num_parse_range(STR("11"), 1, 10, &v, NULL), -1);
    assert_int_equal(num_parse_range(STR("0"), 1, 10, &v, NULL), -1);
    assert_int_equal(num_parse_i64(STR("-0"), &v, NULL), 0);
    /* A slice ends where it ends. */
    assert_int_equal(num_parse_i64((struct str){"123", 2}, &v, NULL), 0);
    assert_int_equal(v, 12);
}

static void test_arithmetic(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 2);
    for (int i = 0; i < 50000; i++) {
        int64_t a = any_i64(&r), b = any_i64(&r), c = any_i64(&r), v;
        __int128 sum = (__int128)a + b, product = (__int128)a * b;
        assert_int_equal(num_add(a, b, &v), sum == clamp(sum));
        assert_true(v == clamp(sum) && num_add_sat(a, b) == v);
        assert_int_equal(num_mul(a, b, &v), product == clamp(product));
        assert_true(v == clamp(product) && num_mul_sat(a, b) == v);
        c = c == INT64_MIN ? INT64_MAX : c < 0 ? -c : c;
        c += c == 0;
        /* The definition of floor and ceiling: q*c <= product < (q+1)*c. */
        __int128 down = product / c, up;
        while (down * c > product)
            down--;
        up = down + (down * c != product);
        assert_true(num_mul_div(a, b, c) == clamp(down));
        assert_true(num_mul_div_up(a, b, c) == clamp(up));
    }
}

/* ---- Decimals ---- */

static void test_fixed_table(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned scale;
        int64_t v;
    } rows[] = {
        {"0.526", 6, 526000},
        {"1", 0, 1},
        {"-1.5", 0, -2},
        {"1.5", 0, 2},
        {"0.5", 0, 1},
        {"0.49999999", 0, 0},
        {"-0.5", 0, -1},
        {"2.5e3", 0, 2500},
        {"25E-1", 1, 25},
        {".5", 1, 5},
        {"5.", 1, 50},
        {"+3", 2, 300},
        {"0.0000005", 6, 1},
        {"0.00000049", 6, 0},
        {"1e-400", 9, 0},
        {"0e999999999", 3, 0},
        {"9223372036854775807", 0, INT64_MAX},
        {"1e18", 0, 1000000000000000000},
        {"0.000000000000000000000000000000000000000000001e45", 0, 1},
        {"123456789012345678901234567890123456789012e-30", 0, 123456789012},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = 0;
        if (num_parse_fixed(str_from(rows[i].text), rows[i].scale, &v, NULL) < 0 || v != rows[i].v)
            fail_msg("%s with scale %u is %" PRId64 ", not %" PRId64, rows[i].text, rows[i].scale,
                     rows[i].v, v);
    }
    static const char *const bad[] = {"",      ".",
                                      "-",     "e3",
                                      "1e",    "1e+",
                                      "1.2.3", "0x1",
                                      "nan",   "inf",
                                      "1 ",    "9223372036854775808",
                                      "1e19",  "1e999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t v = 77;
        assert_int_equal(num_parse_fixed(str_from(bad[i]), 0, &v, NULL), -1);
        assert_int_equal(v, 77);
    }
}

static void test_fixed_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 3);
    for (int i = 0; i < 20000; i++) {
        char text[32];
        int64_t v = any_i64(&r), back;
        unsigned scale = (unsigned)rng_below(&r, 10);
        struct str s = num_format_fixed(text, v, scale);
        assert_int_equal(s.len, strlen(text));
        size_t point = str_find_char(s, '.', 0);
        assert_true(scale ? s.len - point == scale + 1 : point == SIZE_MAX);
        assert_true(text[v < 0] != '.'); /* a digit before the point */
        if (v == INT64_MIN)
            continue;
        assert_int_equal(num_parse_fixed(s, scale, &back, NULL), 0);
        assert_true(back == v);
    }
}

static void test_double_and_bool(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 4);
    for (int i = 0; i < 5000; i++) {
        char text[64];
        double v = (rng_unit(&r) - 0.5) * pow(10, (double)rng_between(&r, -300, 300)), back = 0;
        snprintf(text, sizeof(text), "%.17g", v);
        assert_int_equal(num_parse_double(str_from(text), &back, NULL), 0);
        assert_true(back == v);
    }
    static const char *const bad[] = {"", "nan", "inf", "-inf", "0x1p3", "1e999", "1 ", "1,5"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        double v = 7;
        assert_int_equal(num_parse_double(str_from(bad[i]), &v, NULL), -1);
        assert_true(v == 7);
    }
    bool b = false;
    assert_int_equal(num_parse_bool(STR("True"), &b, NULL), 0);
    assert_true(b);
    assert_int_equal(num_parse_bool(STR("f"), &b, NULL), 0);
    assert_false(b);
    assert_int_equal(num_parse_bool(STR("yes"), &b, NULL), -1);
    assert_int_equal(num_parse_bool(STR(""), &b, NULL), -1);
}

/* ---- Instants ---- */

static void test_civil_against_the_library(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 5);
    for (int i = 0; i < 50000; i++) {
        int64_t t = any_i64(&r);
        time_t seconds = (time_t)(t / NS_PER_S - (t % NS_PER_S < 0));
        struct tm tm;
        gmtime_r(&seconds, &tm);
        struct time_civil c;
        time_to_civil(t, &c);
        assert_int_equal(c.year, tm.tm_year + 1900);
        assert_int_equal(c.month, tm.tm_mon + 1);
        assert_int_equal(c.day, tm.tm_mday);
        assert_int_equal(c.hour, tm.tm_hour);
        assert_int_equal(c.minute, tm.tm_min);
        assert_int_equal(c.second, tm.tm_sec);
        assert_int_equal(c.weekday, tm.tm_wday);
        assert_true((__int128)seconds * NS_PER_S + c.nanosecond == t);
        assert_true(time_from_civil(&c) == t);
    }
}

/* Every day there is, for the ends of centuries. */
static void test_every_day(void **state)
{
    (void)state;
    for (int64_t day = INT64_MIN / NS_PER_DAY; day <= INT64_MAX / NS_PER_DAY; day++) {
        time_t seconds = (time_t)(day * 86400);
        struct tm tm;
        struct time_civil c;
        gmtime_r(&seconds, &tm);
        time_to_civil(day * NS_PER_DAY, &c);
        if (c.year != tm.tm_year + 1900 || c.month != tm.tm_mon + 1 || c.day != tm.tm_mday ||
            c.weekday != tm.tm_wday || time_from_civil(&c) != day * NS_PER_DAY)
            fail_msg("day %" PRId64, day);
    }
}

static void test_rfc3339(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 6);
    for (int i = 0; i < 20000; i++) {
        char text[40];
        int64_t t = rng_between(&r, -INT64_C(9000000000), INT64_C(9000000000)), back;
        struct str s = time_format(text, t * NS_PER_S + (int64_t)rng_below(&r, NS_PER_S));
        assert_int_equal(time_parse_rfc3339(s, &back, NULL), 0);
        assert_true(back == t * NS_PER_S);
        int64_t us = (int64_t)rng_below(&r, 1000000);
        s = time_format_micro(text, t * NS_PER_S + us * NS_PER_US);
        assert_int_equal(time_parse_rfc3339(s, &back, NULL), 0);
        assert_true(back == t * NS_PER_S + us * NS_PER_US);
    }
    static const struct {
        const char *text;
        int64_t seconds, ns;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"1970-01-01T02:00:00+02:00", 0, 0},
        {"1969-12-31T18:30:00-05:30", 0, 0},
        {"2000-02-29t12:00:00.5z", 951825600, 500000000},
        {"2026-07-20T10:00:00.000000001Z", 1784541600, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t t = 7;
        assert_int_equal(time_parse_rfc3339(str_from(good[i].text), &t, NULL), 0);
        assert_true(t == good[i].seconds * NS_PER_S + good[i].ns);
    }
    static const char *const bad[] = {"",
                                      "2026-07-20",
                                      "2026-07-20T10:00Z",
                                      "2026-07-20T10:00:00",
                                      "2026-02-29T00:00:00Z",
                                      "1900-02-29T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-04-31T00:00:00Z",
                                      "2026-07-20T24:00:00Z",
                                      "2026-07-20T10:60:00Z",
                                      "2026-07-20T10:00:00.Z",
                                      "2026-07-20T10:00:00.1234567890Z",
                                      "2026-07-20T10:00:00+2:00",
                                      "2026-07-20T10:00:00+24:00",
                                      "2026-07-20T10:00:00Zx",
                                      "0000-01-01T00:00:00Z",
                                      "+026-07-20T10:00:00Z"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t t = 7;
        if (time_parse_rfc3339(str_from(bad[i]), &t, NULL) == 0 || t != 7)
            fail_msg("'%s' was taken", bad[i]);
    }
}

/* ---- Durations ---- */

static void test_durations_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 7);
    static const int64_t units[] = {1, NS_PER_US, NS_PER_MS, NS_PER_S, NS_PER_MIN, NS_PER_HOUR};
    for (int i = 0; i < 50000; i++) {
        char text[40];
        int64_t d = any_i64(&r), back;
        if (rng_chance(&r, 700000)) {
            int64_t unit = units[rng_below(&r, ARRAY_LEN(units))];
            d = d / unit % 5000 * unit;
        }
        if (d == INT64_MIN)
            continue;
        struct str s = time_format_duration(text, d);
        assert_true(s.len < sizeof(text) && s.len == strlen(text));
        if (time_parse_duration(s, &back, NULL) < 0 || back != d)
            fail_msg("%" PRId64 " is written %s", d, text);
    }
    char text[40];
    assert_true(time_format_duration(text, INT64_MIN).len < sizeof(text));
}

static void test_durations_table(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } rows[] = {
        {"0", 0},
        {"1h30m", 5400 * NS_PER_S},
        {"300ms", 300 * NS_PER_MS},
        {"1.5h", 5400 * NS_PER_S},
        {"-1.5h", -5400 * NS_PER_S},
        {"+5s", 5 * NS_PER_S},
        {".5s", NS_PER_S / 2},
        {"1.s", NS_PER_S},
        {"2us", 2000},
        {"2µs", 2000},
        {"2μs", 2000},
        {"720h", 720 * NS_PER_HOUR},
        /* Values that Go's time.ParseDuration gives. */
        {"0.3333333333333333333h", INT64_C(1200000000000) - 1},
        {"0.9223372036854775807h", INT64_C(3320413933267)},
        {"1m0.000000001s", NS_PER_MIN + 1},
        {"9223372036854775807ns", INT64_MAX},
        {"0.0000000009s", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t d = 7;
        if (time_parse_duration(str_from(rows[i].text), &d, NULL) < 0 || d != rows[i].ns)
            fail_msg("'%s' is %" PRId64 ", not %" PRId64, rows[i].text, rows[i].ns, d);
    }
    static const char *const bad[] = {"",
                                      "1",
                                      "s",
                                      "-",
                                      "1x",
                                      "1h 30m",
                                      "1..5s",
                                      "1.5.s",
                                      ".s",
                                      "1d",
                                      "h1",
                                      "--1s",
                                      "1e3s",
                                      "3000000h",
                                      "9223372036854775808ns",
                                      "9223372036854775807ns1ns"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t d = 7;
        if (time_parse_duration(str_from(bad[i]), &d, NULL) == 0 || d != 7)
            fail_msg("'%s' was taken", bad[i]);
    }
    int64_t d;
    assert_int_equal(time_parse_seconds(STR("30"), &d, NULL), 0);
    assert_true(d == 30 * NS_PER_S);
    assert_int_equal(time_parse_seconds(STR("1m"), &d, NULL), 0);
    assert_true(d == NS_PER_MIN);
    assert_int_equal(time_parse_seconds(STR("9223372037"), &d, NULL), -1);
    assert_true(d == NS_PER_MIN); /* left alone */
    char text[40];
    assert_string_equal(time_format_duration(text, 90 * NS_PER_S).p, "1m30s");
    assert_string_equal(time_format_duration(text, 5400 * NS_PER_S).p, "1h30m");
    assert_string_equal(time_format_duration(text, 0).p, "0s");
    assert_string_equal(time_format_duration(text, 1500 * NS_PER_MS).p, "1.5s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_round_trip),
        cmocka_unit_test(test_integers_refused),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_fixed_table),
        cmocka_unit_test(test_fixed_round_trip),
        cmocka_unit_test(test_double_and_bool),
        cmocka_unit_test(test_civil_against_the_library),
        cmocka_unit_test(test_every_day),
        cmocka_unit_test(test_rfc3339),
        cmocka_unit_test(test_durations_round_trip),
        cmocka_unit_test(test_durations_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
