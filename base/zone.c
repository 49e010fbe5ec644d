/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Time zones from TZif files (RFC 8536). */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cron.h"
#include "base/num.h"
#include "base/time.h"

#define FILE_BYTES_MAX (256 * 1024)
#define TRANSITIONS_MAX 4096

/* When a rule of the footer begins: Mm.w.d, Jn or n, at a time of day that may be outside 0..24 h.
 */
struct shift {
    char kind; /* 'M', 'J', 'N' */
    int month, week, day;
    int32_t time_s;
};

struct zone {
    size_t n;
    int64_t *at;     /* seconds since 1970, ascending */
    int32_t *offset; /* from at[i] on */
    int32_t first_offset;
    bool has_rule; /* the footer applies after the last transition */
    bool has_dst;
    int32_t standard, dst;
    struct shift to_dst, to_standard;
};

static int64_t big_endian(const char *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | (uint8_t)p[i];
    return bytes == 4 ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v;
}

static int malformed(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "not a time zone file: %s", what);
}

/* The six counts of a header, in file order. */
struct counts {
    uint64_t utc, standard, leap, times, types, chars;
};

static bool read_header(struct str *rest, struct counts *ret, char *ret_version)
{
    if (rest->len < 44 || memcmp(rest->p, "TZif", 4) != 0)
        return false;
    *ret_version = rest->p[4];
    uint64_t *to[] = {&ret->utc, &ret->standard, &ret->leap, &ret->times, &ret->types, &ret->chars};
    for (size_t i = 0; i < 6; i++)
        *to[i] = (uint64_t)(uint32_t)big_endian(rest->p + 20 + 4 * i, 4);
    *rest = str_sub(*rest, 44, rest->len);
    return true;
}

static uint64_t block_bytes(const struct counts *c, unsigned time_bytes)
{
    return c->times * time_bytes + c->times + c->types * 6 + c->chars + c->leap * (time_bytes + 4) +
           c->standard + c->utc;
}

static int read_block(struct zone *z, struct str block, const struct counts *c, unsigned time_bytes,
                      struct err *err)
{
    const char *times = block.p, *kinds = times + c->times * time_bytes, *types = kinds + c->times;
    if (c->times > TRANSITIONS_MAX || c->types == 0 || c->types > 256)
        return malformed(err, "impossible counts");
    z->n = c->times;
    z->at = xcalloc(z->n, sizeof(*z->at));
    z->offset = xcalloc(z->n, sizeof(*z->offset));
    z->first_offset = (int32_t)big_endian(types, 4);
    for (size_t i = 0; i < z->n; i++) {
        uint8_t type = (uint8_t)kinds[i];
        if (type >= c->types)
            return malformed(err, "a transition of no type");
        z->at[i] = big_endian(times + i * time_bytes, time_bytes);
        z->offset[i] = (int32_t)big_endian(types + (size_t)type * 6, 4);
        if (i && z->at[i] <= z->at[i - 1])
            return malformed(err, "transitions out of order");
    }
    for (size_t i = 0; i < c->types; i++) {
        int64_t offset = big_endian(types + i * 6, 4);
        if (offset < -26 * 3600 || offset > 26 * 3600)
            return malformed(err, "an impossible offset");
    }
    return 0;
}

