/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Metrics: the page is read back by a reader of the text format and must say what was counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "base/metrics.h"
#include "base/rng.h"

/* ---- A reader of the text format 0.0.4, as strict as its description ---- */

struct sample {
    struct str name;
    char labels[8][2][1024]; /* name, unescaped value */
    size_t n_labels;
    double value;
};

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(s.p[i] == '_' || s.p[i] == ':' || (s.p[i] >= 'a' && s.p[i] <= 'z') ||
              (s.p[i] >= 'A' && s.p[i] <= 'Z') || (i > 0 && s.p[i] >= '0' && s.p[i] <= '9')))
            return false;
    return s.len > 0;
}

/* Reads `name="value"` at *at; false when it is not there. */
static bool read_label(struct str line, size_t *at, struct sample *ret)
{
    size_t equals = str_find_char(line, '=', *at);
    if (equals == SIZE_MAX || ret->n_labels == 8)
        return false;
    struct str name = str_sub(line, *at, equals);
    char *value = ret->labels[ret->n_labels][1];
    if (!is_name(name) || line.p[equals + 1] != '"')
        return false;
    snprintf(ret->labels[ret->n_labels][0], 1024, "%.*s", STR_ARG(name));
    size_t i = equals + 2, n = 0;
    for (; i < line.len && line.p[i] != '"' && n < 1023; i++) {
        char c = line.p[i];
        if (c == '\\') {
            c = line.p[++i];
            if (c != 'n' && c != '"' && c != '\\')
                return false;
            c = c == 'n' ? '\n' : c;
        }
        value[n++] = c;
    }
    value[n] = '\0';
    ret->n_labels++;
    *at = i + 1;
    return i < line.len;
}

static bool read_sample(struct str line, struct sample *ret)
{
    memset(ret, 0, sizeof(*ret));
    size_t at = MIN(str_find_char(line, '{', 0), str_find_char(line, ' ', 0));
    ret->name = str_sub(line, 0, at);
    if (at == SIZE_MAX || !is_name(ret->name) || !str_is_utf8(line))
        return false;
    if (line.p[at] == '{') {
        do {
            at++;
            if (!read_label(line, &at, ret))
                return false;
        } while (line.p[at] == ',');
        if (line.p[at++] != '}')
            return false;
    }
    char text[64], *end;
    snprintf(text, sizeof(text), "%.*s", STR_ARG(str_sub(line, at + 1, line.len)));
    ret->value = strtod(text, &end);
    return line.p[at] == ' ' && *end == '\0' && end != text;
}

/* The value of the series with this name whose labels are exactly those given; NAN: none. */
static double value_of(const struct metrics *m, const char *name, const char *const *labels)
{
    CLEANUP(buf_release) struct buf page = BUF_INIT;
    metrics_print(m, &page);
    struct str rest = buf_view(&page), line;
    double found = NAN;
    assert_true(page.len == 0 || page.data[page.len - 1] == '\n');
    while (str_split(&rest, '\n', &line)) {
        static struct sample s;
        if (str_has_prefix(line, STR("# HELP ")) || str_has_prefix(line, STR("# TYPE ")))
            continue;
        if (!read_sample(line, &s))
            fail_msg("not the text format: %.*s", STR_ARG(line));
        bool same = str_eq_c(s.name, name);
        size_t n = 0;
        for (; labels && labels[2 * n]; n++)
            same = same && n < s.n_labels && strcmp(s.labels[n][0], labels[2 * n]) == 0 &&
                   strcmp(s.labels[n][1], labels[2 * n + 1]) == 0;
        if (!same || n != s.n_labels)
            continue;
        assert_true(isnan(found)); /* no series twice */
        found = s.value;
    }
    return found;
}

#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_kinds(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metrics_family(m, METRIC_COUNTER, "weft_calls_total",
                                             "Calls\nand \\.", "verb,code", NULL, 0);
    assert_ptr_equal(
        f, metrics_family(m, METRIC_COUNTER, "weft_calls_total", "other", "verb,code", NULL, 0));
    struct metric *c = metric_of(f, (struct str[]){STR("GET"), STR("200")}, 2);
    metric_add(c, 1);
    metric_add(metric_of(f, (struct str[]){STR("GET"), STR("200")}, 2), 2);
    metric_add(metric_of(f, (struct str[]){STR("200"), STR("GET")}, 2), 5);
    assert_true(metric_value(c) == 3);
    assert_true(value_of(m, "weft_calls_total", LABELS("verb", "GET", "code", "200")) == 3);
    assert_true(value_of(m, "weft_calls_total", LABELS("verb", "200", "code", "GET")) == 5);
    struct metric_family *g = metrics_family(m, METRIC_GAUGE, "weft_price", "Price.", "", NULL, 0);
    metric_set(metric_of(g, NULL, 0), 0.1);
    assert_true(value_of(m, "weft_price", NULL) == 0.1);
    metric_family_clear(g);
    assert_true(isnan(value_of(m, "weft_price", NULL)));
    CLEANUP(buf_release) struct buf page = BUF_INIT;
    metrics_print(m, &page);
    assert_non_null(strstr(page.data, "# HELP weft_calls_total Calls\\nand \\\\.\n"
                                      "# TYPE weft_calls_total counter\n"));
    assert_non_null(strstr(page.data, "# TYPE weft_price gauge\n"));
    CLEANUP(buf_release) struct buf docs = BUF_INIT;
    metrics_docs(m, &docs);
    assert_non_null(strstr(docs.data, "| `weft_calls_total` | counter | `verb`, `code` |"));
    metrics_free(m);
}

