/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Option tables: where a value may come from, what wins, what is refused and how it is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <unistd.h>

#include "base/schema.h"
#include "base/yml.h"

struct options {
    bool act, spot;
    int64_t pods, idle, poll;
    double share;
    const char *name, *mode;
    const char **zones;
    const char *server;
};

static const struct option table[] = {
    OPTION_BOOL(struct options, act, "act", "false", "whether it acts"),
    OPTION_BOOL(struct options, spot, "spot", "true", "whether spot is bought"),
    OPTION_INT(struct options, pods, "pods-max", "110", 1, 250, "most pods of a node"),
    OPTION_DURATION(
        struct options, idle, "batch-idle-duration", "1s", 0, NS_PER_HOUR,
        "how long no new pod may arrive before a batch is planned, in words enough to need "
        "a second line and then a third"),
    OPTION_SECONDS(struct options, poll, "poll", "30", NS_PER_S, NS_PER_DAY, "pause between polls"),
    OPTION_DECIMAL(struct options, share, "share", "0.5", "a share"),
    {.kind = OPTION_KIND_STRING,
     .name = "name",
     .offset = offsetof(struct options, name),
     .help = "a name",
     .short_name = 'n'},
    OPTION_ENUM(struct options, mode, "mode", "observe", "observe|act", "what it may do"),
    OPTION_LIST(struct options, zones, "zone", "a,b", "zones"),
    OPTION_END,
};

/* Runs the table over words split at blanks. */
static int run_table(const struct option *t, const char *line, struct arena *a, struct options *o,
                     struct schema_args *args, bool *help, struct err *err)
{
    char *argv[32] = {"weft"};
    int argc = 1;
    struct str rest = str_from(line), word;
    while (str_split(&rest, ' ', &word))
        argv[argc++] = arena_cstr(a, word);
    *o = (struct options){0};
    return schema_read(t, argc, argv, a, o, args, help, err);
}

static void take(const char *line, struct arena *a, struct options *o)
{
    struct schema_args args;
    bool help;
    struct err e = ERR_INIT;
    if (run_table(table, line, a, o, &args, &help, &e) < 0)
        fail_msg("%s: %s", line, e.msg);
}

static void test_defaults(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct options o;
    take("", &a, &o);
    assert_true(!o.act && o.spot && o.pods == 110 && o.idle == NS_PER_S && o.poll == 30 * NS_PER_S);
    assert_true(o.share == 0.5);
    assert_null(o.name);
    assert_string_equal(o.mode, "observe");
    assert_string_equal(o.zones[0], "a");
    assert_string_equal(o.zones[1], "b");
    assert_null(o.zones[2]);
    arena_release(&a);
}

