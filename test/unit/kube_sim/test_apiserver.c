/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The API server's semantics, one by one, through the seam. */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "test/unit/kube_sim/raw.h"

#define CM "/api/v1/namespaces/default/configmaps"
#define PODS "/api/v1/namespaces/default/pods"
#define NC "/apis/karpenter.sh/v1/nodeclaims"

static const struct sim_options quiet = {
    .no_controllers = true, .no_scheduler = true, .no_kubelet = true};

static int setup(void **state)
{
    struct raw *r = xcalloc(1, sizeof(*r));
    raw_open(r, 1, &quiet);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    raw_close(*state);
    free(*state);
    return 0;
}

#define assert_text(str_, want)                                                                    \
    do {                                                                                           \
        char text_[512];                                                                           \
        snprintf(text_, sizeof(text_), "%.*s", STR_ARG(str_));                                     \
        assert_string_equal(text_, want);                                                          \
    } while (0)

static int64_t number(struct raw *r, const char *a, const char *b)
{
    return json_i64(json_at(r->json, a, b, NULL), -1);
}

static void test_create_completes_metadata(void **state)
{
    struct raw *r = *state;
    assert_int_equal(
        raw_call(r, "POST", CM,
                 "{\"metadata\":{\"name\":\"a\",\"uid\":\"mine\"},\"data\":{\"k\":\"v\"}}"),
        201);
    assert_text(raw_text(r, "kind", NULL, NULL), "ConfigMap");
    assert_text(raw_text(r, "metadata", "namespace", NULL), "default");
    assert_text(raw_text(r, "metadata", "creationTimestamp", NULL), "2026-07-20T10:00:00Z");
    assert_int_equal(raw_text(r, "metadata", "uid", NULL).len, 36);
    assert_int_equal(number(r, "metadata", "generation"), 1);
    assert_int_equal(raw_call(r, "POST", CM, "{\"metadata\":{\"name\":\"a\"}}"), 409);
    assert_text(raw_text(r, "reason", NULL, NULL), "AlreadyExists");
    assert_int_equal(raw_call(r, "GET", CM "/a", NULL), 200);
    assert_text(raw_text(r, "data", "k", NULL), "v");
}

static void test_generate_name(void **state)
{
    struct raw *r = *state;
    assert_int_equal(raw_call(r, "POST", CM, "{\"metadata\":{\"generateName\":\"pool-\"}}"), 201);
    assert_true(str_has_prefix(raw_text(r, "metadata", "name", NULL), STR("pool-")));
    assert_int_equal(raw_text(r, "metadata", "name", NULL).len, 10);
    assert_int_equal(raw_call(r, "POST", CM, "{\"metadata\":{\"generateName\":\"pool-\"}}"), 201);
    assert_int_equal(sim_count(r->sim, "ConfigMap"), 2);
    assert_int_equal(raw_call(r, "POST", CM, "{\"metadata\":{}}"), 422);
}

static void test_refusals(void **state)
{
    struct raw *r = *state;
    assert_int_equal(raw_call(r, "POST", CM, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}"),
                     400);
    assert_int_equal(raw_call(r, "POST", CM, "{oops"), 400);
    assert_int_equal(raw_call(r, "GET", CM "/none", NULL), 404);
    assert_text(raw_text(r, "reason", NULL, NULL), "NotFound");
    assert_text(raw_text(r, "kind", NULL, NULL), "Status");
    assert_int_equal(raw_call(r, "GET", "/apis/nobody.io/v1/things", NULL), 404);
    assert_int_equal(raw_call(r, "GET", "/apis/apps/v2/deployments", NULL), 404);
    assert_int_equal(raw_call(r, "POST", "/api/v1/namespaces/absent/configmaps",
                              "{\"metadata\":{\"name\":\"a\"}}"),
                     404);
    assert_int_equal(raw_send(r, "PATCH", CM "/none", "text/plain", "{}"), 404);
    assert_int_equal(raw_call(r, "POST", CM "/a/nonsense", "{}"), 404);
}

