/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The replica decision against the tables that the HPA and KEDA are known by, and against the laws
 * that must hold for every input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/time.h"
#include "scalers/decide.h"

#define T0 (1000000 * NS_PER_S)

static struct decide_config config(int64_t min, int64_t max)
{
    struct decide_config c;
    decide_config_init(&c);
    c.min = min;
    c.max = max;
    return c;
}

static struct decide_sample known(const char *name, int64_t value, int64_t target)
{
    return (struct decide_sample){
        .name = name, .verdict = VERDICT_KNOWN, .value = value * 1000, .target = target * 1000};
}

static struct decide_sample failed(const char *name, int64_t target, int64_t failures)
{
    return (struct decide_sample){.name = name, .target = target * 1000, .failures = failures};
}

/* One tick with all pods ready; the write is performed at once. */
static struct decide_output tick(const struct decide_config *c, struct decide_state *s, int64_t at,
                                 int64_t *replicas, const struct decide_sample *samples, size_t n)
{
    struct decide_input in = {T0 + at * NS_PER_S, *replicas, *replicas, *replicas, samples, n};
    struct decide_output out;
    decide(c, s, &in, &out);
    decide_scaled(c, s, in.now, *replicas, out.replicas);
    *replicas = out.replicas;
    return out;
}

/* ---- One sample ---- */

static void test_proposals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum decide_metric metric;
        int64_t count, usage, target, ready, out;
    } rows[] = {
        {"external avg up", DECIDE_AVERAGE_VALUE, 3, 8600, 2150, 3, 4},
        {"external avg down", DECIDE_AVERAGE_VALUE, 5, 8600, 2867, 5, 3},
        {"external avg tolerance", DECIDE_AVERAGE_VALUE, 3, 8600, 2900, 3, 3},
        {"external value up, 1 of 3 ready", DECIDE_VALUE, 3, 8600, 4400, 1, 2},
        {"external value down", DECIDE_VALUE, 5, 8600, 14334, 5, 3},
        {"external value tolerance", DECIDE_VALUE, 3, 8600, 8888, 3, 3},
        {"object value up", DECIDE_VALUE, 3, 20000, 15000, 3, 4},
        {"object value, 1 ready of 3", DECIDE_VALUE, 3, 50000, 10000, 1, 5},
        {"object per pod up", DECIDE_AVERAGE_VALUE, 3, 20000, 5000, 3, 4},
        {"object per pod down", DECIDE_AVERAGE_VALUE, 5, 6000, 2000, 5, 3},
        {"object per pod tolerance", DECIDE_AVERAGE_VALUE, 4, 20166, 5000, 4, 4},
        {"value from zero", DECIDE_VALUE, 0, 25000, 10000, 0, 3},
        {"overflow", DECIDE_AVERAGE_VALUE, 3, INT64_MAX, 1, 3, INT32_MAX},
    };
    struct decide_config c = config(0, 100);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decide_sample s = {.metric = rows[i].metric,
                                  .verdict = VERDICT_KNOWN,
                                  .value = rows[i].usage,
                                  .target = rows[i].target};
        int64_t got = decide_proposal(&c, &s, rows[i].count, rows[i].count, rows[i].ready);
        if (got != rows[i].out)
            fail_msg("%s: %lld, expected %lld", rows[i].name, (long long)got,
                     (long long)rows[i].out);
    }
}

static void test_unready_pods_do_not_turn_more_into_fewer(void **state)
{
    (void)state;
    struct decide_sample s = known("q", 8600, 4400);
    s.metric = DECIDE_VALUE;
    for (int compat = 0; compat < 2; compat++) {
        struct decide_config c = config(1, 100);
        c.compat_keda = compat;
        c.has_behavior = c.down.given = true;
        c.down.window = 0;
        struct decide_state st = {0};
        struct decide_input in = {T0, 3, 3, 1, &s, 1};
        struct decide_output out;
        decide(&c, &st, &in, &out);
        assert_int_equal(out.replicas, compat ? 2 : 3);
    }
}

