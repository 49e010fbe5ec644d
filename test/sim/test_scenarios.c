/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* One situation each, from outside: what is launched, what runs, what goes, and what is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kube/api/nodeclaim.h"
#include "test/sim/fleet.h"
#include "test/sim/invariants.h"

#define GPU_POD "\"cpu\":\"2\",\"memory\":\"8Gi\",\"nvidia.com/gpu\":\"1\""
#define CPU_POD "\"cpu\":\"900m\",\"memory\":\"1Gi\""

static struct fleet *started(const struct control_options *o)
{
    struct fleet *f = fleet_new(5, o, NULL);

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

struct search {
    const char *kind, *reason, *text;
    size_t n;
};

static void match_event(void *arg, const struct json *o)
{
    struct search *s = arg;
    struct str reason = json_text(json_get(o, "reason"));
    struct str kind = json_text(json_at(o, "involvedObject", "kind", NULL));
    struct str text = json_text(json_get(o, "message"));

    if (!kind.p)
        kind = json_text(json_at(o, "regarding", "kind", NULL));
    if (!text.p)
        text = json_text(json_get(o, "note"));
    s->n += str_eq_c(reason, s->reason) && str_eq_c(kind, s->kind) &&
            (!s->text || str_find(text, str_from(s->text), 0) != SIZE_MAX);
}

static size_t events(struct fleet *f, const char *kind, const char *reason, const char *text)
{
    struct search s = {kind, reason, text, 0};

    sim_each(f->sim, "Event", match_event, &s);
    return s.n;
}

/* A slow node: registered at 65 s, ready at 95 s, device at 155 s, startup taint gone at 245 s. */
static void one_pod_one_node_however_slow(void **state)
{
    struct fleet *f = started(NULL);

    (void)state;
    fleet_pool(f, "gpu", "\"g5.xlarge\"", "on-demand",
               ",\"taints\":[{\"key\":\"nvidia.com/"
               "gpu\",\"value\":\"present\",\"effect\":\"NoSchedule\"}],"
               "\"startupTaints\":[{\"key\":\"example.com/agents\",\"effect\":\"NoSchedule\"}]");
    fleet_apply(f, "{\"apiVersion\":\"weft.sh/"
                   "v1alpha1\",\"kind\":\"SimNodeClass\",\"metadata\":{\"name\":\"sim\"},\"spec\":{"
                   "\"launchDelay\":\"5s\",\"registrationDelay\":\"60s\",\"readyDelay\":\"30s\","
                   "\"deviceDelay\":\"60s\","
                   "\"startupTaintDelay\":\"150s\"}}");
    fleet_run(f, 2 * NS_PER_S);
    fleet_apply(
        f, "{\"apiVersion\":\"batch/"
           "v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"single\",\"namespace\":\"default\"},"
           "\"spec\":{\"parallelism\":1,\"completions\":1,\"template\":{\"metadata\":{\"labels\":{"
           "\"app\":\"single\"},\"annotations\":{\"sim.weft.sh/run-seconds\":\"3600\"}},\"spec\":{"
           "\"restartPolicy\":\"Never\",\"tolerations\":[{\"key\":\"nvidia.com/"
           "gpu\",\"operator\":\"Exists\"}],"
           "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{" GPU_POD
           "}}}]}}}}");
    fleet_run(f, 120 * NS_PER_S);
    assert_int_equal(fleet_launched(f), 1);
    fleet_apply(
        f, "{\"apiVersion\":\"batch/"
           "v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"second\",\"namespace\":\"default\"},"
           "\"spec\":{\"parallelism\":1,\"completions\":1,\"template\":{\"metadata\":{\"labels\":{"
           "\"app\":\"second\"},\"annotations\":{\"sim.weft.sh/run-seconds\":\"3600\"}},\"spec\":{"
           "\"restartPolicy\":\"Never\",\"tolerations\":[{\"key\":\"nvidia.com/"
           "gpu\",\"operator\":\"Exists\"}],"
           "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{" GPU_POD
           "}}}]}}}}");
    fleet_run(f, 110 * NS_PER_S);
    assert_int_equal(fleet_launched(f), 2);
    assert_int_equal(fleet_running(f, "single"),
                     0); /* the taint is still there, and so is the node */
    assert_int_equal(cloud_sim_running(f->cloud), 2);
    fleet_run(f, 30 * NS_PER_S);
    assert_int_equal(fleet_running(f, "single"), 1);
    fleet_run(f, 150 * NS_PER_S);
    assert_int_equal(fleet_running(f, "second"), 1);
    assert_int_equal(fleet_launched(f), 2);
    finish(f);
}

/* Sizes that fill nodes tightly: planned again from scratch they would not fit the same way. */
static void late_pods_do_not_disturb_what_was_promised(void **state)
{
    static const char *const sizes[] = {"700m",  "1100m", "1300m", "1700m",
                                        "2300m", "2900m", "3100m"};
    struct fleet *f = started(NULL);
    size_t launched;

    (void)state;
    fleet_pool(f, "cpu", "\"m5.large\",\"m5.xlarge\",\"m5.2xlarge\"", "on-demand", NULL);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char name[24], requests[64];

        snprintf(name, sizeof(name), "w%zu", i);
        snprintf(requests, sizeof(requests), "\"cpu\":\"%s\",\"memory\":\"1Gi\"", sizes[i]);
        fleet_deployment(f, name, 7, requests);
    }
    fleet_run(f, 10 * NS_PER_S);
    launched = fleet_launched(f);
    if (launched < 6)
        fail_msg("only %zu launches", launched);
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof(name), "l%d", i);
        fleet_deployment(f, name, 1, "\"cpu\":\"1800m\",\"memory\":\"1Gi\"");
        fleet_run(f, 5 * NS_PER_S);
    }
    if (fleet_launched(f) > launched + 4)
        fail_msg("%zu launches, then %zu for four more pods", launched,
                 fleet_launched(f) - launched);
    /* The scheduler spreads where the plan packs, so that more nodes may be needed in the end; that
     * all run is what can be asked here. */
    fleet_run(f, 5 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, NULL), 7 * ARRAY_LEN(sizes) + 4);
    finish(f);
}

