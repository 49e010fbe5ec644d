/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>

#define FIRST_BLOCK_BYTES 4096
#define BLOCK_BYTES_MAX (1024 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t bytes;
    alignas(max_align_t) char data[];
};

void arena_init(struct arena *a, size_t cap_bytes, size_t first_block_bytes)
{
    *a = (struct arena){.cap_bytes = cap_bytes, .next_block_bytes = first_block_bytes};
}

void arena_clear(struct arena *a)
{
    struct arena_block *b = a->head;
    while (b) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
    *a = (struct arena){.cap_bytes = a->cap_bytes};
}

void arena_release(struct arena *a)
{
    arena_clear(a);
}

void arena_rewind(struct arena *a)
{
    struct arena_block *kept = a->head;
    if (!kept)
        return;
    for (struct arena_block *b = kept->next; b;) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
    kept->next = NULL;
    a->at = kept->data;
    a->end = kept->data + kept->bytes;
    a->used_bytes = 0;
}

static void add_block(struct arena *a, size_t least)
{
    size_t bytes = a->next_block_bytes ? a->next_block_bytes : FIRST_BLOCK_BYTES;
    a->next_block_bytes = MIN(bytes * 2, (size_t)BLOCK_BYTES_MAX);
    bytes = MAX(bytes, least);
    size_t total;
    if (__builtin_add_overflow(sizeof(struct arena_block), bytes, &total))
        total = SIZE_MAX; /* xmalloc ends the process */
    struct arena_block *b = xmalloc(total);
    b->bytes = bytes;
    b->next = a->head;
    a->head = b;
    a->at = b->data;
    a->end = b->data + bytes;
}

/* Takes `n` bytes at the given alignment, or NULL at the cap. */
static char *take(struct arena *a, size_t n, size_t alignment)
{
    if (a->cap_bytes && n > a->cap_bytes - MIN(a->used_bytes, a->cap_bytes)) {
        a->used_bytes = a->cap_bytes; /* once and for all: later smaller requests fail too */
        return NULL;
    }
    size_t pad = (size_t)(-(uintptr_t)a->at) & (alignment - 1);
    if (!a->at || n > (size_t)(a->end - a->at) || pad > (size_t)(a->end - a->at) - n) {
        add_block(a, n);
        pad = 0;
    }
    char *p = a->at + pad;
    a->at = p + n;
    a->used_bytes += n + pad;
    return p;
}

void *arena_alloc(struct arena *a, size_t n)
{
    char *p = take(a, n, alignof(max_align_t));
    return p ? memset(p, 0, n) : NULL;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n))
        return NULL;
    return arena_alloc(a, n);
}

char *arena_bytes(struct arena *a, size_t n)
{
    return take(a, n, 1);
}

char *arena_cstr(struct arena *a, struct str s)
{
    char *p = arena_bytes(a, s.len + 1);
    if (!p)
        return NULL;
    if (s.len)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *p = arena_cstr(a, s);
    return p ? (struct str){p, s.len} : STR_NONE;
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *p = n < 0 ? NULL : arena_bytes(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p ? (struct str){p, (size_t)n} : STR_NONE;
}

/* Crash-only: a process without memory cannot keep its promises, and its successor can. */
static void *or_die(void *p, size_t n)
{
    if (!p && n) {
        fprintf(stderr, "weft: no memory for %zu bytes\n", n);
        abort();
    }
    return p;
}

void *xmalloc(size_t n)
{
    return or_die(malloc(n ? n : 1), n);
}

void *xcalloc(size_t count, size_t size)
{
    return or_die(calloc(count ? count : 1, size ? size : 1), count);
}

void *xrealloc(void *p, size_t n)
{
    return or_die(realloc(p, n ? n : 1), n);
}

char *xstr_dup(struct str s)
{
    char *p = xmalloc(s.len + 1);
    if (s.len)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    return p;
}

char *xstrdup(const char *s)
{
    return xstr_dup(str_from(s));
}
