/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A registry of families of series, printed in the Prometheus text format 0.0.4. */

#include "base/metrics.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#define LABELS_MAX 12
#define LABEL_BYTES_MAX 512 /* of one value; more is cut */

struct metric {
    struct metric_family *family;
    double value;      /* of a histogram: the sum */
    uint64_t count;    /* histogram */
    uint64_t *buckets; /* histogram: observations at or below each bound */
};

struct metric_family {
    enum metric_kind kind;
    char *name, *help;
    char *label_names[LABELS_MAX];
    size_t n_labels;
    double *bounds;
    size_t n_bounds;
    struct map series; /* printed labels -> metric */
};

struct metrics {
    struct map families; /* name -> family */
};

struct metrics *metrics_new(void)
{
    return xcalloc(1, sizeof(struct metrics));
}

static void free_metric(void *p)
{
    struct metric *m = p;
    free(m->buckets);
    free(m);
}

static void free_family(void *p)
{
    struct metric_family *f = p;
    map_release(&f->series, free_metric);
    for (size_t i = 0; i < f->n_labels; i++)
        free(f->label_names[i]);
    free(f->bounds);
    free(f->name);
    free(f->help);
    free(f);
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    map_release(&m->families, free_family);
    free(m);
}

struct metric_family *metrics_family(struct metrics *m, enum metric_kind kind, const char *name,
                                     const char *help, const char *labels, const double *buckets,
                                     size_t n_buckets)
{
    void **slot = map_slot(&m->families, str_from(name));
    if (*slot)
        return *slot;
    struct metric_family *f = xcalloc(1, sizeof(*f));
    f->kind = kind;
    f->name = xstrdup(name);
    f->help = xstrdup(help);
    struct str rest = str_from(labels), label;
    while (str_split(&rest, ',', &label)) {
        assert(f->n_labels < LABELS_MAX);
        f->label_names[f->n_labels++] = xstr_dup(str_trim(label));
    }
    if (n_buckets) {
        f->bounds = xcalloc(n_buckets, sizeof(*f->bounds));
        memcpy(f->bounds, buckets, n_buckets * sizeof(*buckets));
        f->n_bounds = n_buckets;
    }
    *slot = f;
    return f;
}

/* Prometheus refuses a whole page for one byte that is not UTF-8. */
static void print_escaped(struct buf *out, struct str s)
{
    size_t len;
    for (size_t i = 0; i < s.len; i += MAX(len, (size_t)1)) {
        len = str_utf8_at(s, i);
        if (i + len > LABEL_BYTES_MAX)
            return;
        char c = s.p[i];
        if (c == '\n')
            buf_cstr(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (len)
            buf_add(out, s.p + i, len);
        else
            buf_char(out, '?');
    }
}

static void print_help(struct buf *out, const char *help)
{
    for (const char *p = help; *p; p++)
        if (*p == '\n')
            buf_cstr(out, "\\n");
        else if (*p == '\\')
            buf_cstr(out, "\\\\");
        else
            buf_char(out, *p);
}

static void print_labels(const struct metric_family *f, const struct str *values, struct buf *out)
{
    for (size_t i = 0; i < f->n_labels; i++) {
        buf_printf(out, "%s%s=\"", i ? "," : "", f->label_names[i]);
        print_escaped(out, values[i]);
        buf_char(out, '"');
    }
}

struct metric *metric_of(struct metric_family *f, const struct str *values, size_t n)
{
    assert(n == f->n_labels);
    CLEANUP(buf_release) struct buf key = {.cap = 16 * 1024};
    print_labels(f, values, &key);
    struct metric *m = map_get(&f->series, buf_view(&key));
    if (m)
        return m;
    if (map_len(&f->series) >= METRICS_SERIES_MAX && n > 0) {
        struct str other[LABELS_MAX];
        for (size_t i = 0; i < n; i++)
            other[i] = STR("other");
        buf_clear(&key);
        print_labels(f, other, &key);
    }
    void **slot = map_slot(&f->series, buf_view(&key));
    if (!*slot) {
        m = xcalloc(1, sizeof(*m));
        m->family = f;
        if (f->n_bounds)
            m->buckets = xcalloc(f->n_bounds, sizeof(*m->buckets));
        *slot = m;
    }
    return *slot;
}

void metric_add(struct metric *m, double by)
{
    m->value += by;
}

void metric_set(struct metric *m, double v)
{
    m->value = v;
}

void metric_observe(struct metric *m, double v)
{
    m->value += v;
    m->count++;
    for (size_t i = 0; i < m->family->n_bounds; i++)
        m->buckets[i] += v <= m->family->bounds[i];
}

double metric_value(const struct metric *m)
{
    return m->value;
}

void metric_family_clear(struct metric_family *f)
{
    map_clear(&f->series, free_metric);
}

/* The shortest text that reads back as the same number. */
static void print_number(struct buf *out, double v)
{
    if (isnan(v)) {
        buf_cstr(out, "NaN");
    } else if (isinf(v)) {
        buf_cstr(out, v > 0 ? "+Inf" : "-Inf");
    } else if (fabs(v) < 1e15 && v == floor(v)) {
        buf_printf(out, "%.0f", v);
    } else {
        char text[32];
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, sizeof(text), "%.*g", digits, v);
            if (strtod(text, NULL) == v)
                break;
        }
        buf_cstr(out, text);
    }
}

