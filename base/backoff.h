/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Growing pauses with jitter, so that a thousand clients do not come back in step. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

#include "base/rng.h"

struct backoff {
    int64_t base, cap; /* ns */
    unsigned failures;
};

/* The next pause: uniform in [d/2, d], d = min(cap, base * 2^failures). Counts the failure. */
int64_t backoff_next(struct backoff *b, struct rng *r);
static inline void backoff_reset(struct backoff *b)
{
    b->failures = 0;
}

#endif
