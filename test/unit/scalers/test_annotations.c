/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Annotations in, configuration and problems out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "scalers/annotations.h"

/* A table of its own: the parser knows no trigger type by itself. */
struct list_options {
    const char *address, *list, *password;
    int64_t length;
};
static const struct option list_table[] = {
    OPTION_STRING(struct list_options, address, "address", NULL, ""),
    {.kind = OPTION_KIND_STRING,
     .name = "listName",
     .offset = offsetof(struct list_options, list),
     .required = true},
    OPTION_STRING(struct list_options, password, "password", NULL, ""),
    OPTION_INT(struct list_options, length, "listLength", "5", 1, 1000000, ""),
    OPTION_END,
};
static const struct option any_table[] = {OPTION_END};

static const struct option *schema(const char *type)
{
    return !strcmp(type, "redis") ? list_table : !strcmp(type, "cpu") ? any_table : NULL;
}

#define MAX_LABELS 8

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static struct annotations *parse(const char *const *pairs, annotations_schema *of)
{
    static struct label labels[MAX_LABELS];
    uint32_t n = 0;
    for (; pairs[2 * n]; n++)
        labels[n] = (struct label){pairs[2 * n], pairs[2 * n + 1]};
    qsort(labels, n, sizeof(labels[0]), by_key);
    struct labels l = {labels, n};
    return annotations_parse(&l, "web", of);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL, NULL}, schema)

static const struct annotation_problem *find_problem(const struct annotations *a, const char *part)
{
    for (size_t i = 0; i < a->n_problems; i++)
        if (strstr(a->problems[i].message, part))
            return &a->problems[i];
    for (size_t i = 0; i < a->n_problems; i++) {
        struct buf b = BUF_INIT;
        annotation_problem_print(&a->problems[i], &b);
        print_message("has: %s\n", b.data);
        buf_release(&b);
    }
    fail_msg("no problem says \"%s\"", part);
    return NULL;
}

static const char *metadata(const struct annotations *a, size_t i, const char *key)
{
    return json_text(json_get(a->triggers[i].metadata, key)).p;
}

static void expect_clean(const struct annotations *a)
{
    for (size_t i = 0; i < a->n_problems; i++) {
        struct buf b = BUF_INIT;
        annotation_problem_print(&a->problems[i], &b);
        print_message("%s\n", b.data);
        buf_release(&b);
    }
    assert_int_equal(a->n_problems, 0);
}

static void test_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "- type: redis\n  metadata:\n    listName: jobs\n    listLength: 010\n",
        "type: redis\nmetadata: {listName: jobs, listLength: 010}\n",
        "triggers:\n- type: redis\n  metadata:\n    listName: jobs\n    listLength: \"010\"\n",
        "[{\"type\": \"redis\", \"metadata\": {\"listName\": \"jobs\", \"listLength\": \"010\"}}]",
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct annotations *a = PARSE("weft.sh/triggers", forms[i]);
        expect_clean(a);
        assert_true(a->managed);
        assert_int_equal(a->n_triggers, 1);
        assert_string_equal(a->triggers[0].type, "redis");
        assert_string_equal(metadata(a, 0, "listLength"), "010"); /* as written */
        assert_int_equal(a->polling_interval, 10 * NS_PER_S);
        assert_int_equal(a->decide.max, 100);
        annotations_free(a);
    }
}

static void test_scalars_keep_their_text(void **state)
{
    (void)state;
    struct annotations *a =
        PARSE("weft.sh/triggers",
              "- type: other\n  metadata: {a: 1e3, b: 1_000, c: 0.50, d: true, e: ~, f: ''}\n");
    assert_string_equal(metadata(a, 0, "a"), "1e3");
    assert_string_equal(metadata(a, 0, "b"), "1_000");
    assert_string_equal(metadata(a, 0, "c"), "0.50");
    assert_string_equal(metadata(a, 0, "d"), "true");
    assert_null(metadata(a, 0, "e"));
    /* A type that is not there is told by name, and is no error: the others run. */
    const struct annotation_problem *p = find_problem(a, "no such trigger type");
    assert_true(p->warning);
    assert_string_equal(p->value, "other");
    assert_int_equal(a->n_errors, 0);
    annotations_free(a);
}

