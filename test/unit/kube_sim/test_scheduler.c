/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The scheduler against a brute-force oracle, and the determinism of the whole.
 *
 * Random clusters and pods with selectors, taints, ports, anti-affinity, affinity and spread. The
 * oracle knows the rules from the test's own tables, not from the simulator's code: every bound pod
 * must be allowed where it is, and every pending pod must fit nowhere. */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "base/rng.h"
#include "kube/api/pod.h"
#include "test/unit/kube_sim/raw.h"

#define NODES 12
#define PODS 90
#define ZONES 3

struct test_node {
    int zone;
    int64_t cpu;
    bool ssd, tainted, cordoned;
};

enum rule { RULE_NONE, RULE_SPREAD, RULE_ALONE, RULE_TOGETHER, RULE_PORT, RULES };

struct test_pod {
    int64_t cpu;
    bool wants_ssd, tolerates;
    enum rule rule;
    int node; /* -1: pending */
};

struct cluster {
    struct test_node nodes[NODES];
    struct test_pod pods[PODS];
};

static void make_node(struct raw *r, struct rng *g, struct test_node *n, int i)
{
    char name[16], zone[8], patch[256];
    *n = (struct test_node){.zone = (int)rng_below(g, ZONES),
                            .cpu = rng_between(g, 500, 2500),
                            .ssd = rng_chance(g, 400000),
                            .tainted = rng_chance(g, 250000),
                            .cordoned = rng_chance(g, 100000)};
    snprintf(name, sizeof(name), "n%d", i);
    snprintf(zone, sizeof(zone), "z%d", n->zone);
    raw_node(r, name, zone, n->cpu);
    snprintf(patch, sizeof(patch),
             "{\"metadata\":{\"labels\":{\"disk\":\"%s\"}},\"spec\":{\"unschedulable\":%s%s}}",
             n->ssd ? "ssd" : "hdd", n->cordoned ? "true" : "false",
             n->tainted ? ",\"taints\":[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]"
                        : "");
    assert_non_null(sim_patch(r->sim, "Node", NULL, name, patch, NULL));
}

static const char *rule_text(enum rule rule)
{
    switch (rule) {
    case RULE_SPREAD:
        return ",\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"topology."
               "kubernetes.io/zone\","
               "\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{\"matchLabels\":{"
               "\"rule\":\"1\"}}}]";
    case RULE_ALONE:
        return ",\"affinity\":{\"podAntiAffinity\":{"
               "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"
               "\"kubernetes.io/"
               "hostname\",\"labelSelector\":{\"matchExpressions\":[{\"key\":\"rule\",\"operator\":"
               "\"In\",\"values\":[\"2\",\"4\"]}]}}]}}";
    case RULE_TOGETHER:
        return ",\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"
               "[{\"topologyKey\":"
               "\"topology.kubernetes.io/"
               "zone\",\"labelSelector\":{\"matchLabels\":{\"rule\":\"3\"}}}]}}";
    default:
        return "";
    }
}

static void make_pod(struct raw *r, struct rng *g, struct test_pod *p, int i)
{
    char text[2048];
    struct err err = ERR_INIT;
    *p = (struct test_pod){
        .cpu = rng_between(g, 1, 6) * 50, .rule = (enum rule)rng_below(g, RULES), .node = -1};
    if (p->rule != RULE_SPREAD) { /* so that all its pods may use the same nodes */
        p->wants_ssd = rng_chance(g, 300000);
        p->tolerates = rng_chance(g, 300000);
    }
    snprintf(text, sizeof(text),
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\",\"labels\":{"
             "\"rule\":\"%d\"}},\"spec\":{"
             "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%dm\"}}%s}]%s%"
             "s%s}}",
             i, (int)p->rule, (int)p->cpu,
             p->rule == RULE_PORT ? ",\"ports\":[{\"containerPort\":80,\"hostPort\":8080}]" : "",
             p->wants_ssd ? ",\"nodeSelector\":{\"disk\":\"ssd\"}" : "",
             p->tolerates ? ",\"tolerations\":[{\"key\":\"k\",\"operator\":\"Equal\",\"value\":"
                            "\"v\",\"effect\":\"NoSchedule\"}]"
                          : "",
             rule_text(p->rule));
    if (!sim_apply_text(r->sim, text, &err))
        fail_msg("%s", err.msg);
}

/* ---- The oracle ---- */

static int64_t used(const struct cluster *c, int node, int except)
{
    int64_t sum = 0;
    for (int i = 0; i < PODS; i++)
        sum += i != except && c->pods[i].node == node ? c->pods[i].cpu : 0;
    return sum;
}

