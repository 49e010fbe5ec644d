/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* YAML: libyaml's events become a tree. */

#include "base/yml.h"

#include <stdarg.h>
#include <yaml.h>

#define BYTES_MAX ((size_t)64 << 20)

struct reader {
    yaml_parser_t yaml;
    struct arena *arena;
    struct str text;
    unsigned depth_max;
    struct err *err;
};

static int fail_at(struct reader *r, yaml_mark_t mark, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int fail_at(struct reader *r, yaml_mark_t mark, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return err_set(r->err, ERR_INVALID, "%zu:%zu: %s", mark.line + 1, mark.column + 1, text);
}

/* ---- Depth, before libyaml sees the text ---- */

/* libyaml's time grows with the square of flow nesting, so hostile text is refused by a plain scan
 * first: open brackets outside quotes and comments. The scan is rough (it does not know block
 * scalars), so its limit is generous; the exact check follows while reading. */
static int check_depth(struct str text, unsigned depth_max, struct err *err)
{
    size_t line = 1, column = 0, flow_max = (size_t)depth_max * 16;
    unsigned open = 0;
    char quote = 0;
    for (size_t i = 0; i < text.len; i++, column++) {
        char c = text.p[i];
        if (c == '\n') {
            line++;
            column = 0;
            continue;
        }
        if (quote) {
            if (c == '\\' && quote == '"')
                i++;
            else if (c == quote)
                quote = 0;
            continue;
        }
        bool starts = i == 0 || (text.p[i - 1] && strchr(" \t\n[{,:", text.p[i - 1]));
        if ((c == '"' || c == '\'') && starts) {
            quote = c;
        } else if (c == '#' && starts) {
            while (i + 1 < text.len && text.p[i + 1] != '\n')
                i++;
        } else if (c == '[' || c == '{') {
            if (++open > flow_max)
                return err_set(err, ERR_INVALID, "%zu:%zu: nested deeper than %u levels", line,
                               column, depth_max);
        } else if ((c == ']' || c == '}') && open) {
            open--;
        }
    }
    return 0;
}

/* ---- Scalars ---- */

static bool is_any(struct str s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_c(s, words[i]))
            return true;
    return false;
}

static size_t skip_digits(struct str s, size_t i)
{
    while (i < s.len && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return i;
}

/* Numbers of the core schema that are decimal, [-+]?(.d+|d+(.d*)?)([eE][-+]?d+)?, whatever their
 * size. Hexadecimal, octal, .inf and .nan stay text. */
static bool is_number(struct str s)
{
    size_t i = s.len && (s.p[0] == '-' || s.p[0] == '+');
    size_t whole = skip_digits(s, i), end = whole;
    if (end < s.len && s.p[end] == '.')
        end = skip_digits(s, end + 1);
    if (whole == i && end < i + 2) /* no digit before the point, and none after it */
        return false;
    if (end < s.len && (s.p[end] == 'e' || s.p[end] == 'E')) {
        size_t power = end + 1;
        power += power < s.len && (s.p[power] == '-' || s.p[power] == '+');
        end = skip_digits(s, power);
        if (end == power)
            return false;
    }
    return end == s.len;
}

static void classify(struct json *j, struct str text, bool plain)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const yes[] = {"true", "True", "TRUE"}, *const no[] = {"false", "False",
                                                                              "FALSE"};
    j->type = JSON_STRING;
    if (!plain)
        return;
    if (is_any(text, nulls, ARRAY_LEN(nulls)))
        j->type = JSON_NULL;
    else if ((j->boolean = is_any(text, yes, ARRAY_LEN(yes))) || is_any(text, no, ARRAY_LEN(no)))
        j->type = JSON_BOOL;
    else if (is_number(text))
        j->type = JSON_NUMBER;
}

/* ---- Events to the builder ---- */