static void test_scalar_keys(void **state)
{
    (void)state;
    struct annotations *a = PARSE("weft.sh/triggers", "type: cpu", "weft.sh/min-replicas", "2",
                                  "weft.sh/max-replicas", "9", "weft.sh/idle-replicas", "1",
                                  "weft.sh/polling-interval", "1m", "weft.sh/cooldown-period", "60",
                                  "weft.sh/combine", "sum", "weft.sh/paused-scale-in", "maybe");
    assert_int_equal(a->n_errors, 0);
    assert_int_equal(a->decide.min, 2);
    assert_int_equal(a->decide.max, 9);
    assert_int_equal(a->decide.idle, 1);
    assert_int_equal(a->polling_interval, 60 * NS_PER_S);
    assert_int_equal(a->decide.cooldown, 60 * NS_PER_S);
    assert_int_equal(a->decide.combine, COMBINE_SUM);
    assert_true(a->decide.paused_in); /* no boolean counts as true */
    annotations_free(a);
    a = PARSE("weft.sh/triggers", "type: cpu", "autoscaling.keda.sh/paused-replicas", "4",
              "autoscaling.keda.sh/paused", "true", "weft.sh/paused", "false");
    assert_int_equal(a->decide.paused_replicas, 4);
    assert_false(a->decide.paused); /* our own key wins over the alias */
    annotations_free(a);
}

static void test_behavior_and_fallback(void **state)
{
    (void)state;
    struct annotations *a =
        PARSE("weft.sh/triggers", "type: cpu", "weft.sh/behavior",
              "scaleUp: {stabilizationWindowSeconds: 30, policies: [{type: Pods, value: 8, "
              "periodSeconds: 15}]}\n"
              "scaleDown: {tolerance: 0.2, selectPolicy: Min}\n",
              "weft.sh/fallback",
              "{failureThreshold: 3, replicas: 6, behavior: currentReplicasIfHigher}");
    expect_clean(a);
    const struct decide_config *d = &a->decide;
    assert_true(d->has_behavior && d->up.given && d->down.given);
    assert_int_equal(d->up.window, 30 * NS_PER_S);
    assert_int_equal(d->up.n_policies, 1);
    assert_int_equal(d->up.policies[0].value, 8);
    assert_false(d->up.policies[0].percent);
    assert_int_equal(d->down.tolerance, 200000);
    assert_int_equal(d->down.window, 300 * NS_PER_S);
    assert_int_equal(d->down.select, SELECT_MIN);
    assert_int_equal(d->down.n_policies, 1); /* the default, 100 % in 15 s */
    assert_true(d->has_fallback);
    assert_int_equal(d->fallback_behavior, FALLBACK_CURRENT_IF_HIGHER);
    annotations_free(a);
}

static const char whole_spec[] =
    "scaleTargetRef:\n  name: web\n  envSourceContainerName: side\npollingInterval: "
    "5\ncooldownPeriod: 60\n"
    "minReplicaCount: 0\nmaxReplicaCount: 20\nadvanced:\n  horizontalPodAutoscalerConfig:\n    "
    "behavior:\n"
    "      scaleDown:\n        policies: [{type: Percent, value: 10, periodSeconds: 60}]\n"
    "triggers:\n- type: redis\n  metadata:\n    listName: jobs\n";