/* ---- The footer, a POSIX TZ text: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

static bool take_char(struct str *s, char c)
{
    if (s->len == 0 || s->p[0] != c)
        return false;
    *s = str_sub(*s, 1, s->len);
    return true;
}

static bool take_int(struct str *s, int max, int *ret)
{
    size_t n = 0;
    int v = 0;
    while (n < s->len && n < 4 && s->p[n] >= '0' && s->p[n] <= '9')
        v = v * 10 + (s->p[n++] - '0');
    *s = str_sub(*s, n, s->len);
    *ret = v;
    return n > 0 && v <= max;
}

static bool take_name(struct str *s)
{
    size_t n = 0;
    if (take_char(s, '<')) {
        n = str_find_char(*s, '>', 0);
        if (n == SIZE_MAX)
            return false;
        *s = str_sub(*s, n + 1, s->len);
        return n > 0;
    }
    while (n < s->len && ((s->p[n] >= 'a' && s->p[n] <= 'z') || (s->p[n] >= 'A' && s->p[n] <= 'Z')))
        n++;
    *s = str_sub(*s, n, s->len);
    return n >= 3;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool take_time(struct str *s, int32_t *ret)
{
    bool negative = take_char(s, '-');
    if (!negative)
        take_char(s, '+');
    int hours, minutes = 0, seconds = 0;
    if (!take_int(s, 167, &hours))
        return false;
    if (take_char(s, ':') && !take_int(s, 59, &minutes))
        return false;
    if (take_char(s, ':') && !take_int(s, 59, &seconds))
        return false;
    *ret = (hours * 3600 + minutes * 60 + seconds) * (negative ? -1 : 1);
    return true;
}

static bool take_shift(struct str *s, struct shift *ret)
{
    *ret = (struct shift){.time_s = 2 * 3600};
    if (!take_char(s, ','))
        return false;
    bool good;
    if (take_char(s, 'M')) {
        ret->kind = 'M';
        good = take_int(s, 12, &ret->month) && take_char(s, '.') && take_int(s, 5, &ret->week) &&
               take_char(s, '.') && take_int(s, 6, &ret->day) && ret->month >= 1 && ret->week >= 1;
    } else {
        ret->kind = take_char(s, 'J') ? 'J' : 'N';
        good = take_int(s, ret->kind == 'J' ? 365 : 365, &ret->day) &&
               (ret->kind == 'N' || ret->day >= 1);
    }
    return good && (!take_char(s, '/') || take_time(s, &ret->time_s));
}

static bool parse_footer(struct zone *z, struct str s)
{
    int32_t west;
    if (!take_name(&s) || !take_time(&s, &west))
        return false;
    z->has_rule = true;
    z->standard = -west;
    if (s.len == 0)
        return true;
    if (!take_name(&s))
        return false;
    z->has_dst = true;
    z->dst = z->standard + 3600;
    if (s.len && s.p[0] != ',') {
        if (!take_time(&s, &west))
            return false;
        z->dst = -west;
    }
    return take_shift(&s, &z->to_dst) && take_shift(&s, &z->to_standard) && s.len == 0;
}

static int64_t days_of(int year, int month, int day)
{
    struct time_civil c = {.year = year, .month = (int8_t)month, .day = (int8_t)day};
    return time_from_civil(&c) / NS_PER_DAY;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Seconds since 1970 of the shift, in the local time that is in force before it. */
static int64_t shift_local(const struct shift *s, int year)
{
    int64_t day;
    if (s->kind == 'M') {
        int64_t first = days_of(year, s->month, 1);
        int weekday = (int)((first + 4) % 7);
        day = first + (s->day - weekday + 7) % 7 + (s->week - 1) * 7;
        int64_t end = s->month == 12 ? days_of(year + 1, 1, 1) : days_of(year, s->month + 1, 1);
        while (day >= end)
            day -= 7;
    } else {
        day = days_of(year, 1, 1) + s->day - (s->kind == 'J');
        day += s->kind == 'J' && is_leap(year) && s->day >= 60; /* Jn never counts February 29 */
    }
    return day * 86400 + s->time_s;
}

static int32_t rule_offset(const struct zone *z, int64_t t_s)
{
    if (!z->has_dst)
        return z->standard;
    struct time_civil c;
    time_to_civil(num_mul_sat(t_s + z->standard, NS_PER_S), &c);
    if (c.year < 1970 || c.year > 2260)
        return z->standard;
    int64_t to_dst = shift_local(&z->to_dst, c.year) - z->standard;
    int64_t to_standard = shift_local(&z->to_standard, c.year) - z->dst;
    if (to_dst < to_standard)
        return t_s >= to_dst && t_s < to_standard ? z->dst : z->standard;
    return t_s >= to_standard && t_s < to_dst ? z->standard : z->dst;
}

