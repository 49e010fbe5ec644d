/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Draining: tiers, deadlines, volumes, and that nothing is let go while its instance lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "provisioner/control/drain.h"

#define T0 (20000 * NS_PER_DAY)

static const char *const finalizers[] = {FINALIZER_TERMINATION};
static const struct owner_ref daemon_owner = {
    .api_version = "apps/v1", .kind = "DaemonSet", .name = "d", .uid = "d", .controller = true};
static const struct taint disrupted[] = {{.key = TAINT_DISRUPTED, .effect = TAINT_NO_SCHEDULE}};
static const struct label balancers[] = {{LABEL_EXCLUDE_BALANCERS, "karpenter"}};
static const struct condition ready[] = {{.type = "Ready", .status = CONDITION_TRUE}};
static const struct toleration everything[] = {{.exists = true}};
static const struct label protect[] = {{ANNOTATION_DO_NOT_DISRUPT, "true"}};
static const struct label protect_an_hour[] = {{ANNOTATION_DO_NOT_DISRUPT, "1h"}};
static char timestamp[40];
static struct label deadline_label[] = {{ANNOTATION_TERMINATION_TIMESTAMP, timestamp}};

enum { PODS = 6 };

struct fixture {
    struct nodeclaim claim;
    struct node node;
    struct pod pods[PODS];
    const struct pod *list[PODS];
    struct volume_attachment volume;
    const struct volume_attachment *volumes[1];
    struct drain_view view;
    struct drain_step step;
};

/* A tainted, deleted node with its pods all in tier 0, drained since T0. */
static void set_up(struct fixture *f, size_t n_pods)
{
    memset(f, 0, sizeof(*f));
    f->claim.obj.meta.finalizers = (struct string_list){finalizers, 1};
    f->claim.obj.meta.deletion = T0;
    f->claim.spec.termination_grace = -1;
    f->claim.provider_id = "p";
    f->node.obj.meta.finalizers = (struct string_list){finalizers, 1};
    f->node.obj.meta.deletion = T0;
    f->node.obj.meta.labels = (struct labels){balancers, 1};
    f->node.taints = disrupted;
    f->node.n_taints = 1;
    f->node.conditions = (struct conditions){ready, 1};
    for (size_t i = 0; i < n_pods; i++) {
        f->pods[i].obj.kind = &kind_pod;
        f->pods[i].phase = POD_RUNNING;
        f->pods[i].spec.grace_s = 30;
        f->list[i] = &f->pods[i];
    }
    f->volume.node_name = "n";
    f->volume.attached = true;
    f->volumes[0] = &f->volume;
    f->view = (struct drain_view){.claim = &f->claim,
                                  .node = &f->node,
                                  .pods = f->list,
                                  .n_pods = n_pods,
                                  .instance = INSTANCE_LIVES,
                                  .drain_started = T0};
}

static enum drain_verb step(struct fixture *f, int64_t after)
{
    drain_step(&f->view, T0 + after, &f->step);
    return f->step.verb;
}

static void deadline(struct fixture *f, int64_t after)
{
    snprintf(timestamp, sizeof(timestamp), "%s", time_format((char[40]){0}, T0 + after).p);
    f->claim.obj.meta.annotations = (struct labels){deadline_label, 1};
}