static void test_numbers(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metrics_family(m, METRIC_GAUGE, "g", "G.", "", NULL, 0);
    struct rng r;
    rng_init(&r, 11);
    const double fixed[] = {
        0,       -1,       1e15,     123456789.123456789, 9007199254740993.0, 1e300, 1e-300, 0.526,
        1.0 / 3, INFINITY, -INFINITY};
    for (size_t i = 0; i < ARRAY_LEN(fixed) + 2000; i++) {
        double v = i < ARRAY_LEN(fixed)
                       ? fixed[i]
                       : (rng_unit(&r) - 0.5) * pow(10, (double)rng_between(&r, -20, 20));
        metric_set(metric_of(f, NULL, 0), v);
        assert_true(value_of(m, "g", NULL) == v);
    }
    metrics_free(m);
}

/* Bytes of every kind in a label: the page stays readable and what is valid comes back. */
static void test_label_values(void **state)
{
    (void)state;
    static const struct {
        struct str given;
        const char *read;
    } cases[] = {
        {STR_INIT("plain"), "plain"},           {STR_INIT(""), ""},
        {STR_INIT("a\"b\\c\nd"), "a\"b\\c\nd"}, {STR_INIT("},x=\"1\" 2\n#"), "},x=\"1\" 2\n#"},
        {STR_INIT("Zürich €"), "Zürich €"},     {STR_INIT("bad\xff\xc3"), "bad??"},
        {STR_INIT("\xed\xa0\x80"), "???"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct metrics *m = metrics_new();
        struct metric_family *f = metrics_family(m, METRIC_COUNTER, "c", "C.", "l", NULL, 0);
        metric_add(metric_of(f, &cases[i].given, 1), 7);
        if (value_of(m, "c", LABELS("l", cases[i].read)) != 7)
            fail_msg("case %zu", i);
        metrics_free(m);
    }
    static char text[100000];
    memset(text, 'x', sizeof(text));
    struct metrics *m = metrics_new();
    struct metric_family *f = metrics_family(m, METRIC_COUNTER, "c", "C.", "a,b", NULL, 0);
    metric_add(metric_of(f, (struct str[]){{text, sizeof(text)}, STR("1")}, 2), 1);
    metric_add(metric_of(f, (struct str[]){{text, sizeof(text)}, STR("2")}, 2), 2);
    CLEANUP(buf_release) struct buf page = BUF_INIT;
    metrics_print(m, &page);
    assert_true(page.len < 3000); /* cut, and the next label is still there */
    text[512] = '\0';
    assert_true(value_of(m, "c", LABELS("a", text, "b", "2")) == 2);
    metrics_free(m);
}

/* Buckets against counting by hand. */
static void test_histogram(void **state)
{
    (void)state;
    static const double bounds[] = {0.005, 0.1, 1, 2.5, 1048576};
    static const char *const names[] = {"0.005", "0.1", "1", "2.5", "1048576"};
    struct metrics *m = metrics_new();
    struct metric_family *f =
        metrics_family(m, METRIC_HISTOGRAM, "h", "H.", "k", bounds, ARRAY_LEN(bounds));
    struct metric *h = metric_of(f, (struct str[]){STR("v")}, 1);
    struct rng r;
    rng_init(&r, 5);
    double expected[ARRAY_LEN(bounds)] = {0}, sum = 0;
    enum { N = 1000 };
    for (int i = 0; i < N; i++) {
        double v = i < (int)ARRAY_LEN(bounds)
                       ? bounds[i]
                       : rng_unit(&r) * pow(10, (double)rng_between(&r, -4, 8));
        metric_observe(h, v);
        sum += v;
        for (size_t b = 0; b < ARRAY_LEN(bounds); b++)
            expected[b] += v <= bounds[b];
    }
    for (size_t b = 0; b < ARRAY_LEN(bounds); b++)
        assert_true(value_of(m, "h_bucket", LABELS("k", "v", "le", names[b])) == expected[b]);
    assert_true(value_of(m, "h_bucket", LABELS("k", "v", "le", "+Inf")) == N);
    assert_true(value_of(m, "h_count", LABELS("k", "v")) == N);
    assert_true(value_of(m, "h_sum", LABELS("k", "v")) == sum);
    metrics_free(m);
}

/* Past the cap a new series is counted as "other"; those that were there stay themselves. */
static void test_cap(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metrics_family(m, METRIC_COUNTER, "c", "C.", "l", NULL, 0);
    enum { MORE = 500 };
    for (int i = 0; i < METRICS_SERIES_MAX + MORE; i++) {
        char text[32];
        snprintf(text, sizeof(text), "v%d", i);
        struct str s = str_from(text);
        metric_add(metric_of(f, &s, 1), 1);
    }
    struct str first = STR("v0"), last = STR("v20499"), other = STR("other");
    metric_add(metric_of(f, &first, 1), 1);
    assert_true(metric_value(metric_of(f, &first, 1)) == 2);
    assert_ptr_equal(metric_of(f, &last, 1), metric_of(f, &other, 1));
    assert_true(metric_value(metric_of(f, &other, 1)) == MORE);
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_label_values), cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