static void test_fallback_value(void **state)
{
    (void)state;
    struct decide_config c = config(0, 100);
    c.has_fallback = true;
    c.fallback_threshold = 3;
    c.fallback_replicas = 5;
    struct decide_sample s = failed("q", 10, 4);
    int64_t v = -1;
    assert_true(decide_fallback_value(&c, &s, 2, 2, &v));
    assert_int_equal(v, 50000);
    s.metric = DECIDE_VALUE;
    assert_true(decide_fallback_value(&c, &s, 2, 2, &v));
    assert_int_equal(v, 25000);
    assert_false(decide_fallback_value(&c, &s, 2, 0, &v)); /* no ready pod */
    s.failures = 3;                                        /* strictly above the threshold */
    assert_false(decide_fallback_value(&c, &s, 2, 2, &v));
    s = failed("q", 10, 4);
    static const struct {
        enum decide_fallback_behavior behavior;
        int64_t current, value;
    } rows[] = {
        {FALLBACK_STATIC, 8, 50000},
        {FALLBACK_CURRENT, 8, 80000},
        {FALLBACK_CURRENT_IF_HIGHER, 8, 80000},
        {FALLBACK_CURRENT_IF_HIGHER, 2, 50000},
        {FALLBACK_CURRENT_IF_LOWER, 8, 50000},
        {FALLBACK_CURRENT_IF_LOWER, 2, 20000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        c.fallback_behavior = rows[i].behavior;
        assert_true(decide_fallback_value(&c, &s, rows[i].current, rows[i].current, &v));
        assert_int_equal(v, rows[i].value);
    }
}

static void test_fallback_wakes_from_zero(void **state)
{
    (void)state;
    struct decide_config c = config(0, 100);
    c.has_fallback = true;
    c.fallback_threshold = 2;
    c.fallback_replicas = 5;
    struct decide_state s = {0};
    int64_t n = 0;
    struct decide_sample q = failed("q", 10, 2);
    tick(&c, &s, 0, &n, &q, 1);
    assert_int_equal(n, 0);
    q.failures = 3;
    struct decide_output out = tick(&c, &s, 10, &n, &q, 1);
    assert_int_equal(n, 5);
    assert_true(out.active && out.fallback);
}

/* ---- Windows and limits ---- */

struct record_row {
    int64_t replicas, age_s;
};

static void test_plain_limits(void **state)
{
    (void)state;
    static const int64_t rows[][5] = {/* c, desired, min, max, out */
                                      {5, 7, 3, 8, 7},
                                      {3, 1, 2, 8, 2},
                                      {1, 0, 0, 10, 0},
                                      {20, 1000, 1, 10, 10},
                                      {3, 1000, 1, 2000, 6}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decide_config c = config(rows[i][2], rows[i][3]);
        struct decide_state s = {0};
        enum decide_reason reason;
        decide_record(&c, &s, T0 - 3600 * NS_PER_S,
                      0); /* an old record, so that the first is not c */
        int64_t got = decide_limit(&c, &s, T0, rows[i][0], rows[i][1], &reason);
        assert_int_equal(got, rows[i][4]);
    }
}

static void put_records(const struct decide_config *c, struct decide_state *s,
                        const struct record_row *rows)
{
    /* Oldest first, whatever the order of the table. */
    int64_t before = INT64_MAX;
    for (;;) {
        const struct record_row *oldest = NULL;
        for (const struct record_row *r = rows; r->replicas; r++)
            if (r->age_s < before && (!oldest || r->age_s > oldest->age_s))
                oldest = r;
        if (!oldest)
            return;
        before = oldest->age_s;
        decide_record(c, s, T0 - oldest->age_s * NS_PER_S, oldest->replicas);
    }
}

static void test_plain_window(void **state)
{
    (void)state;
    static const struct {
        struct record_row records[6];
        int64_t desired, out;
    } rows[] = {
        {{{0, 0}}, 5, 5},
        {{{4, 120}, {5, 60}}, 3, 5},
        {{{1, 120}, {2, 60}}, 3, 3},
        {{{10, 600}, {9, 540}}, 3, 3},
        {{{10, 600}, {4, 60}, {5, 120}, {9, 540}}, 3, 5},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decide_config c = config(1, 100);
        struct decide_state s = {0};
        enum decide_reason reason;
        put_records(&c, &s, rows[i].records);
        assert_int_equal(decide_limit(&c, &s, T0, 5, rows[i].desired, &reason), rows[i].out);
    }
}

static void test_behavior_window(void **state)
{
    (void)state;
    static const struct {
        struct record_row records[6];
        int64_t current, desired, up_s, down_s, out;
    } rows[] = {
        {{{0, 0}}, 100, 5, 0, 0, 5},
        {{{4, 120}, {5, 60}}, 100, 3, 0, 180, 5},
        {{{4, 120}, {5, 60}}, 1, 7, 300, 0, 4},
        {{{1, 120}, {2, 60}}, 100, 3, 300, 0, 3},
        {{{4, 120}, {5, 60}}, 1, 3, 0, 300, 3},
        {{{10, 600}, {9, 540}}, 100, 3, 0, 0, 3},
        {{{10, 600}, {9, 540}}, 1, 100, 0, 0, 100},
        {{{10, 600}, {4, 60}, {5, 120}, {9, 540}}, 100, 3, 0, 180, 5},
        {{{10, 6000}, {6, 60}, {5, 120}, {9, 180}}, 1, 100, 300, 0, 5},
        {{{2, 6000}, {3, 180}}, 2, 1, 300, 300, 2},
        {{{2, 6000}, {1, 180}}, 2, 3, 300, 300, 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decide_config c = config(0, 1000);
        c.has_behavior = true;
        c.up.policies[0].value = 100000; /* windows alone */
        c.up.window = rows[i].up_s * NS_PER_S;
        c.down.window = rows[i].down_s * NS_PER_S;
        struct decide_state s = {0};
        enum decide_reason reason;
        put_records(&c, &s, rows[i].records);
        int64_t got = decide_limit(&c, &s, T0, rows[i].current, rows[i].desired, &reason);
        if (got != rows[i].out)
            fail_msg("row %zu: %lld, expected %lld", i, (long long)got, (long long)rows[i].out);
    }
}

struct rate_row {
    int64_t current, desired, min, max;
    bool up;
    struct decide_policy policies[2]; /* none: the default */
    int64_t spread_s;                 /* of the events */
    int64_t ups[3], downs[3];
    int64_t out;
    int reason; /* -1: any */
};

#define PODS(n, period)                                                                            \
    {                                                                                              \
        false, n, period *NS_PER_S                                                                 \
    }
#define PERCENT(n, period)                                                                         \
    {                                                                                              \
        true, n, period *NS_PER_S                                                                  \
    }

static const struct rate_row rate_rows[] = {
    {10, 50, 1, 1000, true, {{0}}, 120, {0}, {0}, 20, DECIDE_UP_LIMIT},
    {3, 1000, 1, 2000, true, {PERCENT(1, 60)}, 120, {0}, {0}, 4, DECIDE_UP_LIMIT},
    {100, 1000, 100, 150, true, {{0}}, 120, {0}, {0}, 150, DECIDE_TOO_MANY},
    {1000, 3, 3, 2000, false, {PODS(20, 60)}, 120, {0}, {0}, 980, DECIDE_DOWN_LIMIT},
    {10, 500, 1, 1000, true, {PODS(100, 60), PERCENT(100, 60)}, 120, {0}, {0}, 110, -1},
    {10, 500, 1, 1000, true, {PODS(2, 60), PERCENT(100, 60)}, 120, {0}, {0}, 20, -1},
    {10, 50, 1, 1000, true, {PODS(100, 60)}, 120, {0}, {0}, 50, DECIDE_WITHIN_RANGE},
    {10, 50, 1, 1000, true, {PODS(30, 60)}, 120, {0}, {0}, 40, -1},
    {10, 50, 1, 1000, true, {PERCENT(200, 60)}, 120, {0}, {0}, 30, -1},
    {100, 2, 1, 1000, false, {PODS(20, 60), PERCENT(1, 60)}, 120, {0}, {0}, 80, -1},
    {100, 2, 1, 1000, false, {PODS(2, 60), PERCENT(1, 60)}, 120, {0}, {0}, 98, -1},
    {10, 0, 1, 1000, false, {PODS(100, 60)}, 120, {0}, {0}, 1, DECIDE_TOO_FEW},
    {10, 2, 5, 1000, false, {PERCENT(100, 60)}, 120, {0}, {0}, 5, DECIDE_TOO_FEW},
    {10, 2, 1, 1000, false, {PODS(5, 60)}, 120, {0}, {0}, 5, DECIDE_DOWN_LIMIT},
    {10, 5, 1, 1000, false, {PERCENT(50, 60)}, 120, {0}, {0}, 5, DECIDE_WITHIN_RANGE},
    {100, 500, 1, 200, true, {PODS(300, 60)}, 60, {1, 5, 9}, {0}, 200, DECIDE_TOO_MANY},
    {100, 500, 1, 1000, true, {PODS(5, 120)}, 120, {1, 5, 9}, {0}, 100, DECIDE_UP_LIMIT},
    {100, 500, 1, 1000, true, {PODS(150, 120)}, 120, {1, 5, 9}, {0}, 235, -1},
    {100, 500, 1, 1000, true, {PERCENT(200, 120)}, 120, {1, 5, 9}, {0}, 255, -1},
    {6, 24, 1, 1000, true, {PERCENT(300, 300)}, 120, {4}, {2}, 16, -1},
    {100, 2, 1, 1000, false, {PODS(5, 120)}, 120, {0}, {1, 5, 9}, 100, -1},
    {100, 0, 1, 1000, false, {PERCENT(50, 120)}, 120, {0}, {2, 4, 6}, 56, -1},
    {10, 1, 1, 1000, false, {PERCENT(50, 180)}, 120, {2}, {4}, 6, -1},
    {100, 0, 1, 1000, false, {PERCENT(10, 120)}, 120, {0}, {10, 10, 10}, 100, -1},
    {10, 5, 1, 1000, false, {PERCENT(1000, 120)}, 120, {0}, {10, 10, 10}, 5, -1},
};

static unsigned spread(struct decide_event *v, const int64_t *deltas, int64_t seconds)
{
    unsigned n = 0, total = 0;
    while (total < 3 && deltas[total])
        total++;
    for (; n < total; n++) /* all younger than the spread */
        v[n] = (struct decide_event){
            T0 - (seconds - 1 - (int64_t)n * seconds / (int64_t)total) * NS_PER_S, deltas[n]};
    return n;
}

static void test_rates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rate_rows) / sizeof(rate_rows[0]); i++) {
        const struct rate_row *row = &rate_rows[i];
        struct decide_config c = config(row->min, row->max);
        c.has_behavior = true;
        c.down.window = 0;
        struct decide_rules *rules = row->up ? &c.up : &c.down;
        if (row->policies[0].value) {
            rules->n_policies = 0;
            for (unsigned k = 0; k < 2 && row->policies[k].value; k++)
                rules->policies[rules->n_policies++] = row->policies[k];
        }
        struct decide_state s = {0};
        s.n_ups = spread(s.ups, row->ups, row->spread_s);
        s.n_downs = spread(s.downs, row->downs, row->spread_s);
        enum decide_reason reason;
        int64_t got = decide_limit(&c, &s, T0, row->current, row->desired, &reason);
        if (got != row->out || (row->reason >= 0 && reason != (enum decide_reason)row->reason))
            fail_msg("row %zu (%lld to %lld): %lld %s, expected %lld", i, (long long)row->current,
                     (long long)row->desired, (long long)got, decide_reason_name(reason),
                     (long long)row->out);
    }
}