static void the_order_of_things(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, 1);
    f.claim.spec.termination_grace = NS_PER_HOUR;
    assert_int_equal(step(&f, 0), DRAIN_STAMP);
    assert_int_equal(f.step.deadline, T0 + NS_PER_HOUR);
    set_up(&f, 1);
    f.node.n_taints = 0;
    assert_int_equal(step(&f, 0), DRAIN_TAINT);
    f.node.n_taints = 1;
    f.node.obj.meta.deletion = 0;
    assert_int_equal(step(&f, 0), DRAIN_DELETE_NODE);
    f.node.obj.meta.deletion = T0;
    assert_int_equal(step(&f, 0), DRAIN_EVICT);
    assert_int_equal(f.step.pods[0].grace_s, -1);
    f.pods[0].obj.meta.deletion = T0 + 30 * NS_PER_S;
    assert_int_equal(step(&f, NS_PER_S), DRAIN_WAIT);
    f.view.n_pods = 0;
    assert_int_equal(step(&f, NS_PER_S), DRAIN_WAIT); /* the least drain */
    assert_int_equal(f.step.at, T0 + DRAIN_LEAST);
    assert_int_equal(step(&f, DRAIN_LEAST), DRAIN_TERMINATE);
    f.view.instance = INSTANCE_GONE;
    assert_int_equal(step(&f, DRAIN_LEAST), DRAIN_RELEASE_NODE);
    f.view.node = NULL;
    assert_int_equal(step(&f, DRAIN_LEAST), DRAIN_RELEASE_CLAIM);
    f.claim.obj.meta.finalizers.n = 0;
    assert_int_equal(step(&f, DRAIN_LEAST), DRAIN_WAIT);
}

static void tiers_one_after_the_other(void **state)
{
    static const char *const critical[] = {"system-cluster-critical", "system-node-critical"};
    struct fixture f;

    (void)state;
    set_up(&f, 4);
    f.pods[1].obj.meta.owners = &daemon_owner;
    f.pods[1].obj.meta.n_owners = 1;
    f.pods[2].spec.priority_class = critical[0];
    f.pods[3].spec.priority_class = critical[1];
    f.pods[3].obj.meta.owners = &daemon_owner;
    f.pods[3].obj.meta.n_owners = 1;
    for (size_t gone = 0; gone < 4; gone++) {
        assert_int_equal(step(&f, 0), DRAIN_EVICT);
        assert_int_equal(f.step.n_pods, 1);
        assert_ptr_equal(f.step.pods[0].pod, &f.pods[gone]);
        f.pods[gone].obj.meta.deletion = T0 + 30 * NS_PER_S;
        assert_int_equal(step(&f, 0),
                         DRAIN_WAIT); /* it has to be gone before the next tier begins */
        f.pods[gone].phase = POD_SUCCEEDED;
    }
    assert_int_equal(step(&f, DRAIN_LEAST), DRAIN_TERMINATE);
}

static void who_is_left_alone(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, 3);
    f.pods[0].spec.tolerations = everything;
    f.pods[0].spec.n_tolerations = 1;
    f.pods[1].phase = POD_FAILED;
    f.pods[2].obj.meta.deletion = T0 - NS_PER_MIN; /* past its own end by more than a minute */
    assert_int_equal(step(&f, DRAIN_LEAST), DRAIN_TERMINATE);
}

static void do_not_disrupt_holds_until_the_deadline(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, 2);
    f.pods[0].obj.meta.annotations = (struct labels){protect, 1};
    f.pods[1].obj.meta.annotations = (struct labels){protect_an_hour, 1};
    f.pods[1].start_time = T0;
    assert_int_equal(step(&f, NS_PER_MIN), DRAIN_WAIT);
    assert_int_equal(step(&f, NS_PER_HOUR), DRAIN_EVICT);
    assert_int_equal(f.step.n_pods, 1);
    assert_ptr_equal(f.step.pods[0].pod, &f.pods[1]);
    deadline(&f, 2 * NS_PER_HOUR);
    assert_int_equal(step(&f, 2 * NS_PER_HOUR - 10 * NS_PER_S), DRAIN_EVICT);
    assert_int_equal(f.step.n_pods, 2);
    assert_int_equal(f.step.pods[0].grace_s, 10); /* less than its own 30 s: the deadline is near */
}

