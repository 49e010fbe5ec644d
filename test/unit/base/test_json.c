/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* JSON: texts that are and are not, trees there and back in chunks cut anywhere, RFC 7396. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "test/unit/base/random_json.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct err e = ERR_INIT;
    struct json *j = json_parse(a, str_from(text), &e);
    if (!j)
        fail_msg("'%s': %s", text, e.msg);
    return j;
}

/* ---- Texts ---- */

static void test_texts(void **state)
{
    (void)state;
    static const char *const good[] = {
        "null",
        " true ",
        "-0.5e-10",
        "\"\"",
        "[]",
        "{}",
        "[[],{}]",
        "\"\\u0000\"",
        "\"\\ud83d\\ude00\"",
        "{\"a\":{\"a\":1}}",
        "{\"\":0}",
        "\"\xf0\x9f\x98\x80\"",
    };
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "True",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "-",
        "0x1",
        "NaN",
        "'a'",
        "\"a",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "[1",
        "{\"a\":1",
        "]",
        "1 2",
        "{} x",
        "// a\n1",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\\udc00\"",
        "{\"\xc1\x81\":1}",
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":1}",
        "\xef\xbb\xbf{}",
    };
    struct arena a = ARENA_INIT;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        parse(&a, good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        if (json_parse(&a, str_from(bad[i]), &e))
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_true(e.msg[0] && !strchr(e.msg, '\n'));
    }
    assert_true(str_eq_c(parse(&a, "\"a\\n\\u00e9\\/\\ud83d\\ude00\"")->text,
                         "a\n\xc3\xa9/\xf0\x9f\x98\x80"));
    assert_true(str_eq_c(parse(&a, "1.50")->text, "1.50"));
    arena_release(&a);
}

static void test_messages(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct err e = ERR_INIT;
    char text[2000];
    memset(text, 's', sizeof(text));
    memcpy(text, "{\"password\": \"", 14);
    memcpy(text + 1000, "\" x", 3);
    assert_null(json_parse(&a, (struct str){text, sizeof(text)}, &e));
    assert_non_null(strstr(e.msg, "byte 100")); /* 1002 or next to it */
    assert_null(strstr(e.msg, "sss"));
    memset(text, 'k', sizeof(text));
    memcpy(text, "{\"", 2);
    memcpy(text + 500, "\":1,\"", 5);
    memcpy(text + 505 + 498, "\":1}", 4);
    assert_null(json_parse(&a, (struct str){text, 1007}, &e));
    assert_non_null(strstr(e.msg, "stands twice"));
    assert_true(strlen(e.msg) < 100);
    arena_release(&a);
}

/* Two thousand keys are looked up by hash; a duplicate among them is found wherever it stands. */
static void test_duplicates_in_long_objects(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    for (int twice = -1; twice < 2000; twice += 487) {
        CLEANUP(buf_release) struct buf b = BUF_INIT;
        struct err e = ERR_INIT;
        for (int i = 0; i < 2000; i++)
            buf_printf(&b, "%c\"key-%d\":%d", i ? ',' : '{', i, i);
        if (twice >= 0)
            buf_printf(&b, ",\"key-%d\":0", twice);
        buf_char(&b, '}');
        struct json *j = json_parse(&a, buf_view(&b), &e);
        if (twice < 0) {
            assert_int_equal(j->n, 2000);
            assert_int_equal(json_i64(json_get(j, "key-1234"), 0), 1234);
        } else {
            assert_null(j);
            char expected[64];
            snprintf(expected, sizeof(expected), "the key 'key-%d' stands twice", twice);
            assert_string_equal(e.msg, expected);
        }
    }
    arena_release(&a);
}

static void nest(struct buf *b, unsigned depth, const char *open, const char *close)
{
    for (unsigned i = 0; i < depth; i++)
        buf_cstr(b, open);
    buf_cstr(b, "1");
    for (unsigned i = 0; i < depth; i++)
        buf_cstr(b, close);
}

