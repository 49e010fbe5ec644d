/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The configuration linear program, solved by adding columns: least cost of sets of pods, fractions
 * allowed, that cover what each class demands (Gilmore and Gomory, 1961).
 *
 * A revised simplex with an explicit inverse: rows are classes, at most a few hundred. It works in
 * doubles and proves nothing; its dual values are only proposals that bound.c checks in integers.
 * Private to provisioner/solve. */
#ifndef SOLVE_COLUMNS_H
#define SOLVE_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct columns {
    uint32_t n;      /* rows */
    double *inverse; /* n by n, of the basis */
    double *level;   /* of each basic column */
    double *cost;    /* of each basic column */
    double *dual;    /* per row */
    double *step;    /* scratch */
};

/* The first basis: for each row a column that covers it alone, `copies` at `price`. */
void columns_init(struct columns *c, struct arena *a, uint32_t n, const double *copies,
                  const double *price, const double *demand);
/* Brings a column into the basis if it lowers the cost; false when it does not. */
bool columns_enter(struct columns *c, const double *column, double price);
/* Lets rows be covered more than demanded where that is cheaper: the duals end up at least 0. */
void columns_allow_surplus(struct columns *c);

#endif
