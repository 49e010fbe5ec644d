/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Field tables: how the JSON of a kind becomes its C struct.
 *
 * A table lists the fields that are kept; everything else is skipped while it streams by. The
 * decoder is a sink of json events with a stack of frames, one an open container. Elements of a
 * list grow in scratch memory and move to the object's arena when the list closes. */
#ifndef KUBE_API_DECODE_H
#define KUBE_API_DECODE_H

#include "kube/api/kind.h"

enum field_kind {
    FIELD_END,
    FIELD_PRESET, /* stands first in a table: int64_t at offset starts as `preset` */
    FIELD_TEXT,   /* const char *; strings, and numbers and booleans by their source text */
    FIELD_BOOL,
    FIELD_INT32,
    FIELD_INT64,
    FIELD_TIME,      /* int64_t ns since 1970 */
    FIELD_DURATION,  /* int64_t ns; "Never" is TIME_NEVER */
    FIELD_ENUM,      /* enum (int) by `names`; an unknown text is an error */
    FIELD_ENUM_BITS, /* list of texts, each setting bit 1 << index of an unsigned */
    FIELD_IS,        /* bool: the text equals `text` */
    FIELD_LABELS,    /* struct labels */
    FIELD_NOTES, /* struct labels of annotations: those that decisions read (annotation_is_kept) */
    FIELD_RESOURCES, /* struct resource_list */
    FIELD_STRINGS,   /* struct string_list */
    FIELD_NAMES,     /* struct string_list of the `name` of each object of a list */
    FIELD_DATA,      /* Secret data: base64 values; `preset` 1: plain text (ConfigMap) */
    FIELD_STRUCT,    /* embedded, with its own table */
    FIELD_POINTER,   /* pointer to a struct in the arena, with its own table */
    FIELD_LIST,      /* pointer and uint32_t count (at n_offset) of structs with a table */
    FIELD_JSON,      /* const char *: the value as compact JSON */
    FIELD_PRESENT,   /* bool: there is a value, whatever it is */
};

struct field {
    enum field_kind kind;
    bool unique; /* FIELD_TEXT: hardly two objects have the same, so it is not shared */
    const char *name;
    uint16_t name_len;
    uint16_t offset, n_offset;
    uint32_t size; /* of an element or of the struct pointed to */
    const struct field *sub;
    const char *const *names; /* ends with NULL */
    const char *text;
    int64_t preset;
    uint16_t
        has_offset; /* bool set when the field is present; 0: none (no struct begins with one) */
};

#define FIELD_NAMED(name_) .name = name_, .name_len = sizeof(name_) - 1
#define F(kind_, type, member, name_)                                                              \
    {                                                                                              \
        .kind = kind_, FIELD_NAMED(name_), .offset = offsetof(type, member)                        \
    }
#define F_UNIQUE(type, member, name_)                                                              \
    {                                                                                              \
        .kind = FIELD_TEXT, FIELD_NAMED(name_), .offset = offsetof(type, member), .unique = true   \
    }
/* What `finish` derives and no JSON names: only copied with the object. */
#define F_DERIVED(kind_, type, member)                                                             \
    {                                                                                              \
        .kind = kind_, .offset = offsetof(type, member)                                            \
    }
#define F_PRESET(type, member, value)                                                              \
    {                                                                                              \
        .kind = FIELD_PRESET, .offset = offsetof(type, member), .preset = value                    \
    }
#define F_STRUCT(type, member, name_, table)                                                       \
    {                                                                                              \
        .kind = FIELD_STRUCT, FIELD_NAMED(name_), .offset = offsetof(type, member), .sub = table   \
    }
/* A level of JSON that is no level of the struct: "status", "spec". */
#define F_INLINE(name_, table)                                                                     \
    {                                                                                              \
        .kind = FIELD_STRUCT, FIELD_NAMED(name_), .offset = 0, .sub = table                        \
    }
#define F_POINTER(type, member, name_, to, table)                                                  \
    {                                                                                              \
        .kind = FIELD_POINTER, FIELD_NAMED(name_), .offset = offsetof(type, member),               \
        .size = sizeof(to), .sub = table                                                           \
    }
#define F_LIST(type, member, count, name_, of, table)                                              \
    {                                                                                              \
        .kind = FIELD_LIST, FIELD_NAMED(name_), .offset = offsetof(type, member),                  \
        .n_offset = offsetof(type, count), .size = sizeof(of), .sub = table                        \
    }
#define F_ENUM(type, member, name_, values)                                                        \
    {                                                                                              \
        .kind = FIELD_ENUM, FIELD_NAMED(name_), .offset = offsetof(type, member), .names = values  \
    }
#define F_BITS(type, member, name_, values)                                                        \
    {                                                                                              \
        .kind = FIELD_ENUM_BITS, FIELD_NAMED(name_), .offset = offsetof(type, member),             \
        .names = values                                                                            \
    }
#define F_IS(type, member, name_, value)                                                           \
    {                                                                                              \
        .kind = FIELD_IS, FIELD_NAMED(name_), .offset = offsetof(type, member), .text = value      \
    }
#define F_DATA(type, member, count, name_, plain)                                                  \
    {                                                                                              \
        .kind = FIELD_DATA, FIELD_NAMED(name_), .offset = offsetof(type, member),                  \
        .n_offset = offsetof(type, count), .preset = plain                                         \
    }
/* As F, and the bool `has` tells presence. */
#define F_HAS(kind_, type, member, has, name_)                                                     \
    {                                                                                              \
        .kind = kind_, FIELD_NAMED(name_), .offset = offsetof(type, member),                       \
        .has_offset = offsetof(type, has)                                                          \
    }
#define F_END                                                                                      \
    {                                                                                              \
        .kind = FIELD_END                                                                          \
    }

/* Tables that several kinds share. */
extern const struct field fields_meta[], fields_condition[], fields_label_selector[],
    fields_node_selector_term[], fields_selector_requirement[], fields_pod_spec[],
    fields_pod_template_spec[], fields_taint[];

/* ---- The machine ---- */

struct decoder;

struct decoder *decoder_new(void);
void decoder_free(struct decoder *d);
/* The sink for the events of exactly one object of kind `k`. */
struct json_sink *decoder_begin(struct decoder *d, const struct kind *k);
/* Takes an object without a name, too: bookmarks have none. After decoder_begin. */
void decoder_allow_nameless(struct decoder *d);
/* The object, once its last event has come; one reference. -1: not complete, or it was wrong. */
int decoder_end(struct decoder *d, struct object **ret, struct err *err);
/* Drops what was begun. */
void decoder_abandon(struct decoder *d);
bool decoder_is_complete(const struct decoder *d);

/* ---- One block an object (compact.c) ---- */

/* A copy of the object in one malloc'ed block of exactly its size, `before` bytes of which are left
 * free in front of it. Texts that many objects have are shared. */
struct object *object_compact(const struct kind *k, const struct object *o, size_t before);

/* Whether an annotation is kept: weft's, Karpenter's and KEDA's, and the few others that count. */
bool annotation_is_kept(struct str key);

#endif
