/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Random trees. */
#include "test/unit/base/random_json.h"

static void add_code(struct buf *b, uint32_t c)
{
    if (c < 0x80) {
        buf_char(b, (char)c);
    } else if (c < 0x800) {
        buf_char(b, (char)(0xc0 | c >> 6));
        buf_char(b, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_char(b, (char)(0xe0 | c >> 12));
        buf_char(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_char(b, (char)(0x80 | (c & 0x3f)));
    } else {
        buf_char(b, (char)(0xf0 | c >> 18));
        buf_char(b, (char)(0x80 | (c >> 12 & 0x3f)));
        buf_char(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_char(b, (char)(0x80 | (c & 0x3f)));
    }
}

static uint32_t random_code(struct rng *r)
{
    static const uint32_t special[] = {
        0,   '\n', '\r', '\t', '"',    '\\',   '\'',   ':',    '#',    '-',    '?', '[',
        '{', '}',  ',',  '&',  '*',    '!',    '%',    '@',    '`',    '|',    '>', '~',
        ' ', 0x7f, 0x85, 0xa0, 0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff, 0x1f600};
    if (rng_chance(r, 300000))
        return special[rng_below(r, ARRAY_LEN(special))];
    uint32_t c = (uint32_t)rng_below(r, rng_chance(r, 800000) ? 0x80 : 0x110000);
    return c >= 0xd800 && c < 0xe000 ? 'x' : c;
}

struct str random_text(struct arena *a, struct rng *r)
{
    static const char *const words[] = {
        "",      "null", "~",          "true", "False", "yes", "off", "010",  "1e3",
        "-",     "---",  "...",        "a: b", "a #b",  "<<",  "=",   "0x1f", ".inf",
        "1_000", "+1",   "2026-07-20", "- a",  "? a",   "x:",  " x",  "x ",   "a\nb",
        "a\n",   "\n",   "#",          "{}",   "[]",    "|",   "'",   "\"",
    };
    if (rng_chance(r, 300000))
        return arena_str(a, str_from(words[rng_below(r, ARRAY_LEN(words))]));
    CLEANUP(buf_release) struct buf b = BUF_INIT;
    uint64_t n = rng_chance(r, 5000) ? rng_below(r, 2500) : rng_below(r, 12);
    while (n-- > 0)
        add_code(&b, random_code(r));
    return arena_str(a, buf_view(&b));
}

static struct json *random_number(struct arena *a, struct rng *r)
{
    static const char *const texts[] = {
        "0", "-0", "1.50", "1e3", "1E+400", "-12.5e-7", "1e999", "123456789012345678901234567890"};
    if (rng_chance(r, 500000))
        return json_new_number(a, str_from(texts[rng_below(r, ARRAY_LEN(texts))]));
    return json_new_i64(a, (int64_t)(rng_u64(r) >> rng_below(r, 64)));
}

struct json *random_json(struct arena *a, struct rng *r, unsigned depth)
{
    switch (rng_below(r, depth ? 7 : 4)) {
    case 0:
        return json_new_null(a);
    case 1:
        return json_new_bool(a, rng_chance(r, 500000));
    case 2:
        return random_number(a, r);
    case 3:
        return json_new_string(a, random_text(a, r));
    case 4: {
        struct json *list = json_new_array(a);
        for (uint64_t n = rng_below(r, 5); n > 0; n--)
            json_array_add(a, list, random_json(a, r, depth - 1));
        return list;
    }
    default: {
        struct json *object = json_new_object(a);
        for (uint64_t n = rng_below(r, rng_chance(r, 10000) ? 100 : 6); n > 0; n--)
            json_object_set(a, object, random_text(a, r), random_json(a, r, depth - 1));
        return object;
    }
    }
}
