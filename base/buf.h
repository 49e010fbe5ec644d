/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A growing byte buffer with a cap.
 *
 * `data` is always NUL-terminated once something was added. Appending past the cap sets `overflow`
 * and drops the bytes: callers check once at the end, not at every append. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
    char *data;
    size_t len, alloc;
    size_t cap; /* most bytes it may hold; 0: 1 GiB */
    bool overflow;
};

#define BUF_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

void buf_init(struct buf *b, size_t cap);
void buf_clear(struct buf *b);   /* keeps the memory */
void buf_release(struct buf *b); /* frees it; the buffer can be used again */
void buf_reserve(struct buf *b, size_t more);

void buf_add(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, struct str s);
void buf_cstr(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_consume(struct buf *b, size_t n); /* removes from the front */

static inline struct str buf_view(const struct buf *b)
{
    return (struct str){b->data ? b->data : "", b->len};
}

/* Hands over the malloc'ed, NUL-terminated text (never NULL) and empties the buffer. */
char *buf_detach(struct buf *b);

#endif
