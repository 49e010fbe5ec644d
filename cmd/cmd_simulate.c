/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft simulate: a day of a simulated fleet, as a chart and a bill. */

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "base/yml.h"
#include "cmd/manifests.h"
#include "cmd/simulate.h"
#include "cmd/table.h"

#define STEP_SECONDS 60
#define CHART_ROWS 6
#define REDRAW (100 * NS_PER_MS)

struct simulate_options {
    int64_t seed, hours, faults;
    const char *catalog, *output;
    bool decisions;
};

static const struct option simulate_table[] = {
    OPTION_INT(struct simulate_options, seed, "seed", "1", 0, INT64_MAX,
               "the same seed gives the same day"),
    OPTION_INT(struct simulate_options, hours, "hours", "24", 1, 24 * 31,
               "how long the simulation runs"),
    OPTION_INT(struct simulate_options, faults, "faults", "0", 0, 500000,
               "failures of cloud calls, and a tenth of it of API calls, per million"),
    OPTION_STRING(struct simulate_options, catalog, "catalog", NULL,
                  "instance types, offerings and prices (JSON); the built-in table without it"),
    OPTION_BOOL(struct simulate_options, decisions, "decisions", "false",
                "print each decision to stderr, one JSON object a line"),
    {.kind = OPTION_KIND_ENUM,
     .name = "output",
     .short_name = 'o',
     .offset = offsetof(struct simulate_options, output),
     .standard = "text",
     .values = "text|json",
     .help = "how to print the bill"},
    OPTION_END,
};

/* ---- The live chart ---- */

struct chart {
    const struct simulation *s;
    int64_t total_s, drawn; /* drawn: real time of the last frame */
    unsigned columns;
    bool colour, up; /* up: there is a frame above the cursor */
};

static int64_t real_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

enum series {
    SERIES_QUEUE,
    SERIES_DESIRED,
    SERIES_READY,
    SERIES_PENDING,
    SERIES_NODES,
    SERIES_PRICE
};

static double value_of(const struct sample *x, enum series which)
{
    switch (which) {
    case SERIES_QUEUE:
        return x->queue;
    case SERIES_DESIRED:
        return (double)x->desired;
    case SERIES_READY:
        return (double)x->ready;
    case SERIES_PENDING:
        return (double)x->pending;
    case SERIES_NODES:
        return (double)x->nodes;
    default:
        return (double)x->price_uusd_h / 1e6;
    }
}

/* One line of blocks over the whole run; a column holds the most of its stretch of time. */
static void draw_series(const struct chart *c, enum series which, unsigned width, struct buf *out)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct vec_sample *v = &c->s->samples;
    size_t steps = (size_t)(c->total_s / STEP_SECONDS);
    double most = 0;
    for (size_t i = 0; i < v->len; i++)
        most = MAX(most, value_of(&v->v[i], which));
    for (unsigned column = 0; column < width; column++) {
        size_t from = steps * column / width, to = MAX(steps * (column + 1) / width, from + 1);
        double here = -1;
        for (size_t i = from; i < to && i < v->len; i++)
            here = MAX(here, value_of(&v->v[i], which));
        int level = here <= 0 || most <= 0 ? 0 : (int)(here / most * 7.0 + 1.0);
        buf_cstr(out, blocks[MIN(level, 8)]);
    }
}

static void draw_progress(const struct chart *c, unsigned width, struct buf *out)
{
    int64_t done = (int64_t)c->s->samples.len * STEP_SECONDS;
    unsigned filled = (unsigned)(done * width / c->total_s);
    for (unsigned i = 0; i < width; i++)
        buf_cstr(out, i < filled ? "━" : "┄");
    buf_printf(out, " %3d%%", (int)(done * 100 / c->total_s));
}