static void the_next_offering_when_the_cheapest_is_out(void **state)
{
    struct fleet *f = started(NULL);
    const struct instance *v;
    size_t n;

    (void)state;
    cloud_sim_set_stock(f->cloud, "g4dn.xlarge", NULL, -1, 0);
    fleet_pool(f, "gpu", "\"g4dn.xlarge\",\"g5.xlarge\"", "on-demand", NULL);
    fleet_deployment(f, "web", 2, GPU_POD);
    fleet_run(f, 3 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "web"), 2);
    n = cloud_sim_instances(f->cloud, &v);
    assert_int_equal(n, 2);
    assert_string_equal(v[0].instance_type, "g5.xlarge");
    invariants_calm(f->invariants);
    finish(f);
}

static void nothing_anywhere_and_then_something(void **state)
{
    struct fleet *f = started(NULL);

    (void)state;
    cloud_sim_set_stock(f->cloud, NULL, NULL, -1, 0);
    fleet_pool(f, "gpu", "\"g5.xlarge\"", "on-demand", NULL);
    fleet_deployment(f, "web", 1, GPU_POD);
    fleet_run(f, 10 * NS_PER_MIN);
    assert_int_equal(fleet_launched(f), 0);
    assert_int_equal(sim_count(f->sim, "NodeClaim"), 0);
    assert_true(events(f, "NodeClaim", "InsufficientCapacityError", NULL) > 0);
    cloud_sim_set_stock(f->cloud, NULL, NULL, -1, -1);
    fleet_run(f, 40 * NS_PER_MIN); /* the pause of a few failures, and a boot */
    assert_int_equal(fleet_running(f, "web"), 1);
    invariants_calm(f->invariants);
    finish(f);
}