static void test_update_checks_version(void **state)
{
    struct raw *r = *state;
    char body[256];
    raw_call(r, "POST", CM, "{\"metadata\":{\"name\":\"a\"}}");
    struct str version = raw_text(r, "metadata", "resourceVersion", NULL);
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%.*s\"},\"data\":{\"k\":\"1\"}}",
             STR_ARG(version));
    assert_int_equal(raw_call(r, "PUT", CM "/a", body), 200);
    assert_int_equal(raw_call(r, "PUT", CM "/a", body), 409);
    assert_text(raw_text(r, "reason", NULL, NULL), "Conflict");
    assert_int_equal(
        raw_call(r, "PUT", CM "/a", "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"2\"}}"), 200);
    assert_int_equal(raw_call(r, "PUT", CM "/a", "{\"metadata\":{\"name\":\"b\"}}"), 400);
    assert_int_equal(
        raw_call(r, "PUT", CM "/a", "{\"metadata\":{\"name\":\"a\",\"uid\":\"other\"}}"), 409);
}

static void test_no_change_no_version(void **state)
{
    struct raw *r = *state;
    raw_call(r, "POST", CM, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\"}}");
    uint64_t before = sim_version(r->sim);
    assert_int_equal(raw_call(r, "PATCH", CM "/a", "{\"data\":{\"k\":\"1\"}}"), 200);
    assert_int_equal(sim_version(r->sim), before);
    assert_int_equal(raw_call(r, "PATCH", CM "/a", "{\"data\":{\"k\":\"2\"}}"), 200);
    assert_int_equal(sim_version(r->sim), before + 1);
}

static void test_generation_is_of_the_spec(void **state)
{
    struct raw *r = *state;
    raw_call(r, "POST", "/apis/apps/v1/namespaces/default/deployments",
             "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":1}}");
    raw_call(r, "PATCH", "/apis/apps/v1/namespaces/default/deployments/d",
             "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    assert_int_equal(number(r, "metadata", "generation"), 1);
    raw_call(r, "PATCH", "/apis/apps/v1/namespaces/default/deployments/d",
             "{\"spec\":{\"replicas\":2}}");
    assert_int_equal(number(r, "metadata", "generation"), 2);
    raw_call(r, "PATCH", "/apis/apps/v1/namespaces/default/deployments/d/status",
             "{\"status\":{\"replicas\":2}}");
    assert_int_equal(number(r, "metadata", "generation"), 2);
}

static void test_status_is_apart(void **state)
{
    struct raw *r = *state;
    raw_call(r, "POST", NC,
             "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"a\":1},\"status\":{\"x\":1}}");
    assert_null(json_get(r->json, "status"));
    raw_call(r, "PATCH", NC "/c", "{\"status\":{\"x\":1}}");
    assert_null(json_get(r->json, "status"));
    assert_int_equal(raw_call(r, "PATCH", NC "/c/status",
                              "{\"status\":{\"x\":2},\"metadata\":{\"labels\":{\"l\":\"1\"}}}"),
                     200);
    assert_int_equal(number(r, "status", "x"), 2);
    assert_null(json_at(r->json, "metadata", "labels", NULL));
    assert_int_equal(raw_call(r, "PATCH", NC "/c", "{\"spec\":{\"a\":2}}"), 422);
    assert_int_equal(raw_call(r, "PATCH", NC "/c", "{\"metadata\":{\"labels\":{\"l\":\"1\"}}}"),
                     200);
    assert_int_equal(number(r, "status", "x"), 2);
}

static void test_merge_patch_removes(void **state)
{
    struct raw *r = *state;
    raw_call(r, "POST", CM, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"l\":\"2\"}}");
    assert_int_equal(raw_call(r, "PATCH", CM "/a", "{\"data\":{\"k\":null}}"), 200);
    assert_null(json_at(r->json, "data", "k", NULL));
    assert_text(raw_text(r, "data", "l", NULL), "2");
}

static void test_json_patch(void **state)
{
    struct raw *r = *state;
    const char *type = "application/json-patch+json";
    raw_call(r, "POST", CM,
             "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"a/b\":\"x\"},\"list\":[1,2]}");
    assert_int_equal(raw_send(r, "PATCH", CM "/a", type,
                              "[{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"1\"},"
                              "{\"op\":\"replace\",\"path\":\"/data/k\",\"value\":\"9\"},"
                              "{\"op\":\"remove\",\"path\":\"/data/a~1b\"},"
                              "{\"op\":\"add\",\"path\":\"/list/1\",\"value\":7},"
                              "{\"op\":\"add\",\"path\":\"/list/-\",\"value\":8}]"),
                     200);
    assert_text(raw_text(r, "data", "k", NULL), "9");
    assert_null(json_at(r->json, "data", "a/b", NULL));
    CLEANUP(buf_release) struct buf list = BUF_INIT;
    json_print(&list, json_get(r->json, "list"), 0);
    assert_string_equal(list.data, "[1,7,2,8]");
    uint64_t before = sim_version(r->sim);
    assert_int_equal(raw_send(r, "PATCH", CM "/a", type,
                              "[{\"op\":\"replace\",\"path\":\"/data/k\",\"value\":\"0\"},"
                              "{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"1\"}]"),
                     422);
    assert_int_equal(sim_version(r->sim), before);
    assert_int_equal(
        raw_send(r, "PATCH", CM "/a", type, "[{\"op\":\"remove\",\"path\":\"/data/none\"}]"), 422);
}

