/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/backoff.h"

int64_t backoff_next(struct backoff *b, struct rng *r)
{
    int64_t d = b->base;
    for (unsigned i = 0; i < b->failures && d < b->cap; i++)
        d = d > b->cap / 2 ? b->cap : d * 2;
    if (d > b->cap)
        d = b->cap;
    if (b->failures < 63)
        b->failures++;
    return d <= 1 ? d : rng_between(r, d / 2, d);
}
