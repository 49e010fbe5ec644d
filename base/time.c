/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/time.h"

#include "base/num.h"

/* Days since 1970-01-01 and back, by the proleptic Gregorian calendar. Years begin in March, so
 * that the leap day is the last of its year; 400 years have 146,097 days. */
static int64_t days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void civil_from_days(int64_t days, struct time_civil *ret)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t m = (5 * day_of_year + 2) / 153;
    ret->day = (int8_t)(day_of_year - (153 * m + 2) / 5 + 1);
    ret->month = (int8_t)(m < 10 ? m + 3 : m - 9);
    ret->year = (int32_t)(year_of_era + era * 400 + (ret->month <= 2));
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

void time_to_civil(int64_t t, struct time_civil *ret)
{
    int64_t seconds = floor_div(t, NS_PER_S);
    int64_t days = floor_div(seconds, 86400);
    int64_t in_day = seconds - days * 86400;
    civil_from_days(days, ret);
    ret->hour = (int8_t)(in_day / 3600);
    ret->minute = (int8_t)(in_day / 60 % 60);
    ret->second = (int8_t)(in_day % 60);
    ret->nanosecond = (int32_t)((t % NS_PER_S + NS_PER_S) % NS_PER_S);
    ret->weekday = (int8_t)(((days + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
}

int64_t time_from_civil(const struct time_civil *c)
{
    int64_t days = days_from_civil(c->year, c->month, c->day);
    int64_t seconds = days * 86400 + c->hour * 3600 + c->minute * 60 + c->second;
    __int128 t = (__int128)seconds * NS_PER_S + c->nanosecond;
    return t > INT64_MAX ? INT64_MAX : t < INT64_MIN ? INT64_MIN : (int64_t)t;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* Takes `n` digits off the front; false when they are not there. */
static bool take_digits(struct str *s, unsigned n, int *ret)
{
    if (s->len < n)
        return false;
    int v = 0;
    for (unsigned i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        v = v * 10 + (s->p[i] - '0');
    }
    *s = str_sub(*s, n, s->len);
    *ret = v;
    return true;
}

static bool take_char(struct str *s, const char *any_of)
{
    if (s->len == 0 || s->p[0] == '\0' || !strchr(any_of, s->p[0]))
        return false;
    *s = str_sub(*s, 1, s->len);
    return true;
}

static bool take_fraction(struct str *s, int32_t *ret_ns)
{
    *ret_ns = 0;
    if (!take_char(s, "."))
        return true;
    int32_t unit = 100000000;
    unsigned n = 0;
    int digit;
    for (; take_digits(s, 1, &digit); n++, unit /= 10)
        *ret_ns += digit * unit;
    return n > 0 && n <= 9;
}

static bool take_offset(struct str *s, int64_t *ret_s)
{
    *ret_s = 0;
    if (take_char(s, "Zz"))
        return true;
    bool west = s->len && s->p[0] == '-';
    int hours, minutes;
    if (!take_char(s, "+-") || !take_digits(s, 2, &hours) || !take_char(s, ":") ||
        !take_digits(s, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_s = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return true;
}

int time_parse_rfc3339(struct str s, int64_t *ret, struct err *err)
{
    struct str rest = s;
    int year, month, day, hour, minute, second;
    int64_t offset;
    struct time_civil c = {0};
    bool good =
        take_digits(&rest, 4, &year) && take_char(&rest, "-") && take_digits(&rest, 2, &month) &&
        take_char(&rest, "-") && take_digits(&rest, 2, &day) && take_char(&rest, "Tt ") &&
        take_digits(&rest, 2, &hour) && take_char(&rest, ":") && take_digits(&rest, 2, &minute) &&
        take_char(&rest, ":") && take_digits(&rest, 2, &second) &&
        take_fraction(&rest, &c.nanosecond) && take_offset(&rest, &offset) && rest.len == 0;
    if (!good || year < 1 || month < 1 || month > 12 || day < 1 ||
        day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 60) {
        struct str shown = str_sub(s, 0, 40);
        return err_set(err, ERR_INVALID, "'%.*s' is not an RFC 3339 time", STR_ARG(shown));
    }
    c.year = year;
    c.month = (int8_t)month;
    c.day = (int8_t)day;
    c.hour = (int8_t)hour;
    c.minute = (int8_t)minute;
    c.second = (int8_t)second;
    *ret = num_add_sat(time_from_civil(&c), -offset * NS_PER_S);
    return 0;
}

static struct str format(char out[40], int64_t t, bool micro)
{
    struct time_civil c;
    time_to_civil(t, &c);
    int n = snprintf(out, 40, "%04d-%02d-%02dT%02d:%02d:%02d", (int)c.year, c.month, c.day, c.hour,
                     c.minute, c.second);
    if (micro)
        n += snprintf(out + n, 40 - (size_t)n, ".%06d", (int)(c.nanosecond / 1000));
    out[n++] = 'Z';
    out[n] = '\0';
    return (struct str){out, (size_t)n};
}

struct str time_format(char out[40], int64_t t)
{
    return format(out, t, false);
}

struct str time_format_micro(char out[40], int64_t t)
{
    return format(out, t, true);
}

static const struct {
    const char *name;
    int64_t ns;
} units[] = {
    {"ns", 1},         {"us", NS_PER_US}, {"\u00b5s", NS_PER_US}, {"\u03bcs", NS_PER_US},
    {"ms", NS_PER_MS}, {"s", NS_PER_S},   {"m", NS_PER_MIN},      {"h", NS_PER_HOUR},
};

/* One "1.5h" off the front; false when it is malformed or too long a time. */
static bool take_part(struct str *s, int64_t *ret_ns)
{
    size_t n = 0;
    while (n < s->len && ((s->p[n] >= '0' && s->p[n] <= '9') || s->p[n] == '.'))
        n++;
    struct str number = str_sub(*s, 0, n);
    *s = str_sub(*s, n, s->len);
    size_t unit_len = 0;
    while (unit_len < s->len && s->p[unit_len] != '.' &&
           (s->p[unit_len] < '0' || s->p[unit_len] > '9'))
        unit_len++;
    struct str unit = str_sub(*s, 0, unit_len);
    *s = str_sub(*s, unit_len, s->len);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (!str_eq_c(unit, units[i].name))
            continue;
        size_t point = str_find_char(number, '.', 0);
        int64_t whole = 0, fraction = 0;
        struct str before = str_sub(number, 0, point),
                   after = str_sub(number, MIN(point, number.len) + 1, number.len);
        if (before.len == 0 && after.len == 0)
            return false;
        if (before.len && num_parse_i64(before, &whole, NULL) < 0)
            return false;
        if (!num_mul(whole, units[i].ns, ret_ns))
            return false;
        __int128 digits = 0, scale = 1;
        for (size_t k = 0; k < after.len; k++) {
            if (after.p[k] == '.')
                return false;
            if (scale < (__int128)NS_PER_S * NS_PER_S) { /* further digits are below a nanosecond */
                digits = digits * 10 + (after.p[k] - '0');
                scale *= 10;
            }
        }
        fraction = (int64_t)(digits * units[i].ns / scale); /* the rest is cut, as Go does */
        return num_add(*ret_ns, fraction, ret_ns);
    }
    return false;
}

int time_parse_duration(struct str s, int64_t *ret, struct err *err)
{
    struct str rest = s;
    bool negative = rest.len && rest.p[0] == '-';
    take_char(&rest, "+-");
    int64_t total = 0, part = 0;
    bool good = rest.len > 0;
    if (str_eq_c(rest, "0"))
        rest = STR_NONE;
    while (good && rest.len)
        good = take_part(&rest, &part) && num_add(total, part, &total);
    if (!good) {
        struct str shown = str_sub(s, 0, 40);
        return err_set(err, ERR_INVALID, "'%.*s' is not a duration such as 30s, 5m or 1h30m",
                       STR_ARG(shown));
    }
    *ret = negative ? -total : total;
    return 0;
}

int time_parse_seconds(struct str s, int64_t *ret, struct err *err)
{
    int64_t seconds;
    if (num_parse_i64(s, &seconds, NULL) < 0)
        return time_parse_duration(s, ret, err);
    int64_t v;
    if (!num_mul(seconds, NS_PER_S, &v))
        return err_set(err, ERR_INVALID, "%lld seconds are too long a time", (long long)seconds);
    *ret = v;
    return 0;
}

struct str time_format_duration(char out[40], int64_t d)
{
    char *p = out;
    uint64_t rest = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
    if (d < 0)
        *p++ = '-';
    uint64_t hours = rest / (uint64_t)NS_PER_HOUR, minutes = rest / (uint64_t)NS_PER_MIN % 60;
    uint64_t in_minute = rest % (uint64_t)NS_PER_MIN;
    if (hours)
        p += snprintf(p, 24, "%lluh", (unsigned long long)hours);
    if (minutes)
        p += snprintf(p, 8, "%llum", (unsigned long long)minutes);
    if (in_minute % (uint64_t)NS_PER_S == 0) {
        if (in_minute || p == out || (d < 0 && p == out + 1))
            p += snprintf(p, 8, "%llus", (unsigned long long)(in_minute / (uint64_t)NS_PER_S));
    } else if (!hours && !minutes && in_minute < (uint64_t)NS_PER_S &&
               in_minute % (uint64_t)NS_PER_MS == 0) {
        p += snprintf(p, 8, "%llums", (unsigned long long)(in_minute / (uint64_t)NS_PER_MS));
    } else {
        p += snprintf(p, 16, "%llu.%09llu", (unsigned long long)(in_minute / (uint64_t)NS_PER_S),
                      (unsigned long long)(in_minute % (uint64_t)NS_PER_S));
        while (p[-1] == '0')
            p--;
        *p++ = 's';
        *p = '\0';
    }
    return (struct str){out, (size_t)(p - out)};
}
