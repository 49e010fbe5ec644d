/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/str.h"

struct str str_from(const char *cstr)
{
    return cstr ? (struct str){cstr, strlen(cstr)} : STR_NONE;
}

struct str str_sub(struct str s, size_t from, size_t to)
{
    to = MIN(to, s.len);
    from = MIN(from, to);
    return (struct str){s.p ? s.p + from : NULL, to - from};
}

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

bool str_eq_c(struct str a, const char *b)
{
    return str_eq(a, str_from(b));
}

int str_cmp(struct str a, struct str b)
{
    size_t n = MIN(a.len, b.len);
    int c = n ? memcmp(a.p, b.p, n) : 0;
    if (c != 0)
        return c;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_has_prefix(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_sub(s, 0, prefix.len), prefix);
}

bool str_has_suffix(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_sub(s, s.len - suffix.len, s.len), suffix);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

size_t str_find(struct str s, struct str needle, size_t from)
{
    if (from > s.len || needle.len > s.len - from)
        return SIZE_MAX;
    if (needle.len == 0)
        return from;
    const char *at = memmem(s.p + from, s.len - from, needle.p, needle.len);
    return at ? (size_t)(at - s.p) : SIZE_MAX;
}

size_t str_find_char(struct str s, char c, size_t from)
{
    if (from >= s.len)
        return SIZE_MAX;
    const char *at = memchr(s.p + from, c, s.len - from);
    return at ? (size_t)(at - s.p) : SIZE_MAX;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len && is_space(s.p[0])) {
        s.p++;
        s.len--;
    }
    while (s.len && is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

bool str_split(struct str *rest, char sep, struct str *ret_part)
{
    if (rest->len == 0)
        return false;
    size_t at = str_find_char(*rest, sep, 0);
    if (at == SIZE_MAX) {
        *ret_part = *rest;
        *rest = STR_NONE;
        return true;
    }
    *ret_part = str_sub(*rest, 0, at);
    *rest = str_sub(*rest, at + 1, rest->len);
    return true;
}

size_t str_utf8_at(struct str s, size_t at)
{
    const unsigned char *p = (const unsigned char *)s.p + at;
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xf0 && p[0] <= 0xf4  ? 4
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                                             : 0;
    if (n == 0 || n > s.len - at)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0, beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

bool str_is_utf8(struct str s)
{
    size_t i = 0;
    while (i < s.len) {
        /* Nearly all text is ASCII: eight bytes at a time. */
        uint64_t word;
        if (s.len - i >= sizeof(word)) {
            memcpy(&word, s.p + i, sizeof(word));
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        size_t n = str_utf8_at(s, i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

uint64_t str_hash(struct str s, uint64_t seed)
{
    uint64_t h = seed ^ (s.len * UINT64_C(0x9e3779b97f4a7c15));
    size_t i = 0;
    for (; i + 8 <= s.len; i += 8) {
        uint64_t word;
        memcpy(&word, s.p + i, 8);
        h = (h ^ mix(word)) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    uint64_t tail = 0;
    if (i < s.len)
        memcpy(&tail, s.p + i, s.len - i);
    return mix(h ^ mix(tail + 1));
}

unsigned str_distance(struct str a, struct str b, unsigned limit)
{
    enum { LEN_MAX = 64 };
    size_t difference = a.len > b.len ? a.len - b.len : b.len - a.len;
    if (difference >= limit || a.len > LEN_MAX || b.len > LEN_MAX)
        return limit;
    unsigned row[LEN_MAX + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned above = row[j];
            unsigned change = diagonal + (a.p[i - 1] != b.p[j - 1]);
            row[j] = MIN(change, MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return MIN(row[b.len], limit);
}