static void draw(struct chart *c)
{
    static const struct {
        const char *name, *colour;
        enum series which;
    } rows[CHART_ROWS] = {
        {"queue", "\033[33m", SERIES_QUEUE},   {"replicas", "\033[36m", SERIES_DESIRED},
        {"running", "\033[32m", SERIES_READY}, {"pending", "\033[31m", SERIES_PENDING},
        {"nodes", "\033[34m", SERIES_NODES},   {"$/h", "\033[35m", SERIES_PRICE},
    };
    if (c->s->samples.len == 0)
        return;
    const struct sample *last = &vec_last(&c->s->samples);
    unsigned width = MIN(c->columns, 120u) - 24;
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    if (c->up)
        buf_printf(&out, "\033[%dA", CHART_ROWS + 2);
    int64_t minutes = last->at / NS_PER_MIN;
    buf_printf(&out, "\r\033[K  day %lld  %02lld:%02lld\n", (long long)(minutes / 1440 + 1),
               (long long)(minutes / 60 % 24), (long long)(minutes % 60));
    for (size_t i = 0; i < CHART_ROWS; i++) {
        double now = value_of(last, rows[i].which);
        buf_printf(&out, "\033[K  %-9s%s", rows[i].name, c->colour ? rows[i].colour : "");
        draw_series(c, rows[i].which, width, &out);
        buf_printf(&out, "%s %*.*f\n", c->colour ? "\033[0m" : "", 9,
                   rows[i].which == SERIES_PRICE ? 2 : 0, now);
    }
    buf_cstr(&out, "\033[K           ");
    draw_progress(c, width, &out);
    buf_char(&out, '\n');
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    c->up = true;
}

static void show(struct chart *c)
{
    int64_t now = real_now();
    bool last = (int64_t)c->s->samples.len * STEP_SECONDS >= c->total_s;
    if (!last && now - c->drawn < REDRAW)
        return;
    c->drawn = now;
    draw(c);
}

/* In a pipe: a line an hour. */
static void print_hour(const struct simulation *s)
{
    const struct sample *x = &vec_last(&s->samples);
    if (x->at / NS_PER_S % 3600 != 0)
        return;
    if (x->at / NS_PER_S == 3600)
        printf("%5s %8s %8s %8s %8s %6s %9s %9s\n", "hour", "queue", "replicas", "running",
               "pending", "nodes", "$/h", "bound $/h");
    printf("%5lld %8.0f %8zu %8zu %8zu %6zu %9.2f %9.2f\n", (long long)(x->at / NS_PER_HOUR),
           x->queue, x->desired, x->ready, x->pending, x->nodes, (double)x->price_uusd_h / 1e6,
           (double)x->bound_uusd_h / 1e6);
}

/* ---- The bill ---- */

static void dollars(char out[32], int64_t uusd)
{
    int64_t cents = (uusd + (uusd < 0 ? -5000 : 5000)) / 10000;
    num_format_fixed(out, cents, 2);
}

static void print_bill(const struct bill *b)
{
    char spent[32], bound[32], always[32], saved[32], p50[40], p99[40];
    dollars(spent, b->spent_uusd);
    dollars(bound, b->bound_uusd);
    dollars(always, b->always_on_uusd);
    dollars(saved, b->always_on_uusd - b->spent_uusd);
    printf("\n  The bill for %.0f hours\n", b->hours);
    printf("    spent                                   %12s $\n", spent);
    if (b->bound_uusd > 0)
        printf("    no fleet for these pods costs less than %12s $   spent is %.2f times that\n",
               bound, (double)b->spent_uusd / (double)b->bound_uusd);
    printf("    the peak fleet, always on               %12s $   saved %s $, %.0f %%\n", always,
           saved,
           b->always_on_uusd > 0
               ? 100.0 * (double)(b->always_on_uusd - b->spent_uusd) / (double)b->always_on_uusd
               : 0.0);
    if (b->signal_p50 >= 0)
        printf("    from signal to running pod              p50 %s, p99 %s, of %zu pods\n",
               time_format_duration(p50, b->signal_p50 / NS_PER_S * NS_PER_S).p,
               time_format_duration(p99, b->signal_p99 / NS_PER_S * NS_PER_S).p, b->pods_started);
    printf("    %zu machines launched, %zu ended, %zu of these taken by the cloud; %llu pods "
           "evicted\n",
           b->launches, b->ended, b->interruptions, (unsigned long long)b->evictions);
}

