/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Slices of text: a pointer and a length, owned by somebody else.
 *
 * A slice need not be NUL-terminated. {NULL, 0} means absent; {"", 0} means empty; both compare
 * equal. Print with "%.*s", STR_ARG(s). */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct str {
    const char *p;
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1}) /* a string literal */
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    } /* in static initialisers */
#define STR_NONE ((struct str){NULL, 0})
#define STR_ARG(s) ((int)MIN((s).len, (size_t)0x7fffffff)), ((s).p ? (s).p : "")

struct str str_from(const char *cstr);                    /* NULL gives STR_NONE */
struct str str_sub(struct str s, size_t from, size_t to); /* clamped */

bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
int str_cmp(struct str a, struct str b); /* by bytes, shorter first */
bool str_has_prefix(struct str s, struct str prefix);
bool str_has_suffix(struct str s, struct str suffix);
bool str_eq_nocase(struct str a, struct str b); /* ASCII */
/* Index of the first occurrence at or after `from`, or SIZE_MAX. */
size_t str_find(struct str s, struct str needle, size_t from);
size_t str_find_char(struct str s, char c, size_t from);
struct str str_trim(struct str s); /* ASCII white space */

/* Takes the text before the next `sep` off `*rest`. False when nothing is left: "a,,b" gives
 * "a", "", "b"; "a," gives "a"; "" gives nothing. */
bool str_split(struct str *rest, char sep, struct str *ret_part);

/* Length of the UTF-8 sequence at `at` (within the text), or 0 when there is none: RFC 3629, so
 * neither overlong forms nor surrogates. */
size_t str_utf8_at(struct str s, size_t at);
bool str_is_utf8(struct str s);

/* 64-bit hash, the same on every machine and run. `seed` tells tables apart. */
uint64_t str_hash(struct str s, uint64_t seed);

/* Levenshtein distance, cut at `limit`; for "did you mean". */
unsigned str_distance(struct str a, struct str b, unsigned limit);

#endif
