/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The writer: commas, quotes and indentation. */

#include <assert.h>

#include "base/json.h"

enum { LEVEL_OBJECT = 1, LEVEL_FILLED = 2 };

void json_writer_init(struct json_writer *w, struct buf *out, unsigned indent)
{
    *w = (struct json_writer){.out = out, .indent = indent};
}

static void new_line(struct json_writer *w)
{
    if (w->indent == 0)
        return;
    buf_char(w->out, '\n');
    for (unsigned i = 0; i < w->depth * w->indent; i++)
        buf_char(w->out, ' ');
}

/* A comma unless this is the first of its container. */
static void separate(struct json_writer *w)
{
    if (w->levels[w->depth] & LEVEL_FILLED)
        buf_char(w->out, ',');
    w->levels[w->depth] |= LEVEL_FILLED;
    if (w->depth > 0)
        new_line(w);
}

static void before_value(struct json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    assert(!(w->levels[w->depth] & LEVEL_OBJECT));
    separate(w);
}

static void open_container(struct json_writer *w, bool object)
{
    before_value(w);
    buf_char(w->out, object ? '{' : '[');
    assert(w->depth < JSON_WRITER_DEPTH_MAX);
    w->levels[++w->depth] = object ? LEVEL_OBJECT : 0;
}

static void close_container(struct json_writer *w, bool object)
{
    unsigned level = w->levels[w->depth];
    assert(w->depth > 0 && ((level & LEVEL_OBJECT) != 0) == object && !w->after_key);
    w->depth--;
    if (level & LEVEL_FILLED)
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

/* Valid text that a reader of YAML or JavaScript would refuse or take for a line break: DEL, the C1
 * controls, U+2028, U+2029, the byte order mark, U+FFFE and U+FFFF. Returns the code point, or 0.
 */
static unsigned special(const unsigned char *p, size_t n)
{
    unsigned c = 0;
    if (n == 1)
        return *p == 0x7f ? 0x7f : 0;
    if (n == 2)
        c = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    else if (n == 3)
        c = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    bool is_special = (c >= 0x80 && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
                      c == 0xfffe || c == 0xffff;
    return is_special ? c : 0;
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
        bool ascii = *p < 0x7f;
        if (ascii && *p >= 0x20 && *p != '"' && *p != '\\') {
            i++;
            continue;
        }
        size_t n = ascii ? 1 : str_utf8_at(s, i);
        unsigned code = ascii ? 0 : special(p, n);
        if (!ascii && n > 0 && !code) {
            i += n;
            continue;
        }
        buf_add(out, s.p + from, i - from);
        if (n == 0)
            buf_cstr(out, "\xef\xbf\xbd");
        else if (code)
            buf_printf(out, "\\u%04x", code);
        else
            write_escape(out, *p);
        from = i += MAX(n, (size_t)1);
    }
    buf_add(out, s.p + from, s.len - from);
    buf_char(out, '"');
}

void json_w_key(struct json_writer *w, struct str key)
{
    assert((w->levels[w->depth] & LEVEL_OBJECT) && !w->after_key);
    separate(w);
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

static bool is_digit_at(struct str s, size_t i)
{
    return i < s.len && s.p[i] >= '0' && s.p[i] <= '9';
}

/* YAML has numbers that JSON has not: "+1", "010", ".5", "1." are written 1, 10, 0.5, 1. */
static void write_number(struct buf *out, struct str s)
{
    if (s.p[0] == '-')
        buf_char(out, '-');
    if (s.p[0] == '-' || s.p[0] == '+')
        s = str_sub(s, 1, s.len);
    while (s.len > 1 && s.p[0] == '0' && is_digit_at(s, 1))
        s = str_sub(s, 1, s.len);
    if (!is_digit_at(s, 0))
        buf_char(out, '0');
    size_t end = 0;
    while (is_digit_at(s, end))
        end++;
    buf_str(out, str_sub(s, 0, end));
    if (end < s.len && s.p[end] == '.' && !is_digit_at(s, end + 1))
        end++;
    buf_str(out, str_sub(s, end, s.len));
}

void json_w_number(struct json_writer *w, struct str source_text)
{
    before_value(w);
    if (source_text.len && strchr("+-.0123456789", source_text.p[0]))
        write_number(w->out, source_text);
    else
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
