/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Watches, workloads, nodes and budgets: the cluster as it runs. */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "kube/api/pdb.h"
#include "kube/api/pod.h"
#include "kube/api/workload.h"
#include "test/unit/kube_sim/raw.h"

#define PODS "/api/v1/namespaces/default/pods"
#define TEMPLATE                                                                                   \
    "\"selector\":{\"matchLabels\":{\"app\":\"a\"}},\"template\":{\"metadata\":{\"labels\":{"      \
    "\"app\":\"a\"}},"                                                                             \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}]}" \
    "}"

static int setup(void **state)
{
    struct raw *r = xcalloc(1, sizeof(*r));
    raw_open(r, 1, NULL);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    raw_close(*state);
    free(*state);
    return 0;
}

static void apply(struct raw *r, const char *text)
{
    struct err err = ERR_INIT;
    if (!sim_apply_text(r->sim, text, &err))
        fail_msg("%s", err.msg);
}

struct tally {
    size_t all, ready, bound, staying, ended;
    const char *node; /* counts only pods of this node */
};

static void count_pod(void *arg, struct object *o)
{
    struct tally *t = arg;
    const struct pod *p = pod_of(o);
    if (t->node && (!p->spec.node_name || strcmp(p->spec.node_name, t->node) != 0))
        return;
    t->all++;
    t->ready += pod_is_ready(p);
    t->bound += p->spec.node_name != NULL;
    t->staying += !pod_is_terminating(p);
    t->ended += pod_is_terminal(p);
}

static struct tally count(struct raw *r, const char *node)
{
    struct tally t = {.node = node};
    sim_each_object(r->sim, &kind_pod, count_pod, &t);
    return t;
}

static int64_t field(struct raw *r, const char *kind, const char *name, const char *a,
                     const char *b)
{
    return json_i64(json_at(sim_get(r->sim, kind, NULL, name), a, b, NULL), -1);
}

/* ---- Watches ---- */

static void test_watch_tells_changes(void **state)
{
    struct raw *r = *state;
    struct raw_watch w, behind;
    raw_pod(r, "a", "");
    raw_watch(r, NULL, PODS "?watch=true", &w);
    struct http *slow = sim_http(r->sim, "slow", 5 * NS_PER_S);
    raw_watch(r, slow, PODS "?watch=true&labelSelector=tier%3Dweb", &behind);
    raw_run(r, 1);
    assert_int_equal(w.status, 200);
    assert_int_equal(raw_watch_count(&w, "\"type\":\"ADDED\""), 1);
    sim_patch(r->sim, "Pod", NULL, "a", "{\"metadata\":{\"labels\":{\"tier\":\"web\"}}}", NULL);
    raw_run(r, 1);
    assert_true(raw_watch_count(&w, "\"type\":\"MODIFIED\"") >= 1);
    assert_int_equal(behind.text.len, 0); /* its lag has not passed */
    raw_run(r, 5);
    assert_int_equal(raw_watch_count(&behind, "\"type\":\"ADDED\""), 1);
    sim_patch(r->sim, "Pod", NULL, "a", "{\"metadata\":{\"labels\":{\"tier\":\"db\"}}}", NULL);
    raw_run(r, 6);
    assert_int_equal(raw_watch_count(&behind, "\"type\":\"DELETED\""), 1); /* left the selection */
    sim_delete(r->sim, "Pod", NULL, "a", 0, NULL);
    raw_run(r, 1);
    assert_int_equal(raw_watch_count(&w, "\"type\":\"DELETED\""), 1);
    http_close(slow);
    buf_release(&behind.text);
    buf_release(&w.text);
}

