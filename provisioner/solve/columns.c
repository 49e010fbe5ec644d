/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A small revised simplex. */

#include "provisioner/solve/columns.h"

#define TINY 1e-9

void columns_init(struct columns *c, struct arena *a, uint32_t n, const double *copies,
                  const double *price, const double *demand)
{
    *c = (struct columns){.n = n};
    c->inverse = ARENA_NEW_ARRAY(a, double, (size_t)n *n);
    c->level = ARENA_NEW_ARRAY(a, double, n);
    c->cost = ARENA_NEW_ARRAY(a, double, n);
    c->dual = ARENA_NEW_ARRAY(a, double, n);
    c->step = ARENA_NEW_ARRAY(a, double, n);
    for (uint32_t i = 0; i < n; i++) {
        c->inverse[(size_t)i * n + i] = 1 / copies[i];
        c->level[i] = demand[i] / copies[i];
        c->cost[i] = price[i];
        c->dual[i] = price[i] / copies[i];
    }
}

/* Which basic column has to leave; n when the step is unbounded, which covering never is. */
static uint32_t leaving(const struct columns *c)
{
    uint32_t row = c->n;
    double least = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->step[i] <= TINY)
            continue;
        double ratio = c->level[i] / c->step[i];
        if (row == c->n || ratio < least) {
            row = i;
            least = ratio;
        }
    }
    return row;
}

/* Replaces the basic column of the row by the one whose step is in c->step. */
static void pivot(struct columns *c, uint32_t row, double price, double reduced)
{
    uint32_t n = c->n;
    double *at = &c->inverse[(size_t)row * n], by = c->step[row], level = c->level[row] / by;
    for (uint32_t k = 0; k < n; k++) {
        c->dual[k] += reduced / by * at[k];
        at[k] /= by;
    }
    for (uint32_t i = 0; i < n; i++) {
        double f = c->step[i];
        if (i == row || (f < TINY && f > -TINY))
            continue;
        double *to = &c->inverse[(size_t)i * n];
        for (uint32_t k = 0; k < n; k++)
            to[k] -= f * at[k];
        c->level[i] -= f * level;
        if (c->level[i] < 0)
            c->level[i] = 0;
    }
    c->level[row] = level;
    c->cost[row] = price;
}

bool columns_enter(struct columns *c, const double *column, double price)
{
    uint32_t n = c->n;
    double worth = 0;
    for (uint32_t i = 0; i < n; i++)
        worth += c->dual[i] * column[i];
    if (worth <= price * (1 + 1e-7) + TINY)
        return false;
    for (uint32_t i = 0; i < n; i++)
        c->step[i] = 0;
    for (uint32_t k = 0; k < n; k++)
        if (column[k] > 0 || column[k] < 0)
            for (uint32_t i = 0; i < n; i++)
                c->step[i] += c->inverse[(size_t)i * n + k] * column[k];
    uint32_t row = leaving(c);
    if (row == n)
        return false;
    pivot(c, row, price, price - worth);
    return true;
}

void columns_allow_surplus(struct columns *c)
{
    uint32_t n = c->n;
    for (uint32_t turn = 0; turn < 2 * n; turn++) {
        uint32_t least = 0;
        for (uint32_t i = 1; i < n; i++)
            if (c->dual[i] < c->dual[least])
                least = i;
        if (n == 0 || c->dual[least] >= -1e-6)
            return;
        for (uint32_t i = 0; i < n; i++)
            c->step[i] = -c->inverse[(size_t)i * n + least];
        uint32_t row = leaving(c);
        if (row == n)
            return;
        pivot(c, row, 0, c->dual[least]);
    }
}
