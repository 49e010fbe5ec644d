/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/map.h"

#include "base/arena.h"
#include "base/vec.h"

#define HASH_SEED 0

void map_clear(struct map *m, void (*free_value)(void *))
{
    for (size_t i = 0; i < m->n_entries; i++) {
        if (m->entries[i].key && free_value)
            free_value(m->entries[i].value);
        free(m->entries[i].key);
    }
    m->n_entries = m->n_live = 0;
    if (m->slots)
        memset(m->slots, 0, m->n_slots * sizeof(*m->slots));
}

void map_release(struct map *m, void (*free_value)(void *))
{
    map_clear(m, free_value);
    free(m->entries);
    free(m->slots);
    *m = (struct map)MAP_INIT;
}

/* The slot that holds the key, or the free one where it would go. A slot of a removed entry still
 * points at its hole, so that probing goes on past it. */
static size_t find_slot(const struct map *m, struct str key, uint64_t hash)
{
    size_t mask = m->n_slots - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        if (m->slots[i] == 0)
            return i;
        const struct map_entry *e = &m->entries[m->slots[i] - 1];
        if (e->key && e->hash == hash && str_eq(map_key(e), key))
            return i;
    }
}

static struct map_entry *find(const struct map *m, struct str key)
{
    if (m->n_live == 0)
        return NULL;
    uint32_t at = m->slots[find_slot(m, key, str_hash(key, HASH_SEED))];
    return at ? &m->entries[at - 1] : NULL;
}

/* Closes the holes and sizes the slots for at least twice the entries. */
static void rehash(struct map *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_entries; i++)
        if (m->entries[i].key)
            m->entries[n++] = m->entries[i];
    m->n_entries = n;
    size_t slots = 16;
    while (slots < (n + 1) * 3)
        slots *= 2;
    if (slots != m->n_slots) {
        free(m->slots);
        m->slots = xcalloc(slots, sizeof(*m->slots));
        m->n_slots = slots;
    } else {
        memset(m->slots, 0, slots * sizeof(*m->slots));
    }
    for (size_t i = 0; i < n; i++)
        m->slots[find_slot(m, map_key(&m->entries[i]), m->entries[i].hash)] = (uint32_t)i + 1;
}

void *map_get(const struct map *m, struct str key)
{
    const struct map_entry *e = find(m, key);
    return e ? e->value : NULL;
}

bool map_has(const struct map *m, struct str key)
{
    return find(m, key) != NULL;
}

void **map_slot(struct map *m, struct str key)
{
    struct map_entry *e = find(m, key);
    if (e)
        return &e->value;
    if ((m->n_entries + 1) * 3 > m->n_slots * 2)
        rehash(m);
    if (m->n_entries == m->cap_entries)
        m->entries =
            vec_grow_raw(m->entries, &m->cap_entries, m->n_entries + 1, sizeof(*m->entries));
    uint64_t hash = str_hash(key, HASH_SEED);
    m->entries[m->n_entries] =
        (struct map_entry){.key = xstr_dup(key), .key_len = key.len, .hash = hash};
    m->slots[find_slot(m, key, hash)] = (uint32_t)++m->n_entries;
    m->n_live++;
    return &m->entries[m->n_entries - 1].value;
}

void *map_put(struct map *m, struct str key, void *value)
{
    void **slot = map_slot(m, key);
    void *before = *slot;
    *slot = value;
    return before;
}

void *map_remove(struct map *m, struct str key)
{
    struct map_entry *e = find(m, key);
    if (!e)
        return NULL;
    void *value = e->value;
    free(e->key);
    *e = (struct map_entry){0};
    m->n_live--;
    return value;
}

struct map_entry *map_at(const struct map *m, size_t i)
{
    for (; i < m->n_entries; i++)
        if (m->entries[i].key)
            return &m->entries[i];
    return NULL;
}