static void test_select_min_and_disabled(void **state)
{
    (void)state;
    struct decide_config c = config(1, 1000);
    c.has_behavior = true;
    c.down.window = 0;
    c.up.select = c.down.select = SELECT_MIN;
    c.up.n_policies = c.down.n_policies = 2;
    c.up.policies[0] = c.down.policies[0] = (struct decide_policy)PODS(2, 60);
    c.up.policies[1] = c.down.policies[1] = (struct decide_policy)PERCENT(50, 60);
    enum decide_reason reason;
    struct decide_state s = {0};
    assert_int_equal(decide_limit(&c, &s, T0, 1, 50, &reason), 2);
    s = (struct decide_state){0};
    assert_int_equal(decide_limit(&c, &s, T0, 5, 1, &reason), 3);
    c.up.select = c.down.select = SELECT_DISABLED;
    s = (struct decide_state){0};
    assert_int_equal(decide_limit(&c, &s, T0, 5, 1, &reason), 5);
    assert_int_equal(decide_limit(&c, &s, T0, 5, 50, &reason), 5);
}

/* The queues answer as a plain list of all records would, while they are not full. */
static void test_windows_against_a_list(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 7);
    for (int round = 0; round < 200; round++) {
        struct decide_config c = config(0, 1000);
        c.has_behavior = true;
        c.up.select = c.down.select = SELECT_MAX;
        c.up.policies[0].value = c.up.policies[1].value = 1000000;
        c.up.window = rng_between(&r, 0, 200) * NS_PER_S;
        c.down.window = rng_between(&r, 0, 200) * NS_PER_S;
        struct decide_state s = {0};
        struct decide_record list[30];
        int64_t now = T0;
        for (int i = 0; i < 30; i++) {
            now += rng_between(&r, 1, 20) * NS_PER_S;
            list[i] = (struct decide_record){now, rng_between(&r, 0, 12)};
            int64_t current = i ? rng_between(&r, 0, 12) : list[0].replicas;
            int64_t high = list[i].replicas, low = high;
            for (int k = 0; k <= i; k++) {
                if (now - list[k].at < c.down.window)
                    high = MAX(high, list[k].replicas);
                if (now - list[k].at < c.up.window)
                    low = MIN(low, list[k].replicas);
            }
            enum decide_reason reason;
            int64_t expected = MIN(MAX(current, low), high);
            assert_int_equal(decide_limit(&c, &s, now, current, list[i].replicas, &reason),
                             expected);
        }
    }
}

