/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/bits.h"

#include <string.h>

void bits_fill(uint64_t *b, size_t n)
{
    memset(b, 0, BITS_WORDS(n) * sizeof(*b));
    for (size_t i = 0; i < n / 64; i++)
        b[i] = UINT64_MAX;
    if (n % 64)
        b[n / 64] = (UINT64_C(1) << (n % 64)) - 1;
}

size_t bits_count(const uint64_t *b, size_t words)
{
    size_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (size_t)__builtin_popcountll(b[i]);
    return n;
}

bool bits_and(uint64_t *to, const uint64_t *from, size_t words)
{
    uint64_t any = 0;
    for (size_t i = 0; i < words; i++)
        any |= to[i] &= from[i];
    return any != 0;
}

void bits_or(uint64_t *to, const uint64_t *from, size_t words)
{
    for (size_t i = 0; i < words; i++)
        to[i] |= from[i];
}

void bits_and_not(uint64_t *to, const uint64_t *from, size_t words)
{
    for (size_t i = 0; i < words; i++)
        to[i] &= ~from[i];
}

bool bits_any_and(const uint64_t *a, const uint64_t *b, size_t words)
{
    for (size_t i = 0; i < words; i++)
        if (a[i] & b[i])
            return true;
    return false;
}

bool bits_subset(const uint64_t *a, const uint64_t *of, size_t words)
{
    for (size_t i = 0; i < words; i++)
        if (a[i] & ~of[i])
            return false;
    return true;
}

bool bits_equal(const uint64_t *a, const uint64_t *b, size_t words)
{
    return words == 0 || memcmp(a, b, words * sizeof(*a)) == 0;
}

size_t bits_next(const uint64_t *b, size_t words, size_t i)
{
    size_t word = i / 64;
    if (word >= words)
        return SIZE_MAX;
    uint64_t rest = b[word] & (UINT64_MAX << (i % 64));
    while (rest == 0) {
        if (++word >= words)
            return SIZE_MAX;
        rest = b[word];
    }
    return word * 64 + (size_t)__builtin_ctzll(rest);
}
