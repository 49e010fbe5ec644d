/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* JSON three ways: events as they arrive, an immutable tree, and a writer.
 *
 * Everything that reads structured text produces the same events (struct json_sink): the JSON
 * parser (yajl, only in json.c), the YAML reader (base/yml.h) and json_replay of a tree. So a
 * decoder written once reads all three. Numbers keep their source text: "010", "1e3" and "1.50"
 * mean something to somebody.
 *
 * Limits: nesting depth JSON_DEPTH_MAX, JSON_TOKEN_BYTES_MAX without an event (a text cut into
 chunks is
 * kept until it is whole), and whatever cap the caller's arena or buffer has. Bytes must be UTF-8.
 The parser is incremental: chunks may be cut anywhere. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define JSON_DEPTH_MAX 64
#define JSON_TOKEN_BYTES_MAX ((size_t)64 << 20)

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Where in the source, from 1; 0 where the source has no lines (JSON). */
struct json_pos {
    uint32_t line, column;
};

/* ---- Events ---- */

struct json_event {
    enum json_event_type {
        JSON_EV_NULL,
        JSON_EV_BOOL,
        JSON_EV_NUMBER, /* text: source text */
        JSON_EV_STRING, /* text: unescaped; YAML plain scalars that are not null, bool or number too
                         */
        JSON_EV_KEY,
        JSON_EV_OBJECT,
        JSON_EV_OBJECT_END,
        JSON_EV_ARRAY,
        JSON_EV_ARRAY_END,
    } type;
    bool boolean;
    struct str text; /* dies when the callback returns */
    struct json_pos pos;
};

/* What a sink may answer to a key: the value that follows is not wanted. It is still checked for
 * syntax, but no events come for it. */
#define JSON_SKIP 1

/* Embedded in whatever consumes events. Returns 0, JSON_SKIP (to a key only), or -1 with err set to
 * end the parse. */
struct json_sink {
    int (*event)(struct json_sink *sink, const struct json_event *ev, struct err *err);
};

/* ---- Parser ---- */

struct json_parser;

/* `multi` allows several values after one another (watch streams): the sink sees depth 0 again
 * between them. Ownership of the sink stays with the caller. */
struct json_parser *json_parser_new(struct json_sink *sink, bool multi);
void json_parser_free(struct json_parser *p);
/* ERR_INVALID with the byte offset and what was expected, or what the sink said. After an error
 * the parser only repeats it. */
int json_parser_feed(struct json_parser *p, struct str chunk, struct err *err);
/* The end of input: ERR_INVALID if a value is unfinished, or none came and multi is false. Several
 * values may also be none. Nothing may be fed after it. */
int json_parser_finish(struct json_parser *p, struct err *err);
/* Depth of open containers: 0 between values. */
unsigned json_parser_depth(const struct json_parser *p);

/* ---- Tree ---- */

struct json_member;

/* Immutable once built; lives in an arena. */
struct json {
    enum json_type type;
    bool boolean;
    struct json_pos pos;
    struct str text; /* string: its value; number: its source text */
    size_t n;        /* array: elements; object: members */
    union {
        struct json **items;
        struct json_member *members; /* in source order; keys are unique */
    };
};

struct json_member {
    struct str key;
    struct json_pos pos;
    struct json *value;
};

/* Whole text to tree. Duplicate keys are refused. NULL on error. */
struct json *json_parse(struct arena *a, struct str text, struct err *err);

/* A sink that builds a tree; `root` is set when the outermost value closes. */
struct json_builder {
    struct json_sink sink;
    struct arena *arena;
    struct json *root;
    struct json_build_frame *top; /* private */
    unsigned depth;
};
void json_builder_init(struct json_builder *b, struct arena *a);

/* The events of a tree, to another sink. */
int json_replay(const struct json *j, struct json_sink *sink, struct err *err);

/* Lookups. NULL or the default when the path is absent or of another type; `j` may be NULL. */
const struct json *json_get(const struct json *j, const char *key);
const struct json *json_get_str(const struct json *j, struct str key);
/* Path of keys and array indexes: json_at(j, "spec", "template", NULL). */
const struct json *json_at(const struct json *j, ...) __attribute__((sentinel));
struct str json_text(const struct json *j);                /* string or number, else STR_NONE */
int64_t json_i64(const struct json *j, int64_t otherwise); /* whole numbers only */
bool json_bool(const struct json *j, bool otherwise);
bool json_equal(const struct json *a, const struct json *b); /* object order ignored */
const char *json_type_name(enum json_type t);

/* Builders of trees; NULL only at the arena's cap. */
struct json *json_new_null(struct arena *a);
struct json *json_new_bool(struct arena *a, bool v);
struct json *json_new_i64(struct arena *a, int64_t v);
struct json *json_new_number(struct arena *a, struct str source_text);
struct json *json_new_string(struct arena *a, struct str s); /* copies */
struct json *json_new_array(struct arena *a);
struct json *json_new_object(struct arena *a);
void json_array_add(struct arena *a, struct json *array, struct json *item);
/* Sets or replaces; the key is copied. */
void json_object_set(struct arena *a, struct json *object, struct str key, struct json *value);
/* A deep copy in another arena. */
struct json *json_copy(struct arena *a, const struct json *j);
/* RFC 7396: the result is a new tree in `a` that may share nodes with both. NULL at the cap. */
struct json *json_merge_patch(struct arena *a, const struct json *target, const struct json *patch);

/* ---- Writer ---- */

/* Room for a tree of JSON_DEPTH_MAX within an envelope. */
#define JSON_WRITER_DEPTH_MAX (2 * JSON_DEPTH_MAX)

/* Writes one value into a buffer; commas and quotes are its business. Misuse is a bug: asserted. */
struct json_writer {
    struct buf *out;
    unsigned depth;
    unsigned indent; /* 0: compact, else spaces a level */
    bool after_key;
    uint8_t levels[JSON_WRITER_DEPTH_MAX + 1]; /* private */
};

void json_writer_init(struct json_writer *w, struct buf *out, unsigned indent);
void json_w_object(struct json_writer *w);
void json_w_object_end(struct json_writer *w);
void json_w_array(struct json_writer *w);
void json_w_array_end(struct json_writer *w);
void json_w_key(struct json_writer *w, struct str key);
void json_w_null(struct json_writer *w);
void json_w_bool(struct json_writer *w, bool v);
void json_w_i64(struct json_writer *w, int64_t v);
/* A number's source text as JSON or YAML has it, written as JSON has it. Any other text goes out as
 * it is: the caller says that it is one JSON value. */
void json_w_number(struct json_writer *w, struct str source_text);
void json_w_str(struct json_writer *w, struct str v);
void json_w_cstr(struct json_writer *w, const char *v); /* NULL gives null */
void json_w_tree(struct json_writer *w, const struct json *j);
/* key and value in one */
void json_w_kstr(struct json_writer *w, const char *key, struct str v);
void json_w_kcstr(struct json_writer *w, const char *key, const char *v);
void json_w_ki64(struct json_writer *w, const char *key, int64_t v);
void json_w_kbool(struct json_writer *w, const char *key, bool v);
void json_w_kobject(struct json_writer *w, const char *key);
void json_w_karray(struct json_writer *w, const char *key);

void json_print(struct buf *out, const struct json *j, unsigned indent);

#endif
