/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A seeded generator (xoshiro256**, Blackman & Vigna 2018), the same sequence on every machine.
 *
 * Split one seed per subsystem (rng_split by name) so that adding a draw in one does not shift
 * the others. Not for secrets. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
/* A generator of its own that depends on the seed and the name only. */
void rng_split(struct rng *r, uint64_t seed, const char *name);
uint64_t rng_u64(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);              /* 0 <= x < n, n > 0, no bias */
int64_t rng_between(struct rng *r, int64_t lo, int64_t hi); /* inclusive */
bool rng_chance(struct rng *r, uint32_t per_million);
double rng_unit(struct rng *r); /* [0, 1) */
double rng_exp(struct rng *r, double mean);
double rng_normal(struct rng *r, double mean, double sd);

#endif