static void test_apply_merges_by_key(void **state)
{
    struct raw *r = *state;
    const char *type = "application/apply-patch+yaml";
    assert_int_equal(
        raw_send(r, "PATCH", NC "/c?fieldManager=weft&force=true", type,
                 "{\"apiVersion\":\"karpenter.sh/v1\",\"kind\":\"NodeClaim\",\"spec\":{\"a\":1}}"),
        201);
    assert_int_equal(raw_send(r, "PATCH", NC "/c/status", type,
                              "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"},{"
                              "\"type\":\"B\",\"status\":\"True\"}]}}"),
                     200);
    assert_int_equal(
        raw_send(r, "PATCH", NC "/c/status", type,
                 "{\"status\":{\"conditions\":[{\"type\":\"B\",\"status\":\"False\"}]}}"),
        200);
    const struct json *list = json_at(r->json, "status", "conditions", NULL);
    assert_int_equal(list->n, 2);
    assert_text(json_text(json_get(list->items[0], "status")), "True");
    assert_text(json_text(json_get(list->items[1], "status")), "False");
}

static void test_finalizers_hold(void **state)
{
    struct raw *r = *state;
    raw_call(r, "POST", NC,
             "{\"metadata\":{\"name\":\"c\",\"finalizers\":[\"karpenter.sh/"
             "termination\"]},\"spec\":{}}");
    assert_int_equal(raw_call(r, "DELETE", NC "/c", NULL), 200);
    assert_text(raw_text(r, "metadata", "deletionTimestamp", NULL), "2026-07-20T10:00:00Z");
    uint64_t before = sim_version(r->sim);
    assert_int_equal(raw_call(r, "DELETE", NC "/c", NULL), 200);
    assert_int_equal(sim_version(r->sim), before);
    assert_int_equal(raw_call(r, "PATCH", NC "/c", "{\"metadata\":{\"deletionTimestamp\":null}}"),
                     200);
    assert_non_null(json_at(r->json, "metadata", "deletionTimestamp", NULL));
    assert_int_equal(raw_call(r, "PATCH", NC "/c", "{\"metadata\":{\"finalizers\":null}}"), 200);
    assert_int_equal(raw_call(r, "GET", NC "/c", NULL), 404);
}

static void test_delete_preconditions(void **state)
{
    struct raw *r = *state;
    char body[256];
    raw_call(r, "POST", CM, "{\"metadata\":{\"name\":\"a\"}}");
    struct str uid = raw_text(r, "metadata", "uid", NULL);
    snprintf(body, sizeof(body), "{\"preconditions\":{\"uid\":\"%.*s\"}}", STR_ARG(uid));
    assert_int_equal(raw_call(r, "DELETE", CM "/a", "{\"preconditions\":{\"uid\":\"no\"}}"), 409);
    assert_int_equal(raw_call(r, "DELETE", CM "/a", body), 200);
    assert_int_equal(raw_call(r, "DELETE", CM "/a", NULL), 404);
}