static int on_node(const struct cluster *c, int node, enum rule rule, int except)
{
    int n = 0;
    for (int i = 0; i < PODS; i++)
        n += i != except && c->pods[i].node == node && c->pods[i].rule == rule;
    return n;
}

static int in_zone(const struct cluster *c, int zone, enum rule rule, int except)
{
    int n = 0;
    for (int k = 0; k < NODES; k++)
        n += c->nodes[k].zone == zone ? on_node(c, k, rule, except) : 0;
    return n;
}

/* Rules between one pod and one node. */
static bool own_rules(const struct cluster *c, int pod, int node)
{
    const struct test_pod *p = &c->pods[pod];
    const struct test_node *n = &c->nodes[node];
    return !n->cordoned && (!n->tainted || p->tolerates) && (!p->wants_ssd || n->ssd) &&
           used(c, node, pod) + p->cpu <= n->cpu;
}

/* The least of the zones that have a node; spread ignores taints by default. */
static int least_zone(const struct cluster *c, int except)
{
    int least = INT32_MAX;
    for (int k = 0; k < NODES; k++) {
        int n = in_zone(c, c->nodes[k].zone, RULE_SPREAD, except);
        least = MIN(least, n);
    }
    return least;
}

static bool other_rules(const struct cluster *c, int pod, int node)
{
    int zone = c->nodes[node].zone, all = 0;
    switch (c->pods[pod].rule) {
    case RULE_SPREAD:
        return in_zone(c, zone, RULE_SPREAD, pod) + 1 - least_zone(c, pod) <= 1;
    case RULE_ALONE:
        return on_node(c, node, RULE_ALONE, pod) + on_node(c, node, RULE_PORT, pod) == 0;
    case RULE_TOGETHER:
        for (int z = 0; z < ZONES; z++)
            all += in_zone(c, z, RULE_TOGETHER, pod);
        return all == 0 || in_zone(c, zone, RULE_TOGETHER, pod) > 0;
    case RULE_PORT: /* refused by the lonely ones, too */
        return on_node(c, node, RULE_PORT, pod) == 0 && on_node(c, node, RULE_ALONE, pod) == 0;
    default:
        return true;
    }
}

static void read_placement(struct raw *r, struct cluster *c)
{
    for (int i = 0; i < PODS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        struct str node =
            json_text(json_at(sim_get(r->sim, "Pod", NULL, name), "spec", "nodeName", NULL));
        c->pods[i].node = -1;
        for (int k = 0; k < NODES && node.len; k++) {
            snprintf(name, sizeof(name), "n%d", k);
            if (str_eq_c(node, name))
                c->pods[i].node = k;
        }
    }
}

static bool is_unschedulable(struct raw *r, int i)
{
    char name[16];
    snprintf(name, sizeof(name), "p%d", i);
    return pod_is_provisionable(pod_of(sim_object(r->sim, &kind_pod, NULL, name)));
}

static void check(struct raw *r, const struct cluster *c, size_t *bound, size_t *pending)
{
    for (int i = 0; i < PODS; i++) {
        if (c->pods[i].node < 0) {
            ++*pending;
            assert_true(is_unschedulable(r, i));
            for (int k = 0; k < NODES; k++)
                if (own_rules(c, i, k) && other_rules(c, i, k))
                    fail_msg("pod p%d (rule %d) is pending but fits n%d", i, (int)c->pods[i].rule,
                             k);
            continue;
        }
        ++*bound;
        if (!own_rules(c, i, c->pods[i].node))
            fail_msg("pod p%d may not be on n%d", i, c->pods[i].node);
        if (c->pods[i].rule != RULE_TOGETHER && !other_rules(c, i, c->pods[i].node))
            fail_msg("pod p%d (rule %d) breaks its rule on n%d", i, (int)c->pods[i].rule,
                     c->pods[i].node);
    }
    int zones = 0;
    for (int z = 0; z < ZONES; z++)
        zones += in_zone(c, z, RULE_TOGETHER, -1) > 0;
    assert_true(zones <= 1);
}

static void test_against_brute_force(void **state)
{
    (void)state;
    size_t bound = 0, pending = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct raw r;
        struct rng g;
        struct cluster c = {0};
        rng_init(&g, seed);
        raw_open(&r, seed, &(struct sim_options){.no_kubelet = true});
        for (int i = 0; i < NODES; i++)
            make_node(&r, &g, &c.nodes[i], i);
        for (int i = 0; i < PODS; i++)
            make_pod(&r, &g, &c.pods[i], i);
        raw_run(&r, 60);
        read_placement(&r, &c);
        check(&r, &c, &bound, &pending);
        raw_close(&r);
    }
    assert_true(bound > 500);
    assert_true(pending > 500);
}

