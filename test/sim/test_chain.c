/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Pending pods become nodes, idle nodes go away: the provisioner's path, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "test/sim/fleet.h"
#include "test/sim/invariants.h"

#define GPU_POD "\"cpu\":\"2\",\"memory\":\"8Gi\",\"nvidia.com/gpu\":\"1\""
#define CPU_POD "\"cpu\":\"900m\",\"memory\":\"1Gi\""

static struct fleet *started(uint64_t seed)
{
    struct fleet *f = fleet_new(seed, NULL, NULL);

    fleet_start(f);
    return f;
}

static void finish(struct fleet *f)
{
    if (invariants_breach(f->invariants))
        fail_msg("%s", invariants_breach(f->invariants));
    assert_true(invariants_checks(f->invariants) > 0);
    fleet_free(f);
}

static void pods_become_nodes_and_nodes_go(void **state)
{
    struct fleet *f = started(1);

    (void)state;
    fleet_pool(f, "gpu", "\"g5.xlarge\"", "on-demand", NULL);
    fleet_run(f, 5 * NS_PER_S);
    fleet_deployment(f, "web", 3, GPU_POD);
    fleet_run(f, 3 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "web"), 3);
    assert_int_equal(fleet_launched(f), 3);
    invariants_calm(f->invariants);
    fleet_scale(f, "web", 0);
    fleet_run(f, 10 * NS_PER_MIN);
    assert_int_equal(fleet_nodes(f), 0);
    assert_int_equal(cloud_sim_running(f->cloud), 0);
    assert_int_equal(sim_count(f->sim, "NodeClaim"), 0);
    assert_int_equal(invariants_evictions(f->invariants), 0);
    invariants_calm(f->invariants);
    finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_become_nodes_and_nodes_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
