/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

#include "base/str.h"

/* splitmix64, to fill the state from one word. */
static uint64_t split(uint64_t *x)
{
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void rng_init(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = split(&seed);
}

void rng_split(struct rng *r, uint64_t seed, const char *name)
{
    rng_init(r, str_hash(str_from(name), seed));
}

static uint64_t rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    assert(n > 0);
    uint64_t reject = (0 - n) % n; /* 2^64 mod n: the part that would favour small numbers */
    for (;;) {
        uint64_t x = rng_u64(r);
        if (x >= reject)
            return x % n;
    }
}

int64_t rng_between(struct rng *r, int64_t lo, int64_t hi)
{
    assert(lo <= hi);
    uint64_t span = (uint64_t)hi - (uint64_t)lo;
    uint64_t x = span == UINT64_MAX ? rng_u64(r) : rng_below(r, span + 1);
    return (int64_t)((uint64_t)lo + x);
}

bool rng_chance(struct rng *r, uint32_t per_million)
{
    return rng_below(r, 1000000) < per_million;
}

double rng_unit(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1.0p-53;
}

double rng_exp(struct rng *r, double mean)
{
    return -mean * log(1.0 - rng_unit(r));
}

double rng_normal(struct rng *r, double mean, double sd)
{
    /* Box and Muller; the second value is not kept, so that the state is the four words alone. */
    double radius = sqrt(-2.0 * log(1.0 - rng_unit(r)));
    return mean + sd * radius * cos(2.0 * M_PI * rng_unit(r));
}