/* Whatever may come in may go out again, also within something of ours. */
static void test_depth(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    for (int object = 0; object < 2; object++) {
        CLEANUP(buf_release) struct buf in = BUF_INIT, out = BUF_INIT, deeper = BUF_INIT;
        struct err e = ERR_INIT;
        nest(&in, JSON_DEPTH_MAX, object ? "{\"a\":" : "[", object ? "}" : "]");
        struct json *j = json_parse(&a, buf_view(&in), &e);
        assert_non_null(j);
        json_print(&out, j, 0);
        assert_string_equal(in.data, out.data);
        struct json_writer w;
        json_writer_init(&w, &out, 2);
        json_w_object(&w);
        json_w_karray(&w, "items");
        json_w_tree(&w, j);
        json_w_array_end(&w);
        json_w_object_end(&w);
        nest(&deeper, JSON_DEPTH_MAX + 1, object ? "{\"a\":" : "[", object ? "}" : "]");
        assert_null(json_parse(&a, buf_view(&deeper), &e));
        assert_non_null(strstr(e.msg, "64 levels"));
    }
    arena_release(&a);
}

static void test_cap(void **state)
{
    (void)state;
    const char *text =
        "{\"a\":[1,2,{\"b\":\"a text of some length\"}],\"c\":{\"d\":null,\"e\":true}}";
    bool refused = false, taken = false;
    for (size_t cap = 1; cap < 8000; cap += 37) {
        struct arena a;
        struct err e = ERR_INIT;
        arena_init(&a, cap, 64);
        struct json *j = json_parse(&a, str_from(text), &e);
        assert_true(j || e.code == ERR_CAPACITY);
        taken |= j != NULL;
        refused |= j == NULL;
        assert_true(!taken || j); /* more room never hurts */
        arena_release(&a);
    }
    assert_true(taken && refused);
}

/* ---- There and back ---- */

static void test_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 1);
    for (int i = 0; i < 3000; i++) {
        struct arena a = ARENA_INIT;
        CLEANUP(buf_release) struct buf out = BUF_INIT, again = BUF_INIT;
        struct json *j = random_json(&a, &r, 5);
        json_print(&out, j, i % 3 == 0 ? 2 : 0);
        /* Cut anywhere, also within escapes and characters. */
        struct json_builder b;
        struct err e = ERR_INIT;
        json_builder_init(&b, &a);
        struct json_parser *p = json_parser_new(&b.sink, false);
        uint64_t most = rng_below(&r, 40) + 1;
        for (size_t at = 0; at < out.len;) {
            size_t n = rng_below(&r, most + 1);
            struct str chunk = str_sub(buf_view(&out), at, at + n);
            char *copy = xstr_dup(chunk); /* gone when the next one comes */
            if (json_parser_feed(p, (struct str){copy, chunk.len}, &e) < 0)
                fail_msg("%s: %s", e.msg, out.data);
            free(copy);
            at += chunk.len;
        }
        assert_int_equal(json_parser_finish(p, &e), 0);
        json_parser_free(p);
        if (!json_equal(j, b.root))
            fail_msg("round %d: %s", i, out.data);
        json_print(&again, b.root, i % 3 == 0 ? 2 : 0);
        assert_string_equal(out.data, again.data);
        /* A copy is equal and shares nothing. */
        struct arena other = ARENA_INIT;
        struct json *copy = json_copy(&other, j);
        arena_release(&a);
        buf_clear(&again);
        json_print(&again, copy, i % 3 == 0 ? 2 : 0);
        assert_string_equal(out.data, again.data);
        arena_release(&other);
    }
}

static void test_equality(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json *j = parse(&a, "{\"a\":1,\"b\":[1,2],\"c\":null}");
    assert_true(json_equal(j, parse(&a, "{\"c\":null,\"b\":[1,2],\"a\":1}")));
    static const char *const other[] = {
        "{\"a\":1,\"b\":[2,1],\"c\":null}",   "{\"a\":1,\"b\":[1,2]}",
        "{\"a\":1.0,\"b\":[1,2],\"c\":null}", "{\"a\":\"1\",\"b\":[1,2],\"c\":null}",
        "{\"a\":1,\"b\":[1,2],\"d\":null}",   "[]"};
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        assert_false(json_equal(j, parse(&a, other[i])));
        assert_false(json_equal(parse(&a, other[i]), j));
    }
    assert_false(json_equal(j, NULL));
    arena_release(&a);
}

/* ---- Several values, and values nobody wants ---- */

struct recorder {
    struct json_sink sink;
    struct buf out;
    const char *unwanted, *refused;
};

static int record(struct json_sink *sink, const struct json_event *ev, struct err *err)
{
    static const char marks[] = "nbNSK{}[]";
    struct recorder *r = CONTAINER_OF(sink, struct recorder, sink);
    buf_char(&r->out, marks[ev->type]);
    buf_str(&r->out, ev->text);
    if (r->refused && ev->type == JSON_EV_STRING && str_eq_c(ev->text, r->refused))
        return err_set(err, ERR_DENIED, "not %s", r->refused);
    return ev->type == JSON_EV_KEY && r->unwanted && str_eq_c(ev->text, r->unwanted) ? JSON_SKIP
                                                                                     : 0;
}