static int check_event(struct reader *r, const yaml_event_t *e)
{
    if (e->type == YAML_ALIAS_EVENT)
        return fail_at(r, e->start_mark, "aliases (*name) are not taken here");
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (e->type == YAML_SCALAR_EVENT) {
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
    } else if (e->type == YAML_SEQUENCE_START_EVENT) {
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
    } else if (e->type == YAML_MAPPING_START_EVENT) {
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
    }
    if (anchor)
        return fail_at(r, e->start_mark, "anchors (&name) are not taken here");
    if (tag)
        return fail_at(r, e->start_mark, "tags (!name) are not taken here");
    return 0;
}

static int send(struct reader *r, struct json_builder *b, struct json_event *ev, yaml_mark_t mark)
{
    ev->pos = (struct json_pos){(uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
    return b->sink.event(&b->sink, ev, r->err);
}

static int send_scalar(struct reader *r, struct json_builder *b, const yaml_event_t *e)
{
    struct json j = {0};
    struct str text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    classify(&j, text, e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE);
    static const enum json_event_type types[] = {[JSON_NULL] = JSON_EV_NULL,
                                                 [JSON_BOOL] = JSON_EV_BOOL,
                                                 [JSON_NUMBER] = JSON_EV_NUMBER,
                                                 [JSON_STRING] = JSON_EV_STRING};
    struct json_event ev = {.type = types[j.type], .boolean = j.boolean, .text = text};
    return send(r, b, &ev, e->start_mark);
}

/* What libyaml says. Of bytes that are no text it only tells the offset. */
static int not_yaml(struct reader *r)
{
    const char *problem = r->yaml.problem ? r->yaml.problem : "not YAML";
    yaml_mark_t mark = r->yaml.problem_mark;
    if (r->yaml.error == YAML_READER_ERROR) {
        mark = (yaml_mark_t){0};
        for (size_t i = 0; i < MIN(r->yaml.problem_offset, r->text.len); i++) {
            bool new_line = r->text.p[i] == '\n';
            mark.line += new_line;
            mark.column = new_line ? 0 : mark.column + ((r->text.p[i] & 0xc0) != 0x80);
        }
    }
    return fail_at(r, mark, "%s", problem);
}

static int next_event(struct reader *r, yaml_event_t *ret)
{
    if (yaml_parser_parse(&r->yaml, ret))
        return check_event(r, ret);
    return not_yaml(r);
}

/* Whether the container that is open at `depth` expects a key next: one bit a level. */
struct levels {
    uint8_t is_object[JSON_DEPTH_MAX + 1];
    uint8_t key_next[JSON_DEPTH_MAX + 1];
    unsigned depth;
};

static void after_value(struct levels *l)
{
    if (l->is_object[l->depth])
        l->key_next[l->depth] = 1;
}

static int open_container(struct reader *r, struct json_builder *b, struct levels *l,
                          const yaml_event_t *e)
{
    if (l->is_object[l->depth] && l->key_next[l->depth])
        return fail_at(r, e->start_mark, "a key must be a plain text");
    if (l->depth >= r->depth_max)
        return fail_at(r, e->start_mark, "nested deeper than %u levels", r->depth_max);
    bool object = e->type == YAML_MAPPING_START_EVENT;
    l->depth++;
    l->is_object[l->depth] = l->key_next[l->depth] = object;
    struct json_event ev = {.type = object ? JSON_EV_OBJECT : JSON_EV_ARRAY};
    return send(r, b, &ev, e->start_mark);
}

static int close_container(struct reader *r, struct json_builder *b, struct levels *l,
                           const yaml_event_t *e)
{
    struct json_event ev = {.type =
                                l->is_object[l->depth] ? JSON_EV_OBJECT_END : JSON_EV_ARRAY_END};
    l->depth--;
    after_value(l);
    return send(r, b, &ev, e->start_mark);
}

static int take_event(struct reader *r, struct json_builder *b, struct levels *l,
                      const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        if (l->is_object[l->depth] && l->key_next[l->depth]) {
            l->key_next[l->depth] = 0;
            struct json_event ev = {
                .type = JSON_EV_KEY,
                .text = {(const char *)e->data.scalar.value, e->data.scalar.length}};
            return send(r, b, &ev, e->start_mark);
        }
        after_value(l);
        return send_scalar(r, b, e);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return open_container(r, b, l, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return close_container(r, b, l, e);
    default:
        return 0;
    }
}

/* The document that has just begun. */
static int read_document(struct reader *r, struct json **ret)
{
    struct json_builder b;
    struct levels levels = {0};
    json_builder_init(&b, r->arena);
    for (;;) {
        yaml_event_t e;
        if (!yaml_parser_parse(&r->yaml, &e))
            return not_yaml(r);
        bool end = e.type == YAML_DOCUMENT_END_EVENT;
        int code = check_event(r, &e) < 0 ? -1 : end ? 0 : take_event(r, &b, &levels, &e);
        yaml_event_delete(&e);
        if (code < 0)
            return -1;
        if (end) {
            *ret = b.root;
            return 0;
        }
    }
}

static int read_all(struct reader *r, size_t documents_max, struct yml_documents *ret)
{
    size_t room = 0;
    for (;;) {
        yaml_event_t e;
        if (next_event(r, &e) < 0)
            return -1;
        yaml_event_type_t type = e.type;
        yaml_mark_t mark = e.start_mark;
        yaml_event_delete(&e);
        if (type == YAML_STREAM_END_EVENT)
            return 0;
        if (type != YAML_DOCUMENT_START_EVENT)
            continue;
        struct json *document = NULL;
        if (read_document(r, &document) < 0)
            return -1;
        if (!document || document->type == JSON_NULL) /* empty, or comments only */
            continue;
        if (documents_max && ret->n == documents_max)
            return fail_at(r, mark, "more than %zu document%s", documents_max,
                           documents_max == 1 ? "" : "s");
        if (ret->n == room) {
            room = room ? room * 2 : 4;
            struct json **grown = ARENA_NEW_ARRAY(r->arena, struct json *, room);
            if (!grown)
                return err_set(r->err, ERR_CAPACITY, "the document is too large");
            if (ret->n)
                memcpy(grown, ret->v, ret->n * sizeof(*grown));
            ret->v = grown;
        }
        ret->v[ret->n++] = document;
    }
}

int yml_parse(struct arena *a, struct str text, const struct yml_limits *limits,
              struct yml_documents *ret, struct err *err)
{
    size_t bytes_max = limits && limits->bytes_max ? limits->bytes_max : BYTES_MAX;
    unsigned depth_max = limits && limits->depth_max ? limits->depth_max : JSON_DEPTH_MAX;
    depth_max = MIN(depth_max, (unsigned)JSON_DEPTH_MAX);
    if (text.len > bytes_max)
        return err_set(err, ERR_INVALID, "1:1: %zu bytes are more than the %zu that are taken",
                       text.len, bytes_max);
    if (check_depth(text, depth_max, err) < 0)
        return -1;
    struct reader r = {.arena = a, .text = text, .depth_max = depth_max, .err = err};
    if (!yaml_parser_initialize(&r.yaml))
        abort();
    yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING); /* no guessing of UTF-16 */
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)(text.p ? text.p : ""), text.len);
    struct yml_documents documents = {0};
    int code = read_all(&r, limits ? limits->documents_max : 0, &documents);
    yaml_parser_delete(&r.yaml);
    if (code == 0)
        *ret = documents;
    return code;
}

