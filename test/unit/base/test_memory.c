/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Errors, arenas, buffers, slices and vectors: their laws at the edges, where caps and copies are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/vec.h"

/* ---- Errors ---- */

static void test_err(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(err_set(&e, ERR_GONE, "position %d", 7), -1);
    assert_int_equal(e.code, ERR_GONE);
    assert_string_equal(e.msg, "position 7");
    assert_int_equal(err_prefix(&e, "pod %s", "a"), -1);
    assert_string_equal(e.msg, "pod a: position 7");
    assert_int_equal(e.code, ERR_GONE);
    /* A message may be made from itself. */
    err_set(&e, ERR_RETRY, "again: %s", e.msg);
    assert_string_equal(e.msg, "again: pod a: position 7");
    /* Nobody cares. */
    assert_int_equal(err_set(NULL, ERR_GONE, "x"), -1);
    assert_int_equal(err_prefix(NULL, "x"), -1);
    assert_int_equal(err_errno(NULL, ENOENT, "x"), -1);
}

static void test_err_long(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&e, ERR_INVALID, "%s", text);
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
    err_prefix(&e, "front");
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
    assert_memory_equal(e.msg, "front: xxx", 10);
    err_prefix(&e, "%s", text);
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

static void test_err_errno(void **state)
{
    (void)state;
    static const struct {
        int errnum;
        enum err_code code;
    } rows[] = {{ENOENT, ERR_NOT_FOUND}, {EEXIST, ERR_EXISTS},  {EACCES, ERR_DENIED},
                {EAGAIN, ERR_RETRY},     {EINVAL, ERR_INVALID}, {ECONNREFUSED, ERR_RETRY}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = ERR_INIT;
        err_errno(&e, rows[i].errnum, "%s", "/a/file");
        assert_int_equal(e.code, rows[i].code);
        assert_non_null(strstr(e.msg, "/a/file: "));
        assert_non_null(strstr(e.msg, strerror(rows[i].errnum)));
    }
    for (int i = ERR_NONE; i <= ERR_UNKNOWN; i++)
        for (int k = ERR_NONE; k < i; k++)
            assert_string_not_equal(err_code_name((enum err_code)i),
                                    err_code_name((enum err_code)k));
}

/* ---- Arenas ---- */

static void test_arena_random(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct rng r;
    rng_init(&r, 1);
    struct arena a = ARENA_INIT;
    static unsigned char *p[N];
    static size_t len[N];
    for (size_t i = 0; i < N; i++) {
        len[i] = rng_chance(&r, 10000) ? rng_below(&r, 3000000) : rng_below(&r, 200);
        bool bytes = rng_chance(&r, 300000);
        p[i] = bytes ? (unsigned char *)arena_bytes(&a, len[i]) : arena_alloc(&a, len[i]);
        assert_non_null(p[i]);
        if (!bytes) {
            assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
            for (size_t k = 0; k < len[i]; k++)
                assert_int_equal(p[i][k], 0);
        }
        memset(p[i], (int)(i & 0xff), len[i]);
    }
    /* Nothing overlaps: each piece still has what was written to it. */
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < len[i]; k++)
            if (p[i][k] != (i & 0xff))
                fail_msg("piece %zu byte %zu was overwritten", i, k);
    /* What was used before and comes again is zero again. */
    arena_clear(&a);
    assert_int_equal(a.used_bytes, 0);
    for (size_t i = 0; i < N; i++) {
        unsigned char *again = arena_alloc(&a, 100);
        for (size_t k = 0; k < 100; k++)
            assert_int_equal(again[k], 0);
    }
    arena_release(&a);
}

static void test_arena_cap(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1000, 64);
    assert_non_null(arena_alloc(&a, 900));
    assert_null(arena_alloc(&a, 200));
    assert_null(arena_alloc(&a, 8)); /* once and for all */
    assert_null(arena_str(&a, STR("x")).p);
    assert_null(arena_cstr(&a, STR("x")));
    assert_null(arena_printf(&a, "%d", 1).p);
    arena_clear(&a);
    assert_non_null(arena_alloc(&a, 1000));
    assert_null(arena_alloc(&a, 1));
    arena_release(&a);
    assert_null(ARENA_NEW_ARRAY(&a, uint64_t, SIZE_MAX / 4)); /* the product does not wrap */
    arena_release(&a);
}

