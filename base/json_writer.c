/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The writer: commas, quotes and indentation. */

#include <assert.h>

#include "base/json.h"

void json_writer_init(struct json_writer *w, struct buf *out, unsigned indent)
{
    *w = (struct json_writer){.out = out, .indent = indent, .first_bits = 1};
}

static void new_line(struct json_writer *w)
{
    if (w->indent == 0)
        return;
    buf_char(w->out, '\n');
    for (unsigned i = 0; i < w->depth * w->indent; i++)
        buf_char(w->out, ' ');
}

static bool is_bit(uint64_t bits, unsigned depth)
{
    return (bits >> depth) & 1;
}

/* What stands before a value or key: nothing after a key, else a comma unless it is the first. */
static void before_value(struct json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    assert(w->depth == 0 || !is_bit(w->object_bits, w->depth));
    if (!is_bit(w->first_bits, w->depth))
        buf_char(w->out, ',');
    w->first_bits &= ~(UINT64_C(1) << w->depth);
    if (w->depth > 0)
        new_line(w);
}

static void open_container(struct json_writer *w, bool object)
{
    before_value(w);
    buf_char(w->out, object ? '{' : '[');
    assert(w->depth < 63);
    w->depth++;
    uint64_t bit = UINT64_C(1) << w->depth;
    w->object_bits = object ? w->object_bits | bit : w->object_bits & ~bit;
    w->first_bits |= bit;
}

static void close_container(struct json_writer *w, bool object)
{
    assert(w->depth > 0 && is_bit(w->object_bits, w->depth) == object && !w->after_key);
    bool empty = is_bit(w->first_bits, w->depth);
    w->depth--;
    if (!empty)
        new_line(w);
    buf_char(w->out, object ? '}' : ']');
}

void json_w_object(struct json_writer *w)
{
    open_container(w, true);
}

void json_w_object_end(struct json_writer *w)
{
    close_container(w, true);
}

void json_w_array(struct json_writer *w)
{
    open_container(w, false);
}

void json_w_array_end(struct json_writer *w)
{
    close_container(w, false);
}

/* The length of the UTF-8 sequence at p, or 0 where there is none. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xf0 && p[0] <= 0xf4  ? 4
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                                             : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0, beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

static void write_escape(struct buf *out, unsigned char c)
{
    static const char letters[] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                   ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\'};
    if (c < sizeof(letters) && letters[c])
        buf_printf(out, "\\%c", letters[c]);
    else
        buf_printf(out, "\\u%04x", c);
}

/* Quotes a text; bytes that are not UTF-8 become U+FFFD, so that the output always is. */
static void write_quoted(struct buf *out, struct str s)
{
    buf_char(out, '"');
    size_t from = 0;
    for (size_t i = 0; i < s.len;) {
        const unsigned char *p = (const unsigned char *)s.p + i;
        size_t n = utf8_len(p, s.len - i);
        if (n > 0 && *p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7f) {
            i += n;
            continue;
        }
        buf_add(out, s.p + from, i - from);
        if (n == 0)
            buf_cstr(out, "\xef\xbf\xbd");
        else
            write_escape(out, *p);
        from = ++i;
    }
    buf_add(out, s.p + from, s.len - from);
    buf_char(out, '"');
}

void json_w_key(struct json_writer *w, struct str key)
{
    assert(w->depth > 0 && is_bit(w->object_bits, w->depth) && !w->after_key);
    if (!is_bit(w->first_bits, w->depth))
        buf_char(w->out, ',');
    w->first_bits &= ~(UINT64_C(1) << w->depth);
    new_line(w);
    write_quoted(w->out, key);
    buf_cstr(w->out, w->indent ? ": " : ":");
    w->after_key = true;
}

void json_w_null(struct json_writer *w)
{
    before_value(w);
    buf_cstr(w->out, "null");
}

void json_w_bool(struct json_writer *w, bool v)
{
    before_value(w);
    buf_cstr(w->out, v ? "true" : "false");
}

void json_w_i64(struct json_writer *w, int64_t v)
{
    before_value(w);
    buf_printf(w->out, "%lld", (long long)v);
}

void json_w_number(struct json_writer *w, struct str source_text)
{
    before_value(w);
    buf_str(w->out, source_text);
}

void json_w_str(struct json_writer *w, struct str v)
{
    before_value(w);
    write_quoted(w->out, v);
}

void json_w_cstr(struct json_writer *w, const char *v)
{
    if (v)
        json_w_str(w, str_from(v));
    else
        json_w_null(w);
}

void json_w_tree(struct json_writer *w, const struct json *j)
{
    switch (j->type) {
    case JSON_NULL:
        json_w_null(w);
        return;
    case JSON_BOOL:
        json_w_bool(w, j->boolean);
        return;
    case JSON_NUMBER:
        json_w_number(w, j->text);
        return;
    case JSON_STRING:
        json_w_str(w, j->text);
        return;
    case JSON_ARRAY:
        json_w_array(w);
        for (size_t i = 0; i < j->n; i++)
            json_w_tree(w, j->items[i]);
        json_w_array_end(w);
        return;
    case JSON_OBJECT:
        json_w_object(w);
        for (size_t i = 0; i < j->n; i++) {
            json_w_key(w, j->members[i].key);
            json_w_tree(w, j->members[i].value);
        }
        json_w_object_end(w);
        return;
    }
}

void json_w_kstr(struct json_writer *w, const char *key, struct str v)
{
    json_w_key(w, str_from(key));
    json_w_str(w, v);
}

void json_w_kcstr(struct json_writer *w, const char *key, const char *v)
{
    json_w_key(w, str_from(key));
    json_w_cstr(w, v);
}

void json_w_ki64(struct json_writer *w, const char *key, int64_t v)
{
    json_w_key(w, str_from(key));
    json_w_i64(w, v);
}

void json_w_kbool(struct json_writer *w, const char *key, bool v)
{
    json_w_key(w, str_from(key));
    json_w_bool(w, v);
}

void json_w_kobject(struct json_writer *w, const char *key)
{
    json_w_key(w, str_from(key));
    json_w_object(w);
}

void json_w_karray(struct json_writer *w, const char *key)
{
    json_w_key(w, str_from(key));
    json_w_array(w);
}

void json_print(struct buf *out, const struct json *j, unsigned indent)
{
    struct json_writer w;
    json_writer_init(&w, out, indent);
    json_w_tree(&w, j);
}