int yml_parse_one(struct arena *a, struct str text, const struct yml_limits *limits,
                  struct json **ret, struct err *err)
{
    struct yml_limits one = limits ? *limits : (struct yml_limits){0};
    one.documents_max = 1;
    struct yml_documents documents;
    if (yml_parse(a, text, &one, &documents, err) < 0)
        return -1;
    *ret = documents.n ? documents.v[0] : NULL;
    return 0;
}

/* ---- Printing ---- */

/* Whether a text may stand without quotes and read back as the same text, also by readers of YAML
 * 1.1, to whom some words are booleans. */
static bool is_plain(struct str s)
{
    static const char *const booleans[] = {"y", "n", "yes", "no", "on", "off"};
    struct json j = {0};
    if (s.len == 0 || s.len > 100)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(booleans); i++)
        if (str_eq_nocase(s, str_from(booleans[i])))
            return false;
    classify(&j, s, true);
    if (j.type != JSON_STRING || s.p[s.len - 1] == ' ' || s.p[s.len - 1] == ':')
        return false;
    if (!((s.p[0] >= 'a' && s.p[0] <= 'z') || (s.p[0] >= 'A' && s.p[0] <= 'Z') || s.p[0] == '/' ||
          s.p[0] == '_'))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool mark = c != '\0' && strchr("_-./=%()+ ", c) != NULL;
        if (!word && !mark && !(c == ':' && s.p[i + 1] != ' '))
            return false;
    }
    return true;
}

