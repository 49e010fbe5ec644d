/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Checked integers: parsing that takes the whole text or nothing, arithmetic that tells overflow.
 */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/err.h"
#include "base/str.h"

/* Decimal with optional sign; the whole slice must be the number. ERR_INVALID names the text. */
int num_parse_i64(struct str s, int64_t *ret, struct err *err);
int num_parse_u64(struct str s, uint64_t *ret, struct err *err);
/* Within [min, max]. */
int num_parse_range(struct str s, int64_t min, int64_t max, int64_t *ret, struct err *err);
/* A decimal number with fraction and exponent; "nan", "inf", hex are refused. */
int num_parse_double(struct str s, double *ret, struct err *err);
/* "true" "1" "t" "T" "TRUE" "True" and their opposites (strconv.ParseBool). */
int num_parse_bool(struct str s, bool *ret, struct err *err);

/* Decimal text to a scaled integer: "0.526" with scale 6 is 526000. Digits past the scale round
 * half away from zero. ERR_INVALID for anything but [-+]digits[.digits][e[-+]digits]. */
int num_parse_fixed(struct str s, unsigned scale, int64_t *ret, struct err *err);
/* The opposite: 526000 with scale 6 gives "0.526000". Writes at most 32 bytes with the NUL. */
struct str num_format_fixed(char out[32], int64_t v, unsigned scale);

/* False on overflow, *ret then saturates in the direction of the overflow. */
bool num_add(int64_t a, int64_t b, int64_t *ret);
bool num_mul(int64_t a, int64_t b, int64_t *ret);
int64_t num_add_sat(int64_t a, int64_t b);
int64_t num_mul_sat(int64_t a, int64_t b);
/* a*b/c with a 128-bit product, rounded down / up; saturates. c > 0. */
int64_t num_mul_div(int64_t a, int64_t b, int64_t c);
int64_t num_mul_div_up(int64_t a, int64_t b, int64_t c);

#endif
