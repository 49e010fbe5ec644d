/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Budgets: percentages round up, the smallest active one counts, what cannot be read allows
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "provisioner/disrupt/budget.h"

static int64_t at(const char *text)
{
    int64_t t = 0;

    assert_int_equal(time_parse_rfc3339(str_from(text), &t, NULL), 0);
    return t;
}

static void nodes_of_a_budget(void **state)
{
    static const struct {
        const char *nodes;
        int64_t of, expected;
    } rows[] = {
        {"10%", 0, 0},  {"10%", 1, 1},    {"10%", 10, 1},  {"10%", 11, 2}, {"0%", 50, 0},
        {"100%", 7, 7}, {"33%", 100, 33}, {"34%", 3, 2},   {"0", 9, 0},    {"5", 3, 5},
        {"5", 100, 5},  {"-1", 10, 0},    {"101%", 10, 0}, {"x", 10, 0},   {"", 10, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct disruption_budget b = {.nodes = rows[i].nodes};

        assert_int_equal(budget_nodes(&b, rows[i].of), rows[i].expected);
    }
}

static void windows_open_and_close_in_utc(void **state)
{
    static const struct {
        const char *schedule, *now;
        int64_t duration;
        bool active, broken;
    } rows[] = {
        {NULL, "2026-01-05T00:00:00Z", 0, true, false},
        {"0 9 * * 1-5", "2026-01-05T08:59:59Z", 8 * NS_PER_HOUR, false, false},
        {"0 9 * * 1-5", "2026-01-05T09:00:00Z", 8 * NS_PER_HOUR, true, false},
        {"0 9 * * 1-5", "2026-01-05T16:59:59Z", 8 * NS_PER_HOUR, true, false},
        {"0 9 * * 1-5", "2026-01-05T17:00:00Z", 8 * NS_PER_HOUR, false, false},
        {"0 9 * * 1-5", "2026-01-10T10:00:00Z", 8 * NS_PER_HOUR, false, false}, /* a Saturday */
        {"@daily", "2026-01-10T00:05:00Z", 10 * NS_PER_MIN, true, false},
        {"@daily", "2026-01-10T00:10:00Z", 10 * NS_PER_MIN, false, false},
        {"nonsense", "2026-01-10T00:10:00Z", 10 * NS_PER_MIN, false, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct disruption_budget b = {
            .nodes = "1", .schedule = rows[i].schedule, .duration = rows[i].duration};
        bool broken;

        assert_int_equal(budget_active(&b, at(rows[i].now), &broken), rows[i].active);
        assert_int_equal(broken, rows[i].broken);
    }
}

static void the_smallest_that_applies_counts(void **state)
{
    const struct disruption_budget v[] = {
        {.nodes = "50%", .reasons = DISRUPT_ALL},
        {.nodes = "3", .reasons = DISRUPT_EMPTY},
        {.nodes = "0", .reasons = DISRUPT_DRIFTED},
        {.nodes = "1", .reasons = DISRUPT_ALL, .schedule = "0 22 * * *", .duration = NS_PER_HOUR},
    };
    struct nodepool p = {.budgets = v, .n_budgets = ARRAY_LEN(v)};
    struct budget_count n = {.nodes = 20};
    int64_t day = at("2026-03-01T12:00:00Z"), night = at("2026-03-01T22:30:00Z");

    (void)state;
    assert_int_equal(budget_allowed(&p, DISRUPT_UNDERUTILIZED, &n, day), 10);
    assert_int_equal(budget_allowed(&p, DISRUPT_EMPTY, &n, day), 3);
    assert_int_equal(budget_allowed(&p, DISRUPT_DRIFTED, &n, day), 0);
    assert_int_equal(budget_allowed(&p, DISRUPT_EMPTY, &n, night), 1);
    n.disrupting = 2;
    assert_int_equal(budget_allowed(&p, DISRUPT_EMPTY, &n, day), 1);
    assert_int_equal(budget_allowed(&p, DISRUPT_EMPTY, &n, night), 0);
    n.disrupting = 15;
    assert_int_equal(budget_allowed(&p, DISRUPT_UNDERUTILIZED, &n, day), 0);
}

static void a_broken_schedule_allows_nothing(void **state)
{
    const struct disruption_budget v[] = {
        {.nodes = "50%", .reasons = DISRUPT_ALL},
        {.nodes = "50%", .reasons = DISRUPT_ALL, .schedule = "61 * * * *"}};
    struct nodepool p = {.budgets = v, .n_budgets = ARRAY_LEN(v)};
    struct budget_count n = {.nodes = 20};

    (void)state;
    assert_int_equal(budget_allowed(&p, DISRUPT_EMPTY, &n, at("2026-03-01T12:00:00Z")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_a_budget),
        cmocka_unit_test(windows_open_and_close_in_utc),
        cmocka_unit_test(the_smallest_that_applies_counts),
        cmocka_unit_test(a_broken_schedule_allows_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