static void print_text(struct buf *out, struct str s)
{
    if (is_plain(s)) {
        buf_str(out, s);
        return;
    }
    struct json_writer w;
    json_writer_init(&w, out, 0);
    json_w_str(&w, s); /* a JSON string is a double-quoted YAML scalar */
}

static void indent_to(struct buf *out, unsigned indent)
{
    for (unsigned i = 0; i < indent; i++)
        buf_char(out, ' ');
}

/* libyaml looks for the ':' of a key on the same line within 1,024 characters; longer keys are
 * announced by '?'. */
static void print_key(struct buf *out, struct str key, unsigned indent)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    print_text(&text, key);
    bool announced = text.len > 1000;
    if (announced)
        buf_cstr(out, "? ");
    buf_str(out, buf_view(&text));
    if (announced) {
        buf_char(out, '\n');
        indent_to(out, indent);
    }
}

static void print_node(struct buf *out, const struct json *j, unsigned indent, bool in_line);

/* The value after "key:" or "-": scalars and empty containers on the line, others below it. */
static void print_value(struct buf *out, const struct json *j, unsigned indent, bool after_dash)
{
    bool container = (j->type == JSON_OBJECT || j->type == JSON_ARRAY) && j->n > 0;
    if (container && !after_dash) {
        buf_char(out, '\n');
        print_node(out, j, indent, false);
    } else {
        buf_char(out, ' ');
        print_node(out, j, indent, true);
    }
}

static void print_node(struct buf *out, const struct json *j, unsigned indent, bool in_line)
{
    if (j->type == JSON_OBJECT && j->n > 0) {
        for (size_t i = 0; i < j->n; i++) {
            if (i > 0 || !in_line)
                indent_to(out, indent);
            print_key(out, j->members[i].key, indent);
            buf_char(out, ':');
            const struct json *value = j->members[i].value;
            print_value(out, value, indent + (value->type == JSON_ARRAY ? 0 : 2), false);
        }
    } else if (j->type == JSON_ARRAY && j->n > 0) {
        for (size_t i = 0; i < j->n; i++) {
            if (i > 0 || !in_line)
                indent_to(out, indent);
            buf_char(out, '-');
            print_value(out, j->items[i], indent + 2, true);
        }
    } else if (j->type == JSON_STRING) {
        print_text(out, j->text);
        buf_char(out, '\n');
    } else if (j->type == JSON_NUMBER) {
        buf_str(out, j->text); /* as its source had it: "010" stays */
        buf_char(out, '\n');
    } else {
        json_print(out, j, 0);
        buf_char(out, '\n');
    }
}

void yml_print(struct buf *out, const struct json *j)
{
    print_node(out, j, 0, true);
}
