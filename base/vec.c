/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/vec.h"

#include <stdint.h>

#include "base/arena.h"

void *vec_grow_raw(void *v, size_t *cap, size_t need, size_t size)
{
    size_t grown = MAX(MAX(*cap * 2, need), (size_t)8);
    size_t bytes;
    if (__builtin_mul_overflow(grown, size, &bytes))
        bytes = SIZE_MAX; /* xrealloc ends the process */
    v = xrealloc(v, bytes);
    *cap = grown;
    return v;
}
