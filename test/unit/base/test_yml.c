/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* YAML: what is taken and as what, what is refused and where, and trees there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/yml.h"
#include "test/unit/base/random_json.h"

/* ---- What is taken ---- */

static void test_taken(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *json;
    } rows[] = {
        {"a: 1\nb:\n- x\n- y: [1, {z: w}]\n", "{\"a\":1,\"b\":[\"x\",{\"y\":[1,{\"z\":\"w\"}]}]}"},
        {"a: null\nb: ~\nc:\nd: NULL\ne: nULL",
         "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"e\":\"nULL\"}"},
        {"[true, False, TRUE, yes, on, tRUE]", "[true,false,true,\"yes\",\"on\",\"tRUE\"]"},
        {"[1, -1.5, 1e3, 1_000, 0x1f, 0o7, .inf, .nan, 1e, '1', \"1\", 1.2.3, -, +, .]", NULL},
        {"|\n a\n  b\n", "\"a\\n b\\n\""},
        {"|-\n a\n", "\"a\""},
        {">\n a\n b\n\n c\n", "\"a b\\nc\\n\""},
        {"\"a\\tb\\x41\"", "\"a\\tbA\""},
        {"'it''s'", "\"it's\""},
        {"plain text # comment\n", "\"plain text\""},
        {"a#b", "\"a#b\""},
        {"? a\n: b", "{\"a\":\"b\"}"},
        {"1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}"},
        {"%YAML 1.2\n---\na", "\"a\""},
        {"\xef\xbb\xbf"
         "a: b",
         "{\"a\":\"b\"}"},
        {"{\n\t\"a\": [\n\t\t1,\n\t\t\"\\u00e9\"\n\t]\n}\n", "{\"a\":[1,\"\xc3\xa9\"]}"},
        {"<<: {a: 1}", "{\"<<\":{\"a\":1}}"},
        {"a: 'x\n  y'\n", "{\"a\":\"x y\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena a = ARENA_INIT;
        struct err e = ERR_INIT;
        struct json *j = NULL;
        CLEANUP(buf_release) struct buf out = BUF_INIT;
        if (yml_parse_one(&a, str_from(rows[i].yaml), NULL, &j, &e) < 0)
            fail_msg("%s: %s", rows[i].yaml, e.msg);
        json_print(&out, j, 0);
        assert_string_equal(
            out.data, rows[i].json ? rows[i].json
                                   : "[1,-1.5,1e3,\"1_000\",\"0x1f\",\"0o7\",\".inf\",\".nan\","
                                     "\"1e\",\"1\",\"1\",\"1.2.3\",\"-\",\"+\",\".\"]");
        arena_release(&a);
    }
}

static void test_source_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"010", "1e3", "1.50", "+7", ".5", "5.", "1e999", "-0"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct arena a = ARENA_INIT;
        struct json *j = NULL;
        assert_int_equal(yml_parse_one(&a, str_from(texts[i]), NULL, &j, NULL), 0);
        assert_int_equal(j->type, JSON_NUMBER);
        assert_true(str_eq_c(j->text, texts[i]));
        CLEANUP(buf_release) struct buf out = BUF_INIT;
        yml_print(&out, j);
        assert_memory_equal(out.data, texts[i], strlen(texts[i]));
        arena_release(&a);
    }
}

static void test_positions(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json *j = NULL;
    const char *text = "# head\nspec:\n  \xc3\xa9: [1,\n    two]\n  key: |\n    x\n";
    assert_int_equal(yml_parse_one(&a, str_from(text), NULL, &j, NULL), 0);
    const struct json *spec = json_get(j, "spec"), *list = json_get(spec, "\xc3\xa9");
    assert_int_equal(j->members[0].pos.line, 2);
    assert_int_equal(j->members[0].pos.column, 1);
    assert_int_equal(spec->pos.line, 3);
    assert_int_equal(spec->pos.column, 3);
    assert_int_equal(list->pos.column, 6); /* characters, not bytes */
    assert_int_equal(list->items[1]->pos.line, 4);
    assert_int_equal(list->items[1]->pos.column, 5);
    assert_int_equal(json_get(spec, "key")->pos.line, 5);
    arena_release(&a);
}

