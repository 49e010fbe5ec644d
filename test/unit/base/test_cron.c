/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Schedules and zones: against the C library's zones and a scan of every minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cron.h"
#include "base/rng.h"
#include "base/time.h"

/* Whole and half hours, southern summers, summers that are negative, days that were skipped, clocks
 * that went back over midnight, Ramadan, rules that ended. */
static const char *const zones[] = {
    "Europe/Prague",     "America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
    "America/St_Johns",  "Asia/Kolkata",     "Africa/Casablanca",   "Europe/Dublin",
    "America/Sao_Paulo", "Asia/Tehran",      "Antarctica/Troll",    "America/Nuuk",
    "Pacific/Chatham",   "America/Havana",   "Asia/Tokyo",          "Africa/Cairo",
};

static void use_zone(const char *tz)
{
    setenv("TZ", tz, 1);
    tzset();
}

static int32_t library_offset(int64_t t_s)
{
    time_t t = (time_t)t_s;
    struct tm tm;
    localtime_r(&t, &tm);
    return (int32_t)tm.tm_gmtoff;
}

static struct zone *load(const char *name)
{
    struct err e = ERR_INIT;
    struct zone *z = zone_load(str_from(name), NULL, &e);
    if (!z)
        fail_msg("%s", e.msg);
    return z;
}

#define YEAR_S INT64_C(31556952)

/* ---- Zones ---- */

static void check_offset(const struct zone *z, const char *name, int64_t t_s)
{
    int32_t here = zone_offset(z, t_s * NS_PER_S), there = library_offset(t_s);
    if (here != there)
        fail_msg("%s at %" PRId64 ": %d, the library says %d", name, t_s, here, there);
}

static void test_offsets(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 1);
    for (size_t i = 0; i < ARRAY_LEN(zones); i++) {
        use_zone(zones[i]);
        struct zone *z = load(zones[i]);
        for (int k = 0; k < 5000; k++)
            check_offset(z, zones[i], rng_between(&r, -290 * YEAR_S, 289 * YEAR_S));
        /* To the second, around every change of a century and a half. */
        int32_t before = library_offset(-70 * YEAR_S);
        for (int64_t t = -70 * YEAR_S; t < 80 * YEAR_S; t += 6 * 3600) {
            int32_t after = library_offset(t);
            if (after == before)
                continue;
            before = after;
            int64_t lo = t - 6 * 3600, hi = t;
            while (hi - lo > 1) {
                int64_t mid = lo + (hi - lo) / 2;
                *(library_offset(mid) == after ? &hi : &lo) = mid;
            }
            for (int64_t d = -2; d <= 2; d++)
                check_offset(z, zones[i], hi + d);
            /* The last nanosecond before it still has the old offset. */
            assert_int_equal(zone_offset(z, hi * NS_PER_S - 1), library_offset(hi - 1));
        }
        zone_free(z);
    }
    assert_int_equal(zone_offset(NULL, 5), 0);
}

static void add_big_endian(struct buf *b, uint64_t v, unsigned bytes)
{
    while (bytes-- > 0)
        buf_char(b, (char)(bytes < 8 ? v >> (8 * bytes) : 0));
}

/* A file of version 2 with one type, no transitions and a footer. */
static void make_file(struct buf *b, int32_t offset, const char *footer)
{
    for (int block = 0; block < 2; block++) {
        buf_add(b, "TZif2", 5);
        add_big_endian(b, 0, 15);
        static const uint32_t counts[] = {0, 0, 0, 0, 1, 4};
        for (size_t i = 0; i < ARRAY_LEN(counts); i++)
            add_big_endian(b, counts[i], 4);
        add_big_endian(b, (uint32_t)offset, 4);
        add_big_endian(b, 0, 2);
        buf_add(b, "LMT", 4);
    }
    buf_printf(b, "\n%s\n", footer);
}

