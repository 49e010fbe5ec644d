/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The scaling controller against a double of the client, under virtual time. The cron trigger is
 * the signal: its value depends on nothing but the clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "scalers/redis_link.h"
#include "scalers/workload_internal.h"
#include "test/unit/scalers/cluster_double.h"

#define CRON                                                                                       \
    "- type: cron\\n  metadata: {timezone: UTC, start: 30 6 * * *, end: 0 8 * * *, "               \
    "desiredReplicas: 3}\\n"
#define TRIGGERS(text) "\"weft.sh/triggers\": \"" text "\""

struct bench {
    struct loop *loop;
    struct client *client;
    struct scalers *scalers;
    int64_t start;
    unsigned decisions, scaled;
    char last_decision[4096];
};

static void decision(void *arg, struct str line)
{
    struct bench *b = arg;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const struct json *j = json_parse(&a, line, &err);
    if (!j || memchr(line.p, '\n', line.len))
        fail_msg("not one line of JSON: %.*s", STR_ARG(line));
    static const char *const keys[] = {"ts",
                                       "decision",
                                       "id",
                                       "reason",
                                       "inputs",
                                       "outcome",
                                       "savingUsdHour",
                                       "paybackSeconds",
                                       "blockedBy",
                                       "evidence"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        assert_non_null(json_get(j, keys[i]));
    b->decisions++;
    b->scaled += str_eq_c(json_text(json_at(j, "outcome", "result", NULL)), "scaled");
    snprintf(b->last_decision, sizeof(b->last_decision), "%.*s", STR_ARG(line));
    arena_release(&a);
}

/* Not synced and not leading yet. */
static void begin(struct bench *b, const char *at, bool observe)
{
    struct err err = ERR_INIT;
    *b = (struct bench){0};
    assert_int_equal(time_parse_rfc3339(str_from(at), &b->start, &err), 0);
    b->loop = loop_new_virtual(b->start);
    b->client = double_start(b->loop);
    struct scalers_options o = {
        .observe = observe, .seed = 3, .decision = decision, .decision_arg = b};
    b->scalers = scalers_new(b->client, (struct recorder *)(void *)b, &o);
    scalers_start(b->scalers);
}

static void end(struct bench *b)
{
    scalers_free(b->scalers);
    loop_run_until(b->loop, loop_now(b->loop) + NS_PER_MIN); /* late publications */
    double_stop(b->client);
    loop_free(b->loop);
}

static void put(struct bench *b, const char *name, const char *annotations, int64_t replicas)
{
    struct double_deployment d = {.name = name, .replicas = replicas, .status_replicas = replicas};
    snprintf(d.annotations, sizeof(d.annotations), "{%s}", annotations);
    double_put(b->client, &d);
}

static void lead(struct bench *b)
{
    double_sync(b->client);
    scalers_lead(b->scalers, true);
}

/* Runs until `minutes` after the start; pods follow at once. */
static int64_t run_to(struct bench *b, int64_t minutes, const char *name)
{
    int64_t deadline = minutes * NS_PER_MIN;
    while (loop_now(b->loop) < deadline) {
        loop_run_until(b->loop, MIN(deadline, loop_now(b->loop) + 5 * NS_PER_S));
        double_settle(b->client);
    }
    return double_get(name)->replicas;
}

static void test_follows_the_window(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T06:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    lead(&b);
    assert_int_equal(run_to(&b, 30, "web"), 0);
    assert_int_equal(double_counts.scale_writes, 0);
    assert_int_equal(run_to(&b, 31, "web"), 3);
    assert_int_equal(double_counts.scale_writes, 1);
    assert_non_null(strstr(b.last_decision, "\"inputs\":{\"replicas\":0"));
    assert_non_null(strstr(double_status, "\"state\":\"Active\""));
    assert_non_null(strstr(double_status, "\"value\":\"3\""));
    assert_non_null(strstr(double_events, "KEDAScaleTargetActivated"));
    assert_int_equal(run_to(&b, 120 + 4, "web"), 3); /* the cooldown */
    assert_int_equal(run_to(&b, 120 + 6, "web"), 0);
    /* The five minutes of stabilisation end one tick before the cooldown: by way of one. */
    assert_int_equal(double_counts.scale_writes, 3);
    assert_int_equal(b.scaled, 3);
    assert_non_null(strstr(double_events, "KEDAScaleTargetDeactivated"));
    assert_non_null(strstr(double_status, "\"state\":\"Idle\""));
    assert_true(double_counts.status_writes <= 8);
    assert_int_equal(scalers_count(b.scalers), 1);
    end(&b);
}

static void test_nothing_before_sync_and_lead(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    scalers_lead(b.scalers, true);
    assert_int_equal(run_to(&b, 1, "web"), 0);
    double_sync(b.client);
    assert_int_equal(run_to(&b, 2, "web"), 3);
    scalers_lead(b.scalers, false);
    put(&b, "late", TRIGGERS(CRON), 0);
    assert_int_equal(run_to(&b, 3, "late"), 0);
    assert_int_equal(scalers_count(b.scalers), 0);
    scalers_lead(b.scalers, true);
    assert_int_equal(run_to(&b, 4, "late"), 3);
    end(&b);
}

static void test_conflicts(void **state)
{
    (void)state;
    struct bench b;
    /* The version was old, the count is the same: written again. */
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    double_scale_errors[0] = double_scale_errors[1] = ERR_CONFLICT;
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 3);
    assert_int_equal(double_counts.scale_reads, 2);
    end(&b);
    /* Somebody else scaled meanwhile: decided again from what they set. */
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    double_scale_surprise = 5;
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 3);
    assert_non_null(strstr(double_events, "5 to 3 replicas"));
    end(&b);
    /* The outcome is not known: looked at, not repeated blindly. */
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    double_scale_errors[0] = ERR_UNKNOWN;
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 3);
    assert_int_equal(double_counts.scale_reads, 1);
    end(&b);
    /* A refusal is told, and tried again with the next round. */
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    double_scale_errors[0] = ERR_DENIED;
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 3);
    assert_non_null(strstr(double_events, "KEDAScaleTargetActivationFailed"));
    end(&b);
}

