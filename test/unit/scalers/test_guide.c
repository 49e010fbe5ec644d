/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Every YAML block of the scaling guide is what it claims to be: annotations without a fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/yml.h"
#include "scalers/annotations.h"
#include "scalers/scaler.h"

#define LABELS_MAX 16

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static void check_block(struct str text)
{
    struct arena a = ARENA_INIT;
    struct json *root = NULL;
    struct err err = ERR_INIT;
    if (yml_parse_one(&a, text, NULL, &root, &err) < 0)
        fail_msg("%s in:\n%.*s", err.msg, STR_ARG(text));
    const struct json *all = json_at(root, "metadata", "annotations", NULL);
    const char *name = json_text(json_at(root, "metadata", "name", NULL)).p;
    assert_non_null(all);
    struct label labels[LABELS_MAX];
    assert_true(all->n <= LABELS_MAX);
    for (size_t i = 0; i < all->n; i++)
        labels[i] = (struct label){arena_cstr(&a, all->members[i].key),
                                   arena_cstr(&a, json_text(all->members[i].value))};
    qsort(labels, all->n, sizeof(labels[0]), by_key);
    struct labels l = {labels, (uint32_t)all->n};
    struct annotations *parsed = annotations_parse(&l, name, scaler_schema);
    assert_true(parsed->managed);
    if (parsed->n_problems) {
        struct buf b = BUF_INIT;
        annotation_problem_print(&parsed->problems[0], &b);
        fail_msg("%s: %s", name, b.data);
    }
    annotations_free(parsed);
    arena_release(&a);
}

static void test_blocks(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    char bytes[4096];
    size_t n, blocks = 0;
    FILE *f = fopen("docs/guide/scaling.md", "r");
    assert_non_null(f);
    while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
        buf_add(&text, bytes, n);
    fclose(f);
    struct str all = buf_view(&text);
    for (size_t at = 0; (at = str_find(all, STR("```yaml\n"), at)) != SIZE_MAX; blocks++) {
        size_t from = at + strlen("```yaml\n"), to = str_find(all, STR("\n```"), from);
        assert_true(to != SIZE_MAX);
        check_block(str_sub(all, from, to + 1));
        at = to;
    }
    assert_int_equal(blocks, 5);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
