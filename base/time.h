/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Instants and durations as int64_t nanoseconds; their text forms.
 *
 * Instants are since 1970-01-01T00:00:00Z. 0 means "not set", as in Kubernetes' zero time. This
 * room never reads a clock: the loop does (base/loop.h). */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include "base/err.h"
#include "base/str.h"

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MIN (60 * NS_PER_S)
#define NS_PER_HOUR (3600 * NS_PER_S)
#define NS_PER_DAY (86400 * NS_PER_S)
#define TIME_NEVER INT64_MAX /* an instant that never comes, a duration without end */

struct time_civil {
    int32_t year;                            /* 1..9999 */
    int8_t month, day, hour, minute, second; /* 1..12, 1..31, 0..23, 0..59, 0..59 */
    int8_t weekday;                          /* 0 Sunday */
    int32_t nanosecond;
};

/* RFC 3339 with any offset and up to nine digits of fraction. */
int time_parse_rfc3339(struct str s, int64_t *ret, struct err *err);
/* "2026-07-20T10:00:00Z" (seconds), or with six digits for MicroTime. At most 40 bytes. */
struct str time_format(char out[40], int64_t t);
struct str time_format_micro(char out[40], int64_t t);

/* Go durations: "1h30m", "300ms", "1.5h", "0". Sign allowed. */
int time_parse_duration(struct str s, int64_t *ret, struct err *err);
/* A Go duration, or a bare whole number of seconds ("30" = 30 s). */
int time_parse_seconds(struct str s, int64_t *ret, struct err *err);
/* Shortest Go form: "1h30m", "90s" becomes "1m30s", "0s". At most 40 bytes. */
struct str time_format_duration(char out[40], int64_t d);

void time_to_civil(int64_t t, struct time_civil *ret); /* UTC */
int64_t time_from_civil(const struct time_civil *c);   /* UTC; weekday ignored */

#endif