/* ---- The loop ---- */

static void test_keda_steps_up(void **state)
{
    (void)state;
    struct decide_config c = config(0, 20);
    c.compat_keda = true;
    struct decide_state s = {0};
    struct decide_sample q = known("kafka", 95, 10);
    static const int64_t plain[] = {1, 4, 8, 10, 10};
    int64_t n = 0;
    for (int i = 0; i < 5; i++) {
        tick(&c, &s, i * 15, &n, &q, 1);
        assert_int_equal(n, plain[i]);
    }
    c.has_behavior = c.down.given = true;
    s = (struct decide_state){0};
    static const int64_t behavior[] = {1, 5, 10, 10};
    n = 0;
    for (int i = 0; i < 4; i++) {
        tick(&c, &s, i * 15, &n, &q, 1);
        assert_int_equal(n, behavior[i]);
    }
}

static void test_jumps_from_zero(void **state)
{
    (void)state;
    struct decide_config c = config(0, 20);
    struct decide_state s = {0};
    struct decide_sample q = known("redis", 95, 10);
    int64_t n = 0;
    struct decide_output out = tick(&c, &s, 0, &n, &q, 1);
    assert_int_equal(n, 10);
    assert_int_equal(out.reason, DECIDE_ACTIVATED);
    assert_non_null(strstr(out.text, "redis"));
    q = known("redis", 1, 5); /* one item is enough to wake up */
    s = (struct decide_state){0};
    n = 0;
    tick(&c, &s, 0, &n, &q, 1);
    assert_int_equal(n, 1);
}