static void test_pod_grace(void **state)
{
    struct raw *r = *state;
    raw_pod(r, "p", ",\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":45");
    assert_int_equal(raw_call(r, "DELETE", PODS "/p", NULL), 200);
    assert_int_equal(number(r, "metadata", "deletionGracePeriodSeconds"), 45);
    assert_text(raw_text(r, "metadata", "deletionTimestamp", NULL), "2026-07-20T10:00:45Z");
    assert_int_equal(raw_call(r, "DELETE", PODS "/p", "{\"gracePeriodSeconds\":60}"), 200);
    assert_int_equal(number(r, "metadata", "deletionGracePeriodSeconds"), 45);
    assert_int_equal(raw_call(r, "DELETE", PODS "/p?gracePeriodSeconds=0", NULL), 200);
    assert_int_equal(raw_call(r, "GET", PODS "/p", NULL), 404);
    raw_pod(r, "unbound", "");
    assert_int_equal(raw_call(r, "DELETE", PODS "/unbound", NULL), 200);
    assert_int_equal(sim_count(r->sim, "Pod"), 0);
}

static void test_list_selects(void **state)
{
    struct raw *r = *state;
    raw_pod(r, "a", ",\"nodeName\":\"n1\"");
    raw_pod(r, "b", "");
    raw_call(r, "PATCH", PODS "/b", "{\"metadata\":{\"labels\":{\"app\":\"b\",\"tier\":\"web\"}}}");
    raw_call(r, "GET", PODS "?labelSelector=app%3Da", NULL);
    assert_int_equal(json_get(r->json, "items")->n, 1);
    raw_call(r, "GET", PODS "?labelSelector=app%20in%20(a,b),tier", NULL);
    assert_int_equal(json_get(r->json, "items")->n, 1);
    raw_call(r, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", NULL);
    assert_int_equal(json_get(r->json, "items")->n, 1);
    raw_call(r, "GET", PODS "?fieldSelector=status.phase!%3DPending", NULL);
    assert_int_equal(json_get(r->json, "items")->n, 0);
    raw_call(r, "GET", "/api/v1/namespaces/kube-system/pods", NULL);
    assert_int_equal(json_get(r->json, "items")->n, 0);
    assert_int_equal(raw_call(r, "GET", PODS "?labelSelector=((", NULL), 400);
}

static void test_list_pages(void **state)
{
    struct raw *r = *state;
    char name[16], path[256];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof(name), "p%d", 6 - i);
        raw_pod(r, name, "");
    }
    raw_call(r, "GET", PODS "?limit=3", NULL);
    assert_text(raw_text(r, "kind", NULL, NULL), "PodList");
    assert_int_equal(json_get(r->json, "items")->n, 3);
    assert_int_equal(number(r, "metadata", "remainingItemCount"), 4);
    char token[64], version[32];
    snprintf(token, sizeof(token), "%.*s", STR_ARG(raw_text(r, "metadata", "continue", NULL)));
    snprintf(version, sizeof(version), "%.*s",
             STR_ARG(raw_text(r, "metadata", "resourceVersion", NULL)));
    raw_pod(r, "p2x", ""); /* behind the first page, before the second */
    snprintf(path, sizeof(path), PODS "?limit=100&continue=%s", token);
    raw_call(r, "GET", path, NULL);
    assert_int_equal(json_get(r->json, "items")->n, 5);
    assert_text(raw_text(r, "metadata", "resourceVersion", NULL), version);
    assert_null(json_at(r->json, "metadata", "continue", NULL));
    sim_faults(r->sim)->gone_410 = 1000000;
    assert_int_equal(raw_call(r, "GET", path, NULL), 410);
    assert_int_equal(raw_call(r, "GET", PODS "?continue=garbage", NULL), 410);
    sim_faults(r->sim)->gone_410 = 0;
    assert_int_equal(raw_call(r, "GET", PODS "?continue=garbage", NULL), 400);
}

static void test_scale(void **state)
{
    struct raw *r = *state;
    const char *d = "/apis/apps/v1/namespaces/default/deployments/d/scale";
    raw_call(r, "POST", "/apis/apps/v1/namespaces/default/deployments",
             "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":1,\"selector\":{"
             "\"matchLabels\":{\"a\":\"b\"}}}}");
    assert_int_equal(raw_call(r, "GET", d, NULL), 200);
    assert_text(raw_text(r, "status", "selector", NULL), "a=b");
    assert_int_equal(raw_call(r, "PATCH", d, "{\"spec\":{\"replicas\":5}}"), 200);
    assert_int_equal(number(r, "spec", "replicas"), 5);
    assert_int_equal(
        raw_call(r, "PATCH", d,
                 "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":6}}"),
        409);
    assert_int_equal(raw_call(r, "PATCH", d, "{\"spec\":{\"replicas\":-1}}"), 422);
    assert_int_equal(
        json_i64(json_at(sim_get(r->sim, "Deployment", NULL, "d"), "spec", "replicas", NULL), 0),
        5);
    assert_int_equal(raw_call(r, "GET", CM "/d/scale", NULL), 404);
}