static void test_footers(void **state)
{
    (void)state;
    static const char *const footers[] = {
        "UTC0",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "AEST-10AEDT,M10.1.0,M4.1.0/3",
        "IST-1GMT0,M10.5.0,M3.5.0/1",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
        "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "XXX3YYY2:30:15,J60/4,J300/5:06:07",
        "XXX3YYY,59,299/24",
        "EET-2EEST,M3.4.4/50,M10.4.4/50",
        "AAA-14BBB-15,M1.2.1/0,M11.5.6/23:59:59",
    };
    struct rng r;
    rng_init(&r, 2);
    for (size_t i = 0; i < ARRAY_LEN(footers); i++) {
        CLEANUP(buf_release) struct buf file = BUF_INIT;
        struct err e = ERR_INIT;
        make_file(&file, 0, footers[i]);
        struct zone *z = zone_parse(buf_view(&file), &e);
        if (!z)
            fail_msg("%s: %s", footers[i], e.msg);
        use_zone(footers[i]);
        for (int k = 0; k < 10000; k++)
            check_offset(z, footers[i], rng_between(&r, 2 * YEAR_S, 289 * YEAR_S));
        zone_free(z);
    }
    static const char *const bad[] = {"X5",
                                      "EST",
                                      "EST5EDT",
                                      "EST5EDT,M3.2.0",
                                      "EST5EDT,M13.2.0,M11.1.0",
                                      "EST5EDT,M3.6.0,M11.1.0",
                                      "EST5EDT,M3.2.7,M11.1.0",
                                      "EST5EDT,J0,J5",
                                      "EST5EDT,366,1",
                                      "EST5EDT,M3.2.0,M11.1.0x",
                                      "<>5",
                                      "<+1",
                                      "EST168",
                                      "EST5EDT,M3.2.0/168,M11.1.0",
                                      "EST5:60"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP(buf_release) struct buf file = BUF_INIT;
        struct err e = ERR_INIT;
        make_file(&file, 0, bad[i]);
        if (zone_parse(buf_view(&file), &e))
            fail_msg("'%s' was taken", bad[i]);
        assert_string_equal(e.msg, "not a time zone file: an unreadable footer");
    }
}

/* A whole file cut short at any byte is refused, but for a cut within the last, optional part. */
static void test_cut_files(void **state)
{
    (void)state;
    CLEANUP(buf_release) struct buf whole = BUF_INIT;
    FILE *f = fopen("/usr/share/zoneinfo/Europe/Prague", "re");
    assert_non_null(f);
    char bytes[8192];
    buf_add(&whole, bytes, fread(bytes, 1, sizeof(bytes), f));
    fclose(f);
    struct zone *z = zone_parse(buf_view(&whole), NULL);
    assert_non_null(z);
    zone_free(z);
    size_t footer = str_find(buf_view(&whole), STR("\nCET-1CEST"), 0), taken = 0;
    for (size_t n = 0; n < whole.len; n++) {
        char *copy = xstr_dup(str_sub(buf_view(&whole), 0, n)); /* so that reading past it shows */
        char *exact = xmalloc(n ? n : 1);
        memcpy(exact, copy, n);
        z = zone_parse((struct str){exact, n}, NULL);
        assert_true(!z || (n >= footer && n <= footer + 1));
        taken += z != NULL;
        zone_free(z);
        free(copy);
        free(exact);
    }
    assert_true(taken <= 2);
    assert_null(zone_parse(STR("TZif"), NULL));
}

static void test_names(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "../passwd",
        "Europe/../../etc/passwd",
        "/etc/passwd",
        "Europe/",
        "Europe//Prague",
        ".",
        "..",
        "Europe/.",
        "a b",
        "Europe/Prague\n",
        "Europe",
        "Nowhere/City",
        "zone.tab",
        "Europe/Prague/x",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        if (zone_load(str_from(bad[i]), NULL, &e))
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(e.code, ERR_INVALID);
    }
    assert_null(zone_load((struct str){"UTC\0x", 5}, NULL, NULL));
    const char *const utc[] = {"", "UTC"};
    for (size_t i = 0; i < ARRAY_LEN(utc); i++) {
        struct zone *z = zone_load(str_from(utc[i]), "/nonexistent", NULL);
        assert_non_null(z);
        assert_int_equal(zone_offset(z, 12345 * NS_PER_S), 0);
        zone_free(z);
    }
}

