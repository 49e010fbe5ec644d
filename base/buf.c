/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/buf.h"

#include <stdarg.h>

#include "base/arena.h"

#define CAP_STANDARD ((size_t)1 << 30)

void buf_init(struct buf *b, size_t cap)
{
    *b = (struct buf){.cap = cap};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->overflow = false;
    if (b->data)
        b->data[0] = '\0';
}

void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.cap = b->cap};
}

void buf_reserve(struct buf *b, size_t more)
{
    size_t cap = b->cap ? b->cap : CAP_STANDARD;
    if (more > cap - MIN(b->len, cap)) {
        b->overflow = true;
        return;
    }
    size_t need = b->len + more + 1;
    if (need <= b->alloc)
        return;
    size_t alloc = MAX(MAX(b->alloc * 2, need), (size_t)64);
    b->data = xrealloc(b->data, alloc);
    b->alloc = alloc;
    b->data[b->len] = '\0';
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (b->overflow)
        return;
    buf_reserve(b, n);
    if (b->overflow)
        return;
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.len);
}

void buf_cstr(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n >= 0 && !b->overflow) {
        buf_reserve(b, (size_t)n);
        if (!b->overflow) {
            vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
            b->len += (size_t)n;
        }
    }
    va_end(again);
}

void buf_consume(struct buf *b, size_t n)
{
    n = MIN(n, b->len);
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

char *buf_detach(struct buf *b)
{
    char *p = b->data ? b->data : xstrdup("");
    *b = (struct buf){.cap = b->cap};
    return p;
}
