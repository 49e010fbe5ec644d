/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Files that change under their readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file_cache.h"

static char folder[] = "/tmp/weft-files-XXXXXX";

static const char *path_of(int i)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%d", folder, i);
    return path;
}

static void put(int i, const char *text)
{
    char next[160];
    snprintf(next, sizeof(next), "%s.next", path_of(i));
    FILE *f = fopen(next, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(rename(next, path_of(i)), 0);
}

static void expect(struct file_cache *c, int i, const char *text)
{
    struct str bytes = STR_NONE;
    struct err err = ERR_INIT;
    if (file_cache_get(c, path_of(i), &bytes, &err) < 0)
        fail_msg("%s", err.msg);
    if (!str_eq_c(bytes, text))
        fail_msg("'%.*s', not '%s'", STR_ARG(bytes), text);
}

static void test_changes(void **state)
{
    (void)state;
    struct file_cache *c = file_cache_new();
    put(0, "one");
    expect(c, 0, "one");
    put(0, "two"); /* the same size, perhaps within the same tick of the clock */
    expect(c, 0, "two");
    FILE *f = fopen(path_of(0), "a"); /* in place */
    fputs(" and more", f);
    fclose(f);
    expect(c, 0, "two and more");
    /* The way a mounted Secret changes: the name is a link, and what it leads to is exchanged. */
    put(1, "first");
    put(2, "second");
    char target[128];
    snprintf(target, sizeof(target), "%s", path_of(1));
    assert_int_equal(symlink(target, path_of(3)), 0);
    expect(c, 3, "first");
    snprintf(target, sizeof(target), "%s", path_of(2));
    assert_int_equal(unlink(path_of(3)), 0);
    assert_int_equal(symlink(target, path_of(3)), 0);
    expect(c, 3, "second");
    file_cache_free(c);
}

/* What was good once stays in use while there is nothing better. */
static void test_gone_for_a_moment(void **state)
{
    (void)state;
    struct file_cache *c = file_cache_new();
    put(4, "good");
    expect(c, 4, "good");
    unlink(path_of(4));
    expect(c, 4, "good");
    put(4, "");
    expect(c, 4, "good");
    unlink(path_of(4));
    assert_int_equal(mkfifo(path_of(4), 0600), 0); /* opening it must not wait */
    expect(c, 4, "good");
    put(4, "better");
    expect(c, 4, "better");
    file_cache_free(c);
}

static void test_never_good(void **state)
{
    (void)state;
    struct file_cache *c = file_cache_new();
    struct str bytes = STR("untouched");
    put(5, "");
    const char *const paths[] = {"/nowhere/at/all", path_of(5), folder, "/dev/zero"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(file_cache_get(c, paths[i], &bytes, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.msg, paths[i]));
        assert_true(str_eq_c(bytes, "untouched"));
    }
    assert_int_equal(truncate(path_of(5), (off_t)FILE_CACHE_BYTES_MAX + 1), 0);
    assert_int_equal(file_cache_get(c, path_of(5), &bytes, NULL), -1);
    put(5, "at last");
    expect(c, 5, "at last");
    file_cache_free(c);
}

/* More files than it keeps: the answers stay right. */
static void test_many(void **state)
{
    (void)state;
    struct file_cache *c = file_cache_new();
    for (int round = 0; round < 2; round++) {
        for (int i = 100; i < 100 + 2 * FILE_CACHE_FILES_MAX; i++) {
            char text[32];
            snprintf(text, sizeof(text), "%d of %d", i, round);
            put(i, text);
            expect(c, i, text);
            expect(c, i, text);
        }
    }
    file_cache_free(c);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    for (int i = 0; i < 100 + 2 * FILE_CACHE_FILES_MAX; i++)
        unlink(path_of(i));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_gone_for_a_moment),
        cmocka_unit_test(test_never_good),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