static void test_watch_resumes_and_expires(void **state)
{
    (void)state;
    struct raw raw, *r = &raw;
    raw_open(r, 1, &(struct sim_options){.no_scheduler = true});
    struct raw_watch w, old, now;
    char path[128];
    raw_pod(r, "a", "");
    uint64_t version = sim_version(r->sim);
    raw_run(r, 1);
    raw_pod(r, "b", "");
    snprintf(path, sizeof(path), PODS "?watch=1&allowWatchBookmarks=true&resourceVersion=%llu",
             (unsigned long long)version);
    raw_watch(r, NULL, path, &w);
    raw_run(r, 1);
    assert_int_equal(raw_watch_count(&w, "\"name\":\"b\""), raw_watch_count(&w, "\"type\":"));
    raw_run(r, 61);
    assert_int_equal(raw_watch_count(&w, "BOOKMARK"), 1);
    sim_expire_history(r->sim);
    raw_watch(r, NULL, path, &old);
    raw_run(r, 1);
    assert_int_equal(old.status, 410);
    snprintf(path, sizeof(path), PODS "?watch=1&resourceVersion=%llu",
             (unsigned long long)sim_version(r->sim));
    raw_watch(r, NULL, path, &now);
    raw_run(r, 1);
    assert_int_equal(now.status, 200);
    sim_faults(r->sim)->watch_drop = 1000000;
    raw_pod(r, "c", "");
    raw_run(r, 1);
    assert_true(now.ended);
    assert_int_equal(raw_watch_count(&now, "\"type\":"), 1); /* the event came, then the end */
    buf_release(&w.text);
    buf_release(&old.text);
    buf_release(&now.text);
    raw_close(r);
}

static void test_watch_behind_the_ring(void **state)
{
    (void)state;
    struct raw r;
    struct raw_watch w;
    raw_open(&r, 1,
             &(struct sim_options){.history = 4, .no_scheduler = true, .no_controllers = true});
    raw_watch(&r, NULL, PODS "?watch=true", &w);
    sim_http_lag(r.http, NS_PER_S);
    raw_run(&r, 0.5);
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        raw_pod(&r, name, "");
    }
    raw_run(&r, 2);
    assert_int_equal(raw_watch_count(&w, "\"code\":410"), 1);
    assert_true(w.ended);
    buf_release(&w.text);
    raw_close(&r);
}

/* ---- Workloads ---- */

static void test_deployment_runs_and_shrinks(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"apps/"
             "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":"
             "5," TEMPLATE "}}");
    raw_run(r, 10);
    assert_int_equal(count(r, NULL).ready, 5);
    assert_int_equal(field(r, "Deployment", "d", "status", "readyReplicas"), 5);
    assert_int_equal(field(r, "Deployment", "d", "status", "observedGeneration"), 1);
    sim_patch(r->sim, "Deployment", NULL, "d", "{\"spec\":{\"replicas\":2}}", NULL);
    raw_run(r, 10);
    assert_int_equal(count(r, NULL).all, 2);
    assert_int_equal(field(r, "Deployment", "d", "status", "replicas"), 2);
    sim_delete(r->sim, "Deployment", NULL, "d", -1, NULL);
    raw_run(r, 10);
    assert_int_equal(count(r, NULL).all, 0); /* collected through the ReplicaSet */
    assert_int_equal(sim_count(r->sim, "ReplicaSet"), 0);
    assert_true(sim_idle(r->sim));
}

static void test_rolling_update(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"apps/"
             "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":"
             "8," TEMPLATE "}}");
    raw_run(r, 10);
    sim_patch(r->sim, "Deployment", NULL, "d",
              "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"v\":\"2\"}}}}}", NULL);
    for (int i = 0; i < 60; i++) {
        raw_run(r, 0.5);
        assert_true(count(r, NULL).ready >= 6);
        assert_true(count(r, NULL).staying <= 8 + 2);
    }
    assert_int_equal(count(r, NULL).ready, 8);
    assert_int_equal(field(r, "Deployment", "d", "status", "updatedReplicas"), 8);
}

static void test_jobs(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"batch/"
             "v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},\"spec\":{\"parallelism\":2,"
             "\"completions\":5,\"completionMode\":\"Indexed\",\"template\":{\"metadata\":{"
             "\"annotations\":{\"sim.weft.sh/run-seconds\":\"30\"}},"
             "\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\"}]}}}}");
    raw_run(r, 10);
    assert_int_equal(count(r, NULL).ready, 2);
    raw_run(r, 200);
    assert_int_equal(count(r, NULL).ended, 5);
    assert_int_equal(field(r, "Job", "j", "status", "succeeded"), 5);
    const struct workload *w = workload_of(sim_object(r->sim, &kind_job, NULL, "j"));
    assert_true(condition_is(&w->conditions, "Complete", CONDITION_TRUE));
}

