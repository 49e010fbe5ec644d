/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* An insertion-ordered map from text to pointer.
 *
 * Iteration follows insertion, so that output never depends on addresses or hash seeds. Removal
 * leaves a hole that a later rehash closes; the order of the others stays. Keys are copied. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/str.h"

struct map_entry {
    char *key; /* NULL: a hole */
    size_t key_len;
    uint64_t hash;
    void *value;
};

struct map {
    struct map_entry *entries; /* insertion order */
    size_t n_entries, cap_entries, n_live;
    uint32_t *slots; /* index + 1 into entries; 0: free */
    size_t n_slots;
};

#define MAP_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

/* `free_value` may be NULL. */
void map_release(struct map *m, void (*free_value)(void *));
void map_clear(struct map *m, void (*free_value)(void *));

void *map_get(const struct map *m, struct str key); /* NULL: absent (or NULL was stored) */
bool map_has(const struct map *m, struct str key);
/* Stores and returns the value that was there before, or NULL. */
void *map_put(struct map *m, struct str key, void *value);
/* Address of the value of `key`, added as NULL if absent. Valid until the next map_put/map_slot. */
void **map_slot(struct map *m, struct str key);
/* Removes and returns the value, or NULL. Safe for the current entry during map_each. */
void *map_remove(struct map *m, struct str key);
static inline size_t map_len(const struct map *m)
{
    return m->n_live;
}

/* Next live entry at or after `i`, or NULL. */
struct map_entry *map_at(const struct map *m, size_t i);
static inline struct str map_key(const struct map_entry *e)
{
    return (struct str){e->key, e->key_len};
}

/* Do not add while iterating; removing is allowed. */
#define map_each(m, it)                                                                            \
    for (struct map_entry *it = map_at((m), 0); it;                                                \
         it = map_at((m), (size_t)(it - (m)->entries) + 1))

#endif