static void test_flags(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct options o;
    struct schema_args args;
    bool help = true;
    struct err e = ERR_INIT;
    const char *line =
        "--act first --no-spot --pods-max=7 --batch-idle-duration 5 --poll 2m -n x --mode act "
        "--zone=c --zone d,e -- --pods-max -";
    assert_int_equal(run_table(table, line, &a, &o, &args, &help, &e), 0);
    assert_false(help);
    assert_true(o.act && !o.spot && o.pods == 7 && o.idle == 5 * NS_PER_S &&
                o.poll == 2 * NS_PER_MIN);
    assert_string_equal(o.name, "x");
    assert_string_equal(o.mode, "act");
    const char *const zones[] = {"c", "d", "e"};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(o.zones[i], zones[i]);
    assert_null(o.zones[3]);
    assert_int_equal(args.n, 3);
    assert_string_equal(args.v[0], "first");
    assert_string_equal(args.v[1], "--pods-max");
    assert_string_equal(args.v[2], "-");
    take("-nabc --act=false --name= ", &a, &o);
    assert_string_equal(o.name, "");
    assert_int_equal(run_table(table, "--pods-max=x --help", &a, &o, &args, &help, &e), 0);
    assert_true(help); /* nothing else is looked at */
    arena_release(&a);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } rows[] = {
        {"--pod-max 5", "there is no option --pod-max; did you mean --pods-max?"},
        {"--modus act", "there is no option --modus; did you mean --mode?"},
        {"--completely-different", "there is no option --completely-different"},
        {"--no-pods-max", "there is no option --no-pods-max"},
        {"--no-act=true", "there is no option --no-act"},
        {"-x", "there is no option -x"},
        {"--pods-max", "--pods-max needs a value"},
        {"-n", "--name needs a value"},
        {"--pods-max 0", "--pods-max: 0 is not between 1 and 250"},
        {"--pods-max many", "--pods-max: 'many' is not a whole number"},
        {"--act=maybe", "--act: 'maybe' is not true or false"},
        {"--poll 0", "--poll: '0' is not between 1s and 24h"},
        {"--mode Act", "--mode: 'Act' is none of observe|act"},
        {"--share half", "--share: 'half' is not a number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena a = ARENA_INIT;
        struct options o;
        struct schema_args args;
        bool help;
        struct err e = ERR_INIT;
        assert_int_equal(run_table(table, rows[i].line, &a, &o, &args, &help, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        if (!str_has_prefix(str_from(e.msg), str_from(rows[i].message)))
            fail_msg("%s: '%s', not '%s'", rows[i].line, e.msg, rows[i].message);
        arena_release(&a);
    }
}

static const char *write_file(struct arena *a, const char *text)
{
    char path[] = "/tmp/weft-schema-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return arena_cstr(a, str_from(path));
}

/* Each source alone, and every pair of them. */
static void test_precedence(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *path = write_file(&a, "pods-max: 10\nzone: [f, g]\nmode: act\n");
    for (int sources = 0; sources < 8; sources++) {
        struct options o;
        if (sources & 2) {
            setenv("WEFT_PODS_MAX", "20", 1);
            setenv("WEFT_ZONE", "h", 1);
        }
        take(arena_printf(&a, "%s%s %s", sources & 1 ? "--config=" : "", sources & 1 ? path : "x",
                          sources & 4 ? "--pods-max 30 --zone i --zone j" : "")
                 .p,
             &a, &o);
        unsetenv("WEFT_PODS_MAX");
        unsetenv("WEFT_ZONE");
        assert_int_equal(o.pods, sources & 4 ? 30 : sources & 2 ? 20 : sources & 1 ? 10 : 110);
        assert_string_equal(o.zones[0], sources & 4   ? "i"
                                        : sources & 2 ? "h"
                                        : sources & 1 ? "f"
                                                      : "a");
        assert_int_equal(o.zones[1] == NULL, (sources & 6) == 2);
        assert_string_equal(o.mode, sources & 1 ? "act" : "observe");
    }
    setenv("WEFT_CONFIG", path, 1);
    struct options o;
    take("", &a, &o);
    assert_int_equal(o.pods, 10);
    unsetenv("WEFT_CONFIG");
    unlink(path);
    arena_release(&a);
}

static void test_bad_sources(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct options o;
    struct schema_args args;
    bool help;
    struct err e = ERR_INIT;
    setenv("WEFT_PODS_MAX", "zero", 1);
    assert_int_equal(run_table(table, "", &a, &o, &args, &help, &e), -1);
    assert_non_null(strstr(e.msg, "WEFT_PODS_MAX: 'zero'"));
    unsetenv("WEFT_PODS_MAX");
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"act: true\npods-max: 999\n", ": 2:11: pods-max: 999 is not between"},
        {"act: true\n\nmdoe: act\n", ": 3:1: there is no option mdoe; did you mean mode?"},
        {"- act\n", ": 1:1: an object is needed, not a list"},
        {"pods-max: {a: 1}\n", ": 1:11: pods-max: an object stands where"},
        {"a: [\n", ": 2:1: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *path = write_file(&a, rows[i].text);
        assert_int_equal(
            run_table(table, arena_printf(&a, "--config %s", path).p, &a, &o, &args, &help, &e),
            -1);
        unlink(path);
        if (!strstr(e.msg, rows[i].message) || strstr(e.msg, path) != e.msg)
            fail_msg("'%s' lacks '%s'", e.msg, rows[i].message);
    }
    assert_int_equal(run_table(table, "--config /nonexistent/file", &a, &o, &args, &help, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    arena_release(&a);
}

/* A required option may come from anywhere, but must come. */
static void test_required(void **state)
{
    (void)state;
    static const struct option one[] = {
        OPTION_INT(struct options, pods, "pods-max", "110", 1, 250, "most pods"),
        {.kind = OPTION_KIND_STRING,
         .name = "server",
         .offset = offsetof(struct options, server),
         .help = "the server",
         .required = true},
        OPTION_END,
    };
    struct arena a = ARENA_INIT;
    const char *with = write_file(&a, "server: a\n"), *without = write_file(&a, "pods-max: 5\n");
    struct options o;
    struct schema_args args;
    bool help;
    struct err e = ERR_INIT;
    assert_int_equal(run_table(one, "", &a, &o, &args, &help, &e), -1);
    assert_string_equal(e.msg, "--server is missing");
    assert_int_equal(run_table(one, "--server b", &a, &o, &args, &help, &e), 0);
    assert_int_equal(
        run_table(one, arena_printf(&a, "--config %s", with).p, &a, &o, &args, &help, &e), 0);
    assert_string_equal(o.server, "a");
    const char *line = arena_printf(&a, "--config %s --server b", without).p;
    assert_int_equal(run_table(one, line, &a, &o, &args, &help, &e), 0);
    assert_int_equal(o.pods, 5);
    line = arena_printf(&a, "--config %s", without).p;
    assert_int_equal(run_table(one, line, &a, &o, &args, &help, &e), -1);
    setenv("WEFT_SERVER", "c", 1);
    assert_int_equal(run_table(one, line, &a, &o, &args, &help, &e), 0);
    assert_string_equal(o.server, "c");
    unsetenv("WEFT_SERVER");
    struct json *object = json_parse(&a, STR("{\"pods-max\":\"7\"}"), NULL);
    assert_int_equal(schema_read_json(one, object, &a, &o, &e), -1);
    assert_string_equal(e.msg, "server is missing");
    unlink(with);
    unlink(without);
    arena_release(&a);
}

static void test_json(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct options o = {0};
    struct err e = ERR_INIT;
    struct json *j = json_parse(
        &a,
        STR("{\"act\":\"true\",\"spot\":false,\"pods-max\":\"12\",\"poll\":90,\"share\":1e-1,"
            "\"name\":5,\"zone\":\"x,y\",\"mode\":null}"),
        &e);
    assert_int_equal(schema_defaults(table, &a, &o, &e), 0);
    assert_int_equal(schema_read_json(table, j, &a, &o, &e), 0);
    assert_true(o.act && !o.spot && o.pods == 12 && o.poll == 90 * NS_PER_S && o.share == 0.1);
    assert_string_equal(o.name, "5");
    assert_string_equal(o.zones[1], "y");
    assert_string_equal(o.mode, "observe"); /* null is absent */
    arena_release(&a);
}

static void test_pages(void **state)
{
    (void)state;
    CLEANUP(buf_release) struct buf help = BUF_INIT, docs = BUF_INIT;
    schema_help(table, 72, &help);
    schema_docs(table, &docs);
    struct str rest = buf_view(&help), line;
    size_t lines = 0;
    for (; str_split(&rest, '\n', &line); lines++)
        assert_true(line.len <= 72);
    assert_true(lines > ARRAY_LEN(table) + 1); /* the long help is wrapped */
    rest = buf_view(&docs);
    for (lines = 0; str_split(&rest, '\n', &line); lines++) {
        size_t bars = 0;
        for (size_t i = 0; i < line.len; i++)
            bars += line.p[i] == '|';
        assert_int_equal(bars, 5); /* four columns */
    }
    assert_int_equal(lines, 2 + ARRAY_LEN(table) - 1);
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++) {
        char text[64];
        snprintf(text, sizeof(text), "--%s", o->name);
        assert_non_null(strstr(help.data, text));
        assert_non_null(strstr(docs.data, text));
        if (o->standard && o->kind != OPTION_KIND_BOOL)
            assert_non_null(strstr(help.data, o->standard));
    }
    assert_non_null(strstr(help.data, "1 to 250"));
    assert_non_null(strstr(help.data, "-n, --name TEXT"));
    assert_non_null(strstr(docs.data, "`observe`, `act`"));
    assert_string_equal(schema_nearest(table, STR("pods-mx")), "pods-max");
    assert_null(schema_nearest(table, STR("entirely")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_flags),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_bad_sources), cmocka_unit_test(test_required),
        cmocka_unit_test(test_json),        cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