static void test_spec(void **state)
{
    (void)state;
    struct annotations *a = PARSE("weft.sh/spec", whole_spec);
    expect_clean(a);
    assert_int_equal(a->polling_interval, 5 * NS_PER_S);
    assert_int_equal(a->decide.max, 20);
    assert_string_equal(a->env_container, "side");
    assert_true(a->decide.down.given && !a->decide.up.given);
    annotations_free(a);
    a = PARSE("weft.sh/spec", whole_spec, "weft.sh/max-replicas", "3", "weft.sh/paused", "true");
    assert_int_equal(a->n_errors, 1);
    assert_string_equal(find_problem(a, "cannot stand beside")->key, "weft.sh/max-replicas");
    annotations_free(a);
    a = PARSE("weft.sh/spec", "scaleTargetRef: {name: other}\ntriggers: [{type: cpu}]\n");
    assert_string_equal(find_problem(a, "names another workload")->value, "other");
    annotations_free(a);
    a = PARSE("weft.sh/spec", "triggers: [{type: cpu}]\n");
    assert_int_equal(a->polling_interval, 30 * NS_PER_S); /* as KEDA */
    annotations_free(a);
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *key, *text, *message;
        uint32_t line, column; /* 0: not asked */
        bool warning;
    } rows[] = {
        {"weft.sh/triggers", "- type: redis\n  metadata:\n    listName: a\n    listLength: ten\n",
         "listLength", 4, 17, false},
        {"weft.sh/triggers", "- type: redis\n  metadata:\n    listName: a\n    listLenght: 3\n",
         "did you mean listLength?", 4, 5, true},
        {"weft.sh/triggers", "- type: redis\n  metdata: {listName: a}\n", "did you mean metadata?",
         2, 3, false},
        {"weft.sh/triggers", "- type: redis\n  metadata: {address: 'x:1'}\n", "needs listName", 1,
         3, false},
        {"weft.sh/triggers", "- metadata: {a: b}\n", "needs a type", 1, 3, false},
        {"weft.sh/triggers", "- type: redis\n  metadata: {listName: [a]}\n", "must be a scalar", 2,
         24, false},
        {"weft.sh/triggers", "- type: redis\n  metadata: {listName: a}\n  metricType: Average\n",
         "must be one of", 3, 15, false},
        {"weft.sh/triggers",
         "- type: redis\n  metadata: {listName: a}\n  metricType: Utilization\n",
         "only for cpu and memory", 3, 0, false},
        {"weft.sh/triggers", "- &a type: redis\n", "", 1, 0, false},
        {"weft.sh/triggers", "- type: redis\n  type: redis\n", "", 2, 0, false},
        {"weft.sh/triggers", "- type: redis\n---\n- type: redis\n", "", 0, 0, false},
        {"weft.sh/triggers", "[[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]", "", 0, 0, false},
        {"weft.sh/triggers", "just text", "must be a list", 1, 1, false},
        {"weft.sh/triggers", "[]", "1 to 64 triggers", 1, 1, false},
        {"weft.sh/trigger", "type: cpu", "did you mean weft.sh/triggers?", 0, 0, false},
        {"weft.sh/min-replicas", "-1", "at least 0", 0, 0, false},
        {"weft.sh/max-replicas", "0", "at least 1", 0, 0, false},
        {"weft.sh/min-replicas", "500", "above the greatest", 0, 0, false},
        {"weft.sh/idle-replicas", "3", "must be below", 0, 0, false},
        {"weft.sh/polling-interval", "soon", "seconds or a duration", 0, 0, false},
        {"weft.sh/combine", "avg", "max|min|sum|all", 0, 0, false},
        {"weft.sh/behavior", "scaleUp: {stabilizationWindowSeconds: 3601}", "0 to 3600", 1, 39,
         false},
        {"weft.sh/behavior", "scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1801}]}",
         "1 to 1800", 1, 0, false},
        {"weft.sh/behavior", "scaleUp: {policies: [{type: Pods, value: 1}]}", "needs type, value",
         1, 0, false},
        {"weft.sh/behavior", "scaleup: {}", "did you mean scaleUp?", 1, 1, false},
        {"weft.sh/fallback", "{replicas: 3}", "needs failureThreshold", 1, 1, false},
        {"weft.sh/auth", "a: {secretTargetRef: [{parameter: p, name: n}]}", "needs a key", 1, 0,
         false},
        {"weft.sh/auth", "a: {hashiCorpVault: {}}", "unknown key", 1, 5, false},
        {"weft.sh/paused-replicas", "x", "whole number", 0, 0, false},
        {"weft.sh/scaling-modifiers", "{formula: a + b, target: 3}", "no formula", 0, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool own = !strcmp(rows[i].key, "weft.sh/triggers");
        struct annotations *a =
            own ? PARSE(rows[i].key, rows[i].text)
                : PARSE("weft.sh/triggers", "type: cpu", rows[i].key, rows[i].text);
        const struct annotation_problem *p = find_problem(a, rows[i].message);
        if (p->warning != rows[i].warning || (rows[i].line && p->pos.line != rows[i].line) ||
            (rows[i].column && p->pos.column != rows[i].column) ||
            (!a->n_errors && !rows[i].warning))
            fail_msg("row %zu: %s at %u:%u, %zu errors", i, p->message, p->pos.line, p->pos.column,
                     a->n_errors);
        annotations_free(a);
    }
}

