/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The provisioner is killed before and after every API and cloud call of a launch and of a removal,
 * one run each, and started again: no instance twice, none lost, no pod evicted needlessly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "test/sim/fleet.h"
#include "test/sim/invariants.h"

#define GPU_POD "\"cpu\":\"2\",\"memory\":\"8Gi\",\"nvidia.com/gpu\":\"1\""

struct outcome {
    uint64_t effects;
    size_t launched;
};

/* Two nodes come and go. */
static struct outcome run(uint64_t kill_at, int64_t restart_after)
{
    struct fleet *f = fleet_new(11, NULL, NULL);
    struct outcome o;

    f->kill_at = kill_at;
    f->restart_after = restart_after;
    fleet_start(f);
    fleet_pool(f, "gpu", "\"g5.xlarge\"", "on-demand", NULL);
    fleet_deployment(f, "web", 2, GPU_POD);
    fleet_run(f, 4 * NS_PER_MIN);
    invariants_calm(f->invariants);
    if (fleet_running(f, "web") != 2)
        fail_msg("killed at %llu: %zu pods run", (unsigned long long)kill_at,
                 fleet_running(f, "web"));
    fleet_scale(f, "web", 0);
    fleet_run(f, 12 * NS_PER_MIN);
    invariants_calm(f->invariants);
    if (invariants_breach(f->invariants))
        fail_msg("killed at %llu: %s", (unsigned long long)kill_at,
                 invariants_breach(f->invariants));
    if (cloud_sim_running(f->cloud) != 0 || fleet_nodes(f) != 0 ||
        sim_count(f->sim, "NodeClaim") != 0)
        fail_msg("killed at %llu: %zu instances, %zu nodes, %zu claims are left",
                 (unsigned long long)kill_at, cloud_sim_running(f->cloud), fleet_nodes(f),
                 sim_count(f->sim, "NodeClaim"));
    if (invariants_evictions(f->invariants) != 0)
        fail_msg("killed at %llu: %zu needless evictions", (unsigned long long)kill_at,
                 invariants_evictions(f->invariants));
    assert_int_equal(f->lives, kill_at ? 2 : 1);
    o = (struct outcome){f->effects, fleet_launched(f)};
    fleet_free(f);
    return o;
}

static void at_every_effect(int64_t restart_after)
{
    struct outcome whole = run(0, 0);

    assert_int_equal(whole.launched, 2);
    assert_true(whole.effects > 40);
    for (uint64_t k = 1; k <= whole.effects; k++) {
        struct outcome o = run(k, restart_after);

        if (o.launched != whole.launched)
            fail_msg("killed at %llu of %llu: %zu instances were launched instead of %zu",
                     (unsigned long long)k, (unsigned long long)whole.effects, o.launched,
                     whole.launched);
    }
    printf("          %llu kills\n", (unsigned long long)whole.effects);
}

static void back_at_once(void **state)
{
    (void)state;
    at_every_effect(NS_PER_MS);
}

static void back_after_a_lease(void **state)
{
    (void)state;
    at_every_effect(15 * NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(back_at_once),
                                       cmocka_unit_test(back_after_a_lease)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
