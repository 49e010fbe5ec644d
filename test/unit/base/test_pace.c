/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Randomness and pace: the generator against its published sequence and its moments; pauses and
 * buckets against their bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "base/backoff.h"
#include "base/limit.h"
#include "base/rng.h"
#include "base/time.h"

/* xoshiro256** from the state {1, 2, 3, 4}: the first outputs of the reference code. */
static void test_rng_sequence(void **state)
{
    (void)state;
    static const uint64_t expected[] = {UINT64_C(11520), UINT64_C(0), UINT64_C(1509978240),
                                        UINT64_C(1215971899390074240)};
    struct rng r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        assert_true(rng_u64(&r) == expected[i]);
}

static void test_rng_streams(void **state)
{
    (void)state;
    struct rng a, b, c, d;
    rng_split(&a, 1, "cloud");
    rng_split(&b, 1, "cloud");
    rng_split(&c, 1, "kubelet");
    rng_split(&d, 2, "cloud");
    uint64_t first = rng_u64(&a);
    assert_true(first == rng_u64(&b));
    assert_true(first != rng_u64(&c));
    assert_true(first != rng_u64(&d));
}

static void test_rng_below(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 5);
    enum { CELLS = 7, N = 70000 };
    int count[CELLS] = {0};
    for (int i = 0; i < N; i++)
        count[rng_below(&r, CELLS)]++;
    double chi = 0;
    for (int i = 0; i < CELLS; i++)
        chi += pow(count[i] - N / CELLS, 2) / (N / CELLS);
    assert_true(chi < 22.5); /* 6 degrees of freedom, one in a thousand; the seed is fixed */
    for (int i = 0; i < 10000; i++) {
        assert_true(rng_below(&r, 1) == 0);
        int64_t v = rng_between(&r, -3, 3);
        assert_true(v >= -3 && v <= 3);
        double unit = rng_unit(&r);
        assert_true(unit >= 0 && unit < 1);
        assert_false(rng_chance(&r, 0));
        assert_true(rng_chance(&r, 1000000));
    }
    bool negative = false, positive = false;
    for (int i = 0; i < 100; i++) {
        int64_t v = rng_between(&r, INT64_MIN, INT64_MAX);
        negative |= v < 0;
        positive |= v > 0;
    }
    assert_true(negative && positive);
    assert_true(rng_between(&r, 9, 9) == 9);
}

static void test_rng_moments(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 6);
    enum { N = 100000 };
    double e = 0, n = 0, n2 = 0;
    for (int i = 0; i < N; i++) {
        e += rng_exp(&r, 10);
        double x = rng_normal(&r, 5, 2);
        n += x;
        n2 += x * x;
    }
    e /= N;
    n /= N;
    assert_true(fabs(e - 10) < 0.15);
    assert_true(fabs(n - 5) < 0.03);
    assert_true(fabs(sqrt(n2 / N - n * n) - 2) < 0.02);
}

static void test_backoff(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 7);
    struct backoff b = {.base = NS_PER_S, .cap = 60 * NS_PER_S};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++) {
            int64_t most = i < 6 ? NS_PER_S << i : 60 * NS_PER_S;
            int64_t d = backoff_next(&b, &r);
            assert_true(d >= most / 2 && d <= most);
        }
        backoff_reset(&b);
    }
    /* Near the end of the numbers nothing wraps. */
    struct backoff huge = {.base = INT64_MAX / 3, .cap = INT64_MAX};
    for (int i = 0; i < 70; i++)
        assert_true(backoff_next(&huge, &r) >= INT64_MAX / 6);
    struct backoff none = {0};
    assert_true(backoff_next(&none, &r) == 0);
}

/* In any window of w, at most burst + w/interval tokens; and a patient client gets its rate. */
static void test_limit(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 8);
    struct limit l;
    limit_init(&l, 100, 20);
    static int64_t taken[20000];
    size_t n = 0;
    int64_t now = 1000 * NS_PER_S;
    while (n < 20000) {
        int64_t wait = limit_take(&l, now);
        if (wait == 0) {
            taken[n++] = now;
            now += rng_chance(&r, 2000) ? (int64_t)rng_below(&r, NS_PER_S) : 0;
        } else {
            /* One nanosecond too early is too early, and then it is there. */
            assert_true(limit_take(&l, now + wait - 1) > 0);
            now += wait;
        }
    }
    for (size_t i = 20; i < n; i++)
        for (size_t k = 20; k < 200 && k <= i; k += 45)
            assert_true(taken[i] - taken[i - k] >= (int64_t)(k + 1 - 20) * NS_PER_S / 100);
    assert_true(now - 1000 * NS_PER_S < 400 * NS_PER_S);
}

static void test_limit_reserve(void **state)
{
    (void)state;
    struct limit l;
    limit_init(&l, 10, 2);
    int64_t now = NS_PER_S;
    assert_true(limit_reserve(&l, now) == 0);
    assert_true(limit_reserve(&l, now) == 0);
    for (int i = 1; i <= 5; i++)
        assert_true(limit_reserve(&l, now) == i * NS_PER_S / 10);
    assert_true(limit_take(&l, now) > 0);
    assert_true(limit_take(&l, now + 10 * NS_PER_S) == 0);
    struct limit free_for_all;
    limit_init(&free_for_all, 0, 5);
    for (int i = 0; i < 1000; i++)
        assert_true(limit_take(&free_for_all, 0) == 0 && limit_reserve(&free_for_all, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rng_sequence),  cmocka_unit_test(test_rng_streams),
        cmocka_unit_test(test_rng_below),     cmocka_unit_test(test_rng_moments),
        cmocka_unit_test(test_backoff),       cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