static int run(struct recorder *r, const char *text, bool multi, size_t chunk, struct err *err)
{
    r->sink.event = record;
    buf_clear(&r->out);
    struct json_parser *p = json_parser_new(&r->sink, multi);
    struct str rest = str_from(text);
    int code = 0;
    while (code == 0 && rest.len) {
        code = json_parser_feed(p, str_sub(rest, 0, chunk), err);
        rest = str_sub(rest, chunk, rest.len);
    }
    if (code == 0)
        code = json_parser_finish(p, err);
    else /* an error stays */
        assert_int_equal(json_parser_feed(p, STR("1"), NULL), -1);
    json_parser_free(p);
    return code;
}

static void test_several_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *events; /* NULL: refused */
    } rows[] = {
        {"", ""},
        {" \n ", ""},
        {"{}{}", "{}{}"},
        {"1 2", "N1N2"},
        {"{}\n[1]\n", "{}[N1]"},
        {"12", "N12"},
        {"true", "b"},
        {"tru", NULL},
        {"\"ab", NULL},
        {"{", NULL},
        {"{} {\"a\"", NULL},
        {"1 \"", NULL},
        {"{} ]", NULL},
        {"-", NULL},
        {"\"a\"\"b\"", "SaSb"},
        {"{} \\", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t chunk = 1; chunk < 6; chunk++) {
            struct recorder r = {0};
            struct err e = ERR_INIT;
            int code = run(&r, rows[i].text, true, chunk, &e);
            if (code != (rows[i].events ? 0 : -1))
                fail_msg("'%s' by %zu: %s", rows[i].text, chunk, e.msg);
            if (rows[i].events)
                assert_true(str_eq_c(buf_view(&r.out), rows[i].events));
            buf_release(&r.out);
        }
    }
}

static void test_depth_between_values(void **state)
{
    (void)state;
    struct recorder r = {.sink = {record}};
    struct json_parser *p = json_parser_new(&r.sink, true);
    assert_int_equal(json_parser_feed(p, STR("{\"a\":[1"), NULL), 0);
    assert_int_equal(json_parser_depth(p), 2);
    assert_int_equal(json_parser_feed(p, STR("]}"), NULL), 0);
    assert_int_equal(json_parser_depth(p), 0);
    json_parser_free(p);
    buf_release(&r.out);
}

static void test_skip(void **state)
{
    (void)state;
    static const struct {
        const char *text, *events;
    } rows[] = {
        {"{\"x\":1,\"b\":2}", "{KxKbN2}"},
        {"{\"x\":\"s\"}", "{Kx}"},
        {"{\"x\":null,\"x\":true}", "{KxKx}"},
        {"{\"x\":{},\"b\":[]}", "{KxKb[]}"},
        {"{\"x\":[[{\"x\":[1,{\"b\":2}]}],3],\"b\":{\"x\":{\"y\":1}}}", "{KxKb{Kx}}"},
        {"[{\"x\":[]},1]", "[{Kx}N1]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t chunk = 1; chunk < 100; chunk += 7) {
            struct recorder r = {.unwanted = "x"};
            assert_int_equal(run(&r, rows[i].text, false, chunk, NULL), 0);
            assert_string_equal(r.out.data, rows[i].events);
            buf_release(&r.out);
        }
    }
    /* What nobody wants is still JSON, and no deeper than allowed. */
    CLEANUP(buf_release) struct buf deep = BUF_INIT;
    buf_cstr(&deep, "{\"x\":");
    nest(&deep, JSON_DEPTH_MAX, "[", "]");
    buf_char(&deep, '}');
    const char *const bad[] = {"{\"x\":[1,]}", "{\"x\":[}", "{\"x\":\"\xff\"}", deep.data};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct recorder r = {.unwanted = "x"};
        assert_int_equal(run(&r, bad[i], false, 3, NULL), -1);
        buf_release(&r.out);
    }
}

static void test_refusal(void **state)
{
    (void)state;
    struct recorder r = {.refused = "b"};
    struct err e = ERR_INIT;
    assert_int_equal(run(&r, "[\"a\",\"b\",\"c\"]", false, 100, &e), -1);
    assert_int_equal(e.code, ERR_DENIED);
    assert_string_equal(e.msg, "not b");
    assert_string_equal(r.out.data, "[SaSb");
    buf_release(&r.out);
}

