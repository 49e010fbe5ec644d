/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Five-field cron schedules and the time zones they run in.
 *
 * Fields: minute hour day-of-month month day-of-week, with lists, ranges, steps, names (JAN, MON),
 * "?" as "*", Sunday as 0 or 7; macros @yearly @annually @monthly @weekly @daily @midnight @hourly.
 * When both day fields are restricted either may match (crontab(5)). Zones are IANA names read from
 * the system's TZif files (RFC 8536), so "Europe/Prague" works where tzdata is installed.
 * Daylight shifts as robfig/cron and KEDA have them: a local time that does not exist is skipped,
 * one that comes twice fires at its first occurrence. */
#ifndef BASE_CRON_H
#define BASE_CRON_H

#include "base/err.h"
#include "base/str.h"

struct cron {
    uint64_t minutes; /* bit per value */
    uint32_t hours, days, months, weekdays;
    bool days_star, weekdays_star;
};

struct zone; /* immutable, shared between callers */

int cron_parse(struct str s, struct cron *ret, struct err *err);

/* `name` "" or "UTC" is UTC. `dir` NULL means the system's folder. Path tricks are refused. */
struct zone *zone_load(struct str name, const char *dir, struct err *err);
/* From the bytes of a TZif file; for tests and fuzzing. */
struct zone *zone_parse(struct str tzif, struct err *err);
void zone_free(struct zone *z);
/* Seconds east of UTC at the instant `t`. NULL zone is UTC. */
int32_t zone_offset(const struct zone *z, int64_t t);

/* First instant strictly after `t` at which the schedule fires; TIME_NEVER if none within five
 * years. */
int64_t cron_next(const struct cron *c, const struct zone *z, int64_t t);
/* Last instant at or before `t` at which it fired; INT64_MIN if none within five years. */
int64_t cron_prev(const struct cron *c, const struct zone *z, int64_t t);

#endif
