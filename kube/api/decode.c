/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The machine that runs field tables over json events. */

#include "kube/api/decode.h"

#include <assert.h>
#include <stdarg.h>

#include "base/crypto.h"
#include "base/num.h"
#include "kube/api/misc.h"
#include "kube/api/nodeclass.h"
#include "kube/api/nodepool.h"
#include "kube/api/quantity.h"

#define FRAMES_MAX 32
#define LIST_MAX 100000 /* elements of one list */
#define OBJECT_BYTES_MAX (8u << 20)

/* A struct under construction lives in the arena or in scratch memory, which moves. */
struct place {
    char *fixed; /* NULL: at `scratch_at` in the scratch memory */
    size_t scratch_at;
};

struct frame {
    const struct field *field; /* what this container is the value of; NULL: the whole object */
    const struct field *table; /* FIELD_STRUCT, FIELD_POINTER and elements: their fields */
    struct place place;        /* the struct of `table`, or the struct that holds the list or map */
    size_t scratch_start;      /* lists and maps: where their elements begin */
    uint32_t n;
    bool is_list, is_map;
};

/* What stands before an object in memory. */
struct box {
    struct arena *arena; /* NULL: the object is one block, which begins here */
};

#define BOX_BYTES ((sizeof(struct box) + 15) & ~(size_t)15)

struct decoder {
    struct json_sink sink;
    const struct kind *kind;
    struct arena arena; /* of the object being made; handed over at its end */
    struct object *object;
    struct frame frames[FRAMES_MAX];
    unsigned depth;
    unsigned ignoring; /* containers open below a value that was refused softly */
    bool complete, nameless;
    const struct field *pending; /* the field whose value comes next */
    const char *map_key;
    char *scratch;
    size_t scratch_len, scratch_cap;
    const char **invalid; /* soft mode: where the first fault goes */
    /* FIELD_JSON: a tree is built and printed. */
    struct json_builder raw;
    struct arena raw_arena;
    unsigned raw_depth;
};

/* ---- Memory ---- */

static size_t scratch_add(struct decoder *d, size_t n)
{
    size_t at = (d->scratch_len + 15) & ~(size_t)15;
    if (at + n > d->scratch_cap) {
        d->scratch_cap = MAX(d->scratch_cap * 2, at + n + 4096);
        d->scratch = xrealloc(d->scratch, d->scratch_cap);
    }
    memset(d->scratch + at, 0, n);
    d->scratch_len = at + n;
    return at;
}

static char *resolve(const struct decoder *d, struct place p)
{
    return p.fixed ? p.fixed : d->scratch + p.scratch_at;
}

static struct frame *top(struct decoder *d)
{
    return &d->frames[d->depth - 1];
}

static char *field_address(struct decoder *d, const struct field *f)
{
    return resolve(d, top(d)->place) + f->offset;
}

/* ---- Errors ---- */

static void add_path(struct decoder *d, struct buf *out)
{
    for (unsigned i = 1; i < d->depth; i++) {
        const struct frame *f = &d->frames[i];
        if (f->field && f->field != d->frames[i - 1].field)
            buf_printf(out, "%s%s", out->len ? "." : "", f->field->name);
        if (f->is_list && i + 1 < d->depth)
            buf_printf(out, "[%u]", f->n - 1);
    }
    if (d->pending)
        buf_printf(out, "%s%s", out->len ? "." : "", d->pending->name);
    if (d->depth && top(d)->is_map && d->map_key)
        buf_printf(out, "%s%s", out->len ? "." : "", d->map_key);
    else if (d->depth && top(d)->is_list)
        buf_printf(out, "[%u]", top(d)->n);
}

