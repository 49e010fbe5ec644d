/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Trees: building, looking up, comparing, merging. */

#include <stdarg.h>

#include "base/json.h"
#include "base/num.h"

static int at_cap(struct err *err)
{
    return err_set(err, ERR_CAPACITY, "the document is too large");
}

static struct json *new_node(struct arena *a, enum json_type type)
{
    struct json *j = ARENA_NEW(a, struct json);
    if (j)
        j->type = type;
    return j;
}

/* ---- The builder ---- */

/* A container being built. Its elements are chained and become an array when it closes; a long
 * object gets a table of hashes to find duplicate keys. */
struct json_build_item {
    struct json_build_item *next;
    struct json_member member;
};

struct json_build_frame {
    struct json_build_frame *up;
    struct json *node;
    struct json_build_item *first, **last;
    struct str key;
    struct json_pos key_pos;
    uint64_t *hashes; /* open addressing over the keys' hashes; grown by doubling */
    size_t n_hashes;
};

static int add_hash(struct arena *a, struct json_build_frame *f, uint64_t hash, bool *ret_seen)
{
    if (f->node->n * 2 >= f->n_hashes) {
        size_t n = f->n_hashes ? f->n_hashes * 4 : 32;
        uint64_t *grown = ARENA_NEW_ARRAY(a, uint64_t, n);
        if (!grown)
            return -1;
        for (size_t i = 0; i < f->n_hashes; i++) {
            if (!f->hashes[i])
                continue;
            size_t at = f->hashes[i] & (n - 1);
            while (grown[at])
                at = (at + 1) & (n - 1);
            grown[at] = f->hashes[i];
        }
        f->hashes = grown;
        f->n_hashes = n;
    }
    hash += hash == 0;
    size_t at = hash & (f->n_hashes - 1);
    while (f->hashes[at] && f->hashes[at] != hash)
        at = (at + 1) & (f->n_hashes - 1);
    *ret_seen = f->hashes[at] == hash;
    f->hashes[at] = hash;
    return 0;
}

static int check_duplicate(struct json_builder *b, struct str key, struct json_pos pos,
                           struct err *err)
{
    struct json_build_frame *f = b->top;
    bool seen = false;
    if (add_hash(b->arena, f, str_hash(key, 2), &seen) < 0)
        return at_cap(err);
    if (!seen)
        return 0;
    for (const struct json_build_item *i = f->first; i; i = i->next) {
        if (!str_eq(i->member.key, key))
            continue;
        struct str shown = str_sub(key, 0, 40);
        if (pos.line)
            return err_set(err, ERR_INVALID, "%u:%u: the key '%.*s' stands twice", pos.line,
                           pos.column, STR_ARG(shown));
        return err_set(err, ERR_INVALID, "the key '%.*s' stands twice", STR_ARG(shown));
    }
    return 0;
}

static int add_value(struct json_builder *b, struct json *value, struct err *err)
{
    struct json_build_frame *f = b->top;
    if (!f) {
        b->root = value;
        return 0;
    }
    struct json_build_item *item = ARENA_NEW(b->arena, struct json_build_item);
    if (!item)
        return at_cap(err);
    item->member = (struct json_member){f->key, f->key_pos, value};
    *f->last = item;
    f->last = &item->next;
    f->node->n++;
    return 0;
}

static int open_frame(struct json_builder *b, const struct json_event *ev, struct err *err)
{
    if (b->depth == JSON_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "nested deeper than %d levels", JSON_DEPTH_MAX);
    struct json_build_frame *f = ARENA_NEW(b->arena, struct json_build_frame);
    struct json *node = new_node(b->arena, ev->type == JSON_EV_OBJECT ? JSON_OBJECT : JSON_ARRAY);
    if (!f || !node)
        return at_cap(err);
    node->pos = ev->pos;
    f->node = node;
    f->last = &f->first;
    f->up = b->top;
    b->top = f;
    b->depth++;
    return 0;
}

static int close_frame(struct json_builder *b, struct err *err)
{
    struct json_build_frame *f = b->top;
    struct json *node = f->node;
    if (node->type == JSON_OBJECT) {
        node->members = ARENA_NEW_ARRAY(b->arena, struct json_member, node->n);
        if (!node->members)
            return at_cap(err);
        size_t n = 0;
        for (const struct json_build_item *i = f->first; i; i = i->next)
            node->members[n++] = i->member;
    } else {
        node->items = ARENA_NEW_ARRAY(b->arena, struct json *, node->n);
        if (!node->items)
            return at_cap(err);
        size_t n = 0;
        for (const struct json_build_item *i = f->first; i; i = i->next)
            node->items[n++] = i->member.value;
    }
    b->top = f->up;
    b->depth--;
    return add_value(b, node, err);
}

