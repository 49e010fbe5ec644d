/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The cron trigger under virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "scalers/scaler.h"

static struct scaler *open_cron(struct scaler_host *h, unsigned index, const char *zone,
                                const char *start, const char *end, const char *desired,
                                struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *parameters = json_new_object(&a);
    const char *pairs[] = {"timezone", zone, "start",           start,
                           "end",      end,  "desiredReplicas", desired};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i += 2)
        if (pairs[i + 1])
            json_object_set(&a, parameters, str_from(pairs[i]),
                            json_new_string(&a, str_from(pairs[i + 1])));
    struct scaler *s = scaler_open(h, scaler_type_find("cron"), index, parameters, err);
    arena_release(&a);
    return s;
}

struct answer {
    int calls;
    int64_t value;
    char metric[160];
};

static void done(void *arg, const struct scaler_value *values, size_t n, const struct err *err)
{
    struct answer *a = arg;
    assert_null(err);
    assert_int_equal(n, 1);
    assert_int_equal(values->target, 1000);
    a->calls++;
    a->value = values->value / 1000;
    snprintf(a->metric, sizeof(a->metric), "%s", values->metric);
}

/* What the trigger says at an instant, as a fresh process at that time would. */
static int64_t value_at(const char *zone, const char *start, const char *end, const char *at)
{
    int64_t wall;
    struct err err = ERR_INIT;
    assert_int_equal(time_parse_rfc3339(str_from(at), &wall, &err), 0);
    struct scaler_host h = {.loop = loop_new_virtual(wall)};
    struct scaler *s = open_cron(&h, 0, zone, start, end, "3", &err);
    if (!s)
        fail_msg("%s", err.msg);
    struct answer a = {0};
    scaler_poll(s, done, &a);
    assert_int_equal(a.calls, 0);
    loop_run(h.loop);
    assert_int_equal(a.calls, 1);
    scaler_close(s);
    scaler_host_release(&h);
    loop_free(h.loop);
    return a.value;
}

static void test_names_as_keda(void **state)
{
    (void)state;
    static const struct {
        unsigned index;
        const char *zone, *start, *end, *name;
    } rows[] = {
        {0, "Etc/UTC", "0 0 * * Thu", "59 23 * * Thu", "s0-cron-Etc-UTC-00xxThu-5923xxThu"},
        {1, "Etc/UTC", "0 */2 * * *", "0 1-23/2 * * *", "s1-cron-Etc-UTC-0xSl2xxx-01-23Sl2xxx"},
        {2, "Etc/UTC", "0,30 * * * *", "15,45 * * * *", "s2-cron-Etc-UTC-0Cm30xxxx-15Cm45xxxx"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        struct scaler_host h = {.loop = loop_new_virtual(NS_PER_DAY)};
        struct scaler *s =
            open_cron(&h, rows[i].index, rows[i].zone, rows[i].start, rows[i].end, "1", &err);
        assert_non_null(s);
        struct answer a = {0};
        scaler_poll(s, done, &a);
        loop_run(h.loop);
        assert_string_equal(a.metric, rows[i].name);
        scaler_close(s);
        scaler_host_release(&h);
        loop_free(h.loop);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const rows[][4] = {
        {"Etc/UTC", "-30 * * * *", "0 1 * * *", "1"},
        {"Etc/UTC", "50 * * -3 *", "0 1 * * *", "1"},
        {"Etc/UTC", "0 1 * * *", "0 1 * * *", "1"},
        {NULL, "0 1 * * *", "0 2 * * *", "1"},
        {"Mars/Base", "0 1 * * *", "0 2 * * *", "1"},
        {"Etc/UTC", "0 1 * * *", "0 2 * * *", "0"},
        {"Etc/UTC", NULL, "0 2 * * *", "1"},
        {"../../etc/passwd", "0 1 * * *", "0 2 * * *", "1"},
    };
    struct scaler_host h = {.loop = loop_new_virtual(0)};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        if (open_cron(&h, 0, rows[i][0], rows[i][1], rows[i][2], rows[i][3], &err))
            fail_msg("row %zu was taken", i);
        assert_true(err.msg[0]);
    }
    scaler_host_release(&h);
    loop_free(h.loop);
}

/* Starts on weekdays, ends every day: open exactly when the latest start lies after the latest end.
 */
static void test_weekday_window(void **state)
{
    (void)state;
    static const struct {
        const char *at; /* Prague is UTC+2 in June */
        int64_t value;
    } rows[] = {
        {"2026-06-05T06:29:00+02:00", 0}, {"2026-06-05T06:31:00+02:00", 3},
        {"2026-06-05T22:05:00+02:00", 3}, {"2026-06-05T22:10:00+02:00", 0},
        {"2026-06-06T12:00:00+02:00", 0}, {"2026-06-07T12:00:00+02:00", 0},
        {"2026-06-07T22:15:00+02:00", 0}, {"2026-06-08T06:29:00+02:00", 0},
        {"2026-06-08T06:31:00+02:00", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = value_at("Europe/Prague", "30 6 * * 1-5", "10 22 * * *", rows[i].at);
        if (v != rows[i].value)
            fail_msg("%s: %lld", rows[i].at, (long long)v);
    }
}

/* The window follows the zone's clock over both shifts of the year. */
static void test_daylight_shifts(void **state)
{
    (void)state;
    /* Last Sunday of March 2026 is the 29th: 8:00 is 07:00Z on Saturday, 06:00Z on Sunday. */
    assert_int_equal(value_at("Europe/Prague", "0 8 * * *", "0 20 * * *", "2026-03-28T06:30:00Z"),
                     0);
    assert_int_equal(value_at("Europe/Prague", "0 8 * * *", "0 20 * * *", "2026-03-29T06:30:00Z"),
                     3);
    /* Last Sunday of October is the 25th: back again. */
    assert_int_equal(value_at("Europe/Prague", "0 8 * * *", "0 20 * * *", "2026-10-24T06:30:00Z"),
                     3);
    assert_int_equal(value_at("Europe/Prague", "0 8 * * *", "0 20 * * *", "2026-10-25T06:30:00Z"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_as_keda),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_weekday_window),
        cmocka_unit_test(test_daylight_shifts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
