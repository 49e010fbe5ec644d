/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The algebra of requirements against exhaustive sets over a small universe of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "provisioner/model/requirement.h"

static const char *const universe[] = {"1", "2", "3", "4", "7", "a", "b", "c"};

static struct requirement random_requirement(struct rng *g, struct arena *a)
{
    static const enum selector_op ops[] = {
        SELECTOR_IN, SELECTOR_NOT_IN, SELECTOR_EXISTS, SELECTOR_DOES_NOT_EXIST,
        SELECTOR_GT, SELECTOR_LT,     SELECTOR_GTE,    SELECTOR_LTE};
    struct selector_requirement s = {.key = "k", .op = ops[rng_below(g, ARRAY_LEN(ops))]};
    const char **v = ARENA_NEW_ARRAY(a, const char *, 4);
    bool number = s.op >= SELECTOR_GT;
    s.values = (struct string_list){v, number                    ? 1
                                       : s.op <= SELECTOR_NOT_IN ? 1 + (uint32_t)rng_below(g, 3)
                                                                 : 0};
    for (uint32_t i = 0; i < s.values.n; i++)
        v[i] = universe[rng_below(g, number ? 5 : ARRAY_LEN(universe))];
    return requirement_from(&s, a);
}

static void intersection_has_what_both_have(void **state)
{
    (void)state;
    struct rng g;
    rng_init(&g, 1);
    for (int round = 0; round < 20000; round++) {
        CLEANUP(arena_release) struct arena a = ARENA_INIT;
        struct requirement x = random_requirement(&g, &a), y = random_requirement(&g, &a),
                           z = random_requirement(&g, &a);
        struct requirement xy = requirement_intersect(&x, &y, &a),
                           yx = requirement_intersect(&y, &x, &a);
        struct requirement left = requirement_intersect(&xy, &z, &a);
        bool any = false;
        for (size_t i = 0; i < ARRAY_LEN(universe); i++) {
            const char *v = universe[i];
            bool both = requirement_has(&x, v) && requirement_has(&y, v);
            any = any || both;
            assert_int_equal(requirement_has(&xy, v), both);
            assert_int_equal(requirement_has(&yx, v), both);
            assert_int_equal(requirement_has(&left, v), both && requirement_has(&z, v));
        }
        /* Overlap may be told where only values outside the universe are common, never the reverse.
         */
        if (any)
            assert_true(requirement_overlaps(&x, &y));
        if (!x.complement || !y.complement)
            assert_int_equal(requirement_overlaps(&x, &y), any);
        const char *some = requirement_any(&xy, &a);
        if (some)
            assert_true(requirement_has(&xy, some));
        else
            assert_false(any);
    }
}

static struct requirement of(enum selector_op op, const char *value, struct arena *a)
{
    const char **v = ARENA_NEW(a, const char *);
    v[0] = value;
    struct selector_requirement s = {.key = "k", .op = op, .values = {v, value ? 1 : 0}};
    return requirement_from(&s, a);
}

static void edges_of_bounds(void **state)
{
    (void)state;
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct requirement top = of(SELECTOR_GT, "9223372036854775807", &a);
    assert_false(top.complement);
    assert_int_equal(top.n_values, 0); /* nothing is greater: DoesNotExist */
    struct requirement above = of(SELECTOR_GT, "4", &a), below = of(SELECTOR_LT, "5", &a);
    assert_false(requirement_overlaps(&above, &below));
    struct requirement none = requirement_intersect(&above, &below, &a);
    assert_true(requirement_allows_absent(&none));
    struct requirement two = of(SELECTOR_LT, "6", &a),
                       five = requirement_intersect(&above, &two, &a);
    assert_string_equal(requirement_any(&five, &a), "5");
    assert_false(requirement_has(&above, "x"));
    assert_false(requirement_allows_absent(&above));
}

static struct requirements set_of(struct requirement *r)
{
    return (struct requirements){r, 1};
}

static bool always(const char *key)
{
    return key != NULL;
}

static void what_a_node_must_define(void **state)
{
    (void)state;
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    static const struct requirements nothing;
    struct requirement in = of(SELECTOR_IN, "a", &a), not_in = of(SELECTOR_NOT_IN, "a", &a);
    struct requirement absent = of(SELECTOR_DOES_NOT_EXIST, NULL, &a),
                       exists = of(SELECTOR_EXISTS, NULL, &a);
    struct requirements s_in = set_of(&in), s_not = set_of(&not_in), s_absent = set_of(&absent),
                        s_exists = set_of(&exists);
    const char *key = NULL;
    assert_false(requirements_compatible(&nothing, &s_in, NULL, &key));
    assert_string_equal(key, "k");
    assert_true(requirements_compatible(&nothing, &s_in, always, NULL));
    assert_false(requirements_compatible(&nothing, &s_exists, NULL, NULL));
    assert_true(requirements_compatible(&nothing, &s_not, NULL, NULL));
    assert_true(requirements_compatible(&nothing, &s_absent, NULL, NULL));
    assert_false(requirements_compatible(&s_in, &s_absent, NULL, NULL));
    assert_false(requirements_compatible(&s_in, &s_not, NULL, NULL));
    assert_true(
        requirements_compatible(&s_absent, &s_not, NULL, NULL)); /* both accept a node without it */
}

static void old_names_mean_new_ones(void **state)
{
    (void)state;
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct requirement r = requirement_equals("failure-domain.beta.kubernetes.io/zone", "a", &a);
    assert_string_equal(r.key, "topology.kubernetes.io/zone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intersection_has_what_both_have),
        cmocka_unit_test(edges_of_bounds),
        cmocka_unit_test(what_a_node_must_define),
        cmocka_unit_test(old_names_mean_new_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