int32_t zone_offset(const struct zone *z, int64_t t)
{
    if (!z)
        return 0;
    int64_t t_s = t / NS_PER_S - (t % NS_PER_S < 0);
    if (z->n == 0 || t_s < z->at[0])
        return z->n == 0 && z->has_rule ? rule_offset(z, t_s) : z->first_offset;
    if (z->has_rule && t_s >= z->at[z->n - 1])
        return rule_offset(z, t_s);
    size_t lo = 0, hi = z->n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (z->at[mid] <= t_s)
            lo = mid;
        else
            hi = mid;
    }
    return z->offset[lo];
}

void zone_free(struct zone *z)
{
    if (!z)
        return;
    free(z->at);
    free(z->offset);
    free(z);
}

static int parse(struct zone *z, struct str rest, struct err *err)
{
    struct counts c;
    char version;
    unsigned time_bytes = 4;
    if (!read_header(&rest, &c, &version))
        return malformed(err, "no header");
    if (version >= '2') {
        /* The first block is for old readers; the second has 64-bit times and the footer. */
        uint64_t skip = block_bytes(&c, 4);
        if (skip > rest.len)
            return malformed(err, "cut short");
        rest = str_sub(rest, skip, rest.len);
        if (!read_header(&rest, &c, &version))
            return malformed(err, "no second header");
        time_bytes = 8;
    }
    uint64_t bytes = block_bytes(&c, time_bytes);
    if (bytes > rest.len)
        return malformed(err, "cut short");
    if (read_block(z, rest, &c, time_bytes, err) < 0)
        return -1;
    rest = str_sub(rest, bytes, rest.len);
    if (time_bytes == 4 || rest.len < 2)
        return 0;
    size_t end = str_find_char(rest, '\n', 1);
    if (rest.p[0] != '\n' || end == SIZE_MAX)
        return malformed(err, "no footer");
    struct str footer = str_sub(rest, 1, end);
    if (footer.len && !parse_footer(z, footer))
        return malformed(err, "an unreadable footer");
    return 0;
}

struct zone *zone_parse(struct str tzif, struct err *err)
{
    struct zone *z = xcalloc(1, sizeof(*z));
    if (parse(z, tzif, err) < 0) {
        zone_free(z);
        return NULL;
    }
    return z;
}

/* Names are paths below the zone folder: letters, digits, '_', '-', '+' and '/' without empty or
 * dotted parts. */
static bool is_zone_name(struct str name)
{
    if (name.len == 0 || name.len > 64 || name.p[0] == '/' || name.p[name.len - 1] == '/')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-' || c == '+';
        if (!word && !(c == '/' && name.p[i - 1] != '/'))
            return false;
    }
    return true;
}

struct zone *zone_load(struct str name, const char *dir, struct err *err)
{
    if (name.len == 0 || str_eq_c(name, "UTC"))
        return xcalloc(1, sizeof(struct zone));
    struct str shown = str_sub(name, 0, 64);
    if (!is_zone_name(name)) {
        err_set(err, ERR_INVALID, "'%.*s' is not the name of a time zone", STR_ARG(shown));
        return NULL;
    }
    char path[512];
    snprintf(path, sizeof(path), "%s/%.*s", dir ? dir : "/usr/share/zoneinfo", STR_ARG(shown));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        err_set(err, ERR_INVALID, "there is no time zone '%.*s' (is tzdata installed?)",
                STR_ARG(shown));
        return NULL;
    }
    CLEANUP(buf_release) struct buf bytes = {.cap = FILE_BYTES_MAX};
    char chunk[8192];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        buf_add(&bytes, chunk, (size_t)n);
    close(fd);
    struct zone *z = bytes.overflow ? NULL : zone_parse(buf_view(&bytes), err);
    if (!z)
        err_prefix(err, "time zone '%.*s'", STR_ARG(shown));
    return z;
}
