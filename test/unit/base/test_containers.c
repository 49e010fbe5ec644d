/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Maps, heaps, bit sets and interned texts against the plainest thing that does the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/heap.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/rng.h"

/* ---- Map: against an array of pairs in insertion order ---- */

struct pair {
    char key[24];
    uintptr_t value;
};

struct pairs {
    struct pair v[600];
    size_t n;
};

static size_t pairs_find(const struct pairs *p, const char *key)
{
    size_t i = 0;
    while (i < p->n && strcmp(p->v[i].key, key) != 0)
        i++;
    return i;
}

static void check_same(const struct map *m, const struct pairs *p)
{
    size_t i = 0;
    assert_int_equal(map_len(m), p->n);
    map_each(m, e) {
        assert_true(i < p->n);
        assert_string_equal(e->key, p->v[i].key);
        assert_int_equal(e->key_len, strlen(e->key));
        assert_true(e->value == (void *)p->v[i].value);
        i++;
    }
    assert_int_equal(i, p->n);
}

static void map_step(struct map *m, struct pairs *p, struct rng *r)
{
    char key[24];
    snprintf(key, sizeof(key), "key-%d", (int)rng_below(r, 600));
    size_t i = pairs_find(p, key);
    void *before = i < p->n ? (void *)p->v[i].value : NULL;
    assert_true(map_get(m, str_from(key)) == before);
    assert_true(map_has(m, str_from(key)) == (i < p->n));
    if (rng_chance(r, 500000)) {
        uintptr_t value = (uintptr_t)rng_below(r, 1000) + 1;
        assert_true(map_put(m, str_from(key), (void *)value) == before);
        if (i == p->n)
            memcpy(p->v[p->n++].key, key, sizeof(key));
        p->v[i].value = value;
    } else {
        assert_true(map_remove(m, str_from(key)) == before);
        if (i < p->n) {
            memmove(&p->v[i], &p->v[i + 1], (p->n - i - 1) * sizeof(p->v[0]));
            p->n--;
        }
    }
}

static void test_map_random(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct rng r;
        rng_init(&r, seed);
        struct map m = MAP_INIT;
        static struct pairs p;
        p.n = 0;
        for (int i = 0; i < 6000; i++) {
            map_step(&m, &p, &r);
            if (i % 97 == 0)
                check_same(&m, &p);
            if (i == 3000) {
                map_clear(&m, NULL);
                p.n = 0;
            }
        }
        check_same(&m, &p);
        map_release(&m, NULL);
    }
}

static int freed;
static void count_free(void *p)
{
    freed++;
    free(p);
}

static void test_map_removal_while_iterating(void **state)
{
    (void)state;
    struct map m = MAP_INIT;
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "%d", i);
        *map_slot(&m, str_from(key)) = xmalloc(1);
    }
    int seen = 0;
    map_each(&m, e)
        if (seen++ % 2 == 0)
            free(map_remove(&m, map_key(e)));
    assert_int_equal(seen, 100);
    assert_int_equal(map_len(&m), 50);
    assert_false(map_has(&m, STR("0")));
    assert_true(map_has(&m, STR("1")));
    freed = 0;
    map_release(&m, count_free);
    assert_int_equal(freed, 50);
}

/* A queue of ever new keys: the memory does not grow with what has passed through. */
static void test_map_queue(void **state)
{
    (void)state;
    struct map m = MAP_INIT;
    char key[24];
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        map_put(&m, str_from(key), &m);
        snprintf(key, sizeof(key), "%d", i - 10);
        assert_true(map_remove(&m, str_from(key)) == (i >= 10 ? &m : NULL));
    }
    assert_int_equal(map_len(&m), 10);
    assert_true(m.n_slots <= 256 && m.cap_entries <= 256);
    map_put(&m, (struct str){"a\0b", 3}, &key);
    assert_null(map_get(&m, STR("a")));
    assert_true(map_get(&m, (struct str){"a\0b", 3}) == &key);
    map_put(&m, STR_NONE, &freed);
    assert_true(map_get(&m, STR("")) == &freed);
    map_release(&m, NULL);
}

/* ---- Heap: against a search for the least ---- */

static void test_heap_random(void **state)
{
    (void)state;
    enum { N = 200 };
    static struct heap_node nodes[N];
    static uint64_t order[N]; /* when it was pushed, from 1; 0: not in the heap */
    struct heap h = HEAP_INIT;
    struct rng r;
    rng_init(&r, 7);
    memset(nodes, 0, sizeof(nodes));
    size_t n = 0;
    for (uint64_t step = 1; step < 20000; step++) {
        size_t i = rng_below(&r, N);
        if (rng_chance(&r, 450000)) {
            if (order[i])
                continue;
            heap_push(&h, &nodes[i], rng_between(&r, -5, 5));
            order[i] = step;
            n++;
        } else if (rng_chance(&r, 400000)) {
            heap_remove(&h, &nodes[i]);
            n -= order[i] != 0;
            order[i] = 0;
        } else {
            size_t least = N;
            for (size_t k = 0; k < N; k++)
                if (order[k] && (least == N || nodes[k].key < nodes[least].key ||
                                 (nodes[k].key == nodes[least].key && order[k] < order[least])))
                    least = k;
            assert_ptr_equal(heap_peek(&h), least == N ? NULL : &nodes[least]);
            assert_ptr_equal(heap_pop(&h), least == N ? NULL : &nodes[least]);
            if (least < N) {
                order[least] = 0;
                n--;
            }
        }
        assert_int_equal(h.len, n);
        assert_int_equal(heap_has(&nodes[i]), order[i] != 0);
    }
    heap_release(&h);
    for (size_t k = 0; k < N; k++)
        assert_false(heap_has(&nodes[k]));
}

