/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What counts as empty, and when the quiet period starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "provisioner/disrupt/empty.h"

#define T0 (20000 * NS_PER_DAY)

static const struct condition initialized[] = {
    {.type = "Initialized", .status = CONDITION_TRUE, .last_transition = T0}};
static const struct owner_ref daemon_owner = {
    .api_version = "apps/v1", .kind = "DaemonSet", .name = "d", .uid = "d", .controller = true};
static const struct label mirror[] = {{"kubernetes.io/config.mirror", "x"}};
static const struct label protect[] = {{ANNOTATION_DO_NOT_DISRUPT, "true"}};
static const struct taint startup[] = {{.key = "agents", .effect = TAINT_NO_SCHEDULE}};

struct fixture {
    struct nodeclaim claim;
    struct node node;
    struct nodepool pool;
    struct pod pods[2];
    const struct pod *list[2];
    struct empty_view view;
};

static void set_up(struct fixture *f)
{
    *f = (struct fixture){.pool = {.consolidate_after = 5 * NS_PER_MIN, .replicas = -1}};
    f->claim.conditions = (struct conditions){initialized, 1};
    for (size_t i = 0; i < 2; i++) {
        f->pods[i].obj.kind = &kind_pod;
        f->list[i] = &f->pods[i];
    }
    f->view = (struct empty_view){
        .claim = &f->claim, .node = &f->node, .pool = &f->pool, .pods = f->list};
}

static enum empty_verdict verdict(struct fixture *f, int64_t after)
{
    return empty_judge(&f->view, T0 + after).verdict;
}

static void the_quiet_period(void **state)
{
    struct fixture f;
    struct empty_answer a;

    (void)state;
    set_up(&f);
    assert_int_equal(verdict(&f, 5 * NS_PER_MIN - 1), EMPTY_QUIET);
    assert_int_equal(verdict(&f, 5 * NS_PER_MIN), EMPTY_REMOVABLE);
    f.view.last_pod_event = T0 + NS_PER_HOUR;
    a = empty_judge(&f.view, T0 + NS_PER_HOUR);
    assert_int_equal(a.verdict, EMPTY_QUIET);
    assert_int_equal(a.since, T0 + NS_PER_HOUR);
    assert_int_equal(a.at, T0 + NS_PER_HOUR + 5 * NS_PER_MIN);
    f.view.last_pod_event = 0;
    f.claim.last_pod_event = T0 + 2 * NS_PER_HOUR; /* what another process had written */
    assert_int_equal(verdict(&f, 2 * NS_PER_HOUR + NS_PER_MIN), EMPTY_QUIET);
    f.pool.consolidate_after = 0;
    assert_int_equal(verdict(&f, 2 * NS_PER_HOUR), EMPTY_REMOVABLE);
}

static void who_keeps_a_node(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f);
    f.view.n_pods = 2;
    f.pods[0].obj.meta.owners = &daemon_owner;
    f.pods[0].obj.meta.n_owners = 1;
    f.pods[1].phase = POD_SUCCEEDED;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_REMOVABLE);
    f.pods[1].phase = POD_RUNNING;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_IN_USE);
    f.pods[1].obj.meta.deletion = T0; /* it is ending, and still there */
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_IN_USE);
    f.pods[1].obj.meta.annotations = (struct labels){mirror, 1};
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_REMOVABLE);
}

static void capacity_on_its_way_is_not_empty(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f);
    f.view.nominated = 1;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_EXPECTED);
    f.view.nominated = 0;
    f.claim.spec.startup_taints = f.node.taints = startup;
    f.claim.spec.n_startup_taints = f.node.n_taints = 1;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_NOT_READY_YET);
    f.node.n_taints = 0;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_REMOVABLE);
    f.claim.conditions.n = 0;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_NOT_READY_YET);
}

static void who_never_goes(void **state)
{
    struct fixture f;

    (void)state;
    set_up(&f);
    f.node.obj.meta.annotations = (struct labels){protect, 1};
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_PROTECTED);
    set_up(&f);
    f.pool.consolidate_after = TIME_NEVER;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_NOT_MANAGED);
    set_up(&f);
    f.pool.replicas = 3;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_NOT_MANAGED);
    set_up(&f);
    f.view.claim = NULL;
    assert_int_equal(verdict(&f, NS_PER_HOUR), EMPTY_NOT_MANAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quiet_period),
        cmocka_unit_test(who_keeps_a_node),
        cmocka_unit_test(capacity_on_its_way_is_not_empty),
        cmocka_unit_test(who_never_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