static void test_activation_is_its_own_threshold(void **state)
{
    (void)state;
    struct decide_sample q = known("q", 40, 10);
    q.activation = 50000;
    for (int64_t min = 0; min < 2; min++) {
        struct decide_config c = config(min, 20);
        struct decide_state s = {0};
        int64_t n = min;
        tick(&c, &s, 0, &n, &q, 1);
        assert_int_equal(n, min ? 4 : 0);
    }
    q.value = 50000; /* strictly above */
    struct decide_config c = config(0, 20);
    struct decide_state s = {0};
    int64_t n = 0;
    tick(&c, &s, 0, &n, &q, 1);
    assert_int_equal(n, 0);
}

static void test_partial_blindness(void **state)
{
    (void)state;
    struct decide_config c = config(1, 20);
    struct decide_state s = {0};
    struct decide_sample both[2] = {known("a", 3, 1), known("b", 7, 1)};
    int64_t n = 5;
    tick(&c, &s, 0, &n, both, 2);
    assert_int_equal(n, 7);
    both[1] = failed("b", 1, 1);
    s = (struct decide_state){0};
    n = 5;
    struct decide_output out = tick(&c, &s, 0, &n, both, 2);
    assert_int_equal(n, 5);
    assert_int_equal(out.reason, DECIDE_PARTIAL_ERROR);
    s = (struct decide_state){0};
    n = 2;
    tick(&c, &s, 0, &n, both, 2);
    assert_int_equal(n, 3);
}