static void test_arena_text(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct str s = arena_str(&a, (struct str){"a\0b", 3});
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.p, "a\0b", 4);
    assert_non_null(arena_str(&a, STR_NONE).p);
    struct str p = arena_printf(&a, "%s-%05d", "x", 42);
    assert_string_equal(p.p, "x-00042");
    assert_int_equal(p.len, 7);
    arena_release(&a);
}

/* ---- Buffers ---- */

static void test_buf(void **state)
{
    (void)state;
    CLEANUP(buf_release) struct buf b = BUF_INIT;
    assert_int_equal(buf_view(&b).len, 0);
    assert_non_null(buf_view(&b).p);
    buf_cstr(&b, "one ");
    buf_str(&b, STR("two "));
    buf_char(&b, '3');
    buf_printf(&b, " %d", 4);
    assert_string_equal(b.data, "one two 3 4");
    buf_consume(&b, 4);
    assert_string_equal(b.data, "two 3 4");
    buf_consume(&b, 100);
    assert_int_equal(b.len, 0);
    for (int i = 0; i < 10000; i++)
        buf_printf(&b, "%04d", i);
    assert_int_equal(b.len, 40000);
    assert_memory_equal(b.data + 4 * 1234, "1234", 4);
    char *text = buf_detach(&b);
    assert_int_equal(strlen(text), 40000);
    free(text);
    text = buf_detach(&b);
    assert_string_equal(text, "");
    free(text);
}

static void test_buf_cap(void **state)
{
    (void)state;
    CLEANUP(buf_release) struct buf b;
    buf_init(&b, 10);
    buf_cstr(&b, "0123456789");
    assert_false(b.overflow);
    buf_char(&b, 'x');
    assert_true(b.overflow);
    buf_cstr(&b, "");
    buf_printf(&b, "%d", 1);
    assert_string_equal(b.data, "0123456789");
    buf_clear(&b);
    assert_false(b.overflow);
    buf_printf(&b, "%s", "abcdefghijk"); /* 11 */
    assert_true(b.overflow);
    assert_int_equal(b.len, 0);
}

/* ---- Slices ---- */

static void test_str_compare(void **state)
{
    (void)state;
    assert_true(str_eq(STR_NONE, STR("")));
    assert_int_equal(str_cmp(STR_NONE, STR("")), 0);
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
    assert_true(str_eq_nocase(STR("Retry-After"), STR("retry-aFTER")));
    assert_false(str_eq_nocase(STR("["), STR("{"))); /* 0x20 apart, but no letters */
    assert_true(str_has_prefix(STR("abc"), STR("")));
    assert_true(str_has_suffix(STR("abc"), STR("bc")));
    assert_false(str_has_suffix(STR("bc"), STR("abc")));
    assert_int_equal(str_find(STR("abcabc"), STR("bc"), 2), 4);
    assert_true(str_find(STR("abc"), STR("bcd"), 0) == SIZE_MAX);
    assert_true(str_find(STR("abc"), STR("a"), 4) == SIZE_MAX);
    assert_int_equal(str_find(STR("abc"), STR(""), 3), 3);
    assert_true(str_find_char(STR_NONE, 'a', 0) == SIZE_MAX);
    assert_true(str_eq_c(str_sub(STR("abc"), 2, 1), ""));
    assert_true(str_eq_c(str_sub(STR("abc"), 1, 99), "bc"));
    assert_true(str_eq_c(str_trim(STR(" \t\r\n x y \v")), "x y"));
    assert_int_equal(str_trim(STR("  ")).len, 0);
    assert_null(str_from(NULL).p);
}

static void test_str_split(void **state)
{
    (void)state;
    static const struct {
        const char *text, *parts; /* joined by '|' */
    } rows[] = {{"", ""}, {"a", "a|"}, {"a,", "a|"}, {",a", "|a|"}, {"a,,b", "a||b|"}, {",", "|"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_release) struct buf b = BUF_INIT;
        struct str rest = str_from(rows[i].text), part;
        while (str_split(&rest, ',', &part)) {
            buf_str(&b, part);
            buf_char(&b, '|');
        }
        assert_true(str_eq_c(buf_view(&b), rows[i].parts));
    }
}