static void a_deadline_forces_every_tier(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, 2);
    f.pods[0].spec.grace_s = 600;
    f.pods[1].spec.priority_class = "system-node-critical";
    deadline(&f, 300 * NS_PER_S);
    assert_int_equal(step(&f, 0), DRAIN_EVICT); /* pod 0 would not end in time */
    assert_int_equal(f.step.n_pods, 1);
    assert_ptr_equal(f.step.pods[0].pod, &f.pods[0]);
    assert_int_equal(f.step.pods[0].grace_s, 300);
    f.pods[0].obj.meta.deletion = T0 + 300 * NS_PER_S;
    assert_int_equal(step(&f, 100 * NS_PER_S), DRAIN_WAIT);
    assert_int_equal(f.step.at, T0 + 270 * NS_PER_S); /* when the critical pod must be told */
    assert_int_equal(step(&f, 270 * NS_PER_S), DRAIN_EVICT);
    assert_ptr_equal(f.step.pods[0].pod, &f.pods[1]);
    assert_int_equal(f.step.pods[0].grace_s, 30);
    assert_int_equal(step(&f, 400 * NS_PER_S), DRAIN_EVICT);
    assert_int_equal(f.step.pods[0].grace_s, 1);
}

static void volumes_are_waited_for(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, 0);
    f.view.attachments = f.volumes;
    f.view.n_attachments = 1;
    assert_int_equal(step(&f, NS_PER_HOUR), DRAIN_WAIT);
    assert_string_equal(f.step.conditions[1].reason, "AwaitingVolumeDetachment");
    deadline(&f, NS_PER_HOUR);
    assert_int_equal(step(&f, NS_PER_HOUR), DRAIN_TERMINATE);
    assert_string_equal(f.step.conditions[1].reason, "TerminationGracePeriodElapsed");
}

static void a_dead_machine_is_let_go_at_once(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f, 2);
    f.node.conditions.n = 0;
    assert_int_equal(step(&f, 0), DRAIN_EVICT); /* silent is not gone */
    f.view.instance = INSTANCE_GONE;
    assert_int_equal(step(&f, 0), DRAIN_RELEASE_NODE);
}

/* Whatever is seen: while the instance may live, no finalizer comes off. */
static void nothing_is_let_go_while_the_instance_lives(void **state)
{
    struct rng r;
    struct fixture f;

    (void)state;
    rng_init(&r, 3);
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)rng_below(&r, PODS + 1);
        enum drain_verb verb;

        set_up(&f, n);
        for (size_t p = 0; p < n; p++) {
            f.pods[p].phase = (enum pod_phase)rng_below(&r, 4);
            f.pods[p].obj.meta.deletion =
                rng_chance(&r, 300000) ? T0 + (int64_t)rng_below(&r, 60) * NS_PER_S : 0;
        }
        f.view.instance = (enum drain_instance)rng_below(&r, 4);
        f.node.n_taints = (uint32_t)rng_below(&r, 2);
        f.node.obj.meta.deletion = rng_chance(&r, 500000) ? T0 : 0;
        f.node.conditions.n = (uint32_t)rng_below(&r, 2);
        f.view.node = rng_chance(&r, 800000) ? &f.node : NULL;
        if (rng_chance(&r, 500000))
            deadline(&f, (int64_t)rng_below(&r, 600) * NS_PER_S);
        verb = step(&f, (int64_t)rng_below(&r, 1000) * NS_PER_S);
        if (verb == DRAIN_RELEASE_NODE || verb == DRAIN_RELEASE_CLAIM)
            assert_true(f.view.instance == INSTANCE_GONE || f.view.instance == INSTANCE_NEVER);
        if (verb == DRAIN_RELEASE_CLAIM)
            assert_null(f.view.node);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_things),
        cmocka_unit_test(tiers_one_after_the_other),
        cmocka_unit_test(who_is_left_alone),
        cmocka_unit_test(do_not_disrupt_holds_until_the_deadline),
        cmocka_unit_test(a_deadline_forces_every_tier),
        cmocka_unit_test(volumes_are_waited_for),
        cmocka_unit_test(a_dead_machine_is_let_go_at_once),
        cmocka_unit_test(nothing_is_let_go_while_the_instance_lives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
