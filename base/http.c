/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Headers and escapes: what every transport and client needs. */

#include "base/http.h"

#include "base/buf.h"
#include "base/num.h"

struct str http_header(const struct http_response *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_eq_nocase(r->headers[i].name, str_from(name)))
            return r->headers[i].value;
    return STR_NONE;
}

/* The same text but where `form` has a '?'. */
static bool has_form(struct str s, struct str form)
{
    for (size_t i = 0; s.len == form.len && i < s.len; i++)
        if (form.p[i] != '?' && form.p[i] != s.p[i])
            return false;
    return s.len == form.len;
}

static bool is_day_of_month(int64_t year, int month, int64_t day)
{
    struct time_civil c = {.year = (int32_t)year, .month = (int8_t)month, .day = (int8_t)day}, back;
    time_to_civil(time_from_civil(&c), &back);
    return back.month == c.month; /* no 30 February */
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", the form that RFC 9110 §5.6.7 says to send. */
static bool parse_http_date(struct str s, int64_t *ret)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t day, year, hour, minute, second;
    if (!has_form(s, STR("???, ?? ??? ???? ??:??:?? GMT")) ||
        num_parse_range(str_sub(s, 5, 7), 1, 31, &day, NULL) < 0 ||
        num_parse_range(str_sub(s, 12, 16), 1, 9999, &year, NULL) < 0 ||
        num_parse_range(str_sub(s, 17, 19), 0, 23, &hour, NULL) < 0 ||
        num_parse_range(str_sub(s, 20, 22), 0, 59, &minute, NULL) < 0 ||
        num_parse_range(str_sub(s, 23, 25), 0, 60, &second, NULL) < 0)
        return false;
    for (int month = 1; month <= 12; month++) {
        if (!str_eq_c(str_sub(s, 8, 11), months[month - 1]) || !is_day_of_month(year, month, day))
            continue;
        struct time_civil c = {.year = (int32_t)year,
                               .month = (int8_t)month,
                               .day = (int8_t)day,
                               .hour = (int8_t)hour,
                               .minute = (int8_t)minute,
                               .second = (int8_t)second};
        *ret = time_from_civil(&c);
        return true;
    }
    return false;
}

int64_t http_retry_after(const struct http_response *r, int64_t wall_now)
{
    struct str value = str_trim(http_header(r, "retry-after"));
    int64_t seconds, at;
    if (num_parse_range(value, 0, 86400 * 365, &seconds, NULL) == 0)
        return seconds * NS_PER_S;
    if (parse_http_date(value, &at))
        return MAX(at - wall_now, (int64_t)0);
    return -1;
}

void http_escape(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '.' || c == '_' || c == '~';
        if (kept)
            buf_char(out, c);
        else
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}