static void test_drain(void **state)
{
    (void)state;
    struct decide_config c = config(0, 20);
    struct decide_state s = {0};
    struct decide_sample q = known("q", 100, 10);
    int64_t n = 10;
    for (int at = 0; at <= 60; at += 15)
        tick(&c, &s, at, &n, &q, 1);
    assert_int_equal(n, 10);
    q.value = 0;
    int64_t zero_at = 0;
    for (int at = 75; at <= 600 && n; at += 15) {
        tick(&c, &s, at, &n, &q, 1);
        zero_at = at;
        if (at <= 345) /* 60 + 285: inside both windows */
            assert_int_equal(n, 10);
    }
    assert_int_equal(n, 0);
    assert_in_range(zero_at, 361, 375);
}

static void test_idle(void **state)
{
    (void)state;
    struct decide_config c = config(2, 10);
    c.idle = 0;
    c.cooldown = 60 * NS_PER_S;
    struct decide_state s = {0};
    struct decide_sample q = known("q", 1, 10);
    int64_t n = 0;
    tick(&c, &s, 0, &n, &q, 1);
    assert_int_equal(n, 2);
    q.value = 0;
    for (int at = 10; at <= 120; at += 10) {
        tick(&c, &s, at, &n, &q, 1);
        assert_int_equal(n, at <= 60 ? 2 : 0); /* never rests at 1 */
    }
    c.min = 5;
    c.idle = 3; /* any idle count works, there is one writer */
    n = 5;
    tick(&c, &s, 130, &n, &q, 1);
    assert_int_equal(n, 3);
    tick(&c, &s, 140, &n, &q, 1);
    assert_int_equal(n, 3);
}

static void test_cron_and_lag(void **state)
{
    (void)state;
    struct decide_config c = config(0, 20);
    struct decide_state s = {0};
    struct decide_sample both[2] = {known("cron", 10, 1), known("kafka", 40, 10)};
    int64_t n = 0;
    tick(&c, &s, 0, &n, both, 2);
    assert_int_equal(n, 10);
    both[0].value = 0;
    for (int at = 15; at < 300; at += 15) {
        tick(&c, &s, at, &n, both, 2);
        assert_int_equal(n, 10);
    }
    tick(&c, &s, 300, &n, both, 2);
    assert_int_equal(n, 4);
}