static void test_last_good_stays(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T06:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    lead(&b);
    run_to(&b, 1, "web");
    put(&b, "web",
        TRIGGERS("- type: cron\\n  metadata: {timezone: UTC, start: 30 6 * * *, end: 0 8 * * *, "
                 "desiredReplicas: many}\\n"),
        0);
    run_to(&b, 2, "web");
    assert_non_null(strstr(double_events, "ScaledObjectCheckFailed: weft.sh/triggers:2:"));
    assert_non_null(strstr(double_status, "desiredReplicas"));
    assert_int_equal(run_to(&b, 31, "web"), 3);
    /* Wrong in a way that only opening the trigger finds. */
    put(&b, "web",
        TRIGGERS("- type: cron\\n  metadata: {timezone: Mars/Base, start: 30 6 * * *, end: 0 8 * * "
                 "*, desiredReplicas: 4}\\n"),
        3);
    run_to(&b, 40, "web");
    assert_non_null(strstr(double_status, "timezone"));
    assert_int_equal(double_get("web")->replicas, 3);
    /* And a good one takes over at once. */
    put(&b, "web",
        TRIGGERS("- type: cron\\n  metadata: {timezone: UTC, start: 30 6 * * *, end: 0 8 * * *, "
                 "desiredReplicas: 5}\\n"),
        3);
    assert_int_equal(run_to(&b, 41, "web"), 5);
    assert_null(strstr(double_status, "lastError"));
    end(&b);
}