static void test_rate_and_priority(void **state)
{
    (void)state;
    struct raw r;
    raw_open(&r, 1, &(struct sim_options){.no_kubelet = true, .scheduler_pods_s = 10});
    raw_node(&r, "n", "z", 3000);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        raw_pod(&r, name, i == 39 ? ",\"priority\":1000" : ",\"priority\":0");
    }
    raw_run(&r, 1);
    size_t after_a_second = sim_counters(r.sim)->pods_bound;
    assert_true(after_a_second >= 8 && after_a_second <= 12);
    assert_true(
        json_text(json_at(sim_get(r.sim, "Pod", NULL, "p39"), "spec", "nodeName", NULL)).len > 0);
    raw_run(&r, 10);
    assert_int_equal(sim_counters(r.sim)->pods_bound, 30); /* 3000m / 100m */
    const struct json *list =
        json_at(sim_get(r.sim, "Pod", NULL, "p38"), "status", "conditions", NULL);
    assert_true(str_eq_c(json_text(json_get(list->items[0], "message")),
                         "0/1 nodes are available: 1 Insufficient cpu."));
    raw_pod(&r, "gated", ",\"schedulingGates\":[{\"name\":\"g\"}]");
    raw_node(&r, "n2", "z", 1100);
    raw_run(&r, 20);
    assert_int_equal(sim_counters(r.sim)->pods_bound, 40);
    sim_patch(r.sim, "Pod", NULL, "gated", "{\"spec\":{\"schedulingGates\":null}}", NULL);
    raw_run(&r, 20);
    assert_int_equal(sim_counters(r.sim)->pods_bound, 41);
    raw_close(&r);
}

static void test_volumes_keep_their_zone(void **state)
{
    (void)state;
    struct raw r;
    struct err err = ERR_INIT;
    raw_open(&r, 1, NULL);
    raw_node(&r, "a", "za", 1000);
    sim_apply_text(r.sim,
                   "{\"apiVersion\":\"storage.k8s.io/"
                   "v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"s\"},\"provisioner\":"
                   "\"d\",\"volumeBindingMode\":\"WaitForFirstConsumer\"}",
                   &err);
    sim_apply_text(r.sim,
                   "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{"
                   "\"name\":\"c\"},\"spec\":{\"storageClassName\":\"s\"}}",
                   &err);
    assert_int_equal(err.code, ERR_NONE);
    const char *volume =
        ",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]";
    raw_pod(&r, "first", volume);
    raw_run(&r, 5);
    assert_true(str_eq_c(json_text(json_at(sim_get(r.sim, "PersistentVolumeClaim", NULL, "c"),
                                           "status", "phase", NULL)),
                         "Bound"));
    sim_delete(r.sim, "Pod", NULL, "first", 0, NULL);
    sim_patch(r.sim, "Node", NULL, "a", "{\"spec\":{\"unschedulable\":true}}", NULL);
    raw_node(&r, "b", "zb", 1000);
    raw_pod(&r, "second", volume);
    raw_run(&r, 30);
    assert_int_equal(
        json_text(json_at(sim_get(r.sim, "Pod", NULL, "second"), "spec", "nodeName", NULL)).len, 0);
    raw_node(&r, "c", "za", 1000);
    raw_run(&r, 30);
    assert_true(str_eq_c(
        json_text(json_at(sim_get(r.sim, "Pod", NULL, "second"), "spec", "nodeName", NULL)), "c"));
    raw_close(&r);
}

static uint64_t life(uint64_t seed)
{
    struct raw r;
    raw_open(&r, seed, NULL);
    sim_faults(r.sim)->error_5xx = 100000;
    sim_apply_text(
        r.sim,
        "{\"apiVersion\":\"apps/"
        "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":20,"
        "\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{"
        "\"a\":\"b\"}},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}"
        "}}",
        NULL);
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        raw_node(&r, name, "z", 4000);
        raw_call(&r, "GET", "/api/v1/pods", NULL);
        raw_call(&r, "POST", "/api/v1/namespaces/default/configmaps",
                 "{\"metadata\":{\"generateName\":\"x\"}}");
        raw_run(&r, 7);
    }
    sim_node_down(r.sim, "n1");
    raw_run(&r, 400);
    uint64_t h = sim_digest(r.sim) ^ sim_counters(r.sim)->requests ^ loop_steps(r.loop) << 20;
    raw_close(&r);
    return h;
}

static void test_same_seed_same_digest(void **state)
{
    (void)state;
    assert_true(life(3) == life(3));
    assert_true(life(3) != life(4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_brute_force),
        cmocka_unit_test(test_rate_and_priority),
        cmocka_unit_test(test_volumes_keep_their_zone),
        cmocka_unit_test(test_same_seed_same_digest),
    };
    return cmocka_run_group_tests_name("kube_sim_scheduler", tests, NULL, NULL);
}