/* KEDA's decision table, row by row (§3.1 of the facts), in the terms of one tick. */
static void test_decision_table(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t min, idle, current;
        int value;                 /* -1: failed; -2: failed with a known inactive one beside it */
        int64_t last_active_ago_s; /* -1: never */
        bool paused, in, out, forced;
        int64_t replicas;
    } rows[] = {
        {"1 paused", 0, -1, 4, 0, -1, true, false, false, false, 4},
        {"2 active from zero", 0, -1, 0, 5, -1, false, false, false, false, 1},
        {"2 active from zero, min 3", 3, -1, 0, 5, -1, false, false, false, false, 3},
        {"2 forced from zero", 0, -1, 0, 0, -1, false, false, false, true, 1},
        {"2 paused scale out", 0, -1, 0, 5, -1, false, false, true, false, 0},
        {"2 active from idle", 4, 1, 1, 5, -1, false, false, false, false, 4},
        {"4 active", 0, -1, 1, 5, -1, false, false, false, false, 1},
        {"6 failed", 0, -1, 3, -1, -1, false, false, false, false, 3},
        {"6 failed at zero", 0, -1, 0, -1, -1, false, false, false, false, 0},
        {"6 partly failed, cooled", 0, -1, 3, -2, 900, false, false, false, false, 3},
        {"7 never active", 0, -1, 3, 0, -1, false, false, false, false, 0},
        {"7 cooled", 0, -1, 3, 0, 301, false, false, false, false, 0},
        {"7 not cooled", 0, -1, 3, 0, 300, false, false, false, false, 3},
        {"7 cooled, paused scale in", 0, -1, 3, 0, 301, false, true, false, false, 3},
        {"7 to idle", 4, 1, 6, 0, 301, false, false, false, false, 1},
        {"8 below min", 2, -1, 1, 0, -1, false, false, false, false, 2},
        {"8 zero below min", 2, -1, 0, 0, -1, false, false, false, false, 2},
        {"9 at rest", 0, -1, 0, 0, 900, false, false, false, false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decide_config c = config(rows[i].min, 20);
        c.idle = rows[i].idle;
        c.paused = rows[i].paused;
        c.paused_in = rows[i].in;
        c.paused_out = rows[i].out;
        c.force_activation = rows[i].forced;
        struct decide_state s = {.since = T0 - 3600 * NS_PER_S};
        if (rows[i].last_active_ago_s >= 0)
            s.last_active = T0 - rows[i].last_active_ago_s * NS_PER_S;
        struct decide_sample v[2] = {rows[i].value < 0 ? failed("q", 10, 1)
                                                       : known("q", rows[i].value, 10),
                                     known("other", 0, 10)};
        int64_t n = rows[i].current;
        tick(&c, &s, 0, &n, v, rows[i].value == -2 ? 2 : 1);
        if (n != rows[i].replicas)
            fail_msg("%s: %lld, expected %lld", rows[i].name, (long long)n,
                     (long long)rows[i].replicas);
    }
}

static void test_initial_cooldown(void **state)
{
    (void)state;
    struct decide_config c = config(0, 20);
    c.initial_cooldown = 120 * NS_PER_S;
    struct decide_state s = {0};
    struct decide_sample q = known("q", 0, 10);
    int64_t n = 2;
    tick(&c, &s, 0, &n, &q, 1);
    tick(&c, &s, 119, &n, &q, 1);
    assert_int_equal(n, 2);
    tick(&c, &s, 121, &n, &q, 1);
    assert_int_equal(n, 0);
}

static void test_paused_replicas(void **state)
{
    (void)state;
    struct decide_config c = config(0, 20);
    c.paused_replicas = 7;
    c.paused_in = true; /* a fixed count wins over the directions */
    struct decide_state s = {0};
    struct decide_sample q = failed("q", 10, 1);
    int64_t n = 12;
    struct decide_output out = tick(&c, &s, 0, &n, &q, 1);
    assert_int_equal(n, 7);
    assert_int_equal(out.reason, DECIDE_PAUSED);
}

