/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A binary min-heap of embedded nodes, ordered by (key, sequence): equal keys leave in the order
 * they came, so timers and queues are deterministic. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct heap_node {
    int64_t key;
    uint64_t seq;
    size_t at; /* position + 1; 0: not in a heap */
};

struct heap {
    struct heap_node **v;
    size_t len, cap;
    uint64_t next_seq;
};

#define HEAP_INIT                                                                                  \
    {                                                                                              \
        0                                                                                          \
    }

void heap_release(struct heap *h); /* nodes are the caller's */
void heap_push(struct heap *h, struct heap_node *n, int64_t key);
struct heap_node *heap_peek(const struct heap *h); /* NULL: empty */
struct heap_node *heap_pop(struct heap *h);
void heap_remove(struct heap *h, struct heap_node *n); /* harmless when not in it */
static inline bool heap_has(const struct heap_node *n)
{
    return n->at != 0;
}

#endif