static void test_eviction_and_budgets(void **state)
{
    struct raw *r = *state;
    const char *evict = PODS "/p/eviction",
               *pdb = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    raw_pod(r, "p", ",\"nodeName\":\"n\"");
    sim_patch(r->sim, "Pod", NULL, "p",
              "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
              "\"True\"}]}}",
              NULL);
    raw_call(r, "POST", pdb,
             "{\"metadata\":{\"name\":\"one\"},\"spec\":{\"minAvailable\":1,\"selector\":{"
             "\"matchLabels\":{\"app\":\"a\"}}}}");
    assert_int_equal(raw_call(r, "POST", evict, "{}"), 429); /* not observed yet */
    assert_int_equal(r->retry_after, 10 * NS_PER_S);
    sim_patch(r->sim, "PodDisruptionBudget", NULL, "one",
              "{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":0,\"currentHealthy\":1,"
              "\"desiredHealthy\":1}}",
              NULL);
    assert_int_equal(raw_call(r, "POST", evict, "{}"), 429);
    assert_int_equal(r->retry_after, -1);
    raw_call(r, "POST", pdb, "{\"metadata\":{\"name\":\"two\"},\"spec\":{\"selector\":{}}}");
    assert_int_equal(raw_call(r, "POST", evict, "{}"), 500);
    raw_call(r, "DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/two", NULL);
    sim_patch(r->sim, "PodDisruptionBudget", NULL, "one", "{\"status\":{\"disruptionsAllowed\":1}}",
              NULL);
    assert_int_equal(
        raw_call(r, "POST", evict, "{\"deleteOptions\":{\"preconditions\":{\"uid\":\"no\"}}}"),
        409);
    assert_int_equal(raw_call(r, "POST", evict, "{\"deleteOptions\":{\"gracePeriodSeconds\":7}}"),
                     201);
    const struct json *p = sim_get(r->sim, "Pod", NULL, "p");
    assert_int_equal(json_i64(json_at(p, "metadata", "deletionGracePeriodSeconds", NULL), 0), 7);
    const struct json *b = sim_get(r->sim, "PodDisruptionBudget", NULL, "one");
    assert_int_equal(json_i64(json_at(b, "status", "disruptionsAllowed", NULL), -1), 0);
    assert_int_equal(sim_counters(r->sim)->evictions_refused, 3);
}

static void test_binding(void **state)
{
    struct raw *r = *state;
    raw_pod(r, "p", "");
    assert_int_equal(
        raw_call(r, "POST", PODS "/p/binding", "{\"target\":{\"kind\":\"Node\",\"name\":\"n\"}}"),
        201);
    assert_int_equal(
        raw_call(r, "POST", PODS "/p/binding", "{\"target\":{\"kind\":\"Node\",\"name\":\"m\"}}"),
        409);
    assert_text(json_text(json_at(sim_get(r->sim, "Pod", NULL, "p"), "spec", "nodeName", NULL)),
                "n");
}

static bool only_admin(void *arg, struct str authorization)
{
    (void)arg;
    return str_eq_c(authorization, "Bearer admin");
}

static void test_faults(void **state)
{
    struct raw *r = *state;
    struct sim_faults *f = sim_faults(r->sim);
    const char *a = "{\"metadata\":{\"name\":\"a\"}}";
    f->throttle_429 = 1000000;
    assert_int_equal(raw_call(r, "POST", CM, a), 429);
    assert_int_equal(r->retry_after, NS_PER_S);
    *f = (struct sim_faults){.error_5xx = 1000000};
    assert_int_equal(raw_call(r, "POST", CM, a), 500);
    assert_int_equal(sim_count(r->sim, "ConfigMap"), 0);
    *f = (struct sim_faults){.api_down = true};
    assert_int_equal(raw_call(r, "POST", CM, a), 0);
    assert_int_equal(r->error, ERR_RETRY);
    *f = (struct sim_faults){.lost_answer = 1000000};
    assert_int_equal(raw_call(r, "POST", CM, a), 0);
    assert_int_equal(r->error, ERR_UNKNOWN);
    assert_int_equal(sim_count(r->sim, "ConfigMap"), 1); /* it happened */
    *f = (struct sim_faults){.conflict_409 = 1000000};
    assert_int_equal(raw_call(r, "PATCH", CM "/a", "{}"), 409);
    assert_int_equal(raw_call(r, "GET", CM "/a", NULL), 200);
    *f = (struct sim_faults){0};
    sim_set_auth(r->sim, only_admin, NULL);
    assert_int_equal(raw_call(r, "GET", CM "/a", NULL), 401);
}