static void a_node_that_never_registers_is_replaced(void **state)
{
    struct control_options o = {.registration_deadline = 3 * NS_PER_MIN};
    struct fleet *f = started(&o);

    (void)state;
    cloud_sim_faults(f->cloud)->never_register_ppm = 1000000;
    fleet_pool(f, "gpu", "\"g5.xlarge\"", "on-demand", NULL);
    fleet_deployment(f, "web", 1, GPU_POD);
    fleet_run(f, 2 * NS_PER_MIN);
    assert_int_equal(fleet_launched(f), 1);
    cloud_sim_faults(f->cloud)->never_register_ppm = 0;
    fleet_run(f, 4 * NS_PER_MIN);
    assert_int_equal(fleet_launched(f), 2);
    assert_int_equal(cloud_sim_running(f->cloud), 1);
    assert_int_equal(fleet_running(f, "web"), 1);
    assert_int_equal(events(f, "NodeClaim", "RegistrationTimeout", NULL), 1);
    invariants_calm(f->invariants);
    finish(f);
}

static void a_device_that_never_comes_is_replaced(void **state)
{
    struct control_options o = {.initialization_deadline = 4 * NS_PER_MIN};
    struct fleet *f = started(&o);

    (void)state;
    cloud_sim_faults(f->cloud)->no_device_ppm = 1000000;
    fleet_pool(f, "gpu", "\"g5.xlarge\"", "on-demand", NULL);
    fleet_deployment(f, "web", 1, GPU_POD);
    fleet_run(f, 3 * NS_PER_MIN);
    assert_int_equal(fleet_launched(f), 1);
    cloud_sim_faults(f->cloud)->no_device_ppm = 0;
    fleet_run(f, 5 * NS_PER_MIN);
    assert_int_equal(fleet_launched(f), 2);
    assert_int_equal(fleet_running(f, "web"), 1);
    assert_int_equal(events(f, "NodeClaim", "InitializationTimeout", "nvidia.com/gpu"), 1);
    invariants_calm(f->invariants);
    finish(f);
}

static void a_pod_that_fits_nowhere_is_told_and_costs_nothing(void **state)
{
    struct fleet *f = started(NULL);
    struct control_state s;

    (void)state;
    fleet_pool(f, "cpu", "\"m5.large\"", "on-demand", NULL);
    fleet_deployment(f, "huge", 1, "\"cpu\":\"64\",\"memory\":\"1Gi\"");
    fleet_deployment(f, "small", 1, CPU_POD);
    fleet_run(f, 10 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "small"), 1); /* one does not delay the other */
    assert_int_equal(fleet_running(f, "huge"), 0);
    assert_int_equal(fleet_launched(f), 1);
    assert_int_equal(events(f, "Pod", "FailedScheduling", "cpu"), 1);
    control_state(f->control, &s);
    assert_int_equal(s.unschedulable_pods, 1);
    assert_true(s.plans < 20); /* tried again when something changed, not for ever */
    finish(f);
}

static void without_a_pool_the_workload_is_told(void **state)
{
    struct fleet *f = started(NULL);

    (void)state;
    fleet_deployment(f, "web", 3, CPU_POD);
    fleet_run(f, 2 * NS_PER_MIN);
    assert_int_equal(events(f, "Deployment", "NoNodePool", "there is no NodePool"), 1);
    fleet_pool(f, "cpu", "\"m5.large\",\"m5.xlarge\"", "on-demand", NULL);
    fleet_run(f, 3 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "web"), 3);
    finish(f);
}

static void observe_mode_has_no_effects(void **state)
{
    struct control_options o = {.observe = true};
    struct fleet *f = started(&o);

    (void)state;
    fleet_pool(f, "cpu", "\"m5.large\"", "on-demand", NULL);
    fleet_deployment(f, "web", 2, CPU_POD);
    fleet_run(f, 5 * NS_PER_MIN);
    assert_int_equal(f->effects, 0);
    assert_int_equal(fleet_launched(f), 0);
    assert_int_equal(sim_count(f->sim, "Event"), 0);
    assert_true(f->decisions > 0);
    assert_true(f->decisions < 20);
    fleet_free(f);
}

