/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Trigger `cron`: a wanted count inside a window of the clock, nothing outside.
 *
 * The window is open exactly when the latest start lies after the latest end. KEDA compares the
 * next two occurrences instead, which takes "start on weekdays, end every day" for open on a
 * Saturday (kedacore/keda#4677). The metric is named as KEDA names it. */
#include "base/cron.h"

#include "scalers/types.h"

struct cron_options {
    const char *timezone, *start, *end;
    int64_t desired;
};

static const struct option options[] = {
    {.kind = OPTION_KIND_STRING,
     .name = "timezone",
     .offset = offsetof(struct cron_options, timezone),
     .required = true,
     .help = "IANA name of the zone the schedules run in, such as Europe/Prague"},
    {.kind = OPTION_KIND_STRING,
     .name = "start",
     .offset = offsetof(struct cron_options, start),
     .required = true,
     .help = "five-field cron schedule that opens the window"},
    {.kind = OPTION_KIND_STRING,
     .name = "end",
     .offset = offsetof(struct cron_options, end),
     .required = true,
     .help = "five-field cron schedule that closes it"},
    {.kind = OPTION_KIND_INT,
     .name = "desiredReplicas",
     .offset = offsetof(struct cron_options, desired),
     .required = true,
     .min = 1,
     .max = INT32_MAX,
     .help = "replicas inside the window"},
    OPTION_END,
};

struct cron_scaler {
    struct scaler base;
    struct cron start, end;
    struct zone *zone;
    int64_t desired;
    const char *metric;
    struct loop_timer timer;
};

/* KEDA's spelling of a schedule in a metric name: no spaces, signs as letters. */
static void spell(struct buf *out, const char *text, bool zone)
{
    for (; *text; text++) {
        if (*text == '*')
            buf_char(out, 'x');
        else if (*text == '/')
            buf_cstr(out, zone ? "-" : "Sl");
        else if (*text == '?')
            buf_cstr(out, "Qm");
        else if (*text == ',')
            buf_cstr(out, "Cm");
        else if (*text != ' ')
            buf_char(out, *text);
    }
}

static int read_schedule(const char *parameter, const char *text, struct cron *ret, struct err *err)
{
    if (cron_parse(str_from(text), ret, err) < 0)
        return err_prefix(err, "%s", parameter);
    return 0;
}

static int cron_open(struct scaler *s, const struct json *parameters, struct err *err)
{
    struct cron_scaler *c = (struct cron_scaler *)(void *)s;
    struct cron_options o = {0};
    if (schema_defaults(options, &s->arena, &o, err) < 0 ||
        schema_read_json(options, parameters, &s->arena, &o, err) < 0)
        return -1;
    if (!strcmp(o.start, o.end))
        return err_set(err, ERR_INVALID, "start and end are the same schedule \"%s\"", o.start);
    if (read_schedule("start", o.start, &c->start, err) < 0 ||
        read_schedule("end", o.end, &c->end, err) < 0)
        return -1;
    c->zone = zone_load(str_from(o.timezone), NULL, err);
    if (!c->zone)
        return err_prefix(err, "timezone");
    c->desired = o.desired;
    struct buf name = {.cap = 1024};
    buf_cstr(&name, "cron-");
    spell(&name, o.timezone, true);
    buf_char(&name, '-');
    spell(&name, o.start, false);
    buf_char(&name, '-');
    spell(&name, o.end, false);
    c->metric = scaler_metric_name(s, buf_view(&name));
    buf_release(&name);
    return 0;
}

static bool is_open(const struct cron_scaler *c, int64_t wall)
{
    int64_t start = cron_prev(&c->start, c->zone, wall), end = cron_prev(&c->end, c->zone, wall);
    return start != INT64_MIN && start > end;
}

static void answer(void *arg)
{
    struct cron_scaler *c = arg;
    struct scaler_value v = {
        .metric = c->metric,
        .verdict = VERDICT_KNOWN,
        .value = is_open(c, loop_wall(c->base.host->loop)) ? scaler_milli(c->desired) : 0,
        .target = scaler_milli(1),
    };
    scaler_answer(&c->base, &v, 1, NULL);
}

static void cron_poll(struct scaler *s)
{
    struct cron_scaler *c = (struct cron_scaler *)(void *)s;
    loop_timer_in(s->host->loop, &c->timer, 0, answer, c);
}

static void cron_close(struct scaler *s)
{
    struct cron_scaler *c = (struct cron_scaler *)(void *)s;
    loop_timer_cancel(s->host->loop, &c->timer);
    zone_free(c->zone);
}

const struct scaler_type scaler_cron = {
    .name = "cron",
    .schema = options,
    .size = sizeof(struct cron_scaler),
    .open = cron_open,
    .poll = cron_poll,
    .close = cron_close,
};