static void test_rivals(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    put(&b, "other", TRIGGERS(CRON), 0);
    double_hpas = "{\"items\":[{\"metadata\":{\"name\":\"web-hpa\"},\"spec\":{\"scaleTargetRef\":{"
                  "\"kind\":\"Deployment\",\"name\":\"web\"}}}]}";
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 0);
    assert_int_equal(double_get("other")->replicas, 3);
    assert_non_null(strstr(double_events, "HorizontalPodAutoscaler web-hpa targets this workload"));
    put(&b, "web", TRIGGERS(CRON) ", \"weft.sh/take-over\": \"true\"", 0);
    assert_int_equal(run_to(&b, 2, "web"), 3);
    end(&b);
    /* Not known is not "none". */
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON), 0);
    double_lists_fail = true;
    lead(&b);
    assert_int_equal(run_to(&b, 5, "web"), 0);
    double_lists_fail = false;
    assert_int_equal(run_to(&b, 6, "web"), 3);
    end(&b);
}

static void test_observe_writes_nothing(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T07:00:00Z", true);
    put(&b, "web", TRIGGERS(CRON), 0);
    lead(&b);
    assert_int_equal(run_to(&b, 2, "web"), 0);
    assert_int_equal(
        double_counts.scale_writes + double_counts.status_writes + double_counts.events, 0);
    assert_non_null(strstr(b.last_decision, "\"result\":\"observed\",\"from\":0,\"to\":3"));
    assert_int_equal(b.decisions, 1); /* not again with every tick */
    end(&b);
}

static void test_unknown_never_scales_in(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T07:55:00Z", false);
    put(&b, "web", TRIGGERS(CRON "- type: kafca\\n  metadata: {topic: t}\\n"), 0);
    put(&b, "locked",
        TRIGGERS("- type: redis\\n  metadata: {address: 'r:1', listName: l}\\n  authenticationRef: "
                 "{name: gone}\\n"),
        4);
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 3); /* the others run */
    assert_non_null(strstr(double_events, "the other triggers run (\"kafca\")"));
    assert_int_equal(run_to(&b, 60, "web"), 3); /* and nobody knows what kafca would say */
    assert_int_equal(double_get("locked")->replicas, 4);
    struct buf text = BUF_INIT;
    assert_true(scalers_describe(b.scalers, "Deployment", "default", "locked", &text));
    assert_non_null(strstr(text.data, "\"state\":\"Error\""));
    assert_non_null(strstr(text.data, "Secret of that name"));
    buf_release(&text);
    end(&b);
}

static void test_end_of_management(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON) ", \"weft.sh/restore-original\": \"true\"", 1);
    put(&b, "keeps", TRIGGERS(CRON), 1);
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 3);
    put(&b, "web", "\"weft.sh/restore-original\": \"true\"", 3);
    put(&b, "keeps", "\"weft.sh/triggers\": \"\"", 3);
    assert_int_equal(run_to(&b, 2, "web"), 1);
    assert_int_equal(double_get("keeps")->replicas, 3);
    assert_int_equal(scalers_count(b.scalers), 0);
    put(&b, "keeps", TRIGGERS(CRON), 0);
    assert_int_equal(run_to(&b, 3, "keeps"), 3);
    double_remove(b.client, "keeps");
    loop_run_until(b.loop, loop_now(b.loop) + NS_PER_MIN);
    assert_int_equal(scalers_count(b.scalers), 0);
    end(&b);
}

/* A new leader takes the cooldown from what the old one wrote. */
static void test_cooldown_survives_a_restart(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T08:01:00Z", false);
    put(&b, "was-active", TRIGGERS(CRON) ", \"weft.sh/status\": \"{\\\"active\\\": true}\"", 3);
    put(&b, "was-idle",
        TRIGGERS(CRON) ", \"weft.sh/status\": \"{\\\"active\\\": false, \\\"lastActive\\\": "
                       "\\\"2026-06-05T08:00:00Z\\\"}\"",
        3);
    put(&b, "unknown", TRIGGERS(CRON), 3);
    lead(&b);
    run_to(&b, 1, "unknown");
    assert_int_equal(double_get("unknown")->replicas, 0); /* never active, as KEDA */
    assert_int_equal(run_to(&b, 3, "was-idle"), 3);
    assert_int_equal(run_to(&b, 5, "was-idle"), 0);
    assert_int_equal(double_get("was-active")->replicas, 3);
    assert_int_equal(run_to(&b, 7, "was-active"), 0);
    end(&b);
}

