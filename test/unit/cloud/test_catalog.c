/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Catalogues: the built-in table, the reader and what it refuses. */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "cloud/cloud.h"

static void test_builtin_is_sound(void **state)
{
    (void)state;
    struct catalog *c = catalog_builtin();
    size_t gpu = 0, spot = 0;
    assert_true(c->n_types >= 190);
    for (uint32_t i = 0; i < c->n_types; i++) {
        const struct instance_type *t = &c->types[i];
        assert_true(i == 0 || strcmp(c->types[i - 1].name, t->name) < 0);
        assert_ptr_equal(catalog_find(c, t->name), t);
        assert_true(t->n_offerings > 0);
        for (uint32_t k = 0; k < t->allocatable.n; k++) {
            const struct resource_amount *a = &t->allocatable.v[k];
            assert_true(a->amount > 0);
            assert_true(a->amount <= resource_list_get(&t->capacity, a->name));
        }
        for (uint32_t k = 0; k < t->n_offerings; k++) {
            assert_true(t->offerings[k].price_uusd_h > 0);
            assert_true(t->offerings[k].price_uusd_h <= t->offerings[0].price_uusd_h);
            spot += t->offerings[k].capacity_type == CAPACITY_SPOT;
        }
        bool has = resource_list_has(&t->capacity, "nvidia.com/gpu");
        assert_int_equal(has, labels_has(&t->labels, "karpenter.k8s.aws/instance-gpu-name"));
        gpu += has;
    }
    assert_true(gpu >= 60);
    assert_true(spot > 300);
    assert_null(catalog_find(c, "nothing.large"));
    catalog_unref(c);
}

static void test_builtin_facts(void **state)
{
    (void)state;
    struct catalog *c = catalog_builtin();
    const struct instance_type *t = catalog_find(c, "g5.xlarge");
    assert_non_null(t);
    assert_int_equal(resource_list_get(&t->capacity, "cpu"), 4000);
    assert_int_equal(resource_list_get(&t->allocatable, "cpu"), 3920);
    assert_int_equal(resource_list_get(&t->capacity, "memory"), INT64_C(16384) << 20);
    assert_int_equal(resource_list_get(&t->capacity, "nvidia.com/gpu"), 1);
    assert_int_equal(t->offerings[0].price_uusd_h, 1006000);
    const char *const want[][2] = {{"instance-category", "g"},    {"instance-family", "g5"},
                                   {"instance-generation", "5"},  {"instance-size", "xlarge"},
                                   {"instance-gpu-name", "a10g"}, {"instance-gpu-memory", "22888"},
                                   {"instance-memory", "16384"},  {"instance-cpu", "4"}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        char key[96];
        snprintf(key, sizeof(key), "karpenter.k8s.aws/%s", want[i][0]);
        assert_non_null(labels_get(&t->labels, key));
        assert_string_equal(labels_get(&t->labels, key), want[i][1]);
    }
    assert_string_equal(labels_get(&t->labels, "node.kubernetes.io/instance-type"), "g5.xlarge");
    assert_false(labels_has(&t->labels, "topology.kubernetes.io/zone"));
    t = catalog_find(c, "p6-b200.48xlarge");
    assert_string_equal(labels_get(&t->labels, "karpenter.k8s.aws/instance-family"), "p6-b200");
    assert_string_equal(labels_get(&t->labels, "karpenter.k8s.aws/instance-generation"), "6");
    catalog_unref(c);
}

static void count_warning(void *arg, const char *msg)
{
    (void)msg;
    ++*(int *)arg;
}

#define CAPACITY                                                                                   \
    "\"capacity\": {\"cpu\": \"4\", \"memory\": \"16Gi\", \"pods\": \"58\", "                      \
    "\"ephemeral-storage\": \"20Gi\"}"