/* ---- Bits: against an array of bools ---- */

static void check_bits(const uint64_t *b, const bool *v, size_t n)
{
    size_t count = 0, next = SIZE_MAX;
    for (size_t i = n; i-- > 0;) {
        assert_int_equal(bits_get(b, i), v[i]);
        count += v[i];
        if (v[i])
            next = i;
        assert_true(bits_next(b, BITS_WORDS(n), i) == next);
    }
    assert_int_equal(bits_count(b, BITS_WORDS(n)), count);
}

static void test_bits_random(void **state)
{
    (void)state;
    enum { MAX_BITS = 200 };
    struct rng r;
    rng_init(&r, 11);
    for (int round = 0; round < 2000; round++) {
        size_t n = rng_below(&r, MAX_BITS) + 1, words = BITS_WORDS(n);
        uint64_t a[BITS_WORDS(MAX_BITS)] = {0}, b[BITS_WORDS(MAX_BITS)] = {0};
        uint64_t to[BITS_WORDS(MAX_BITS)];
        bool x[MAX_BITS], y[MAX_BITS], z[MAX_BITS], any = false, subset = true, equal = true;
        uint32_t dense = (uint32_t)rng_below(&r, 1000001);
        for (size_t i = 0; i < n; i++) {
            if ((x[i] = rng_chance(&r, dense)))
                bits_set(a, i);
            if ((y[i] = rng_chance(&r, dense)))
                bits_set(b, i);
            any |= x[i] && y[i];
            subset &= !x[i] || y[i];
            equal &= x[i] == y[i];
        }
        check_bits(a, x, n);
        assert_int_equal(bits_any_and(a, b, words), any);
        assert_int_equal(bits_subset(a, b, words), subset);
        assert_int_equal(bits_equal(a, b, words), equal);
        memcpy(to, a, sizeof(to));
        assert_int_equal(bits_and(to, b, words), any);
        for (size_t i = 0; i < n; i++)
            z[i] = x[i] && y[i];
        check_bits(to, z, n);
        memcpy(to, a, sizeof(to));
        bits_or(to, b, words);
        for (size_t i = 0; i < n; i++)
            z[i] = x[i] || y[i];
        check_bits(to, z, n);
        bits_and_not(to, b, words);
        for (size_t i = 0; i < n; i++)
            z[i] = x[i] && !y[i];
        check_bits(to, z, n);
        size_t gone = rng_below(&r, n);
        bits_clear(to, gone);
        z[gone] = false;
        check_bits(to, z, n);
        memset(to, 0xaa, sizeof(to));
        bits_fill(to, n);
        assert_int_equal(bits_count(to, words), n);
    }
    assert_true(bits_next(NULL, 0, 0) == SIZE_MAX);
}

/* ---- Interning ---- */

static void test_intern_random(void **state)
{
    (void)state;
    enum { N = 300 };
    struct intern *t = intern_new();
    static const char *text[N];
    static unsigned refs[N];
    struct rng r;
    rng_init(&r, 13);
    size_t live = 0;
    for (int step = 0; step < 30000; step++) {
        size_t i = rng_below(&r, N);
        char s[24];
        int len = snprintf(s, sizeof(s), "app-%zu", i);
        /* Phases of growing and of shrinking. */
        if (rng_chance(&r, step / 5000 % 2 ? 300000 : 700000)) {
            const char *got = refs[i] && rng_chance(&r, 300000) ? intern_ref(t, text[i])
                                                                : intern_get(t, str_from(s));
            assert_true(refs[i] == 0 || got == text[i]);
            assert_string_equal(got, s);
            assert_int_equal(intern_len(got), len);
            text[i] = got;
            live += refs[i]++ == 0;
        } else if (refs[i]) {
            intern_unref(t, text[i]);
            live -= --refs[i] == 0;
        }
        assert_int_equal(intern_count(t), live);
    }
    for (size_t i = 0; i < N; i++)
        while (refs[i]) {
            intern_unref(t, text[i]);
            refs[i]--;
        }
    assert_int_equal(intern_count(t), 0);
    intern_unref(t, NULL);
    const char *empty = intern_get(t, STR_NONE);
    assert_ptr_equal(empty, intern_get(t, STR("")));
    assert_int_equal(intern_str(empty).len, 0);
    assert_null(intern_str(NULL).p);
    const char *zero = intern_get(t, (struct str){"a\0b", 3});
    assert_ptr_not_equal(zero, intern_get(t, STR("a")));
    assert_int_equal(intern_len(zero), 3);
    assert_true(intern_bytes(t) > 0);
    intern_free(t);
    intern_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_random),  cmocka_unit_test(test_map_removal_while_iterating),
        cmocka_unit_test(test_map_queue),   cmocka_unit_test(test_heap_random),
        cmocka_unit_test(test_bits_random), cmocka_unit_test(test_intern_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
