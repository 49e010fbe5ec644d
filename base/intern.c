/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/intern.h"

#include <assert.h>

#include "base/arena.h"

/* An open-addressing table of entries; each entry's text follows its header, so that the header is
 * found from the text. A removed slot keeps a mark that probing passes over. */
struct entry {
    uint64_t hash;
    uint32_t refs;
    uint32_t len;
    char text[];
};

struct intern {
    struct entry **slots;
    size_t n_slots, n_live, n_marks;
    size_t bytes;
};

static struct entry removed_mark;

struct intern *intern_new(void)
{
    return xcalloc(1, sizeof(struct intern));
}

void intern_free(struct intern *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i] && t->slots[i] != &removed_mark)
            free(t->slots[i]);
    free(t->slots);
    free(t);
}

static struct entry *entry_of(const char *text)
{
    return CONTAINER_OF((char *)(uintptr_t)text, struct entry, text);
}

/* The slot that holds the text, or the first that it may go into. */
static size_t find_slot(const struct intern *t, struct str s, uint64_t hash)
{
    size_t mask = t->n_slots - 1, open = SIZE_MAX;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        const struct entry *e = t->slots[i];
        if (!e)
            return open == SIZE_MAX ? i : open;
        if (e == &removed_mark) {
            if (open == SIZE_MAX)
                open = i;
        } else if (e->hash == hash && e->len == s.len && memcmp(e->text, s.p, s.len) == 0) {
            return i;
        }
    }
}

static void resize(struct intern *t)
{
    size_t n = 64;
    while (n < (t->n_live + 1) * 3)
        n *= 2;
    struct entry **before = t->slots;
    size_t n_before = t->n_slots;
    t->slots = xcalloc(n, sizeof(*t->slots));
    t->n_slots = n;
    t->n_marks = 0;
    for (size_t i = 0; i < n_before; i++) {
        struct entry *e = before[i];
        if (e && e != &removed_mark)
            t->slots[find_slot(t, (struct str){e->text, e->len}, e->hash)] = e;
    }
    free(before);
}

const char *intern_get(struct intern *t, struct str s)
{
    if (!s.p)
        s = STR("");
    if ((t->n_live + t->n_marks + 1) * 3 > t->n_slots * 2)
        resize(t);
    uint64_t hash = str_hash(s, 1);
    size_t i = find_slot(t, s, hash);
    struct entry *e = t->slots[i];
    if (e && e != &removed_mark) {
        e->refs++;
        return e->text;
    }
    assert(s.len < UINT32_MAX);
    if (e == &removed_mark)
        t->n_marks--;
    e = xmalloc(sizeof(*e) + s.len + 1);
    *e = (struct entry){.hash = hash, .refs = 1, .len = (uint32_t)s.len};
    memcpy(e->text, s.p, s.len);
    e->text[s.len] = '\0';
    t->slots[i] = e;
    t->n_live++;
    t->bytes += sizeof(*e) + s.len + 1;
    return e->text;
}

const char *intern_find(const struct intern *t, struct str s)
{
    if (t->n_live == 0 || !s.p)
        return NULL;
    const struct entry *e = t->slots[find_slot(t, s, str_hash(s, 1))];
    return e && e != &removed_mark ? e->text : NULL;
}

const char *intern_ref(struct intern *t UNUSED, const char *interned)
{
    entry_of(interned)->refs++;
    return interned;
}

void intern_unref(struct intern *t, const char *interned)
{
    if (!interned)
        return;
    struct entry *e = entry_of(interned);
    assert(e->refs > 0);
    if (--e->refs > 0)
        return;
    size_t i = find_slot(t, (struct str){e->text, e->len}, e->hash);
    assert(t->slots[i] == e);
    t->slots[i] = &removed_mark;
    t->n_marks++;
    t->n_live--;
    t->bytes -= sizeof(*e) + e->len + 1;
    free(e);
}

size_t intern_len(const char *interned)
{
    return entry_of(interned)->len;
}

size_t intern_count(const struct intern *t)
{
    return t->n_live;
}

size_t intern_bytes(const struct intern *t)
{
    return t->bytes + t->n_slots * sizeof(*t->slots);
}
