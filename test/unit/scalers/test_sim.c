/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The scaling controller through the real client against the simulated cluster, also with faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kube/sim/sim.h"
#include "scalers/workload.h"

struct bench {
    struct loop *loop;
    struct sim *sim;
    struct http *http;
    struct kube_config *config;
    struct client *client;
    struct recorder *recorder;
    struct scalers *scalers;
    struct metrics *metrics;
};

static void begin(struct bench *b, const char *at, uint64_t seed)
{
    static const char kubeconfig[] =
        "apiVersion: v1\nkind: Config\ncurrent-context: sim\n"
        "clusters: [{name: sim, cluster: {server: 'http://sim'}}]\n"
        "users: [{name: sim, user: {}}]\n"
        "contexts: [{name: sim, context: {cluster: sim, user: sim}}]\n";
    struct err err = ERR_INIT;
    int64_t wall;
    assert_int_equal(time_parse_rfc3339(str_from(at), &wall, &err), 0);
    b->loop = loop_new_virtual(wall);
    b->sim = sim_new(b->loop, seed, NULL);
    b->http = sim_http(b->sim, "weft", 0);
    b->config = kube_config_parse(str_from(kubeconfig), "kubeconfig", NULL, &err);
    if (!b->config)
        fail_msg("%s", err.msg);
    b->metrics = metrics_new();
    struct client_options o = {.seed = seed};
    b->client = client_new(b->loop, b->http, NULL, b->config, &o, &err);
    if (!b->client)
        fail_msg("%s", err.msg);
    b->recorder = recorder_new(b->client, &(struct recorder_options){.instance = "weft-0"});
    struct scalers_options so = {.seed = seed, .metrics = b->metrics};
    b->scalers = scalers_new(b->client, b->recorder, &so);
    scalers_start(b->scalers);
    scalers_lead(b->scalers, true);
}

static void end(struct bench *b)
{
    scalers_free(b->scalers);
    recorder_free(b->recorder);
    client_free(b->client);
    kube_config_free(b->config);
    http_close(b->http);
    sim_free(b->sim);
    metrics_free(b->metrics);
    loop_free(b->loop);
}

static const char deployment[] =
    "{\"apiVersion\":\"apps/"
    "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\",\"namespace\":\"default\","
    "\"annotations\":{"
    "\"weft.sh/triggers\":\"type: cron\\nmetadata: {timezone: UTC, start: 30 6 * * *, end: 0 8 * * "
    "*, desiredReplicas: 3}\\n\"}},"
    "\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"template\":{"
    "\"metadata\":{\"labels\":{\"app\":\"web\"}},"
    "\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"x\"}]}}}}";

static void create(struct bench *b, const char *text)
{
    struct err err = ERR_INIT;
    if (!sim_apply_text(b->sim, text, &err))
        fail_msg("%s", err.msg);
}

static int64_t replicas(struct bench *b)
{
    return json_i64(
        json_at(sim_get(b->sim, "Deployment", "default", "web"), "spec", "replicas", NULL), -1);
}

static void run_minutes(struct bench *b, int64_t minutes)
{
    loop_run_until(b->loop, loop_now(b->loop) + minutes * NS_PER_MIN);
}

static void test_follows_the_window(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T06:20:00Z", 1);
    create(&b, deployment);
    run_minutes(&b, 9);
    assert_int_equal(replicas(&b), 0);
    run_minutes(&b, 2);
    assert_int_equal(replicas(&b), 3);
    assert_int_equal(sim_count(b.sim, "Pod"), 3);
    const struct json *o = sim_get(b.sim, "Deployment", "default", "web");
    struct str status = json_text(json_at(o, "metadata", "annotations", "weft.sh/status", NULL));
    assert_true(str_find(status, STR("\"state\":\"Active\""), 0) != SIZE_MAX);
    assert_true(sim_count(b.sim, "Event") > 0);
    run_minutes(&b, 100);
    assert_int_equal(replicas(&b), 0);
    struct buf text = BUF_INIT;
    metrics_print(b.metrics, &text);
    assert_non_null(strstr(text.data, "keda_scaler_active{"));
    assert_non_null(strstr(text.data, "weft_scaler_workloads 1"));
    buf_release(&text);
    end(&b);
}

static void test_hpa_is_respected(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T06:40:00Z", 2);
    struct sim_resource r = {
        "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true,
        true,          false};
    sim_register(b.sim, &r);
    create(&b, "{\"apiVersion\":\"autoscaling/"
               "v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"name\":\"h\","
               "\"namespace\":\"default\"},"
               "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/"
               "v1\",\"kind\":\"Deployment\",\"name\":\"web\"}}}");
    create(&b, deployment);
    run_minutes(&b, 5);
    assert_int_equal(replicas(&b), 0);
    struct err err = ERR_INIT;
    sim_delete(b.sim, "HorizontalPodAutoscaler", "default", "h", 0, &err);
    run_minutes(&b, 2);
    assert_int_equal(replicas(&b), 3);
    end(&b);
}

/* Whatever the API server does, it converges once it stops, and never passes what was asked for. */
static void test_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 10; seed < 20; seed++) {
        struct bench b;
        begin(&b, "2026-06-05T06:25:00Z", seed);
        create(&b, deployment);
        *sim_faults(b.sim) = (struct sim_faults){.watch_drop = 100000,
                                                 .gone_410 = 50000,
                                                 .conflict_409 = 300000,
                                                 .throttle_429 = 100000,
                                                 .error_5xx = 200000,
                                                 .lost_answer = 100000};
        for (int i = 0; i < 20; i++) {
            run_minutes(&b, 1);
            assert_in_range(replicas(&b), 0, 3);
        }
        *sim_faults(b.sim) = (struct sim_faults){0};
        run_minutes(&b, 5);
        if (replicas(&b) != 3)
            fail_msg("seed %llu: %lld", (unsigned long long)seed, (long long)replicas(&b));
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_window),
        cmocka_unit_test(test_hpa_is_respected),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