/* ---- Parsing ---- */

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text, *same;
    } rows[] = {
        {"@hourly", "0 * * * *"},
        {"@weekly", "0 0 * * SUN"},
        {"  0  12\t* * mon-FRI ", "0 12 * * 1-5"},
        {"0 0 ? jan,DEC ?", "0 0 * 1,12 *"},
        {"*/15 * * * *", "0,15,30,45 * * * *"},
        {"5/20 1-10/3 * * *", "5,25,45 1,4,7,10 * * *"},
        {"0 0 * * 7", "0 0 * * 0"},
        {"0 0 * * 5-7", "0 0 * * 0,5,6"},
        {"0 0 * * 4/2", "0 0 * * 4,6"},
        {"0 0 * * 1/6", "0 0 * * 1"},
        {"@yearly", "0 0 1 1 *"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cron a, b;
        struct err e = ERR_INIT;
        if (cron_parse(str_from(rows[i].text), &a, &e) < 0 ||
            cron_parse(str_from(rows[i].same), &b, &e) < 0)
            fail_msg("%s: %s", rows[i].text, e.msg);
        assert_true(a.minutes == b.minutes && a.hours == b.hours && a.days == b.days);
        assert_true(a.months == b.months && a.weekdays == b.weekdays);
        assert_true(a.days_star == b.days_star && a.weekdays_star == b.weekdays_star);
    }
    static const char *const bad[] = {"",
                                      "*",
                                      "* * * *",
                                      "* * * * * *",
                                      "60 * * * *",
                                      "* 24 * * *",
                                      "* * 0 * *",
                                      "* * 32 * *",
                                      "* * * 0 *",
                                      "* * * 13 *",
                                      "* * * * 8",
                                      "-1 * * * *",
                                      "+1 * * * *",
                                      "1- * * * *",
                                      "5-1 * * * *",
                                      "*/0 * * * *",
                                      "*/-1 * * * *",
                                      "*/ * * * *",
                                      "1,,2 * * * *",
                                      ",1 * * * *",
                                      "1, * * * *",
                                      "a * * * *",
                                      "* * * JANUARY *",
                                      "* * * * MO",
                                      "@never",
                                      "@every 5m",
                                      "1-2-3 * * * *",
                                      "1/2/3 * * * *",
                                      "**  * * * *",
                                      "* * * MON *",
                                      "1 2 3 4 5\n6",
                                      "*/99 * * * *"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cron c = {.hours = 7};
        struct err e = ERR_INIT;
        if (cron_parse(str_from(bad[i]), &c, &e) == 0)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_int_equal(c.hours, 7);
    }
}

/* ---- Next and previous, against a scan of every minute ---- */

/* Six days of minutes. A minute fires if its fields match and no earlier one had its local time. */
enum { WINDOW = 6 * 24 * 60 };

struct minute {
    struct tm tm;
    bool first;
};

static struct minute window[WINDOW];

static void fill_window(int64_t from_s)
{
    int64_t most = INT64_MIN;
    for (int i = 0; i < WINDOW; i++) {
        time_t t = (time_t)(from_s + i * 60);
        localtime_r(&t, &window[i].tm);
        int64_t local = t + window[i].tm.tm_gmtoff;
        window[i].first = local > most;
        most = MAX(most, local);
    }
}

static bool fires(const struct cron *c, const struct minute *m)
{
    bool day = c->days >> m->tm.tm_mday & 1, weekday = c->weekdays >> m->tm.tm_wday & 1;
    bool date = c->days_star || c->weekdays_star ? day && weekday : day || weekday;
    return m->first && date && (c->minutes >> m->tm.tm_min & 1) &&
           (c->hours >> m->tm.tm_hour & 1) && (c->months >> (m->tm.tm_mon + 1) & 1);
}

static void random_schedule(struct rng *r, char text[64])
{
    static const char *const minutes[] = {"*", "0", "30", "*/7", "59", "1,31", "15-20"};
    static const char *const hours[] = {"*", "0", "2", "1-3", "23", "*/5", "3", "22-23"};
    static const char *const days[] = {"*", "*", "1", "*/2", "28-31", "15"};
    static const char *const weekdays[] = {"*", "*", "SUN", "1-5", "6", "*/3"};
    snprintf(text, 64, "%s %s %s * %s", minutes[rng_below(r, ARRAY_LEN(minutes))],
             hours[rng_below(r, ARRAY_LEN(hours))], days[rng_below(r, ARRAY_LEN(days))],
             weekdays[rng_below(r, ARRAY_LEN(weekdays))]);
}

