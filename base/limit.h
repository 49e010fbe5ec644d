/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A token bucket on a clock that the caller passes in. */
#ifndef BASE_LIMIT_H
#define BASE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct limit {
    int64_t interval; /* ns a token takes to come back; 0: no limit */
    int64_t burst;    /* tokens it holds at most */
    int64_t full_at;  /* virtual scheduling: the instant at which the bucket is full again */
};

void limit_init(struct limit *l, double per_second, int64_t burst);
/* Takes one token and returns 0, or takes none and returns the ns until there is one. */
int64_t limit_take(struct limit *l, int64_t now);
/* Takes one token even if that means debt, and returns the ns to wait before using it. */
int64_t limit_reserve(struct limit *l, int64_t now);

#endif
