/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Log lines: each is one JSON object with what was given, whatever bytes that holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/time.h"
#include "test/unit/base/random_json.h"

struct captured {
    struct buf line;
    int lines;
};

static void capture(void *arg, struct str line)
{
    struct captured *c = arg;
    buf_clear(&c->line);
    buf_str(&c->line, line);
    c->lines++;
}

static int64_t wall(void *arg)
{
    return *(int64_t *)arg;
}

static int64_t now = INT64_C(1753005600123456789);

static struct json *parse_line(struct arena *a, const struct captured *c)
{
    struct err err = ERR_INIT;
    struct json *j = json_parse(a, buf_view(&c->line), &err);
    if (!j)
        fail_msg("%s: %s", err.msg, c->line.data);
    return j;
}

static void test_fields(void **state)
{
    (void)state;
    struct captured c = {0};
    struct arena a = ARENA_INIT;
    struct err e = ERR_INIT;
    err_set(&e, ERR_RETRY, "it \"broke\"\n");
    log_setup(LOG_INFO, false, STDERR_FILENO, wall, &now);
    log_capture(capture, &c);
    log_warn("launched nodeclaim", LOG_CSTR("nodeclaim", "a-1"), LOG_I64("pods", -3),
             LOG_NS("took", 90 * NS_PER_S), LOG_BOOL("spot", false), LOG_ERR(&e));
    assert_int_equal(c.lines, 1);
    assert_string_equal(c.line.data,
                        "{\"ts\":\"2025-07-20T10:00:00.123456Z\",\"level\":\"warn\","
                        "\"msg\":\"launched nodeclaim\",\"nodeclaim\":\"a-1\",\"pods\":-3,"
                        "\"took\":\"1m30s\",\"spot\":false,\"error\":\"it \\\"broke\\\"\\n\"}");
    log_info("nothing else");
    struct json *j = parse_line(&a, &c);
    assert_true(str_eq_c(json_text(json_get(j, "msg")), "nothing else"));
    log_setup(LOG_INFO, true, STDERR_FILENO, wall, &now);
    log_error("no", LOG_CSTR("name", "two\nlines\x1b[31m"), LOG_I64("n", 2));
    assert_null(strchr(c.line.data, '\n')); /* one line, and nothing that moves a terminal */
    assert_null(strchr(c.line.data, '\x1b'));
    assert_non_null(strstr(c.line.data, "error no  name=\"two\\nlines"));
    assert_non_null(strstr(c.line.data, "  n=2"));
    log_capture(NULL, NULL);
    buf_release(&c.line);
    arena_release(&a);
}

static void test_levels(void **state)
{
    (void)state;
    struct captured c = {0};
    log_capture(capture, &c);
    for (int least = LOG_DEBUG; least <= LOG_ERROR; least++) {
        log_setup((enum log_level)least, false, STDERR_FILENO, wall, &now);
        c.lines = 0;
        log_debug("x");
        log_info("x");
        log_warn("x");
        log_error("x");
        assert_int_equal(c.lines, LOG_ERROR - least + 1);
    }
    log_capture(NULL, NULL);
    buf_release(&c.line);
}

/* Any text comes back as it was. */
static void test_random_text(void **state)
{
    (void)state;
    struct captured c = {0};
    struct rng r;
    rng_init(&r, 3);
    log_setup(LOG_INFO, false, STDERR_FILENO, wall, &now);
    log_capture(capture, &c);
    for (int i = 0; i < 2000; i++) {
        struct arena a = ARENA_INIT;
        struct str text = random_text(&a, &r);
        log_info("m", LOG_STR("text", text));
        assert_null(strchr(c.line.data, '\n'));
        struct str got = json_text(json_get(parse_line(&a, &c), "text"));
        assert_true(str_eq(got, text));
        arena_release(&a);
    }
    log_capture(NULL, NULL);
    buf_release(&c.line);
}

/* However long the fields, the line is JSON and bounded, and cut between characters. */
static void test_long_fields(void **state)
{
    (void)state;
    enum { SIZE = 100000, MANY = 40 };
    static char text[SIZE + 1];
    struct captured c = {0};
    log_setup(LOG_INFO, false, STDERR_FILENO, wall, &now);
    log_capture(capture, &c);
    for (int shift = 0; shift < 3; shift++) {
        struct arena a = ARENA_INIT;
        for (size_t i = 0; i < SIZE; i++)
            text[i] = "\xe2\x82\xac"[(i + (size_t)shift) % 3];
        struct str s = {text + (3 - shift) % 3, SIZE - 3};
        log_info("m", LOG_STR("text", s), LOG_I64("n", 1));
        struct json *j = parse_line(&a, &c);
        struct str got = json_text(json_get(j, "text"));
        assert_true(got.len > 1000 && got.len < 20000 && got.len % 3 == 0);
        assert_memory_equal(got.p, s.p, got.len);
        assert_non_null(json_get(j, "n"));
        arena_release(&a);
    }
    memset(text, 1, SIZE);
    struct log_field fields[MANY];
    for (size_t i = 0; i < MANY; i++)
        fields[i] = LOG_CSTR("text", text);
    struct arena a = ARENA_INIT;
    log_write(LOG_ERROR, "m", fields, MANY);
    assert_true(c.line.len < 300000);
    assert_true(str_eq_c(json_text(json_get(parse_line(&a, &c), "msg")), "m"));
    assert_non_null(json_get(parse_line(&a, &c), "fieldsDropped"));
    arena_release(&a);
    log_capture(NULL, NULL);
    buf_release(&c.line);
}

/* To the descriptor: one message a write, which packets on a socket pair would show; a pipe does
 * with a read after each line. A descriptor that is closed is no reason to stop. */
static void test_descriptor(void **state)
{
    (void)state;
    int ends[2];
    char got[4096];
    assert_int_equal(pipe(ends), 0);
    log_setup(LOG_INFO, false, ends[1], wall, &now);
    for (int i = 0; i < 3; i++) {
        log_info("line", LOG_I64("n", i));
        ssize_t n = read(ends[0], got, sizeof(got));
        assert_true(n > 0 && got[n - 1] == '\n');
        assert_ptr_equal(memchr(got, '\n', (size_t)n), got + n - 1);
    }
    close(ends[0]);
    close(ends[1]);
    log_info("nobody hears");
    log_setup(LOG_INFO, false, STDERR_FILENO, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),      cmocka_unit_test(test_levels),
        cmocka_unit_test(test_random_text), cmocka_unit_test(test_long_fields),
        cmocka_unit_test(test_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