static int add_scalar(struct json_builder *b, const struct json_event *ev, struct err *err)
{
    static const enum json_type types[] = {
        [JSON_EV_NULL] = JSON_NULL,
        [JSON_EV_BOOL] = JSON_BOOL,
        [JSON_EV_NUMBER] = JSON_NUMBER,
        [JSON_EV_STRING] = JSON_STRING,
    };
    struct json *j = new_node(b->arena, types[ev->type]);
    if (!j)
        return at_cap(err);
    j->pos = ev->pos;
    j->boolean = ev->boolean;
    if (ev->type == JSON_EV_NUMBER || ev->type == JSON_EV_STRING) {
        j->text = arena_str(b->arena, ev->text);
        if (!j->text.p)
            return at_cap(err);
    }
    return add_value(b, j, err);
}

static int builder_event(struct json_sink *sink, const struct json_event *ev, struct err *err)
{
    struct json_builder *b = CONTAINER_OF(sink, struct json_builder, sink);
    switch (ev->type) {
    case JSON_EV_OBJECT:
    case JSON_EV_ARRAY:
        return open_frame(b, ev, err);
    case JSON_EV_OBJECT_END:
    case JSON_EV_ARRAY_END:
        return close_frame(b, err);
    case JSON_EV_KEY:
        if (check_duplicate(b, ev->text, ev->pos, err) < 0)
            return -1;
        b->top->key = arena_str(b->arena, ev->text);
        b->top->key_pos = ev->pos;
        return b->top->key.p ? 0 : at_cap(err);
    default:
        return add_scalar(b, ev, err);
    }
}

void json_builder_init(struct json_builder *b, struct arena *a)
{
    *b = (struct json_builder){.sink = {builder_event}, .arena = a};
}

/* ---- Replay ---- */

static int send(struct json_sink *sink, enum json_event_type type, struct str text, bool boolean,
                struct json_pos pos, struct err *err)
{
    const struct json_event ev = {.type = type, .boolean = boolean, .text = text, .pos = pos};
    return sink->event(sink, &ev, err);
}

int json_replay(const struct json *j, struct json_sink *sink, struct err *err)
{
    switch (j->type) {
    case JSON_NULL:
        return send(sink, JSON_EV_NULL, STR_NONE, false, j->pos, err);
    case JSON_BOOL:
        return send(sink, JSON_EV_BOOL, STR_NONE, j->boolean, j->pos, err);
    case JSON_NUMBER:
        return send(sink, JSON_EV_NUMBER, j->text, false, j->pos, err);
    case JSON_STRING:
        return send(sink, JSON_EV_STRING, j->text, false, j->pos, err);
    case JSON_ARRAY:
        if (send(sink, JSON_EV_ARRAY, STR_NONE, false, j->pos, err) < 0)
            return -1;
        for (size_t i = 0; i < j->n; i++)
            if (json_replay(j->items[i], sink, err) < 0)
                return -1;
        return send(sink, JSON_EV_ARRAY_END, STR_NONE, false, j->pos, err);
    case JSON_OBJECT:
        if (send(sink, JSON_EV_OBJECT, STR_NONE, false, j->pos, err) < 0)
            return -1;
        for (size_t i = 0; i < j->n; i++) {
            int answer = send(sink, JSON_EV_KEY, j->members[i].key, false, j->members[i].pos, err);
            if (answer < 0 ||
                (answer != JSON_SKIP && json_replay(j->members[i].value, sink, err) < 0))
                return -1;
        }
        return send(sink, JSON_EV_OBJECT_END, STR_NONE, false, j->pos, err);
    }
    return -1;
}

/* ---- Lookups ---- */

const struct json *json_get_str(const struct json *j, struct str key)
{
    if (!j || j->type != JSON_OBJECT)
        return NULL;
    for (size_t i = 0; i < j->n; i++)
        if (str_eq(j->members[i].key, key))
            return j->members[i].value;
    return NULL;
}

const struct json *json_get(const struct json *j, const char *key)
{
    return json_get_str(j, str_from(key));
}

const struct json *json_at(const struct json *j, ...)
{
    va_list args;
    va_start(args, j);
    const char *step;
    while (j && (step = va_arg(args, const char *)) != NULL) {
        int64_t i;
        if (j->type == JSON_ARRAY)
            j = num_parse_i64(str_from(step), &i, NULL) == 0 && i >= 0 && (size_t)i < j->n
                    ? j->items[i]
                    : NULL;
        else
            j = json_get(j, step);
    }
    va_end(args);
    return j;
}

struct str json_text(const struct json *j)
{
    return j && (j->type == JSON_STRING || j->type == JSON_NUMBER) ? j->text : STR_NONE;
}

int64_t json_i64(const struct json *j, int64_t otherwise)
{
    int64_t v;
    if (!j || j->type != JSON_NUMBER || num_parse_i64(j->text, &v, NULL) < 0)
        return otherwise;
    return v;
}