static void lease(struct fleet *f)
{
    CLEANUP(buf_release) struct buf b = BUF_INIT;
    char at[40];

    buf_printf(&b,
               "{\"apiVersion\":\"coordination.k8s.io/"
               "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"karpenter-leader-election\","
               "\"namespace\":\"kube-system\"},\"spec\":{\"holderIdentity\":\"k\","
               "\"leaseDurationSeconds\":15,\"renewTime\":\"%s\"}}",
               time_format_micro(at, loop_wall(f->loop)).p);
    fleet_apply(f, b.data);
}

static void a_live_karpenter_is_left_alone(void **state)
{
    struct fleet *f = fleet_new(5, NULL, NULL);

    (void)state;
    lease(f);
    fleet_start(f);
    fleet_pool(f, "cpu", "\"m5.large\"", "on-demand", NULL);
    fleet_deployment(f, "web", 1, CPU_POD);
    for (int i = 0; i < 20; i++) {
        fleet_run(f, 10 * NS_PER_S);
        lease(f);
    }
    assert_int_equal(fleet_launched(f), 0);
    assert_int_equal(f->effects, 0);
    fleet_run(f, 5 * NS_PER_MIN); /* nobody renews it any more */
    assert_int_equal(fleet_running(f, "web"), 1);
    finish(f);
}

static void a_bad_pool_says_so_and_the_last_good_one_works_on(void **state)
{
    struct fleet *f = started(NULL);
    const struct json *pool;

    (void)state;
    fleet_pool(f, "cpu", "\"m5.large\",\"m5.xlarge\"", "on-demand", NULL);
    fleet_run(f, 10 * NS_PER_S);
    (void)sim_patch(f->sim, "NodePool", NULL, "cpu", "{\"spec\":{\"weight\":1000}}", NULL);
    fleet_run(f, 10 * NS_PER_S);
    assert_int_equal(events(f, "NodePool", "NodePoolValidationFailed", "weight"), 1);
    pool = sim_get(f->sim, "NodePool", NULL, "cpu");
    assert_non_null(json_at(pool, "metadata", "annotations", "karpenter.sh/nodepool-hash", NULL));
    fleet_deployment(f, "web", 2, CPU_POD);
    fleet_run(f, 3 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "web"), 2);
    finish(f);
}

static void announced_pods_are_launched_for_at_once(void **state)
{
    struct sim_options slow = {.controller_delay = 8 * NS_PER_S};
    struct fleet *f = fleet_new(5, NULL, &slow);

    (void)state;
    fleet_start(f);
    fleet_pool(f, "gpu", "\"g5.xlarge\"", "on-demand", NULL);
    fleet_deployment(f, "web", 0, GPU_POD);
    (void)sim_patch(f->sim, "Deployment", "default", "web",
                    "{\"metadata\":{\"annotations\":{\"weft.sh/triggers\":\"- type: cron\"}}}",
                    NULL);
    fleet_run(f, 60 * NS_PER_S);
    fleet_scale(f, "web", 2);
    fleet_run(f, 2 * NS_PER_S);
    assert_int_equal(fleet_pods(f, "web"),
                     0); /* no pod exists, and both machines are on their way */
    assert_int_equal(fleet_launched(f), 2);
    fleet_run(f, 4 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "web"), 2);
    assert_int_equal(fleet_launched(f), 2);
    invariants_calm(f->invariants);
    finish(f);
}

static void an_interrupted_node_is_drained_and_replaced(void **state)
{
    struct fleet *f = started(NULL);
    const struct instance *v;

    (void)state;
    fleet_pool(f, "cpu", "\"m5.large\"", "spot", NULL);
    fleet_deployment(f, "web", 1, CPU_POD);
    fleet_run(f, 3 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "web"), 1);
    (void)cloud_sim_instances(f->cloud, &v);
    assert_true(cloud_sim_interrupt(f->cloud, v[0].provider_id, 120 * NS_PER_S));
    fleet_run(f, 115 * NS_PER_S);
    assert_int_equal(fleet_running(f, "web"), 1); /* elsewhere, before the end */
    assert_int_equal(fleet_launched(f), 2);
    fleet_run(f, 5 * NS_PER_MIN);
    invariants_calm(f->invariants);
    finish(f);
}