static void test_documents(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct err e = ERR_INIT;
    struct yml_documents d = {0};
    const char *text = "---\na: 1\n---\n# nothing\n---\n---\nb: 2\n...\n---\nnull\n--- [c]\n";
    assert_int_equal(yml_parse(&a, str_from(text), NULL, &d, &e), 0);
    assert_int_equal(d.n, 3);
    assert_non_null(json_get(d.v[1], "b"));
    assert_int_equal(d.v[1]->pos.line, 7);
    struct json *j = (struct json *)&a;
    assert_int_equal(yml_parse_one(&a, STR("# only this\n"), NULL, &j, &e), 0);
    assert_null(j);
    assert_int_equal(yml_parse_one(&a, STR("a\n---\nb\n"), NULL, &j, &e), -1);
    assert_string_equal(e.msg, "2:1: more than 1 document");
    CLEANUP(buf_release) struct buf many = BUF_INIT;
    for (int i = 0; i < 1000; i++)
        buf_printf(&many, "---\nn: %d\n", i);
    assert_int_equal(yml_parse(&a, buf_view(&many), NULL, &d, &e), 0);
    assert_int_equal(d.n, 1000);
    assert_int_equal(json_i64(json_get(d.v[999], "n"), -1), 999);
    const struct yml_limits limits = {.documents_max = 999};
    assert_int_equal(yml_parse(&a, buf_view(&many), &limits, &d, &e), -1);
    arena_release(&a);
}

/* ---- What is refused, and where ---- */

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message; /* its beginning */
    } rows[] = {
        {"a: &x 1", "1:4: anchors"},
        {"a:\n  - *x", "2:5: aliases"},
        {"a: !!str 1", "1:4: tags"},
        {"&x [1]", "1:1: anchors"},
        {"a: !t {b: 1}", "1:4: tags"},
        {"&x a: 1", "1:1: anchors"},
        {"a: 1\nb: 2\na: 3", "3:1: the key 'a' stands twice"},
        {"x: {b: 1, \"b\": 2}", "1:11: the key 'b' stands twice"},
        {"? [a]\n: 1", "1:3: a key must be"},
        {"{{a: 1}: 2}", "1:2: a key must be"},
        {"a: [1", "2:1: "},
        {"a: b: c", "1:5: "},
        {"a:\n\t- b", "2:1: "},
        {"a: 'x", "1:"},
        {"ok: 1\nb: \xff", "2:4: "},
        {"a: \xed\xa0\x80", "1:4: "},
        {"a: \x01", "1:4: "},
        {"\xff\xfe"
         "a",
         "1:1: "}, /* UTF-16 */
        {"a: %b", "1:4: "},
        {"a: `b", "1:4: "},
        {"%TAG ! x\n%YAML 2.0\n---\na", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena a = ARENA_INIT;
        struct err e = ERR_INIT;
        struct json *j = (struct json *)&a;
        if (yml_parse_one(&a, str_from(rows[i].yaml), NULL, &j, &e) == 0)
            fail_msg("'%s' was taken", rows[i].yaml);
        assert_int_equal(e.code, ERR_INVALID);
        if (!str_has_prefix(str_from(e.msg), str_from(rows[i].message)))
            fail_msg("'%s': %s, not %s", rows[i].yaml, e.msg, rows[i].message);
        assert_ptr_equal(j, &a);
        arena_release(&a);
    }
}

static void repeat(struct buf *b, size_t n, const char *text)
{
    while (n-- > 0)
        buf_cstr(b, text);
}

/* Depth in every style, at the limit and one more; and a million levels end at once. */
static void test_depth(void **state)
{
    (void)state;
    for (size_t extra = 0; extra < 3; extra++) {
        size_t n = extra < 2 ? JSON_DEPTH_MAX + extra : 1000000;
        for (int style = 0; style < 4; style++) {
            struct arena a = ARENA_INIT;
            struct err e = ERR_INIT;
            struct json *j = NULL;
            CLEANUP(buf_release) struct buf b = BUF_INIT;
            if (style == 0) {
                repeat(&b, n, "[");
                repeat(&b, extra < 2 ? n : 0, "]");
            } else if (style == 1) {
                repeat(&b, n, "- ");
                buf_cstr(&b, "x");
            } else if (style == 2) {
                for (size_t i = 0; i < MIN(n, (size_t)2000); i++) {
                    repeat(&b, i, " ");
                    buf_cstr(&b, "a:\n");
                }
            } else {
                /* Quotes in a block scalar must not hide brackets. */
                buf_cstr(&b, "- |\n  '\n- ");
                repeat(&b, n - 1, "[");
                repeat(&b, extra < 2 ? n - 1 : 0, "]");
            }
            int code = yml_parse_one(&a, buf_view(&b), NULL, &j, &e);
            if (code != (extra ? -1 : 0))
                fail_msg("style %d, %zu levels: %s", style, n, e.msg);
            if (extra)
                assert_non_null(strstr(e.msg, "nested deeper than 64 levels"));
            arena_release(&a);
        }
    }
    struct arena a = ARENA_INIT;
    struct json *j;
    const struct yml_limits limits = {.depth_max = 2, .bytes_max = 20};
    assert_int_equal(yml_parse_one(&a, STR("[[1]]"), &limits, &j, NULL), 0);
    assert_int_equal(yml_parse_one(&a, STR("[[[1]]]"), &limits, &j, NULL), -1);
    assert_int_equal(yml_parse_one(&a, STR("a: 456789012345678901"), &limits, &j, NULL), -1);
    arena_release(&a);
}