/* A replay is the same as a parse. */
static void test_replay(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    for (int i = 0; i < 500; i++) {
        struct arena a = ARENA_INIT;
        CLEANUP(buf_release) struct buf text = BUF_INIT;
        struct json *j = random_json(&a, &rng, 4);
        json_print(&text, j, 0);
        struct recorder parsed = {.unwanted = "~"}, replayed = {.sink = {record}, .unwanted = "~"};
        assert_int_equal(run(&parsed, text.data, false, text.len, NULL), 0);
        assert_int_equal(json_replay(j, &replayed.sink, NULL), 0);
        assert_true(str_eq(buf_view(&parsed.out), buf_view(&replayed.out)));
        buf_release(&parsed.out);
        buf_release(&replayed.out);
        arena_release(&a);
    }
}

/* One text without end is not kept without end. */
static void test_endless_text(void **state)
{
    (void)state;
    struct recorder r = {.sink = {record}};
    struct json_parser *p = json_parser_new(&r.sink, true);
    struct err e = ERR_INIT;
    size_t n = 1 << 20, fed = 0;
    char *chunk = xmalloc(n);
    memset(chunk, 'x', n);
    int code = json_parser_feed(p, STR("\""), &e);
    while (code == 0 && fed < 2 * JSON_TOKEN_BYTES_MAX) {
        code = json_parser_feed(p, (struct str){chunk, n}, &e);
        fed += n;
    }
    assert_int_equal(code, -1);
    assert_int_equal(e.code, ERR_CAPACITY);
    assert_true(fed <= JSON_TOKEN_BYTES_MAX + n);
    free(chunk);
    json_parser_free(p);
    buf_release(&r.out);
}

/* ---- Lookups and making ---- */

static void test_lookups(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json *j = parse(&a, "{\"spec\":{\"list\":[{\"n\":7},\"s\"],\"on\":true,\"big\":1e3}}");
    assert_int_equal(json_i64(json_at(j, "spec", "list", "0", "n", NULL), -1), 7);
    assert_true(str_eq_c(json_text(json_at(j, "spec", "list", "1", NULL)), "s"));
    static const char *const absent[] = {"2", "-1", "x", "00x"};
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        assert_null(json_at(j, "spec", "list", absent[i], NULL));
    assert_null(json_at(j, "spec", "on", "x", NULL));
    assert_null(json_at(NULL, "spec", NULL));
    assert_null(json_get(NULL, "x"));
    assert_true(json_bool(json_at(j, "spec", "on", NULL), false));
    assert_true(json_bool(json_get(j, "spec"), true));
    assert_int_equal(json_i64(json_at(j, "spec", "big", NULL), -1),
                     -1); /* not a whole number's text */
    assert_null(json_text(json_get(j, "spec")).p);
    assert_ptr_equal(json_at(j, NULL), j);
    arena_release(&a);
}

static void test_growth(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    /* Lists that a parse has made exact go on growing, from every length. */
    for (size_t from = 0; from < 20; from++) {
        CLEANUP(buf_release) struct buf b = BUF_INIT, o = BUF_INIT;
        buf_char(&b, '[');
        buf_char(&o, '{');
        for (size_t i = 0; i < from; i++) {
            buf_printf(&b, "%s%zu", i ? "," : "", i);
            buf_printf(&o, "%s\"%zu\":%zu", i ? "," : "", i, i);
        }
        buf_char(&b, ']');
        buf_char(&o, '}');
        struct json *list = json_parse(&a, buf_view(&b), NULL);
        struct json *object = json_parse(&a, buf_view(&o), NULL);
        for (size_t i = from; i < 70; i++) {
            char key[8];
            int n = snprintf(key, sizeof(key), "%zu", i);
            json_array_add(&a, list, json_new_i64(&a, (int64_t)i));
            json_object_set(&a, object, (struct str){key, (size_t)n}, json_new_i64(&a, (int64_t)i));
        }
        assert_int_equal(list->n, 70);
        assert_int_equal(object->n, 70);
        for (int64_t i = 0; i < 70; i++) {
            assert_int_equal(json_i64(list->items[i], -1), i);
            assert_int_equal(json_i64(object->members[i].value, -1), i);
        }
        json_object_set(&a, object, STR("5"), json_new_string(&a, STR("new")));
        assert_int_equal(object->n, 70);
        assert_true(str_eq_c(json_text(json_get(object, "5")), "new"));
    }
    arena_release(&a);
}