static void test_size_limit(void **state)
{
    (void)state;
    char *text = malloc(70000);
    memset(text, ' ', 70000);
    memcpy(text, "type: cpu", 9);
    text[69999] = 0;
    struct annotations *a = PARSE("weft.sh/triggers", text);
    assert_true(a->n_errors > 0);
    annotations_free(a);
    free(text);
}

static void test_secrets(void **state)
{
    (void)state;
    static const char *const inline_secrets[] = {
        "password: hunter2-canary",
        "redisPassword: hunter2-canary",
        "apiKey: hunter2-canary",
        "authToken: hunter2-canary",
        "awsSecretAccessKey: hunter2-canary",
        "address: 'redis://me:hunter2-canary@host:1'",
        "x: \"-----BEGIN PRIVATE KEY-----hunter2-canary\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(inline_secrets); i++) {
        char text[200];
        snprintf(text, sizeof(text), "- type: redis\n  metadata:\n    listName: a\n    %s\n",
                 inline_secrets[i]);
        struct annotations *a = PARSE("weft.sh/triggers", text);
        const struct annotation_problem *p = find_problem(a, "in the open");
        assert_false(p->warning);
        assert_int_equal(p->pos.line, 4);
        for (size_t k = 0; k < a->n_problems; k++) {
            struct buf b = BUF_INIT;
            annotation_problem_print(&a->problems[k], &b);
            assert_null(strstr(b.data, "canary"));
            buf_release(&b);
        }
        annotations_free(a);
    }
    static const char *const fine[] = {"passwordFromEnv: PASS", "address: 'redis://host:1'",
                                       "address: 'http://host/a:b@c'"};
    for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
        char text[200];
        snprintf(text, sizeof(text), "- type: redis\n  metadata:\n    listName: a\n    %s\n",
                 fine[i]);
        struct annotations *a = PARSE("weft.sh/triggers", text);
        assert_int_equal(a->n_errors, 0);
        annotations_free(a);
    }
}

static void test_presence_and_hash(void **state)
{
    (void)state;
    struct annotations *a = PARSE("weft.sh/triggers", "# nothing yet\n");
    assert_false(a->managed);
    assert_int_equal(a->n_errors, 0);
    annotations_free(a);
    a = PARSE("weft.sh/triggers", "type: cpu", "weft.sh/class", "keda");
    assert_false(a->managed);
    annotations_free(a);
    struct annotations *one = PARSE("weft.sh/triggers", "type: cpu", "weft.sh/status", "{}");
    struct annotations *two =
        PARSE("other", "x", "weft.sh/triggers", "type: cpu", "weft.sh/status", "{\"a\":1}");
    struct annotations *three = PARSE("weft.sh/triggers", "type: cpu ");
    assert_string_equal(one->hash, two->hash);
    assert_string_not_equal(one->hash, three->hash);
    annotations_free(one);
    annotations_free(two);
    annotations_free(three);
}

static void test_reference_names_every_key(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    annotations_docs(&out);
    size_t n, rows = 0;
    const struct annotation_doc *t = annotations_table(&n);
    for (size_t i = 0; i < n; i++) {
        char key[80];
        snprintf(key, sizeof(key), "`weft.sh/%s`", t[i].key);
        assert_non_null(strstr(out.data, key));
        /* And the parser knows it: no key of the table is called unknown. */
        char name[80];
        snprintf(name, sizeof(name), "weft.sh/%s", t[i].key);
        struct annotations *a = PARSE("weft.sh/x-first", "", name, "");
        for (size_t k = 0; k < a->n_problems; k++)
            if (!strcmp(a->problems[k].key, name))
                assert_null(strstr(a->problems[k].message, "unknown annotation"));
        annotations_free(a);
    }
    for (const char *p = out.data; *p; p++)
        rows += *p == '\n';
    assert_int_equal(rows, n + 2);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_scalars_keep_their_text),
        cmocka_unit_test(test_scalar_keys),
        cmocka_unit_test(test_behavior_and_fallback),
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_size_limit),
        cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_presence_and_hash),
        cmocka_unit_test(test_reference_names_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
