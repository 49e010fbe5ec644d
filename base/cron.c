/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Schedules: parsing, and the search for the next and last instant. */

#include "base/cron.h"

#include "base/num.h"
#include "base/time.h"

#define SEARCH_DAYS (5 * 366)
#define SEARCH_END                                                                                 \
    (INT64_MAX - (SEARCH_DAYS + 4) * NS_PER_DAY) /* instants that can be searched from */

struct cron_field {
    const char *name;
    int min, max;
    const char *names; /* three letters each, from `min` on; NULL: none */
};

static const struct cron_field fields[] = {
    {"minute", 0, 59, NULL},
    {"hour", 0, 23, NULL},
    {"day of month", 1, 31, NULL},
    {"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
    {"day of week", 0, 7, "SUNMONTUEWEDTHUFRISAT"},
};

static int bad_field(const struct cron_field *f, struct str text, struct err *err)
{
    return err_set(err, ERR_INVALID, "'%.*s' is no %s (%d to %d)", STR_ARG(str_sub(text, 0, 20)),
                   f->name, f->min, f->max);
}

static int parse_value(const struct cron_field *f, struct str text, int *ret, struct err *err)
{
    for (size_t i = 0; f->names && i < strlen(f->names); i += 3) {
        if (str_eq_nocase(text, (struct str){f->names + i, 3})) {
            *ret = f->min + (int)(i / 3);
            return 0;
        }
    }
    int64_t v;
    if (text.len == 0 || text.p[0] == '+' || num_parse_range(text, f->min, f->max, &v, NULL) < 0)
        return bad_field(f, text, err);
    *ret = (int)v;
    return 0;
}

/* "*", "5", "1-5", each with "/2"; "5/2" runs to the end of the field. */
static int parse_part(const struct cron_field *f, struct str text, uint64_t *bits, bool *ret_star,
                      struct err *err)
{
    size_t slash = str_find_char(text, '/', 0);
    struct str range = str_sub(text, 0, slash);
    int64_t step = 1;
    if (slash != SIZE_MAX &&
        num_parse_range(str_sub(text, slash + 1, text.len), 1, f->max, &step, NULL) < 0)
        return err_set(err, ERR_INVALID, "'%.*s' is no step of a %s", STR_ARG(str_sub(text, 0, 20)),
                       f->name);
    int last = f->max == 7 ? 6 : f->max; /* 7 is only another name of Sunday */
    int from = f->min, to = last;
    size_t dash = str_find_char(range, '-', 0);
    bool star = str_eq_c(range, "*") || str_eq_c(range, "?");
    if (star) {
        *ret_star |= step == 1;
    } else if (dash != SIZE_MAX) {
        if (parse_value(f, str_sub(range, 0, dash), &from, err) < 0 ||
            parse_value(f, str_sub(range, dash + 1, range.len), &to, err) < 0)
            return -1;
        if (from > to)
            return err_set(err, ERR_INVALID, "'%.*s' runs backwards",
                           STR_ARG(str_sub(range, 0, 20)));
    } else {
        if (parse_value(f, range, &from, err) < 0)
            return -1;
        to = slash == SIZE_MAX ? from : MAX(from, last);
    }
    for (int v = from; v <= to; v += (int)step)
        *bits |= UINT64_C(1) << v;
    return 0;
}

static int parse_field(const struct cron_field *f, struct str text, uint64_t *bits, bool *ret_star,
                       struct err *err)
{
    *bits = 0;
    *ret_star = false;
    size_t parts = 1;
    for (size_t i = 0; i < text.len; i++)
        parts += text.p[i] == ',';
    struct str part;
    size_t n = 0;
    while (str_split(&text, ',', &part)) {
        n++;
        if (parse_part(f, part, bits, ret_star, err) < 0)
            return -1;
    }
    return n == parts ? 0 : bad_field(f, STR(","), err);
}

static bool next_word(struct str *rest, struct str *ret)
{
    *rest = str_trim(*rest);
    if (rest->len == 0)
        return false;
    size_t n = 0;
    while (n < rest->len && rest->p[n] != ' ' && rest->p[n] != '\t')
        n++;
    *ret = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->len);
    return true;
}