static void print_json(const struct bill *b, int64_t seed)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    struct json_writer w;
    char text[32];
    json_writer_init(&w, &out, 2);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "weft.sh/v1alpha1");
    json_w_kcstr(&w, "kind", "Bill");
    json_w_ki64(&w, "seed", seed);
    json_w_ki64(&w, "hours", (int64_t)b->hours);
    json_w_kstr(&w, "spentUsd", num_format_fixed(text, b->spent_uusd, 6));
    if (b->bound_uusd >= 0)
        json_w_kstr(&w, "lowerBoundUsd", num_format_fixed(text, b->bound_uusd, 6));
    json_w_kstr(&w, "alwaysOnUsd", num_format_fixed(text, b->always_on_uusd, 6));
    json_w_ki64(&w, "signalToRunningP50Ms", b->signal_p50 < 0 ? -1 : b->signal_p50 / NS_PER_MS);
    json_w_ki64(&w, "signalToRunningP99Ms", b->signal_p99 < 0 ? -1 : b->signal_p99 / NS_PER_MS);
    json_w_ki64(&w, "podsStarted", (int64_t)b->pods_started);
    json_w_ki64(&w, "launches", (int64_t)b->launches);
    json_w_ki64(&w, "terminations", (int64_t)b->ended);
    json_w_ki64(&w, "interruptions", (int64_t)b->interruptions);
    json_w_ki64(&w, "evictions", (int64_t)b->evictions);
    json_w_object_end(&w);
    printf("%s\n", out.data);
}

/* ---- The command ---- */

static void print_decision(void *arg, struct str line)
{
    (void)arg;
    fprintf(stderr, "%.*s\n", STR_ARG(line));
}

static void drop_line(void *arg, struct str line)
{
    (void)arg;
    (void)line;
}

static int apply_text(void *arg, const char *name, struct str text, struct err *err)
{
    struct simulation *s = arg;
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct yml_documents documents;
    if (yml_parse(&a, text, NULL, &documents, err) < 0)
        return err_prefix(err, "%s", name);
    for (size_t i = 0; i < documents.n; i++)
        if (!sim_apply(s->world.sim, documents.v[i], err))
            return err_prefix(err, "%s, document %zu", name, i + 1);
    return 0;
}

static void run_all(struct simulation *s, const struct simulate_options *o)
{
    bool json = strcmp(o->output, "json") == 0, terminal = cmd_is_terminal(STDOUT_FILENO) && !json;
    struct chart chart = {.s = s,
                          .total_s = o->hours * 3600,
                          .columns = cmd_columns(STDOUT_FILENO),
                          .colour = cmd_use_colour(STDOUT_FILENO)};
    for (int64_t at = 0; at < chart.total_s; at += STEP_SECONDS) {
        simulation_run(s, STEP_SECONDS);
        if (terminal)
            show(&chart);
        else if (!json)
            print_hour(s);
    }
}

static int simulate_run(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct simulate_options o = {0};
    struct schema_args args = {0};
    struct err err = ERR_INIT;
    int code = cmd_options(&command_simulate, argc, argv, &a, &o, &args);
    if (code >= 0)
        return code;
    static struct simulation s;
    struct catalog *catalog = manifests_catalog(o.catalog, &err);
    if (!catalog)
        return cmd_fail(&command_simulate, EXIT_WRONG, "%s", err.msg);
    log_capture(drop_line, NULL); /* the chart and the bill are what is asked for */
    simulation_init(&s, (uint64_t)o.seed, (uint32_t)o.faults, catalog);
    catalog_unref(catalog);
    s.decision = o.decisions ? print_decision : NULL;
    if (args.n == 0)
        simulation_inference_fleet(&s);
    code = EXIT_DONE;
    for (size_t i = 0; i < args.n && code == EXIT_DONE; i++)
        if (manifests_each(args.v[i], apply_text, &s, &err) < 0)
            code = cmd_fail(&command_simulate, EXIT_WRONG, "%s", err.msg);
    if (code == EXIT_DONE) {
        struct bill bill;
        simulation_start(&s);
        run_all(&s, &o);
        simulation_bill(&s, &bill);
        if (strcmp(o.output, "json") == 0)
            print_json(&bill, o.seed);
        else
            print_bill(&bill);
    }
    simulation_release(&s);
    log_capture(NULL, NULL);
    return code;
}

const struct command command_simulate = {
    .name = "simulate",
    .arguments = "[PATH…] [options]",
    .summary = "the whole controller in virtual time, with a chart and a bill",
    .about = "Without a path: a day of a GPU inference fleet, whose services are scaled from "
             "queues. With paths:\n"
             "the manifests found there are applied to an empty simulated cluster at the start.",
    .options = simulate_table,
    .run = simulate_run,
};