static void test_cronjob(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"batch/"
             "v1\",\"kind\":\"CronJob\",\"metadata\":{\"name\":\"c\"},\"spec\":{\"schedule\":\"*/5 "
             "* * * *\","
             "\"jobTemplate\":{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"sim.weft."
             "sh/run-seconds\":\"1\"}},"
             "\"spec\":{\"containers\":[{\"name\":\"c\"}]}}}}}}");
    raw_run(r, 299);
    assert_int_equal(sim_count(r->sim, "Job"), 0);
    raw_run(r, 11 * 60);
    assert_int_equal(sim_count(r->sim, "Job"), 3);
    raw_run(r, 3600);
    assert_true(sim_count(r->sim, "Job") <= 4);
}

static void test_statefulset_in_order(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"apps/"
             "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"s\"},\"spec\":{\"replicas\":"
             "3," TEMPLATE "}}");
    raw_run(r, 1);
    assert_int_equal(count(r, NULL).all, 1);
    raw_run(r, 20);
    assert_int_equal(count(r, NULL).ready, 3);
    assert_non_null(sim_get(r->sim, "Pod", NULL, "s-2"));
    sim_patch(r->sim, "StatefulSet", NULL, "s", "{\"spec\":{\"replicas\":1}}", NULL);
    raw_run(r, 20);
    assert_int_equal(count(r, NULL).all, 1);
    assert_non_null(sim_get(r->sim, "Pod", NULL, "s-0"));
}

static void test_daemonset_follows_nodes(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"apps/"
             "v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":\"ds\"},\"spec\":{" TEMPLATE "}}");
    raw_run(r, 10);
    assert_int_equal(count(r, "n1").ready, 1);
    raw_node(r, "n2", "b", 4000);
    raw_run(r, 10);
    assert_int_equal(count(r, "n2").ready, 1);
    sim_patch(r->sim, "Node", NULL, "n2",
              "{\"spec\":{\"taints\":[{\"key\":\"x\",\"effect\":\"NoSchedule\"}]}}", NULL);
    sim_delete(r->sim, "Pod", NULL, "ds-none", 0, NULL);
    raw_run(r, 10);
    assert_int_equal(count(r, "n2").ready, 1); /* NoSchedule moves nobody */
    struct sim_node tainted = {.name = "n3",
                               .taints = (const struct taint[]){{"y", NULL, TAINT_NO_SCHEDULE, 0}},
                               .n_taints = 1};
    sim_node_add(r->sim, &tainted);
    raw_run(r, 10);
    assert_int_equal(count(r, NULL).all, 2);
    sim_delete(r->sim, "Node", NULL, "n2", -1, NULL);
    raw_run(r, 60);
    assert_int_equal(count(r, NULL).all, 1); /* its pod was collected */
}

/* ---- Budgets ---- */

static void test_budget_status(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"apps/"
             "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":"
             "5," TEMPLATE "}}");
    apply(r,
          "{\"apiVersion\":\"policy/"
          "v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"b\"},"
          "\"spec\":{\"maxUnavailable\":\"30%\",\"selector\":{\"matchLabels\":{\"app\":\"a\"}}}}");
    raw_run(r, 10);
    assert_int_equal(field(r, "PodDisruptionBudget", "b", "status", "expectedPods"), 5);
    assert_int_equal(field(r, "PodDisruptionBudget", "b", "status", "desiredHealthy"),
                     3); /* 5 - ceil(1.5) */
    assert_int_equal(field(r, "PodDisruptionBudget", "b", "status", "disruptionsAllowed"), 2);
    sim_node_down(r->sim, "n1");
    raw_run(r, 45);
    assert_int_equal(field(r, "PodDisruptionBudget", "b", "status", "currentHealthy"), 0);
    assert_int_equal(field(r, "PodDisruptionBudget", "b", "status", "disruptionsAllowed"), 0);
}

/* ---- Nodes ---- */

static bool has_taint(struct raw *r, const char *node, const char *key)
{
    const struct json *list = json_at(sim_get(r->sim, "Node", NULL, node), "spec", "taints", NULL);
    for (size_t i = 0; list && i < list->n; i++)
        if (str_eq_c(json_text(json_get(list->items[i], "key")), key))
            return true;
    return false;
}