static void test_parse(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    int warnings = 0;
    struct catalog *c =
        catalog_parse(STR("{\"region\": \"r\", \"asOf\": \"2026-07-20\", \"types\": [\n"
                          "{\"name\": \"b\", " CAPACITY
                          ", \"allocatable\": {\"cpu\": \"3920m\"}, \"labels\": {\"x\": \"y\"},\n"
                          " \"offerings\": [{\"zone\": \"z\", \"capacityType\": \"spot\", "
                          "\"priceUsdHour\": \"0.5260004\", \"interruptionPerMonth\": 0.05},\n"
                          "                 {\"zone\": \"z\", \"capacityType\": \"on-demand\", "
                          "\"priceUsdHour\": 0},\n"
                          "                 {\"zone\": \"y\", \"priceUsdHour\": \"free\", "
                          "\"available\": false}, {\"zone\": \"q\"}]},\n"
                          "{\"name\": \"a\", \"arch\": \"arm64\", " CAPACITY "}]}"),
                      "f.json", count_warning, &warnings, &err);
    if (!c)
        fail_msg("%s", err.msg);
    assert_int_equal(warnings, 3);
    assert_int_equal(c->as_of, INT64_C(1784505600) * NS_PER_S);
    assert_string_equal(c->types[0].name, "a");
    const struct instance_type *b = catalog_find(c, "b"), *a = catalog_find(c, "a");
    assert_int_equal(b->n_offerings, 4);
    assert_int_equal(b->offerings[0].price_uusd_h, 526000);
    assert_int_equal(b->offerings[0].interruption_ppm_month, 50000);
    assert_int_equal(b->offerings[1].price_uusd_h, 0);
    assert_int_equal(b->offerings[2].capacity_type, CAPACITY_ON_DEMAND);
    assert_false(b->offerings[2].available);
    assert_int_equal(resource_list_get(&b->allocatable, "cpu"), 3920);
    assert_string_equal(labels_get(&b->labels, "x"), "y");
    assert_string_equal(labels_get(&a->labels, "kubernetes.io/arch"), "arm64");
    /* 4 cores keep 60 + 10 + 5 + 5 milli; 58 pods keep 58 * 11 + 355 MiB. */
    assert_int_equal(resource_list_get(&a->allocatable, "cpu"), 3920);
    assert_int_equal(resource_list_get(&a->allocatable, "memory"), (INT64_C(16384) - 58 * 11 - 355)
                                                                       << 20);
    assert_int_equal(resource_list_get(&a->allocatable, "ephemeral-storage"),
                     (INT64_C(18) << 30) - (INT64_C(1) << 30));
    catalog_unref(c);
}

static void test_parse_refuses_with_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"types\": [\n{\"name\": \"a\", " CAPACITY "},\n{\"name\": \"a\", " CAPACITY "}]}",
         "f.json:3: the same name twice: 'a'"},
        {"{\"types\": [\n{\"name\": \"a\",\n\"capacity\": {\"cpu\": \"4parsecs\", \"memory\": "
         "\"1Gi\"}}]}",
         "f.json:3: not a quantity: '4parsecs'"},
        {"{\"types\": [\n{\"name\": \"a\",\n\"capacity\": {\"cpu\": \"-4\", \"memory\": "
         "\"1Gi\"}}]}",
         "f.json:3: a capacity cannot be negative: '-4'"},
        {"{\"types\": [\n{\"name\": \"a\",\n\"capacity\": {\"cpu\": \"0\", \"memory\": \"1Gi\"}}]}",
         "capacity needs cpu and memory above zero"},
        {"{\"types\": [\n{\"name\": \"a\"}]}", "f.json:2: no capacity in type 'a'"},
        {"{\"types\": [\n{" CAPACITY "}]}", "f.json:2: an instance type needs a name"},
        {"{\"types\": []}", "'types' must be a list"},
        {"{\"types\": [{\"name\": \"a\", " CAPACITY ",\n\"allocatable\": {\"cpu\": \"5\"}}]}",
         "f.json:2: allocatable is more than the capacity: 'cpu'"},
        {"{\"types\": [{\"name\": \"a\", " CAPACITY
         ", \"offerings\": [\n{\"zone\": \"z\", \"capacityType\": \"rented\"}]}]}",
         "f.json:2: no such capacity type: 'rented'"},
        {"{\"types\": [{\"name\": \"a\", " CAPACITY
         ", \"offerings\": [\n{\"priceUsdHour\": \"1\"}]}]}",
         "f.json:2: an offering has no zone"},
        {"{\"types\": [{\"name\": \"a\", " CAPACITY
         ", \"offerings\": [{\"zone\": \"z\"},\n{\"zone\": \"z\"}]}]}",
         "f.json:2: the same zone and capacity type twice"},
        {"{\"types\": [{\"name\": \"a\", " CAPACITY
         ", \"offerings\": [\n{\"zone\": \"z\", \"interruptionPerMonth\": 5}]}]}",
         "f.json:2: interruptionPerMonth must be a fraction"},
        {"{\"asOf\": \"yesterday\", \"types\": []}", "asOf is not a date: 'yesterday'"},
        {"[1]", "a catalogue is an object"},
        {"{\"types\": [", "f.json:"},
        {"", "f.json: empty"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        struct catalog *c = catalog_parse(str_from(cases[i].text), "f.json", NULL, NULL, &err);
        assert_null(c);
        assert_int_equal(err.code, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
}

static void test_capacity_types(void **state)
{
    (void)state;
    for (int i = CAPACITY_ON_DEMAND; i <= CAPACITY_RESERVED; i++) {
        enum capacity_type t = CAPACITY_ON_DEMAND;
        assert_int_equal(
            capacity_type_parse(str_from(capacity_type_name((enum capacity_type)i)), &t, NULL), 0);
        assert_int_equal(t, i);
    }
    enum capacity_type t;
    assert_int_equal(capacity_type_parse(STR("Spot"), &t, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_is_sound),
        cmocka_unit_test(test_builtin_facts),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_refuses_with_line),
        cmocka_unit_test(test_capacity_types),
    };
    return cmocka_run_group_tests_name("cloud_catalog", tests, NULL, NULL);
}