static void print_sample(struct buf *out, const char *name, const char *suffix, struct str labels,
                         const char *bound, double v)
{
    buf_printf(out, "%s%s", name, suffix);
    if (labels.len || bound) {
        buf_char(out, '{');
        buf_str(out, labels);
        if (bound)
            buf_printf(out, "%sle=\"%s\"", labels.len ? "," : "", bound);
        buf_char(out, '}');
    }
    buf_char(out, ' ');
    print_number(out, v);
    buf_char(out, '\n');
}

static void print_histogram(struct buf *out, const struct metric_family *f, struct str labels,
                            const struct metric *m)
{
    for (size_t i = 0; i < f->n_bounds; i++) {
        CLEANUP(buf_release) struct buf bound = BUF_INIT;
        print_number(&bound, f->bounds[i]);
        print_sample(out, f->name, "_bucket", labels, bound.data, (double)m->buckets[i]);
    }
    print_sample(out, f->name, "_bucket", labels, "+Inf", (double)m->count);
    print_sample(out, f->name, "_sum", labels, NULL, m->value);
    print_sample(out, f->name, "_count", labels, NULL, (double)m->count);
}

static const char *kind_name(enum metric_kind k)
{
    static const char *const names[] = {"counter", "gauge", "histogram"};
    return names[k];
}

void metrics_print(const struct metrics *m, struct buf *out)
{
    map_each(&m->families, e) {
        const struct metric_family *f = e->value;
        buf_printf(out, "# HELP %s ", f->name);
        print_help(out, f->help);
        buf_printf(out, "\n# TYPE %s %s\n", f->name, kind_name(f->kind));
        map_each(&f->series, s) {
            if (f->kind == METRIC_HISTOGRAM)
                print_histogram(out, f, map_key(s), s->value);
            else
                print_sample(out, f->name, "", map_key(s), NULL,
                             ((const struct metric *)s->value)->value);
        }
    }
}

void metrics_docs(const struct metrics *m, struct buf *out)
{
    buf_cstr(out, "| metric | kind | labels | meaning |\n|---|---|---|---|\n");
    map_each(&m->families, e) {
        const struct metric_family *f = e->value;
        buf_printf(out, "| `%s` | %s | ", f->name, kind_name(f->kind));
        for (size_t i = 0; i < f->n_labels; i++)
            buf_printf(out, "%s`%s`", i ? ", " : "", f->label_names[i]);
        buf_printf(out, " | %s |\n", f->help);
    }
}