static void test_node_stages(void **state)
{
    struct raw *r = *state;
    const struct resource_amount v[] = {
        {"cpu", 4000}, {"memory", INT64_C(8) << 30}, {"nvidia.com/gpu", 1}, {"pods", 110}};
    struct sim_node n = {
        .name = "g",
        .provider_id = "sim:///a/i-1",
        .zone = "a",
        .taints = (const struct taint[]){{"karpenter.sh/unregistered", NULL, TAINT_NO_EXECUTE, 0}},
        .n_taints = 1};
    n.capacity = n.allocatable = (struct resource_list){v, 4};
    raw_pod(r, "p", ",\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"1\"}}");
    sim_node_register(r->sim, &n);
    raw_run(r, 2);
    assert_true(has_taint(r, "g", "node.kubernetes.io/not-ready"));
    assert_null(json_at(sim_get(r->sim, "Node", NULL, "g"), "status", "allocatable",
                        "nvidia.com/gpu", NULL));
    sim_node_ready(r->sim, "g");
    raw_run(r, 2);
    assert_false(has_taint(r, "g", "node.kubernetes.io/not-ready"));
    assert_true(has_taint(r, "g", "karpenter.sh/unregistered"));
    sim_node_remove_taint(r->sim, "g", "karpenter.sh/unregistered", TAINT_ANY_EFFECT);
    raw_run(r, 20);
    assert_int_equal(count(r, NULL).bound, 0); /* no device yet */
    sim_node_devices(r->sim, "g", &n.capacity, &n.allocatable);
    raw_run(r, 20);
    assert_int_equal(count(r, NULL).ready, 1);
}

static void test_node_goes_silent(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    apply(r, "{\"apiVersion\":\"apps/"
             "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":"
             "3," TEMPLATE "}}");
    raw_run(r, 10);
    raw_node(r, "n2", "a", 4000);
    sim_node_down(r->sim, "n1");
    raw_run(r, 39);
    assert_int_equal(count(r, "n1").ready, 3);
    raw_run(r, 2);
    assert_true(has_taint(r, "n1", "node.kubernetes.io/unreachable"));
    assert_int_equal(count(r, "n1").ready, 0);
    raw_run(r, 295);
    assert_int_equal(count(r, "n2").all, 0);
    raw_run(r, 20);
    assert_int_equal(count(r, "n2").ready, 3); /* after five minutes they are replaced */
    assert_int_equal(count(r, "n1").all, 3);   /* nobody there to end them */
    sim_delete(r->sim, "Node", NULL, "n1", -1, NULL);
    raw_run(r, 60);
    assert_int_equal(count(r, NULL).all, 3);
}

static void test_eviction_by_taint(void **state)
{
    struct raw *r = *state;
    raw_node(r, "n1", "a", 4000);
    raw_pod(r, "stays", ",\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\"}]");
    raw_pod(r, "later",
            ",\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
            "\"tolerationSeconds\":60}]");
    raw_pod(r, "goes", "");
    raw_run(r, 5);
    sim_patch(r->sim, "Node", NULL, "n1",
              "{\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoExecute\"}]}}", NULL);
    raw_run(r, 5);
    assert_null(sim_get(r->sim, "Pod", NULL, "goes"));
    assert_int_equal(count(r, NULL).ready, 2);
    raw_run(r, 60);
    assert_int_equal(count(r, NULL).ready, 1);
    assert_non_null(sim_get(r->sim, "Pod", NULL, "stays"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_watch_tells_changes, setup, teardown),
        cmocka_unit_test(test_watch_resumes_and_expires),
        cmocka_unit_test(test_watch_behind_the_ring),
        cmocka_unit_test_setup_teardown(test_deployment_runs_and_shrinks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rolling_update, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cronjob, setup, teardown),
        cmocka_unit_test_setup_teardown(test_statefulset_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_daemonset_follows_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_budget_status, setup, teardown),
        cmocka_unit_test_setup_teardown(test_node_stages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_node_goes_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_eviction_by_taint, setup, teardown),
    };
    return cmocka_run_group_tests_name("kube_sim_cluster", tests, NULL, NULL);
}