struct seen {
    struct raw *raw;
    char text[512];
    bool kill_before;
    size_t configmaps_before;
};

static void on_effect(void *arg, const struct sim_call *c, bool after)
{
    struct seen *s = arg;
    size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof(s->text) - at, "%s %s %s/%s %s %d;", after ? "after" : "before",
             c->verb, c->plural, c->subresource ? c->subresource : "", c->name ? c->name : "-",
             c->status);
    if (!after)
        s->configmaps_before = sim_count(s->raw->sim, "ConfigMap");
    if (!after && s->kill_before) {
        http_close(s->raw->http);
        s->raw->http = sim_http(s->raw->sim, "again", 0);
        s->raw->done = true;
        loop_stop(s->raw->loop);
    }
}

static void test_effects_are_crash_points(void **state)
{
    struct raw *r = *state;
    struct seen seen = {.raw = r};
    sim_on_effect(r->sim, on_effect, &seen);
    raw_call(r, "GET", CM, NULL);
    assert_string_equal(seen.text, "");
    raw_call(r, "POST", CM, "{\"metadata\":{\"generateName\":\"a\"}}");
    assert_int_equal(seen.configmaps_before, 0);
    assert_true(str_has_prefix(str_from(seen.text),
                               STR("before create configmaps/ - 0;after create configmaps/ a")));
    seen.text[0] = 0;
    raw_call(r, "DELETE", CM "/none", NULL);
    assert_string_equal(seen.text,
                        "before delete configmaps/ none 0;after delete configmaps/ none 404;");
    seen.kill_before = true;
    raw_call(r, "POST", CM, "{\"metadata\":{\"name\":\"b\"}}");
    assert_null(sim_get(r->sim, "ConfigMap", NULL, "b"));
    assert_int_equal(sim_count(r->sim, "ConfigMap"), 1);
}

static void test_discovery(void **state)
{
    struct raw *r = *state;
    assert_int_equal(raw_call(r, "GET", "/apis", NULL), 200);
    assert_true(str_find(buf_view(&r->body), STR("karpenter.sh/v1"), 0) != SIZE_MAX);
    assert_int_equal(raw_call(r, "GET", "/apis/apps/v1", NULL), 200);
    assert_true(str_find(buf_view(&r->body), STR("\"deployments/scale\""), 0) != SIZE_MAX);
    assert_int_equal(raw_call(r, "GET", "/api/v1", NULL), 200);
    assert_true(str_find(buf_view(&r->body), STR("\"pods/eviction\""), 0) != SIZE_MAX);
    assert_int_equal(raw_call(r, "GET", "/apis/apps", NULL), 200);
    assert_int_equal(raw_call(r, "GET", "/apis/none.io/v1", NULL), 404);
    assert_int_equal(raw_call(r, "GET", "/healthz", NULL), 200);
    sim_register(
        r->sim, &(struct sim_resource){"example.com", "v1", "Widget", "widgets", true, true, true});
    assert_int_equal(raw_call(r, "POST", "/apis/example.com/v1/namespaces/default/widgets",
                              "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"replicas\":3}}"),
                     201);
    assert_int_equal(
        raw_call(r, "GET", "/apis/example.com/v1/namespaces/default/widgets/w/scale", NULL), 200);
    assert_int_equal(number(r, "spec", "replicas"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create_completes_metadata, setup, teardown),
        cmocka_unit_test_setup_teardown(test_generate_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_update_checks_version, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_change_no_version, setup, teardown),
        cmocka_unit_test_setup_teardown(test_generation_is_of_the_spec, setup, teardown),
        cmocka_unit_test_setup_teardown(test_status_is_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merge_patch_removes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_patch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_apply_merges_by_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_finalizers_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete_preconditions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod_grace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_selects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scale, setup, teardown),
        cmocka_unit_test_setup_teardown(test_eviction_and_budgets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_binding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_effects_are_crash_points, setup, teardown),
        cmocka_unit_test_setup_teardown(test_discovery, setup, teardown),
    };
    return cmocka_run_group_tests_name("kube_sim_apiserver", tests, NULL, NULL);
}
