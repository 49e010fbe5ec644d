/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Fixed-size bit sets over memory the caller provides (often an arena). */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BITS_WORDS(n) (((n) + 63) / 64)

static inline void bits_set(uint64_t *b, size_t i)
{
    b[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void bits_clear(uint64_t *b, size_t i)
{
    b[i / 64] &= ~(UINT64_C(1) << (i % 64));
}
static inline bool bits_get(const uint64_t *b, size_t i)
{
    return (b[i / 64] >> (i % 64)) & 1;
}

void bits_fill(uint64_t *b, size_t n); /* sets the first n, clears the rest of the last word */
size_t bits_count(const uint64_t *b, size_t words);
bool bits_and(uint64_t *to, const uint64_t *from, size_t words); /* true if any bit is left */
void bits_or(uint64_t *to, const uint64_t *from, size_t words);
void bits_and_not(uint64_t *to, const uint64_t *from, size_t words);
bool bits_any_and(const uint64_t *a, const uint64_t *b, size_t words);
bool bits_subset(const uint64_t *a, const uint64_t *of, size_t words);
bool bits_equal(const uint64_t *a, const uint64_t *b, size_t words);
/* Index of the first set bit at or after i, or SIZE_MAX. */
size_t bits_next(const uint64_t *b, size_t words, size_t i);

#endif