bool json_bool(const struct json *j, bool otherwise)
{
    return j && j->type == JSON_BOOL ? j->boolean : otherwise;
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->type != b->type)
        return false;
    switch (a->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_NUMBER:
    case JSON_STRING:
        return str_eq(a->text, b->text);
    case JSON_ARRAY:
        if (a->n != b->n)
            return false;
        for (size_t i = 0; i < a->n; i++)
            if (!json_equal(a->items[i], b->items[i]))
                return false;
        return true;
    case JSON_OBJECT:
        if (a->n != b->n)
            return false;
        for (size_t i = 0; i < a->n; i++) {
            /* Mostly the order is the same; the search is for when it is not. */
            const struct json *other = str_eq(a->members[i].key, b->members[i].key)
                                           ? b->members[i].value
                                           : json_get_str(b, a->members[i].key);
            if (!other || !json_equal(a->members[i].value, other))
                return false;
        }
        return true;
    }
    return false;
}

const char *json_type_name(enum json_type t)
{
    static const char *const names[] = {"null",     "a boolean", "a number",
                                        "a string", "a list",    "an object"};
    return (size_t)t < ARRAY_LEN(names) ? names[t] : "nothing";
}

/* ---- Making ---- */

struct json *json_new_null(struct arena *a)
{
    return new_node(a, JSON_NULL);
}

struct json *json_new_bool(struct arena *a, bool v)
{
    struct json *j = new_node(a, JSON_BOOL);
    if (j)
        j->boolean = v;
    return j;
}

static struct json *new_text(struct arena *a, enum json_type type, struct str s)
{
    struct json *j = new_node(a, type);
    if (!j)
        return NULL;
    j->text = arena_str(a, s);
    return j->text.p ? j : NULL;
}

struct json *json_new_i64(struct arena *a, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%lld", (long long)v);
    return new_text(a, JSON_NUMBER, (struct str){text, (size_t)n});
}

struct json *json_new_number(struct arena *a, struct str source_text)
{
    return new_text(a, JSON_NUMBER, source_text);
}

struct json *json_new_string(struct arena *a, struct str s)
{
    return new_text(a, JSON_STRING, s);
}

struct json *json_new_array(struct arena *a)
{
    return new_node(a, JSON_ARRAY);
}

struct json *json_new_object(struct arena *a)
{
    return new_node(a, JSON_OBJECT);
}

/* Room for element n of an arena array that has grown by doubling from 4: it is full exactly when n
 * is 0 or a power of two from 4 on. Arrays that a parse has made exact are copied at the first add.
 */
static void *grow(struct arena *a, void *v, size_t n, size_t size)
{
    void *grown = arena_array(a, n < 4 ? 4 : n * 2, size);
    if (grown && n)
        memcpy(grown, v, n * size);
    return grown;
}

static bool is_full(size_t n)
{
    return n == 0 || (n >= 4 && (n & (n - 1)) == 0);
}

void json_array_add(struct arena *a, struct json *array, struct json *item)
{
    if (!item)
        return;
    if (is_full(array->n) || !array->boolean) {
        void *v = grow(a, array->items, array->n, sizeof(*array->items));
        if (!v)
            return;
        array->items = v;
        array->boolean = true; /* marks arrays grown here, whose room is known */
    }
    array->items[array->n++] = item;
}

static int set_member(struct arena *a, struct json *object, struct str key, struct json *value)
{
    if (!value)
        return -1;
    for (size_t i = 0; i < object->n; i++) {
        if (str_eq(object->members[i].key, key)) {
            object->members[i].value = value;
            return 0;
        }
    }
    struct str copy = arena_str(a, key);
    if (!copy.p)
        return -1;
    if (is_full(object->n) || !object->boolean) {
        void *v = grow(a, object->members, object->n, sizeof(*object->members));
        if (!v)
            return -1;
        object->members = v;
        object->boolean = true;
    }
    object->members[object->n++] = (struct json_member){.key = copy, .value = value};
    return 0;
}

void json_object_set(struct arena *a, struct json *object, struct str key, struct json *value)
{
    set_member(a, object, key, value);
}

struct json *json_copy(struct arena *a, const struct json *j)
{
    struct json_builder b;
    json_builder_init(&b, a);
    return json_replay(j, &b.sink, NULL) < 0 ? NULL : b.root;
}

struct json *json_merge_patch(struct arena *a, const struct json *target, const struct json *patch)
{
    if (patch->type != JSON_OBJECT)
        return (struct json *)(uintptr_t)patch;
    struct json *merged = json_new_object(a);
    if (!merged)
        return NULL;
    if (target && target->type == JSON_OBJECT) {
        for (size_t i = 0; i < target->n; i++) {
            const struct json *change = json_get_str(patch, target->members[i].key);
            struct json *value = target->members[i].value;
            if (change && change->type == JSON_NULL)
                continue;
            if (change)
                value = json_merge_patch(a, value, change);
            if (set_member(a, merged, target->members[i].key, value) < 0)
                return NULL;
        }
    }
    for (size_t i = 0; i < patch->n; i++) {
        const struct json *value = patch->members[i].value;
        if (value->type == JSON_NULL || json_get_str(merged, patch->members[i].key))
            continue;
        if (set_member(a, merged, patch->members[i].key, json_merge_patch(a, NULL, value)) < 0)
            return NULL; /* a part of a patch is worse than none */
    }
    return merged;
}