/* One pod in twenty minutes: the new leader knows when the last one went. */
static void test_rates_survive_a_restart(void **state)
{
    (void)state;
    static const char behavior[] =
        ", \"weft.sh/behavior\": \"scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: "
        "Pods, value: 1, periodSeconds: 1200}]}\""
        ", \"weft.sh/min-replicas\": \"1\"";
    struct bench b;
    begin(&b, "2026-06-05T09:00:00Z", false);
    char annotations[4096];
    snprintf(annotations, sizeof(annotations), "%s%s", TRIGGERS(CRON), behavior);
    put(&b, "web", annotations, 4);
    lead(&b);
    assert_int_equal(run_to(&b, 5, "web"), 3);
    assert_non_null(strstr(double_status, "\"scaledDown\":[{\"at\":\"2026-06-05T09:00:0"));
    scalers_lead(b.scalers, false);
    struct buf escaped = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &escaped, 0);
    json_w_cstr(&w, double_status);
    snprintf(annotations, sizeof(annotations), "%s%s, \"weft.sh/status\": %s", TRIGGERS(CRON),
             behavior, escaped.data);
    buf_release(&escaped);
    put(&b, "web", annotations, 3);
    scalers_lead(b.scalers, true);
    assert_int_equal(run_to(&b, 19, "web"), 3);
    assert_int_equal(run_to(&b, 21, "web"), 2);
    end(&b);
}

static void test_pause(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T07:00:00Z", false);
    put(&b, "web", TRIGGERS(CRON) ", \"autoscaling.keda.sh/paused-replicas\": \"7\"", 0);
    lead(&b);
    assert_int_equal(run_to(&b, 1, "web"), 7);
    assert_non_null(strstr(double_events, "ScaledObjectPaused"));
    put(&b, "web", TRIGGERS(CRON) ", \"weft.sh/paused\": \"true\"", 2);
    assert_int_equal(run_to(&b, 2, "web"), 2);
    put(&b, "web", TRIGGERS(CRON), 2);
    assert_int_equal(run_to(&b, 3, "web"), 3);
    assert_non_null(strstr(double_events, "ScaledObjectUnpaused"));
    end(&b);
}

static void test_many_are_spread(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, "2026-06-05T07:00:00Z", false);
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        put(&b, names[i], TRIGGERS(CRON), 0);
    lead(&b);
    run_to(&b, 1, "a");
    int64_t phases[8];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char key[64];
        snprintf(key, sizeof(key), "Deployment/default/%s", names[i]);
        struct scaled *s = map_get(&b.scalers->scaled, str_from(key));
        phases[i] = s->last_round % (10 * NS_PER_S);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(phases[i], phases[k]);
    }
    end(&b);
}

/* ---- Authentication, with a real loop, since connections need one ---- */

static void run_real(struct loop *l, int64_t ms)
{
    loop_run_until(l, loop_now(l) + ms * NS_PER_MS);
}

static const char *fingerprint(struct scalers *s, const char *name)
{
    char key[64];
    snprintf(key, sizeof(key), "Deployment/default/%s", name);
    struct scaled *w = map_get(&s->scaled, str_from(key));
    return w && w->n_runs && w->runs[0].scaler ? w->runs[0].fingerprint : "";
}

/* Runs until the description of two says text; a bound, not a wait: a loaded machine is slow. */
static void run_until_said(struct loop *l, struct scalers *s, const char *text)
{
    for (int i = 0; i < 500; i++) {
        run_real(l, 20);
        struct buf said = BUF_INIT;
        scalers_describe(s, "Deployment", "default", "two", &said);
        bool found = said.data && strstr(said.data, text);
        buf_release(&said);
        if (found) {
            return;
        }
    }
    fail_msg("never said: %s", text);
}

