/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Memory with one lifetime: allocate piecemeal, drop all at once.
 *
 * A bump allocator over a chain of blocks. Each has a cap, so that hostile input cannot take the
 * whole machine: arena_alloc past the cap returns NULL once and for all until arena_clear. Running
 * out of the machine's memory ends the process (crash-only). */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"

struct arena_block;

struct arena {
    struct arena_block *head;
    char *at, *end;    /* free part of the head block */
    size_t used_bytes; /* handed out, with alignment */
    size_t cap_bytes;  /* 0: no cap */
    size_t next_block_bytes;
};

#define ARENA_INIT                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

/* `cap_bytes` 0 means none. `first_block_bytes` 0 means the default (4 KiB, doubling to 1 MiB). */
void arena_init(struct arena *a, size_t cap_bytes, size_t first_block_bytes);

/* Frees everything; the arena can be used again. */
void arena_clear(struct arena *a);
void arena_release(struct arena *a);
/* As arena_clear, but keeps the newest and largest block for what comes next. */
void arena_rewind(struct arena *a);

/* `n` zeroed bytes aligned for any type; NULL only when the cap is reached. n may be 0. */
void *arena_alloc(struct arena *a, size_t n) NODISCARD;
void *arena_array(struct arena *a, size_t count, size_t size) NODISCARD; /* checked product */
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_NEW_ARRAY(a, type, count) ((type *)arena_array((a), (count), sizeof(type)))

/* Copies; the result is NUL-terminated just past its end. {NULL,0} only at the cap. */
struct str arena_str(struct arena *a, struct str s);
char *arena_cstr(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Unaligned bytes without zeroing, for text. NULL at the cap. */
char *arena_bytes(struct arena *a, size_t n) NODISCARD;

/* xmalloc family: end the process when the machine has no memory left. */
void *xmalloc(size_t n) NODISCARD;
void *xcalloc(size_t count, size_t size) NODISCARD;
void *xrealloc(void *p, size_t n) NODISCARD;
char *xstrdup(const char *s) NODISCARD;
char *xstr_dup(struct str s) NODISCARD;

#endif