static void check_window(const struct zone *z, const char *name, int64_t from_s, struct rng *r)
{
    char text[64];
    struct cron c;
    random_schedule(r, text);
    assert_int_equal(cron_parse(str_from(text), &c, NULL), 0);
    /* Two days before and after lie outside what is asked, for times that come twice. */
    int at = (int)rng_between(r, 2 * 24 * 60, 4 * 24 * 60);
    int64_t t = (from_s + at * 60) * NS_PER_S +
                (rng_chance(r, 500000) ? (int64_t)rng_below(r, NS_PER_MIN) : 0);
    int next = at + 1, prev = at;
    while (next < WINDOW && !fires(&c, &window[next]))
        next++;
    while (prev >= 24 * 60 && !fires(&c, &window[prev]))
        prev--;
    int64_t n = cron_next(&c, z, t), p = cron_prev(&c, z, t);
    char a[40], b[40];
    int64_t want = (from_s + next * 60) * NS_PER_S;
    if (next < WINDOW ? n != want : n < want)
        fail_msg("'%s' in %s after %s: %" PRId64 ", not %" PRId64 " (%s)", text, name,
                 time_format(a, t).p, n / NS_PER_S, want / NS_PER_S, time_format(b, want).p);
    want = (from_s + prev * 60) * NS_PER_S;
    if (prev >= 24 * 60 ? p != want : p > want)
        fail_msg("'%s' in %s before %s: %" PRId64 ", not %" PRId64 " (%s)", text, name,
                 time_format(a, t).p, p / NS_PER_S, want / NS_PER_S, time_format(b, want).p);
}

static void test_every_minute(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 3);
    for (size_t i = 0; i < ARRAY_LEN(zones); i++) {
        use_zone(zones[i]);
        struct zone *z = load(zones[i]);
        int64_t from = 12 * YEAR_S / 60 * 60, to = 100 * YEAR_S;
        int32_t before = library_offset(from);
        /* A quarter of the changes of the clocks since 1982, each in the middle of a window. */
        for (int64_t t = from; t < to; t += 24 * 3600) {
            int32_t after = library_offset(t);
            bool changed = after != before;
            before = after;
            if (!rng_chance(&r, changed ? 250000 : 300))
                continue;
            fill_window(t - 3 * 24 * 3600 - t % 60);
            for (int k = 0; k < 100; k++)
                check_window(z, zones[i], t - 3 * 24 * 3600 - t % 60, &r);
        }
        zone_free(z);
    }
}

static void test_far(void **state)
{
    (void)state;
    struct cron c;
    int64_t t;
    assert_int_equal(time_parse_rfc3339(STR("2026-03-01T00:00:00Z"), &t, NULL), 0);
    assert_int_equal(cron_parse(STR("30 6 29 2 *"), &c, NULL), 0);
    int64_t want;
    time_parse_rfc3339(STR("2028-02-29T06:30:00Z"), &want, NULL);
    assert_true(cron_next(&c, NULL, t) == want);
    time_parse_rfc3339(STR("2024-02-29T06:30:00Z"), &want, NULL);
    assert_true(cron_prev(&c, NULL, t) == want);
    assert_int_equal(cron_parse(STR("0 0 30 2 *"), &c, NULL), 0);
    assert_true(cron_next(&c, NULL, t) == TIME_NEVER);
    assert_true(cron_prev(&c, NULL, t) == INT64_MIN);
    assert_int_equal(cron_parse(STR("* * * * *"), &c, NULL), 0);
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        int64_t next = cron_next(&c, NULL, ends[i]), prev = cron_prev(&c, NULL, ends[i]);
        assert_true(next > ends[i] || next == TIME_NEVER);
        assert_true(prev <= ends[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),   cmocka_unit_test(test_footers),
        cmocka_unit_test(test_cut_files), cmocka_unit_test(test_names),
        cmocka_unit_test(test_parse),     cmocka_unit_test(test_every_minute),
        cmocka_unit_test(test_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
