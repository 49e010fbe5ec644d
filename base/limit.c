/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/limit.h"

#include "base/attr.h"

/* Virtual scheduling (the generic cell rate algorithm): a token is there when taking it would not
 * push the instant of fullness more than `burst` intervals ahead of now. */

void limit_init(struct limit *l, double per_second, int64_t burst)
{
    *l = (struct limit){.burst = MAX(burst, (int64_t)1)};
    if (per_second > 0)
        l->interval = MAX((int64_t)(1e9 / per_second), (int64_t)1);
}

static int64_t after_taking(const struct limit *l, int64_t now)
{
    return MAX(l->full_at, now) + l->interval;
}

static int64_t wait_until(const struct limit *l, int64_t full_at, int64_t now)
{
    return MAX(full_at - l->burst * l->interval - now, (int64_t)0);
}

int64_t limit_take(struct limit *l, int64_t now)
{
    if (l->interval == 0)
        return 0;
    int64_t full_at = after_taking(l, now);
    int64_t wait = wait_until(l, full_at, now);
    if (wait == 0)
        l->full_at = full_at;
    return wait;
}

int64_t limit_reserve(struct limit *l, int64_t now)
{
    if (l->interval == 0)
        return 0;
    l->full_at = after_taking(l, now);
    return wait_until(l, l->full_at, now);
}