/* Runs until the trigger of the workload has another fingerprint than before. */
static void run_until_changed(struct loop *l, struct scalers *s, const char *name,
                              const char *before)
{
    for (int i = 0; i < 500; i++) {
        run_real(l, 20);
        const char *now = fingerprint(s, name);
        if (now[0] && strcmp(now, before) != 0) {
            return;
        }
    }
    fail_msg("the fingerprint of %s never changed", name);
}

static void test_rotated_secret(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct loop *loop = loop_new_epoll(&err);
    struct client *c = double_start(loop);
    struct scalers_options o = {.seed = 3};
    struct scalers *s = scalers_new(c, NULL, &o);
    static const char env[] =
        "[{\"name\":\"ADDR\",\"value\":\"127.0.0.1:1\"},{\"name\":\"PASS\",\"valueFrom\":{"
        "\"secretKeyRef\":{\"name\":\"env-secret\",\"key\":\"pass\"}}}]";
    struct double_deployment d = {.name = "one",
                                  .env = env,
                                  .annotations = "{\"weft.sh/polling-interval\": \"1\", " TRIGGERS(
                                      "type: redis\\nmetadata: {addressFromEnv: ADDR, listName: "
                                      "l}\\nauthenticationRef: {name: redis}\\n") "}"};
    double_put(c, &d);
    struct double_deployment e = {.name = "two",
                                  .env = env,
                                  .annotations = "{\"weft.sh/polling-interval\": \"1\", " TRIGGERS(
                                      "type: redis\\nmetadata: {addressFromEnv: ADDR, "
                                      "passwordFromEnv: PASS, listName: l}\\n") "}"};
    double_put(c, &e);
    double_secret(c, "redis", "password", "first");
    scalers_start(s);
    double_sync(c);
    scalers_lead(s, true);
    run_until_changed(loop, s, "one", "");
    run_until_said(loop, s, "does not exist");
    char first[65];
    snprintf(first, sizeof(first), "%s", fingerprint(s, "one"));
    assert_true(first[0]);
    assert_string_equal(fingerprint(s, "two"),
                        ""); /* its Secret is missing: an error, not an empty password */
    struct buf text = BUF_INIT;
    scalers_describe(s, "Deployment", "default", "two", &text);
    assert_non_null(strstr(text.data, "passwordFromEnv: Secret default/env-secret does not exist"));
    buf_release(&text);
    assert_int_equal(double_counts.secret_watches, 2);

    double_secret(c, "env-secret", "other", "x");
    run_until_said(loop, s, "has no key pass");
    double_secret(c, "env-secret", "pass", "second");
    run_until_changed(loop, s, "two", "");
    char second[65];
    snprintf(second, sizeof(second), "%s", fingerprint(s, "two"));
    assert_true(second[0]);
    assert_string_equal(fingerprint(s, "one"), first); /* not touched */

    double_secret(c, "redis", "password", "rotated");
    run_until_changed(loop, s, "one", first);
    assert_string_not_equal(fingerprint(s, "one"), first);
    assert_string_equal(fingerprint(s, "two"), second);
    assert_int_equal(redis_counts(&s->host).links, 2);
    assert_int_equal(double_get("one")->replicas, 0);
    scalers_free(s);
    run_real(loop, 50);
    double_stop(c);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_window),
        cmocka_unit_test(test_nothing_before_sync_and_lead),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_last_good_stays),
        cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_observe_writes_nothing),
        cmocka_unit_test(test_unknown_never_scales_in),
        cmocka_unit_test(test_end_of_management),
        cmocka_unit_test(test_cooldown_survives_a_restart),
        cmocka_unit_test(test_rates_survive_a_restart),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_many_are_spread),
        cmocka_unit_test(test_rotated_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