int cron_parse(struct str s, struct cron *ret, struct err *err)
{
    static const struct {
        const char *name, *text;
    } macros[] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    s = str_trim(s);
    for (size_t i = 0; i < ARRAY_LEN(macros); i++)
        if (str_eq_c(s, macros[i].name))
            s = str_from(macros[i].text);
    uint64_t bits[ARRAY_LEN(fields)];
    bool stars[ARRAY_LEN(fields)];
    struct str rest = s, word;
    size_t n = 0;
    for (; next_word(&rest, &word); n++) {
        if (n == ARRAY_LEN(fields))
            return err_set(err, ERR_INVALID, "a schedule has five fields, '%.*s' has more",
                           STR_ARG(str_sub(s, 0, 60)));
        if (parse_field(&fields[n], word, &bits[n], &stars[n], err) < 0)
            return -1;
    }
    if (n < ARRAY_LEN(fields))
        return err_set(err, ERR_INVALID, "a schedule has five fields, '%.*s' has %zu",
                       STR_ARG(str_sub(s, 0, 60)), n);
    if (bits[4] & (1u << 7)) /* Sunday is 0 and 7 */
        bits[4] = (bits[4] | 1) & 0x7f;
    *ret = (struct cron){
        .minutes = bits[0],
        .hours = (uint32_t)bits[1],
        .days = (uint32_t)bits[2],
        .months = (uint32_t)bits[3],
        .weekdays = (uint32_t)bits[4],
        .days_star = stars[2],
        .weekdays_star = stars[4],
    };
    return 0;
}

static bool day_matches(const struct cron *c, const struct time_civil *d)
{
    if (!(c->months >> d->month & 1))
        return false;
    bool day = c->days >> d->day & 1, weekday = c->weekdays >> d->weekday & 1;
    if (c->days_star || c->weekdays_star)
        return day && weekday;
    return day || weekday;
}

/* The instant of a local time; one that comes twice gives its first. `*ret_exists` is false for a
 * local time that a shift skips. */
static int64_t instant_of_local(const struct zone *z, int64_t local, bool *ret_exists)
{
    /* Both offsets that are in force within a day around it; the earlier instant first. */
    int64_t before = zone_offset(z, local - NS_PER_DAY) * NS_PER_S,
            after = zone_offset(z, local + NS_PER_DAY) * NS_PER_S;
    int64_t first = local - MAX(before, after), second = local - MIN(before, after);
    *ret_exists = true;
    if (first + zone_offset(z, first) * NS_PER_S == local)
        return first;
    if (second + zone_offset(z, second) * NS_PER_S == local)
        return second;
    *ret_exists = false;
    return second;
}

/* A local time taken apart: the midnight it follows, in nanoseconds, and the minute of that day. */
struct local {
    int64_t day;
    int minute;
};

static struct local local_at(int64_t local)
{
    int64_t day = local / NS_PER_DAY - (local % NS_PER_DAY < 0);
    int64_t midnight = day * NS_PER_DAY;
    return (struct local){midnight, (int)((local - midnight) / NS_PER_MIN)};
}

static bool minute_matches(const struct cron *c, int minute)
{
    return (c->hours >> (minute / 60) & 1) && (c->minutes >> (minute % 60) & 1);
}

/* First occurrences follow one another in the order of their local times, so both searches walk
 * through local minutes and stop at the first hit. Local midnights are stepped through as if they
 * were UTC days. */

int64_t cron_next(const struct cron *c, const struct zone *z, int64_t t)
{
    if (t > SEARCH_END)
        return TIME_NEVER;
    t = MAX(t, -SEARCH_END);
    struct local l = local_at(t + zone_offset(z, t) * NS_PER_S);
    for (int i = 0; i <= SEARCH_DAYS; i++, l = (struct local){l.day + NS_PER_DAY, 0}) {
        struct time_civil d;
        time_to_civil(l.day, &d);
        for (; day_matches(c, &d) && l.minute < 24 * 60; l.minute++) {
            bool exists;
            if (!minute_matches(c, l.minute))
                continue;
            int64_t at = instant_of_local(z, l.day + l.minute * NS_PER_MIN, &exists);
            if (exists && at > t)
                return at;
        }
    }
    return TIME_NEVER;
}

int64_t cron_prev(const struct cron *c, const struct zone *z, int64_t t)
{
    if (t < -SEARCH_END)
        return INT64_MIN;
    t = MIN(t, SEARCH_END);
    /* Shortly after clocks went back, later local times have been already. */
    int32_t offset = MAX(zone_offset(z, t), zone_offset(z, t - NS_PER_DAY));
    struct local l = local_at(t + offset * NS_PER_S);
    for (int i = 0; i <= SEARCH_DAYS; i++, l = (struct local){l.day - NS_PER_DAY, 24 * 60 - 1}) {
        struct time_civil d;
        time_to_civil(l.day, &d);
        for (; day_matches(c, &d) && l.minute >= 0; l.minute--) {
            bool exists;
            if (!minute_matches(c, l.minute))
                continue;
            int64_t at = instant_of_local(z, l.day + l.minute * NS_PER_MIN, &exists);
            if (exists && at <= t)
                return at;
        }
    }
    return INT64_MIN;
}
