/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Properties of plans, on random worlds, against brute force and an independent judge. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "provisioner/solve/solve.h"
#include "test/support/plan_check.h"
#include "test/support/random_world.h"

static void expect_sound(const struct world *w, const struct plan *p, uint64_t seed)
{
    CLEANUP(buf_release) struct buf faults = BUF_INIT;
    if (plan_check(w, p, &faults))
        fail_msg("seed %llu:\n%s", (unsigned long long)seed, faults.data);
}

/* ---- Every plan is sound ---- */

static void plans_are_sound(void **state)
{
    (void)state;
    const struct random_world_options o = {.pods_max = 24, .types_max = 6, .nodes_max = 4};
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct random_world r;
        random_world_make(&r, seed, &o);
        random_world_build(&r, 0);
        struct plan *p = solve(r.world, NULL);
        expect_sound(r.world, p, seed);
        plan_free(p);
        random_world_release(&r);
    }
}

/* ---- Brute force ---- */

struct brute {
    const struct world *w;
    uint32_t pods[8], n;
    int64_t load[8][RESOURCES_MAX]; /* per bin */
    uint32_t bins;
    int64_t best;
};

static int64_t cheapest(const struct world *w, const int64_t *load)
{
    int64_t best = INT64_MAX;
    for (uint32_t o = 0; o < w->n_offers; o++) {
        bool fits = true;
        for (uint32_t r = 0; r < w->resources.n; r++)
            fits = fits && load[r] <= w->offers[o].room[r];
        if (fits && w->offers[o].price_uusd_h < best)
            best = w->offers[o].price_uusd_h;
    }
    return best;
}

static void add_load(struct brute *b, uint32_t bin, uint32_t pod, int64_t sign)
{
    const int64_t *need = b->w->classes[b->w->pods[pod].class_].requests;
    for (uint32_t r = 0; r < b->w->resources.n; r++)
        b->load[bin][r] += sign * need[r];
}

static void search(struct brute *b, uint32_t at)
{
    if (at == b->n) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < b->bins; i++) {
            int64_t price = cheapest(b->w, b->load[i]);
            if (price == INT64_MAX)
                return;
            sum += price;
        }
        b->best = MIN(b->best, sum);
        return;
    }
    for (uint32_t i = 0; i <= b->bins; i++) {
        bool opens = i == b->bins;
        b->bins += opens;
        add_load(b, i, b->pods[at], 1);
        search(b, at + 1);
        add_load(b, i, b->pods[at], -1);
        b->bins -= opens;
        if (opens)
            break;
    }
}

static void bound_and_plan_embrace_the_optimum(void **state)
{
    (void)state;
    const struct random_world_options o = {.pods_max = 6, .types_max = 4, .plain = true};
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct random_world r;
        random_world_make(&r, seed, &o);
        random_world_build(&r, 0);
        struct brute b = {.w = r.world, .best = INT64_MAX};
        for (uint32_t i = 0; i < r.world->n_pods; i++)
            if (cheapest(r.world, r.world->classes[r.world->pods[i].class_].requests) != INT64_MAX)
                b.pods[b.n++] = i;
        search(&b, 0);
        struct plan *p = solve(r.world, NULL);
        expect_sound(r.world, p, seed);
        if (p->n_refusals != r.world->n_pods - b.n)
            fail_msg("seed %llu: %u refused, %u fit nowhere", (unsigned long long)seed,
                     p->n_refusals, r.world->n_pods - b.n);
        if (p->bound_uusd_h > b.best || p->launch_uusd_h < b.best)
            fail_msg("seed %llu: bound %lld, optimum %lld, plan %lld", (unsigned long long)seed,
                     (long long)p->bound_uusd_h, (long long)b.best, (long long)p->launch_uusd_h);
        plan_free(p);
        random_world_release(&r);
    }
}

/* ---- What must not matter ---- */

static char *json_of(const struct world *w)
{
    struct plan *p = solve(w, NULL);
    struct buf out = BUF_INIT;
    plan_print_json(p, NULL, &out);
    plan_free(p);
    return buf_detach(&out);
}

static void order_of_input_does_not_matter(void **state)
{
    (void)state;
    const struct random_world_options o = {.pods_max = 20, .types_max = 6, .nodes_max = 3};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct random_world x, y;
        random_world_make(&x, seed, &o);
        random_world_make(&y, seed, &o);
        random_world_build(&x, 0);
        random_world_build(&y, seed + 7);
        char *p = json_of(x.world), *again = json_of(x.world), *q = json_of(y.world);
        assert_string_equal(p, again);
        assert_string_equal(p, q);
        free(p);
        free(again);
        free(q);
        random_world_release(&x);
        random_world_release(&y);
    }
}

static int64_t cost_of(uint64_t seed, const struct random_world_options *o, int64_t *ret_bound)
{
    struct random_world r;
    random_world_make(&r, seed, o);
    random_world_build(&r, 0);
    struct plan *p = solve(r.world, NULL);
    int64_t cost = p->launch_uusd_h;
    *ret_bound = p->bound_uusd_h;
    plan_free(p);
    random_world_release(&r);
    return cost;
}

static void prices_scale(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        const struct random_world_options one = {.pods_max = 20, .types_max = 6},
                                          ten = {.pods_max = 20, .types_max = 6, .price_times = 10};
        int64_t bound_one, bound_ten;
        int64_t cost_one = cost_of(seed, &one, &bound_one),
                cost_ten = cost_of(seed, &ten, &bound_ten);
        assert_int_equal(cost_one * 10, cost_ten);
    }
}

static void a_dominated_offering_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        const struct random_world_options without = {.pods_max = 20, .types_max = 6, .plain = true},
                                          with = {.pods_max = 20,
                                                  .types_max = 6,
                                                  .plain = true,
                                                  .dominated = true};
        int64_t bound_without, bound_with;
        int64_t cost_without = cost_of(seed, &without, &bound_without),
                cost_with = cost_of(seed, &with, &bound_with);
        assert_int_equal(cost_without, cost_with);
        assert_int_equal(bound_without, bound_with);
    }
}

/* ---- The judge judges ---- */

static void the_judge_finds_faults(void **state)
{
    (void)state;
    const struct random_world_options o = {.pods_max = 20, .types_max = 6, .plain = true};
    struct random_world r;
    random_world_make(&r, 3, &o);
    random_world_build(&r, 0);
    struct plan *p = solve(r.world, NULL);
    assert_true(p->n_launches > 0);
    CLEANUP(buf_release) struct buf faults = BUF_INIT;
    p->launch_uusd_h++;
    assert_int_not_equal(plan_check(r.world, p, &faults), 0);
    p->launch_uusd_h--;
    struct plan_launch *l = (struct plan_launch *)(uintptr_t)&p->launches[0];
    l->n_pods--;
    assert_int_not_equal(plan_check(r.world, p, &faults), 0);
    l->n_pods++;
    struct plan_class *c = (struct plan_class *)(uintptr_t)&p->classes[0];
    c->value_nusd_h *= 3;
    if (p->n_classes <= 6)
        assert_int_not_equal(plan_check(r.world, p, &faults), 0);
    c->value_nusd_h /= 3;
    assert_int_equal(plan_check(r.world, p, &faults), 0);
    plan_free(p);
    random_world_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_sound),
        cmocka_unit_test(bound_and_plan_embrace_the_optimum),
        cmocka_unit_test(order_of_input_does_not_matter),
        cmocka_unit_test(prices_scale),
        cmocka_unit_test(a_dominated_offering_changes_nothing),
        cmocka_unit_test(the_judge_finds_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