/* The definition, in time that grows exponentially. */
static unsigned distance(struct str a, struct str b)
{
    if (a.len == 0 || b.len == 0)
        return (unsigned)(a.len + b.len);
    struct str x = str_sub(a, 1, a.len), y = str_sub(b, 1, b.len);
    unsigned change = distance(x, y) + (a.p[0] != b.p[0]);
    return MIN(change, MIN(distance(x, b), distance(a, y)) + 1);
}

static void test_str_distance(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 3);
    for (int i = 0; i < 2000; i++) {
        char a[6], b[6];
        struct str x = {a, rng_below(&r, 6)}, y = {b, rng_below(&r, 6)};
        for (size_t k = 0; k < 6; k++) {
            a[k] = (char)('a' + rng_below(&r, 3));
            b[k] = (char)('a' + rng_below(&r, 3));
        }
        unsigned limit = (unsigned)rng_below(&r, 8);
        assert_int_equal(str_distance(x, y, limit), MIN(distance(x, y), limit));
    }
}

static void test_str_hash(void **state)
{
    (void)state;
    /* The same on every machine and in every release: a digest of many. */
    uint64_t all = 0;
    char text[64];
    for (size_t n = 0; n < sizeof(text); n++) {
        text[n] = (char)(n * 37);
        uint64_t h = str_hash((struct str){text, n}, 5);
        assert_true(h != str_hash((struct str){text, n}, 6));
        assert_true(h != str_hash((struct str){text, n + 1}, 5));
        all = all * 31 + h;
    }
    assert_true(all == UINT64_C(0x1a9da164b02b6015));
}

/* Code points one by one, by the table of RFC 3629. */
static void test_str_utf8(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110100; c++) {
        char p[4];
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (n == 1)
            p[0] = (char)c;
        for (size_t i = n; n > 1 && i-- > 1;)
            p[i] = (char)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
        if (n > 1)
            p[0] = (char)((0xf00 >> n & 0xff) | c >> (6 * (n - 1)));
        bool good = (c < 0xd800 || c > 0xdfff) && c <= 0x10ffff;
        if (str_is_utf8((struct str){p, n}) != good ||
            str_utf8_at((struct str){p, n}, 0) != (good ? n : 0))
            fail_msg("U+%04X", c);
        if (n > 1)
            assert_false(str_is_utf8((struct str){p, n - 1}));
    }
    static const char *const bad[] = {
        "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80",
        "\xff", "\xc3("};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(str_is_utf8(str_from(bad[i])));
        /* At any place within a longer text. */
        for (size_t before = 0; before < 20; before++) {
            CLEANUP(buf_release) struct buf b = BUF_INIT;
            buf_printf(&b, "%.*s%s%s", (int)before, "abcdefghijklmnopqrst", bad[i], "0123456789");
            assert_false(str_is_utf8(buf_view(&b)));
        }
    }
    assert_true(str_is_utf8(STR_NONE));
}

/* ---- Vectors ---- */

VEC_DEFINE(vec_int, int);

static void test_vec(void **state)
{
    (void)state;
    struct vec_int v = {0};
    vec_each(&v, int *, it)
        fail_msg("an empty vector has %d", *it);
    for (int i = 0; i < 1000; i++)
        vec_push(&v, i);
    vec_remove(&v, 10);
    assert_int_equal(v.v[10], 11);
    assert_int_equal(v.len, 999);
    vec_remove_swap(&v, 0);
    assert_int_equal(v.v[0], 999);
    assert_int_equal(vec_pop(&v), 998);
    assert_int_equal(vec_last(&v), 997);
    int64_t sum = 0;
    vec_each(&v, int *, it)
        sum += *it;
    assert_int_equal(sum, 999 * 1000 / 2 - 10 - 998);
    vec_remove(&v, v.len - 1);
    assert_int_equal(vec_last(&v), 996);
    vec_release(&v);
    assert_null(v.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err),          cmocka_unit_test(test_err_long),
        cmocka_unit_test(test_err_errno),    cmocka_unit_test(test_arena_random),
        cmocka_unit_test(test_arena_cap),    cmocka_unit_test(test_arena_text),
        cmocka_unit_test(test_buf),          cmocka_unit_test(test_buf_cap),
        cmocka_unit_test(test_str_compare),  cmocka_unit_test(test_str_split),
        cmocka_unit_test(test_str_distance), cmocka_unit_test(test_str_hash),
        cmocka_unit_test(test_str_utf8),     cmocka_unit_test(test_vec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
