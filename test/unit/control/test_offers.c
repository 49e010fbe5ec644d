/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The memory of unavailable offerings: pauses grow, decay, are bounded, and survive as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "provisioner/control/offers.h"

static const struct launch_offering one = {"g5.xlarge", "us-east-1a", CAPACITY_SPOT};
static const struct launch_offering other = {"g5.xlarge", "us-east-1a", CAPACITY_ON_DEMAND};

static int64_t pause_after(struct offers *o, int64_t now)
{
    offers_failed(o, &one, now);
    return offers_blocked_until(o, &one, now) - now;
}

static void pauses_double_up_to_the_cap(void **state)
{
    struct offers o = OFFERS_INIT;
    int64_t now = NS_PER_DAY, expected = OFFERS_FIRST_PAUSE;

    (void)state;
    for (int i = 0; i < 10; i++) {
        int64_t pause = pause_after(&o, now);

        assert_int_equal(pause, MIN(expected, OFFERS_LONGEST_PAUSE));
        now += pause;
        expected *= 2;
    }
    assert_int_equal(offers_blocked_until(&o, &other, now), 0);
    offers_release(&o);
}

static void failures_within_a_pause_count_once(void **state)
{
    struct offers o = OFFERS_INIT;
    int64_t now = NS_PER_DAY, until;

    (void)state;
    offers_failed(&o, &one, now);
    until = offers_blocked_until(&o, &one, now);
    for (int i = 0; i < 20; i++)
        offers_failed(&o, &one, now + i * NS_PER_S);
    assert_int_equal(offers_blocked_until(&o, &one, now), until);
    assert_int_equal(offers_next(&o, now), until);
    assert_int_equal(offers_blocked_until(&o, &one, until), 0);
    assert_int_equal(offers_next(&o, until), TIME_NEVER);
    offers_release(&o);
}

static void quiet_time_halves_and_success_forgets(void **state)
{
    struct offers o = OFFERS_INIT;
    int64_t now = NS_PER_DAY;

    (void)state;
    for (int i = 0; i < 4; i++)
        now += pause_after(&o, now);
    /* Four failures, halved once: the next is the third, a pause of four times the first. */
    assert_int_equal(pause_after(&o, now + OFFERS_HALF_LIFE), 4 * OFFERS_FIRST_PAUSE);
    offers_worked(&o, &one);
    assert_int_equal(offers_blocked_until(&o, &one, now), 0);
    assert_int_equal(pause_after(&o, now), OFFERS_FIRST_PAUSE);
    offers_sweep(&o, now + 100 * OFFERS_HALF_LIFE);
    assert_int_equal(map_len(&o.map), 0);
    offers_release(&o);
}

static void text_keeps_every_answer(void **state)
{
    struct offers a = OFFERS_INIT, b = OFFERS_INIT;
    CLEANUP(buf_release) struct buf text = BUF_INIT, again = BUF_INIT;
    struct rng r;
    int64_t now = 20000 * NS_PER_DAY;

    (void)state;
    rng_init(&r, 7);
    for (int i = 0; i < 500; i++) {
        char type[16];
        struct launch_offering l = {type, rng_chance(&r, 500000) ? "a" : "b",
                                    (enum capacity_type)rng_below(&r, 3)};

        snprintf(type, sizeof(type), "t%d", (int)rng_below(&r, 20));
        offers_failed(&a, &l, now + (int64_t)rng_below(&r, 4000) * NS_PER_S);
    }
    offers_print(&a, &text);
    offers_parse(&b, buf_view(&text));
    offers_print(&b, &again);
    assert_string_equal(text.data, again.data);
    map_each(&a.map, it)
        assert_true(map_has(&b.map, map_key(it)));
    offers_parse(&b, STR("rubbish\na/b/spot\na/b/spot 9999 2026-01-01T00:00:00Z\n\n"));
    assert_int_equal(map_len(&a.map), map_len(&b.map));
    offers_release(&a);
    offers_release(&b);
}

static void memory_is_bounded(void **state)
{
    struct offers o = OFFERS_INIT;

    (void)state;
    for (int i = 0; i < OFFERS_MAX + 100; i++) {
        char type[16];
        struct launch_offering l = {type, "a", CAPACITY_SPOT};

        snprintf(type, sizeof(type), "t%d", i);
        offers_failed(&o, &l, NS_PER_DAY + i * NS_PER_S);
    }
    assert_int_equal(map_len(&o.map), OFFERS_MAX);
    assert_false(map_has(&o.map, STR("t0/a/spot")));
    assert_true(map_has(&o.map, STR("t4195/a/spot")));
    offers_release(&o);
}

static void collect(void *arg, const struct launch_offering *l)
{
    assert_string_equal(l->instance_type, one.instance_type);
    assert_string_equal(l->zone, one.zone);
    assert_int_equal(l->capacity_type, one.capacity_type);
    ++*(int *)arg;
}

static void each_gives_the_running_pauses(void **state)
{
    struct offers o = OFFERS_INIT;
    int n = 0;

    (void)state;
    offers_failed(&o, &one, NS_PER_DAY);
    offers_each(&o, NS_PER_DAY, collect, &n);
    assert_int_equal(n, 1);
    offers_each(&o, NS_PER_DAY + OFFERS_FIRST_PAUSE, collect, &n);
    assert_int_equal(n, 1);
    offers_release(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_double_up_to_the_cap),
        cmocka_unit_test(failures_within_a_pause_count_once),
        cmocka_unit_test(quiet_time_halves_and_success_forgets),
        cmocka_unit_test(text_keeps_every_answer),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(each_gives_the_running_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