static void a_budget_of_evictions_is_respected_in_a_drain(void **state)
{
    struct fleet *f = started(NULL);
    struct object *o;

    (void)state;
    fleet_pool(f, "cpu", "\"m5.2xlarge\"", "on-demand", NULL);
    fleet_deployment(f, "web", 4, CPU_POD);
    fleet_apply(f,
                "{\"apiVersion\":\"policy/"
                "v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"p\",\"namespace\":"
                "\"default\"},"
                "\"spec\":{\"minAvailable\":3,\"selector\":{\"matchLabels\":{\"app\":\"web\"}}}}");
    fleet_run(f, 3 * NS_PER_MIN);
    assert_int_equal(fleet_running(f, "web"), 4);
    assert_int_equal(fleet_nodes(f), 1);
    o = NULL;
    {
        const struct instance *v;
        char name[256];

        (void)cloud_sim_instances(f->cloud, &v);
        snprintf(name, sizeof(name), "%s", v[0].nodeclaim);
        assert_int_equal(sim_delete(f->sim, "NodeClaim", NULL, name, -1, NULL), 0);
    }
    (void)o;
    for (int i = 0; i < 300; i++) {
        fleet_run(f, NS_PER_S);
        assert_true(fleet_running(f, "web") >= 3);
    }
    assert_int_equal(fleet_running(f, "web"), 4);
    assert_int_equal(invariants_evictions(f->invariants), 4);
    assert_int_equal(cloud_sim_running(f->cloud), 1);
    invariants_calm(f->invariants);
    finish(f);
}

static void an_instance_without_a_claim_is_collected(void **state)
{
    struct fleet *f = started(NULL);

    (void)state;
    fleet_pool(f, "cpu", "\"m5.large\"", "on-demand", NULL);
    fleet_deployment(f, "web", 1, CPU_POD);
    fleet_run(f, 3 * NS_PER_MIN);
    assert_non_null(cloud_sim_adopt(f->cloud, "sim:///us-east-1a/i-lost", "m5.large", "us-east-1a",
                                    CAPACITY_ON_DEMAND, "cpu-lost", "cpu", "default"));
    assert_non_null(cloud_sim_adopt(f->cloud, "sim:///us-east-1a/i-foreign", "m5.large",
                                    "us-east-1a", CAPACITY_ON_DEMAND, NULL, NULL, "elsewhere"));
    assert_int_equal(cloud_sim_running(f->cloud), 3);
    fleet_run(f, 6 * NS_PER_MIN);
    assert_int_equal(cloud_sim_running(f->cloud), 2); /* ours, and the one of somebody else */
    assert_int_equal(fleet_running(f, "web"), 1);
    finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pod_one_node_however_slow),
        cmocka_unit_test(late_pods_do_not_disturb_what_was_promised),
        cmocka_unit_test(the_next_offering_when_the_cheapest_is_out),
        cmocka_unit_test(nothing_anywhere_and_then_something),
        cmocka_unit_test(a_node_that_never_registers_is_replaced),
        cmocka_unit_test(a_device_that_never_comes_is_replaced),
        cmocka_unit_test(a_pod_that_fits_nowhere_is_told_and_costs_nothing),
        cmocka_unit_test(without_a_pool_the_workload_is_told),
        cmocka_unit_test(observe_mode_has_no_effects),
        cmocka_unit_test(a_live_karpenter_is_left_alone),
        cmocka_unit_test(a_bad_pool_says_so_and_the_last_good_one_works_on),
        cmocka_unit_test(announced_pods_are_launched_for_at_once),
        cmocka_unit_test(an_interrupted_node_is_drained_and_replaced),
        cmocka_unit_test(a_budget_of_evictions_is_respected_in_a_drain),
        cmocka_unit_test(an_instance_without_a_claim_is_collected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