/* ---- RFC 7396, appendix A ---- */

static void test_merge_patch(void **state)
{
    (void)state;
    static const struct {
        const char *target, *patch, *result;
    } rows[] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    struct arena a = ARENA_INIT;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_release) struct buf out = BUF_INIT, before = BUF_INIT;
        struct json *target = parse(&a, rows[i].target);
        json_print(&out, json_merge_patch(&a, target, parse(&a, rows[i].patch)), 0);
        assert_string_equal(out.data, rows[i].result);
        json_print(&before, target, 0);
        assert_string_equal(before.data, rows[i].target); /* is left alone */
    }
    arena_release(&a);
}

/* At the cap a patch gives the whole result or nothing. */
static void test_merge_patch_cap(void **state)
{
    (void)state;
    struct arena from = ARENA_INIT;
    struct json *target = parse(&from, "{\"a\":{\"b\":1,\"c\":2,\"d\":{\"e\":3}},\"f\":4,\"g\":5}");
    struct json *patch =
        parse(&from, "{\"a\":{\"d\":{\"x\":1,\"y\":2}},\"h\":{\"i\":6},\"j\":[1]}");
    struct json *whole = json_merge_patch(&from, target, patch);
    bool none = false, all = false;
    for (size_t cap = 8; cap < 8000; cap += 8) {
        struct arena a;
        arena_init(&a, cap, 64);
        struct json *j = json_merge_patch(&a, target, patch);
        assert_true(!j || json_equal(j, whole));
        none |= !j;
        all |= j != NULL;
        arena_release(&a);
    }
    assert_true(none && all);
    arena_release(&from);
}

/* ---- The writer ---- */

static void test_writer(void **state)
{
    (void)state;
    CLEANUP(buf_release) struct buf b = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &b, 2);
    json_w_object(&w);
    json_w_kcstr(&w, "a", "x");
    json_w_kcstr(&w, "none", NULL);
    json_w_karray(&w, "list");
    json_w_i64(&w, INT64_MIN);
    json_w_object(&w);
    json_w_object_end(&w);
    json_w_array(&w);
    json_w_array_end(&w);
    json_w_array_end(&w);
    json_w_kbool(&w, "yes", true);
    json_w_kobject(&w, "o");
    json_w_ki64(&w, "n", 1);
    json_w_object_end(&w);
    json_w_object_end(&w);
    assert_string_equal(b.data, "{\n  \"a\": \"x\",\n  \"none\": null,\n  \"list\": [\n"
                                "    -9223372036854775808,\n    {},\n    []\n  ],\n"
                                "  \"yes\": true,\n  \"o\": {\n    \"n\": 1\n  }\n}");
}

static void test_writer_text(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"a\"\\/\n\r\t\b\f\x01\x7f", "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u007f\""},
        {"\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
        {"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\xef\xbf\xbe",
         "\"\\u0085\\u2028\\u2029\\ufeff\\ufffe\""},
        {"a\xff\x80z\xc3", "\"a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_release) struct buf b = BUF_INIT;
        struct json_writer w;
        json_writer_init(&w, &b, 0);
        json_w_cstr(&w, rows[i].in);
        assert_string_equal(b.data, rows[i].out);
    }
}

static void test_writer_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {{"010", "10"},       {"-007.50", "-7.50"}, {"+1", "1"},      {".5", "0.5"},
                {"-.5e3", "-0.5e3"}, {"1.", "1"},          {"1.e3", "1e3"},  {"0", "0"},
                {"00", "0"},         {"-0", "-0"},         {"1.50", "1.50"}, {"1E+3", "1E+3"},
                {"0.0", "0.0"},      {"[1]", "[1]"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_release) struct buf b = BUF_INIT;
        struct arena a = ARENA_INIT;
        json_print(&b, json_new_number(&a, str_from(rows[i].in)), 0);
        assert_string_equal(b.data, rows[i].out);
        assert_non_null(json_parse(&a, buf_view(&b), NULL));
        arena_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_duplicates_in_long_objects),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_several_values),
        cmocka_unit_test(test_depth_between_values),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_endless_text),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_merge_patch),
        cmocka_unit_test(test_merge_patch_cap),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_writer_text),
        cmocka_unit_test(test_writer_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