static void test_cap(void **state)
{
    (void)state;
    bool refused = false, taken = false;
    for (size_t cap = 1; cap < 6000; cap += 41) {
        struct arena a;
        struct err e = ERR_INIT;
        struct json *j = NULL;
        arena_init(&a, cap, 64);
        int code = yml_parse_one(&a, STR("a: [1, 2, {b: text}]\nc: {d: null}\n"), NULL, &j, &e);
        assert_true(code == 0 ? j != NULL : e.code == ERR_CAPACITY);
        taken |= code == 0;
        refused |= code < 0;
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
    for (int i = 0; i < 4000; i++) {
        struct arena a = ARENA_INIT;
        struct err e = ERR_INIT;
        struct json *j = random_json(&a, &r, 5), *back = NULL;
        CLEANUP(buf_release) struct buf out = BUF_INIT;
        yml_print(&out, j);
        if (yml_parse_one(&a, buf_view(&out), NULL, &back, &e) < 0)
            fail_msg("round %d: %s in\n%s", i, e.msg, out.data);
        if (j->type == JSON_NULL ? back != NULL : !json_equal(j, back))
            fail_msg("round %d differs:\n%s", i, out.data);
        arena_release(&a);
    }
}

/* What is written as JSON reads as YAML too, but for keys of more than 1,024 characters. */
static void test_json_is_yaml(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 2);
    int n = 0;
    for (int i = 0; i < 3000; i++) {
        struct arena a = ARENA_INIT;
        struct err e = ERR_INIT;
        struct json *j = random_json(&a, &r, 4), *back = NULL;
        CLEANUP(buf_release) struct buf out = BUF_INIT;
        json_print(&out, j, i % 2 ? 2 : 0);
        if (out.len <= 1024) {
            n++;
            if (yml_parse_one(&a, buf_view(&out), NULL, &back, &e) < 0)
                fail_msg("round %d: %s\n%s", i, e.msg, out.data);
            if (j->type == JSON_NULL ? back != NULL : !json_equal(j, back))
                fail_msg("round %d differs:\n%s", i, out.data);
        }
        arena_release(&a);
    }
    assert_true(n > 2000);
}

static void test_print(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct err e = ERR_INIT;
    const char *json = "{\"kind\":\"Pod\",\"spec\":{\"list\":[{\"name\":\"a\",\"args\":[\"-v\",\"x:"
                       " y\"]},[1,[2]],[]],"
                       "\"empty\":{},\"on\":\"yes\",\"port\":\"8080\",\"time\":\"12:30\"}}";
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    struct json *j = json_parse(&a, str_from(json), &e);
    yml_print(&out, j);
    assert_string_equal(out.data, "kind: Pod\n"
                                  "spec:\n"
                                  "  list:\n"
                                  "  - name: a\n"
                                  "    args:\n"
                                  "    - \"-v\"\n"
                                  "    - \"x: y\"\n"
                                  "  - - 1\n"
                                  "    - - 2\n"
                                  "  - []\n"
                                  "  empty: {}\n"
                                  "  \"on\": \"yes\"\n"
                                  "  port: \"8080\"\n"
                                  "  time: \"12:30\"\n");
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),        cmocka_unit_test(test_source_text),
        cmocka_unit_test(test_positions),    cmocka_unit_test(test_documents),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_depth),
        cmocka_unit_test(test_cap),          cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_json_is_yaml), cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