/* A fault in a value: an error, or in soft mode a note on the object. */
static int wrong(struct decoder *d, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int wrong(struct decoder *d, struct err *err, const char *fmt, ...)
{
    CLEANUP(buf_release) struct buf text = {.cap = 4096};
    add_path(d, &text);
    buf_cstr(&text, ": ");
    char reason[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    buf_cstr(&text, reason);
    if (d->invalid) {
        if (!*d->invalid)
            *d->invalid = arena_cstr(&d->arena, buf_view(&text));
        return 0;
    }
    return err_set(err, ERR_INVALID, "%.*s", STR_ARG(buf_view(&text)));
}

static int too_large(struct err *err)
{
    return err_set(err, ERR_CAPACITY, "the object is larger than %u bytes", OBJECT_BYTES_MAX);
}

static int wrong_type(struct decoder *d, const struct json_event *ev, struct err *err)
{
    static const char *const got[] = {"null",      "a boolean", "a number", "a string", "a key",
                                      "an object", "",          "a list",   ""};
    return wrong(d, err, "%s is not what stands here", got[ev->type]);
}

/* ---- Scalars ---- */

static int set_enum(struct decoder *d, const struct field *f, struct str text, char *to,
                    struct err *err)
{
    for (int i = 0; f->names[i]; i++) {
        if (str_eq_c(text, f->names[i])) {
            memcpy(to, &i, sizeof(i));
            return 0;
        }
    }
    struct str shown = str_sub(text, 0, 40);
    return wrong(d, err, "'%.*s' is none of the known values", STR_ARG(shown));
}

static int set_bit(struct decoder *d, const struct field *f, struct str text, char *to,
                   struct err *err)
{
    for (unsigned i = 0; f->names[i]; i++) {
        if (str_eq_c(text, f->names[i])) {
            unsigned bits;
            memcpy(&bits, to, sizeof(bits));
            bits |= 1u << i;
            memcpy(to, &bits, sizeof(bits));
            return 0;
        }
    }
    struct str shown = str_sub(text, 0, 40);
    return wrong(d, err, "'%.*s' is none of the known values", STR_ARG(shown));
}

static int set_time(const struct field *f, struct str text, int64_t *to, struct err *err)
{
    if (f->kind == FIELD_TIME)
        return time_parse_rfc3339(text, to, err);
    if (str_eq_c(text, "Never")) {
        *to = TIME_NEVER;
        return 0;
    }
    return time_parse_duration(text, to, err);
}

static int set_text(struct decoder *d, struct str text, char *to, struct err *err)
{
    char *copy = arena_cstr(&d->arena, text);
    if (!copy)
        return too_large(err);
    memcpy(to, &copy, sizeof(copy));
    return 0;
}

static int set_number(struct decoder *d, const struct field *f, struct str text, char *to,
                      struct err *err)
{
    int64_t v;
    struct err why = ERR_INIT;
    int64_t min = f->kind == FIELD_INT32 ? INT32_MIN : INT64_MIN,
            max = f->kind == FIELD_INT32 ? INT32_MAX : INT64_MAX;
    if (num_parse_range(text, min, max, &v, &why) < 0)
        return wrong(d, err, "%s", why.msg);
    if (f->kind == FIELD_INT32)
        memcpy(to, &(int32_t){(int32_t)v}, sizeof(int32_t));
    else
        memcpy(to, &v, sizeof(v));
    return 0;
}

static void set_presence(struct decoder *d, const struct field *f)
{
    if (f->has_offset)
        *(bool *)(resolve(d, top(d)->place) + f->has_offset) = true;
}

static int set_scalar(struct decoder *d, const struct field *f, const struct json_event *ev,
                      struct err *err)
{
    char *to = field_address(d, f);
    set_presence(d, f);
    bool text = ev->type == JSON_EV_STRING;
    switch (f->kind) {
    case FIELD_TEXT:
        if (ev->type == JSON_EV_BOOL)
            return set_text(d, ev->boolean ? STR("true") : STR("false"), to, err);
        return set_text(d, ev->text, to, err);
    case FIELD_BOOL:
        if (ev->type != JSON_EV_BOOL)
            return wrong_type(d, ev, err);
        *(bool *)to = ev->boolean;
        return 0;
    case FIELD_PRESENT:
        *(bool *)to = true;
        return 0;
    case FIELD_INT32:
    case FIELD_INT64:
        return ev->type == JSON_EV_NUMBER ? set_number(d, f, ev->text, to, err)
                                          : wrong_type(d, ev, err);
    case FIELD_TIME:
    case FIELD_DURATION: {
        struct err why = ERR_INIT;
        int64_t v;
        if (!text)
            return wrong_type(d, ev, err);
        if (set_time(f, ev->text, &v, &why) < 0)
            return wrong(d, err, "%s", why.msg);
        memcpy(to, &v, sizeof(v));
        return 0;
    }
    case FIELD_ENUM:
        return text ? set_enum(d, f, ev->text, to, err) : wrong_type(d, ev, err);
    case FIELD_IS:
        if (!text)
            return wrong_type(d, ev, err);
        *(bool *)to = str_eq_c(ev->text, f->text);
        return 0;
    default:
        return wrong_type(d, ev, err);
    }
}

/* ---- Maps and lists of scalars ---- */

static int add_label(struct decoder *d, struct str value, struct err *err)
{
    if (!d->map_key) /* an annotation that nobody reads */
        return 0;
    size_t at = scratch_add(d, sizeof(struct label));
    char *copy = arena_cstr(&d->arena, value);
    if (!copy)
        return too_large(err);
    memcpy(d->scratch + at, &(struct label){d->map_key, copy}, sizeof(struct label));
    top(d)->n++;
    return 0;
}

static int add_resource(struct decoder *d, struct str value, struct err *err)
{
    struct resource_amount r = {.name = d->map_key};
    struct err why = ERR_INIT;
    if (quantity_parse_for(str_from(r.name), value, &r.amount, &why) < 0)
        return wrong(d, err, "%s", why.msg);
    size_t at = scratch_add(d, sizeof(r));
    memcpy(d->scratch + at, &r, sizeof(r));
    top(d)->n++;
    return 0;
}

static int add_data(struct decoder *d, const struct field *f, struct str value, struct err *err)
{
    CLEANUP(buf_release) struct buf bytes = {.cap = OBJECT_BYTES_MAX};
    if (f->preset) {
        buf_str(&bytes, value);
    } else {
        struct err why = ERR_INIT;
        if (crypto_base64_decode(&bytes, value, &why) < 0)
            return wrong(d, err, "%s", why.msg);
    }
    struct data_entry e = {.key = d->map_key, .value = arena_str(&d->arena, buf_view(&bytes))};
    if (bytes.data)
        explicit_bzero(bytes.data, bytes.len);
    if (!e.value.p)
        return too_large(err);
    size_t at = scratch_add(d, sizeof(e));
    memcpy(d->scratch + at, &e, sizeof(e));
    top(d)->n++;
    return 0;
}

static int add_string(struct decoder *d, struct str value, struct err *err)
{
    char *copy = arena_cstr(&d->arena, value);
    if (!copy)
        return too_large(err);
    size_t at = scratch_add(d, sizeof(copy));
    memcpy(d->scratch + at, &copy, sizeof(copy));
    top(d)->n++;
    return 0;
}

/* A scalar within a map or list. */
static int add_element(struct decoder *d, const struct json_event *ev, struct err *err)
{
    struct frame *f = top(d);
    if (f->n >= LIST_MAX)
        return err_set(err, ERR_INVALID, "more than %d elements", LIST_MAX);
    if (ev->type == JSON_EV_NULL)
        return 0;
    bool text = ev->type == JSON_EV_STRING, number = ev->type == JSON_EV_NUMBER;
    switch (f->field->kind) {
    case FIELD_LABELS:
    case FIELD_NOTES:
        return text ? add_label(d, ev->text, err) : wrong_type(d, ev, err);
    case FIELD_RESOURCES:
        return text || number ? add_resource(d, ev->text, err) : wrong_type(d, ev, err);
    case FIELD_DATA:
        return text ? add_data(d, f->field, ev->text, err) : wrong_type(d, ev, err);
    case FIELD_STRINGS:
        return text ? add_string(d, ev->text, err) : wrong_type(d, ev, err);
    case FIELD_ENUM_BITS:
        return text ? set_bit(d, f->field, ev->text, field_address(d, f->field), err)
                    : wrong_type(d, ev, err);
    default:
        return wrong_type(d, ev, err);
    }
}

/* All of label, resource_amount and data_entry begin with their key. */
static int by_key(const void *a, const void *b)
{
    const char *x, *y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return strcmp(x, y);
}

static size_t element_size(const struct field *f)
{
    switch (f->kind) {
    case FIELD_LABELS:
    case FIELD_NOTES:
        return sizeof(struct label);
    case FIELD_RESOURCES:
        return sizeof(struct resource_amount);
    case FIELD_DATA:
        return sizeof(struct data_entry);
    case FIELD_STRINGS:
    case FIELD_NAMES:
        return sizeof(char *);
    default:
        return f->size;
    }
}

/* Moves the elements of the container that closes into the arena, and their count and address into
 * the struct. struct labels, resource_list and string_list are a pointer and a uint32_t after it.
 */
static int store_elements(struct decoder *d, const struct frame *f, struct err *err)
{
    size_t size = element_size(f->field), step = (size + 15) & ~(size_t)15;
    size_t start = (f->scratch_start + 15) & ~(size_t)15;
    char *v = NULL;
    if (f->n) {
        v = ARENA_NEW_ARRAY(&d->arena, char, f->n *size);
        if (!v)
            return too_large(err);
        for (uint32_t i = 0; i < f->n; i++)
            memcpy(v + i * size, d->scratch + start + i * step, size);
        if (f->is_map)
            qsort(v, f->n, size, by_key);
    }
    d->scratch_len = f->scratch_start;
    char *holder = resolve(d, f->place);
    memcpy(holder + f->field->offset, &v, sizeof(v));
    bool counted = f->field->kind == FIELD_LIST || f->field->kind == FIELD_DATA;
    size_t n_at = counted ? f->field->n_offset : f->field->offset + sizeof(char *);
    memcpy(holder + n_at, &f->n, sizeof(f->n));
    return 0;
}

/* ---- Containers ---- */

static void apply_presets(const struct field *table, char *to)
{
    for (; table->kind == FIELD_PRESET; table++)
        memcpy(to + table->offset, &table->preset, sizeof(table->preset));
}

static int push(struct decoder *d, struct frame f, struct err *err)
{
    if (d->depth == FRAMES_MAX)
        return err_set(err, ERR_INVALID, "nested deeper than %d levels", FRAMES_MAX);
    f.scratch_start = d->scratch_len;
    d->frames[d->depth++] = f;
    d->pending = NULL;
    return 0;
}

/* An object as element of a list of structs or names. */
static int open_element(struct decoder *d, const struct json_event *ev, struct err *err)
{
    struct frame *list = top(d);
    static const struct field name_only[] = {{.kind = FIELD_TEXT, FIELD_NAMED("name"), .offset = 0},
                                             F_END};
    const struct field *table = list->field->kind == FIELD_LIST    ? list->field->sub
                                : list->field->kind == FIELD_NAMES ? name_only
                                                                   : NULL;
    if (!table || ev->type != JSON_EV_OBJECT) {
        d->ignoring = 1;
        return wrong_type(d, ev, err);
    }
    if (list->n >= LIST_MAX)
        return err_set(err, ERR_INVALID, "more than %d elements", LIST_MAX);
    size_t at = scratch_add(d, element_size(list->field));
    list->n++;
    apply_presets(table, d->scratch + at);
    return push(
        d, (struct frame){.field = list->field, .table = table, .place = {.scratch_at = at}}, err);
}

static int open_raw(struct decoder *d, const struct json_event *ev, struct err *err)
{
    arena_init(&d->raw_arena, OBJECT_BYTES_MAX, 0);
    json_builder_init(&d->raw, &d->raw_arena);
    d->raw_depth = 1;
    return d->raw.sink.event(&d->raw.sink, ev, err);
}

static int open_struct(struct decoder *d, const struct field *f, struct err *err)
{
    struct place place = top(d)->place;
    if (f->kind == FIELD_STRUCT) {
        if (place.fixed)
            place.fixed += f->offset;
        else
            place.scratch_at += f->offset;
    } else {
        char *made = arena_alloc(&d->arena, f->size);
        if (!made)
            return too_large(err);
        memcpy(field_address(d, f), &made, sizeof(made));
        place = (struct place){.fixed = made};
    }
    apply_presets(f->sub, resolve(d, place));
    return push(d, (struct frame){.field = f, .table = f->sub, .place = place}, err);
}

static int open_container(struct decoder *d, const struct json_event *ev, struct err *err)
{
    if (top(d)->is_list || top(d)->is_map)
        return open_element(d, ev, err);
    const struct field *f = d->pending;
    assert(f);
    bool object = ev->type == JSON_EV_OBJECT;
    set_presence(d, f);
    struct frame made = {.field = f, .place = top(d)->place};
    switch (f->kind) {
    case FIELD_STRUCT:
    case FIELD_POINTER:
        if (object)
            return open_struct(d, f, err);
        break;
    case FIELD_LABELS:
    case FIELD_NOTES:
    case FIELD_RESOURCES:
    case FIELD_DATA:
        made.is_map = true;
        if (object)
            return push(d, made, err);
        break;
    case FIELD_LIST:
    case FIELD_NAMES:
    case FIELD_STRINGS:
    case FIELD_ENUM_BITS:
        made.is_list = true;
        if (!object)
            return push(d, made, err);
        break;
    case FIELD_JSON:
        return open_raw(d, ev, err);
    case FIELD_PRESENT:
        *(bool *)field_address(d, f) = true;
        d->ignoring = 1;
        return 0;
    default:
        break;
    }
    d->ignoring = 1;
    return wrong_type(d, ev, err);
}

static int close_container(struct decoder *d, struct err *err)
{
    struct frame f = *top(d);
    d->depth--;
    d->pending = NULL;
    d->map_key = NULL;
    if ((f.is_list || f.is_map) && f.field->kind != FIELD_ENUM_BITS)
        return store_elements(d, &f, err);
    if (d->depth == 0)
        d->complete = true;
    return 0;
}

static int raw_event(struct decoder *d, const struct json_event *ev, struct err *err)
{
    if (d->raw.sink.event(&d->raw.sink, ev, err) < 0)
        return -1;
    if (ev->type == JSON_EV_OBJECT || ev->type == JSON_EV_ARRAY)
        d->raw_depth++;
    else if (ev->type == JSON_EV_OBJECT_END || ev->type == JSON_EV_ARRAY_END)
        d->raw_depth--;
    if (d->raw_depth > 0)
        return 0;
    CLEANUP(buf_release) struct buf text = {.cap = OBJECT_BYTES_MAX};
    json_print(&text, d->raw.root, 0);
    arena_release(&d->raw_arena);
    return set_text(d, buf_view(&text), field_address(d, d->pending), err);
}

/* ---- Events ---- */

static const struct field *find_field(const struct field *table, struct str name)
{
    for (; table->kind != FIELD_END; table++)
        if (table->name_len == name.len && table->name &&
            memcmp(table->name, name.p, name.len) == 0)
            return table;
    return NULL;
}

static int take_key(struct decoder *d, struct str key, struct err *err)
{
    struct frame *f = top(d);
    if (f->is_map) {
        d->map_key = NULL;
        if (f->field->kind == FIELD_NOTES && !annotation_is_kept(key))
            return JSON_SKIP;
        d->map_key = arena_cstr(&d->arena, key);
        return d->map_key ? 0 : too_large(err);
    }
    d->pending = find_field(f->table, key);
    return d->pending ? 0 : JSON_SKIP;
}

static int take_event(struct json_sink *sink, const struct json_event *ev, struct err *err)
{
    struct decoder *d = CONTAINER_OF(sink, struct decoder, sink);
    if (d->raw_depth)
        return raw_event(d, ev, err);
    bool opens = ev->type == JSON_EV_OBJECT || ev->type == JSON_EV_ARRAY;
    bool closes = ev->type == JSON_EV_OBJECT_END || ev->type == JSON_EV_ARRAY_END;
    if (d->ignoring) {
        d->ignoring += opens;
        d->ignoring -= closes;
        return 0;
    }
    if (d->depth == 0) {
        if (ev->type != JSON_EV_OBJECT || d->complete)
            return err_set(err, ERR_INVALID, "an object was expected");
        return push(d,
                    (struct frame){.table = d->kind->fields, .place = {.fixed = (char *)d->object}},
                    err);
    }
    if (ev->type == JSON_EV_KEY)
        return take_key(d, ev->text, err);
    if (opens)
        return open_container(d, ev, err);
    if (closes)
        return close_container(d, err);
    if (top(d)->is_list || top(d)->is_map)
        return add_element(d, ev, err);
    const struct field *f = d->pending;
    assert(f);
    if (ev->type == JSON_EV_NULL)
        return 0;
    if (f->kind == FIELD_JSON) {
        d->raw_depth = 0;
        return wrong_type(d, ev, err);
    }
    return set_scalar(d, f, ev, err);
}

/* ---- Begin and end ---- */

static struct box *box_of(struct object *o)
{
    return (struct box *)(void *)((char *)o - BOX_BYTES);
}

struct decoder *decoder_new(void)
{
    struct decoder *d = xcalloc(1, sizeof(*d));
    d->sink.event = take_event;
    return d;
}

void decoder_abandon(struct decoder *d)
{
    /* What was left of a Secret is not to lie about in an arena that is used again. */
    if (d->kind == &kind_secret)
        arena_release(&d->arena);
    else
        arena_rewind(&d->arena);
    if (d->raw_depth)
        arena_release(&d->raw_arena);
    d->raw_depth = d->depth = d->ignoring = 0;
    d->scratch_len = 0;
    d->object = NULL;
    d->complete = d->nameless = false;
    d->pending = NULL;
    d->map_key = NULL;
    d->invalid = NULL;
}

void decoder_free(struct decoder *d)
{
    if (!d)
        return;
    decoder_abandon(d);
    arena_release(&d->arena);
    free(d->scratch);
    free(d);
}

struct json_sink *decoder_begin(struct decoder *d, const struct kind *k)
{
    decoder_abandon(d);
    d->kind = k;
    /* Secrets keep the arena they were decoded in, so that no other copy of them exists; everything
     * else is copied out of an arena that serves again. */
    if (!d->arena.head)
        arena_init(&d->arena, OBJECT_BYTES_MAX, k == &kind_secret ? k->size + 512 : 16 * 1024);
    char *memory = arena_alloc(&d->arena, BOX_BYTES + k->size);
    assert(memory);
    d->object = (struct object *)(void *)(memory + BOX_BYTES);
    d->object->kind = k;
    d->object->refs = 1;
    apply_presets(k->fields, (char *)d->object);
    if (k == &kind_nodepool)
        d->invalid = &nodepool_of(d->object)->invalid;
    return &d->sink;
}

void decoder_allow_nameless(struct decoder *d)
{
    d->nameless = true;
}

bool decoder_is_complete(const struct decoder *d)
{
    return d->complete;
}

int decoder_end(struct decoder *d, struct object **ret, struct err *err)
{
    assert(d->object && d->complete);
    struct object *o = d->object;
    if (!o->meta.name && !o->meta.generate_name && !d->nameless) {
        decoder_abandon(d);
        return err_set(err, ERR_INVALID, "metadata.name: missing");
    }
    if (!o->meta.name)
        o->meta.name = "";
    if (d->kind->finish)
        d->kind->finish(o, &d->arena);
    if (d->kind == &kind_secret) {
        struct arena *kept = xmalloc(sizeof(*kept));
        o->bytes = (uint32_t)d->arena.used_bytes;
        *kept = d->arena;
        box_of(o)->arena = kept;
        d->arena = (struct arena)ARENA_INIT;
    } else {
        o = object_compact(d->kind, o, BOX_BYTES);
        box_of(o)->arena = NULL;
    }
    decoder_abandon(d);
    *ret = o;
    return 0;
}

struct object *object_ref(struct object *o)
{
    o->refs++;
    return o;
}

static void wipe_secret(const struct config_data *d)
{
    for (uint32_t i = 0; i < d->n_data; i++)
        explicit_bzero((void *)(uintptr_t)d->data[i].value.p, d->data[i].value.len);
}

void object_unref(struct object *o)
{
    if (!o)
        return;
    assert(o->refs > 0);
    if (--o->refs > 0)
        return;
    if (o->kind == &kind_secret)
        wipe_secret((const struct config_data *)(const void *)o);
    struct box *box = box_of(o);
    if (!box->arena) {
        free(box);
        return;
    }
    struct arena *a = box->arena;
    arena_release(a);
    free(a);
}

bool annotation_is_kept(struct str key)
{
    static const char *const domains[] = {"weft.sh/",
                                          "karpenter.sh/",
                                          "autoscaling.keda.sh/",
                                          "controller.kubernetes.io/pod-deletion-cost",
                                          "kubernetes.io/config.mirror",
                                          "sim.weft.sh/",
                                          "karpenter.k8s.aws/",
                                          "scaledobject.keda.sh/",
                                          "compatibility.karpenter.sh/",
                                          "deployment.kubernetes.io/revision"};
    for (size_t i = 0; i < ARRAY_LEN(domains); i++)
        if (str_has_prefix(key, str_from(domains[i])))
            return true;
    return false;
}
