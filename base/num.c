/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/num.h"

#include <errno.h>
#include <math.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int not_a(struct err *err, const char *what, struct str s)
{
    struct str shown = str_sub(s, 0, 40);
    return err_set(err, ERR_INVALID, "'%.*s' is not %s", STR_ARG(shown), what);
}

/* Sign and digits of the whole text. */
static int parse_digits(struct str s, bool *ret_negative, uint64_t *ret, struct err *err)
{
    size_t i = 0;
    bool negative = false;
    if (s.len && (s.p[0] == '-' || s.p[0] == '+'))
        negative = s.p[i++] == '-';
    if (i == s.len)
        return not_a(err, "a whole number", s);
    uint64_t v = 0;
    for (; i < s.len; i++) {
        if (!is_digit(s.p[i]))
            return not_a(err, "a whole number", s);
        if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return not_a(err, "a number that fits 64 bits", s);
    }
    *ret_negative = negative;
    *ret = v;
    return 0;
}

int num_parse_u64(struct str s, uint64_t *ret, struct err *err)
{
    bool negative;
    uint64_t v;
    if (parse_digits(s, &negative, &v, err) < 0)
        return -1;
    if (negative && v)
        return not_a(err, "a number of at least 0", s);
    *ret = v;
    return 0;
}

int num_parse_i64(struct str s, int64_t *ret, struct err *err)
{
    bool negative;
    uint64_t v;
    if (parse_digits(s, &negative, &v, err) < 0)
        return -1;
    if (v > (uint64_t)INT64_MAX + negative)
        return not_a(err, "a number that fits 64 bits", s);
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

int num_parse_range(struct str s, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
    int64_t v;
    if (num_parse_i64(s, &v, err) < 0)
        return -1;
    if (v < min || v > max)
        return err_set(err, ERR_INVALID, "%lld is not between %lld and %lld", (long long)v,
                       (long long)min, (long long)max);
    *ret = v;
    return 0;
}

/* A decimal number taken apart: mantissa * 10^exponent. Digits past what the mantissa holds only
 * raise the exponent. */
struct decimal {
    bool negative;
    unsigned __int128 mantissa;
    int64_t exponent;
};

#define MANTISSA_DIGITS 36
#define EXPONENT_MAX 100000 /* beyond this every value is zero or too large anyway */

static bool parse_exponent(struct str s, int64_t *ret)
{
    bool negative = s.len && s.p[0] == '-';
    if (s.len && (s.p[0] == '-' || s.p[0] == '+'))
        s = str_sub(s, 1, s.len);
    if (s.len == 0)
        return false;
    int64_t e = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.p[i]))
            return false;
        e = MIN(e * 10 + (s.p[i] - '0'), (int64_t)EXPONENT_MAX);
    }
    *ret = negative ? -e : e;
    return true;
}

/* The grammar [-+]digits[.digits][e[-+]digits] with at least one digit; false for anything else. */
static bool parse_decimal(struct str s, struct decimal *ret)
{
    *ret = (struct decimal){.negative = s.len && s.p[0] == '-'};
    size_t i = s.len && (s.p[0] == '-' || s.p[0] == '+');
    bool point = false;
    unsigned digits = 0, kept = 0;
    for (; i < s.len && (is_digit(s.p[i]) || (s.p[i] == '.' && !point)); i++) {
        if (s.p[i] == '.') {
            point = true;
            continue;
        }
        digits++;
        if (kept < MANTISSA_DIGITS) {
            ret->mantissa = ret->mantissa * 10 + (unsigned)(s.p[i] - '0');
            kept += ret->mantissa != 0;
            ret->exponent -= point;
        } else {
            ret->exponent += !point;
        }
    }
    if (digits == 0)
        return false;
    int64_t e = 0;
    if (i < s.len) {
        if ((s.p[i] != 'e' && s.p[i] != 'E') || !parse_exponent(str_sub(s, i + 1, s.len), &e))
            return false;
    }
    ret->exponent += e;
    return true;
}

int num_parse_double(struct str s, double *ret, struct err *err)
{
    char text[128];
    struct decimal d;
    if (!parse_decimal(s, &d) || s.len >= sizeof(text))
        return not_a(err, "a number", s);
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    double v = strtod(text, NULL);
    if (!isfinite(v))
        return not_a(err, "a number that a double can hold", s);
    *ret = v;
    return 0;
}

int num_parse_bool(struct str s, bool *ret, struct err *err)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (str_eq_c(s, yes[i]) || str_eq_c(s, no[i])) {
            *ret = str_eq_c(s, yes[i]);
            return 0;
        }
    }
    return not_a(err, "true or false", s);
}

int num_parse_fixed(struct str s, unsigned scale, int64_t *ret, struct err *err)
{
    struct decimal d;
    if (!parse_decimal(s, &d))
        return not_a(err, "a decimal number", s);
    unsigned __int128 v = d.mantissa;
    int64_t places = d.exponent + (int64_t)scale;
    unsigned dropped = 0;
    for (; places < 0 && (v || dropped); places++) {
        dropped = (unsigned)(v % 10);
        v /= 10;
    }
    v += dropped >= 5;
    for (; places > 0 && v && v <= INT64_MAX; places--)
        v *= 10;
    if (v > INT64_MAX)
        return not_a(err, "a number that fits 64 bits", s);
    *ret = d.negative ? -(int64_t)v : (int64_t)v;
    return 0;
}

struct str num_format_fixed(char out[32], int64_t v, unsigned scale)
{
    uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    char *end = out + 31, *p = end;
    *p = '\0';
    /* From the last digit on; at least one digit stands before the point. */
    for (unsigned i = 0; i <= scale || magnitude; i++) {
        if (i == scale && scale)
            *--p = '.';
        *--p = (char)('0' + magnitude % 10);
        magnitude /= 10;
    }
    if (v < 0)
        *--p = '-';
    memmove(out, p, (size_t)(end - p) + 1);
    return (struct str){out, (size_t)(end - p)};
}

bool num_add(int64_t a, int64_t b, int64_t *ret)
{
    if (!__builtin_add_overflow(a, b, ret))
        return true;
    *ret = a < 0 ? INT64_MIN : INT64_MAX;
    return false;
}

bool num_mul(int64_t a, int64_t b, int64_t *ret)
{
    if (!__builtin_mul_overflow(a, b, ret))
        return true;
    *ret = (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
    return false;
}

int64_t num_add_sat(int64_t a, int64_t b)
{
    int64_t v;
    num_add(a, b, &v);
    return v;
}

int64_t num_mul_sat(int64_t a, int64_t b)
{
    int64_t v;
    num_mul(a, b, &v);
    return v;
}

static int64_t saturate(__int128 v)
{
    if (v > INT64_MAX)
        return INT64_MAX;
    return v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

int64_t num_mul_div(int64_t a, int64_t b, int64_t c)
{
    __int128 product = (__int128)a * b, q = product / c;
    return saturate(q - (product % c < 0));
}

int64_t num_mul_div_up(int64_t a, int64_t b, int64_t c)
{
    __int128 product = (__int128)a * b, q = product / c;
    return saturate(q + (product % c > 0));
}