static void test_combine(void **state)
{
    (void)state;
    static const struct {
        enum decide_combine combine;
        int64_t a, b; /* -1: failed */
        int64_t from, to;
    } rows[] = {
        {COMBINE_MAX, 30, 50, 4, 5}, {COMBINE_SUM, 30, 50, 4, 8}, {COMBINE_MIN, 50, 60, 4, 5},
        {COMBINE_ALL, 50, 60, 4, 6}, {COMBINE_MAX, 30, 0, 0, 3},  {COMBINE_MIN, 30, 0, 0, 0},
        {COMBINE_ALL, 30, 0, 0, 0},  {COMBINE_ALL, 30, 20, 0, 3}, {COMBINE_MIN, 30, 20, 0, 2},
        {COMBINE_SUM, 30, 20, 0, 5}, {COMBINE_SUM, 60, -1, 4, 6}, {COMBINE_SUM, 30, -1, 4, 4},
        {COMBINE_MIN, 60, -1, 4, 4}, {COMBINE_ALL, 60, -1, 4, 4}, {COMBINE_MIN, 60, -1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decide_config c = config(0, 20);
        c.combine = rows[i].combine;
        struct decide_state s = {0};
        struct decide_sample v[2] = {rows[i].a < 0 ? failed("a", 10, 1) : known("a", rows[i].a, 10),
                                     rows[i].b < 0 ? failed("b", 10, 1)
                                                   : known("b", rows[i].b, 10)};
        int64_t n = rows[i].from;
        tick(&c, &s, 0, &n, v, 2);
        if (n != rows[i].to)
            fail_msg("row %zu: %lld, expected %lld", i, (long long)n, (long long)rows[i].to);
    }
}

/* A slow drain with a long window: the case of one pod every twenty minutes. */
static void test_slow_behavior(void **state)
{
    (void)state;
    struct decide_config c = config(2, 20);
    c.has_behavior = c.up.given = c.down.given = true;
    c.up.window = 300 * NS_PER_S;
    c.up.n_policies = c.down.n_policies = 1;
    c.up.policies[0] = (struct decide_policy)PODS(4, 60);
    c.down.window = 2400 * NS_PER_S;
    c.down.policies[0] = (struct decide_policy)PODS(1, 1200);
    struct decide_state s = {0};
    int64_t n = 2;
    for (int at = 0; at <= 30000; at += 30) {
        struct decide_sample q = known("depth", at >= 30 && at < 3600 ? 2000 : 0, 100);
        int64_t before = n;
        tick(&c, &s, at, &n, &q, 1);
        assert_true(n <= 20 && n >= 2 && before - n <= 1 && n - before <= 4);
        if (at < 300)
            assert_int_equal(n, 2);
        if (at >= 700 && at < 5970)
            assert_int_equal(n, 20);
        if (at == 6990)
            assert_int_equal(n, 19);
    }
    assert_int_equal(n, 2);
}

/* Whatever comes: never below what an unknown sample must hold, never outside the bounds. */
static void test_laws(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 11);
    for (int round = 0; round < 3000; round++) {
        struct decide_config c = config(rng_between(&r, 0, 3), rng_between(&r, 4, 30));
        c.combine = (enum decide_combine)rng_below(&r, 4);
        c.compat_keda = rng_chance(&r, 500000);
        c.idle = c.min > 1 && rng_chance(&r, 300000) ? c.min - 1 : -1;
        c.has_behavior = rng_chance(&r, 500000);
        c.down.window = c.has_behavior ? rng_between(&r, 0, 30) * NS_PER_S : c.down.window;
        c.cooldown = rng_between(&r, 0, 60) * NS_PER_S;
        struct decide_state s = {0};
        int64_t n = rng_between(&r, 0, c.max);
        for (int at = 0; at < 300; at += 10) {
            struct decide_sample v[3];
            size_t unknown = 0, count = 1 + rng_below(&r, 3);
            for (size_t i = 0; i < count; i++) {
                v[i] = known("q", rng_between(&r, 0, 200), 10);
                v[i].metric = rng_chance(&r, 500000) ? DECIDE_VALUE : DECIDE_AVERAGE_VALUE;
                if (rng_chance(&r, 200000)) {
                    v[i].verdict = rng_chance(&r, 500000) ? VERDICT_UNKNOWN : VERDICT_EMPTY;
                    unknown++;
                }
            }
            int64_t before = n;
            struct decide_output out = tick(&c, &s, at, &n, v, count);
            assert_true(n >= 0 && n <= c.max);
            if (unknown)
                assert_true(n >= before);
            assert_int_equal(out.n_unknown, unknown);
            assert_true(s.n_highs <= DECIDE_RECORDS_MAX && s.n_ups <= DECIDE_EVENTS_MAX);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proposals),
        cmocka_unit_test(test_unready_pods_do_not_turn_more_into_fewer),
        cmocka_unit_test(test_fallback_value),
        cmocka_unit_test(test_fallback_wakes_from_zero),
        cmocka_unit_test(test_plain_limits),
        cmocka_unit_test(test_plain_window),
        cmocka_unit_test(test_behavior_window),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_select_min_and_disabled),
        cmocka_unit_test(test_windows_against_a_list),
        cmocka_unit_test(test_keda_steps_up),
        cmocka_unit_test(test_jumps_from_zero),
        cmocka_unit_test(test_activation_is_its_own_threshold),
        cmocka_unit_test(test_partial_blindness),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_cron_and_lag),
        cmocka_unit_test(test_decision_table),
        cmocka_unit_test(test_initial_cooldown),
        cmocka_unit_test(test_paused_replicas),
        cmocka_unit_test(test_combine),
        cmocka_unit_test(test_slow_behavior),
        cmocka_unit_test(test_laws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
