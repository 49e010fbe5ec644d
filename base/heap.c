/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/heap.h"

#include <assert.h>

#include "base/vec.h"

void heap_release(struct heap *h)
{
    for (size_t i = 0; i < h->len; i++)
        h->v[i]->at = 0;
    free(h->v);
    *h = (struct heap)HEAP_INIT;
}

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void put(struct heap *h, size_t i, struct heap_node *n)
{
    h->v[i] = n;
    n->at = i + 1;
}

static void sift_up(struct heap *h, size_t i, struct heap_node *n)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (!before(n, h->v[parent]))
            break;
        put(h, i, h->v[parent]);
        i = parent;
    }
    put(h, i, n);
}

static void sift_down(struct heap *h, size_t i, struct heap_node *n)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->len)
            break;
        if (child + 1 < h->len && before(h->v[child + 1], h->v[child]))
            child++;
        if (!before(h->v[child], n))
            break;
        put(h, i, h->v[child]);
        i = child;
    }
    put(h, i, n);
}

void heap_push(struct heap *h, struct heap_node *n, int64_t key)
{
    assert(n->at == 0);
    if (h->len == h->cap)
        h->v = vec_grow_raw(h->v, &h->cap, h->len + 1, sizeof(*h->v));
    n->key = key;
    n->seq = h->next_seq++;
    sift_up(h, h->len++, n);
}

struct heap_node *heap_peek(const struct heap *h)
{
    return h->len ? h->v[0] : NULL;
}

struct heap_node *heap_pop(struct heap *h)
{
    struct heap_node *n = heap_peek(h);
    if (n)
        heap_remove(h, n);
    return n;
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    if (n->at == 0)
        return;
    size_t i = n->at - 1;
    assert(i < h->len && h->v[i] == n);
    n->at = 0;
    struct heap_node *last = h->v[--h->len];
    if (last == n)
        return;
    if (i > 0 && before(last, h->v[(i - 1) / 2]))
        sift_up(h, i, last);
    else
        sift_down(h, i, last);
}
