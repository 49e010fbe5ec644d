/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* An object as one block of memory of exactly its size.
 *
 * Decoding grows an object piece by piece in an arena that is used again and again; what is kept is
 * a copy. The field tables tell where the pointers are, so one walk over them serves twice: first
 * it adds up the sizes, then it copies. Texts that many objects have (label keys, resource names,
 * reasons, the values of a template's labels) are kept once for the whole process and never given
 * back; the table of them is bounded, and beyond the bound texts are copied with their object. */

#include "kube/api/decode.h"
#include "kube/api/misc.h"
#include "kube/api/quantity.h"

#define SHARED_MAX 65536   /* texts */
#define SHARED_TEXT_MAX 96 /* bytes of one */

static struct intern *shared;

struct pack {
    char *base; /* NULL: only measuring */
    size_t at;
};

static char *take(struct pack *p, size_t n, size_t alignment)
{
    p->at = (p->at + alignment - 1) & ~(alignment - 1);
    char *to = p->base ? p->base + p->at : NULL;
    p->at += n;
    return to;
}

static const char *pack_bytes(struct pack *p, const char *s, size_t n)
{
    char *to = take(p, n, 1);
    if (to)
        memcpy(to, s, n);
    return to;
}

/* Both walks must share the same texts, so a text that is not shared while measuring is added then,
 * if there is room; the second walk finds it. */
static const char *pack_text(struct pack *p, const char *s, bool unique)
{
    size_t len = strlen(s);
    if (!unique && len <= SHARED_TEXT_MAX) {
        if (!shared)
            shared = intern_new();
        const char *kept = intern_find(shared, (struct str){s, len});
        if (!kept && !p->base && intern_count(shared) < SHARED_MAX)
            kept = intern_get(shared, (struct str){s, len});
        if (kept)
            return kept;
    }
    return pack_bytes(p, s, len + 1);
}

/* Reads and writes a pointer member; writing is left out while measuring. */
static const void *pointer_at(const char *at)
{
    const void *v;
    memcpy(&v, at, sizeof(v));
    return v;
}

static void put_pointer(char *at, const void *v)
{
    if (at)
        memcpy(at, &v, sizeof(v));
}

static void pack_pointer_text(struct pack *p, const char *src, char *dst, bool unique)
{
    const char *s = pointer_at(src);
    if (s)
        put_pointer(dst, pack_text(p, s, unique));
}

/* struct labels, resource_list, string_list: an array of elements of `size` that begin with a text;
 * with `pairs` a second one follows it. */
static void pack_array(struct pack *p, const char *src, char *dst, size_t size, bool pairs,
                       bool unique)
{
    const char *from = pointer_at(src);
    uint32_t n;
    memcpy(&n, src + sizeof(char *), sizeof(n));
    if (!from || n == 0)
        return;
    char *to = take(p, n * size, 8);
    if (to)
        memcpy(to, from, n * size);
    put_pointer(dst, to);
    for (uint32_t i = 0; i < n; i++) {
        pack_pointer_text(p, from + i * size, to ? to + i * size : NULL, false);
        if (pairs)
            pack_pointer_text(p, from + i * size + sizeof(char *),
                              to ? to + i * size + sizeof(char *) : NULL, unique);
    }
}

static void pack_data(struct pack *p, const struct field *f, const char *src, char *dst)
{
    const struct data_entry *from = pointer_at(src + f->offset);
    uint32_t n;
    memcpy(&n, src + f->n_offset, sizeof(n));
    if (!from || n == 0)
        return;
    struct data_entry *to = (struct data_entry *)(void *)take(p, n * sizeof(*from), 8);
    put_pointer(dst ? dst + f->offset : NULL, to);
    for (uint32_t i = 0; i < n; i++) {
        const char *key = pack_text(p, from[i].key, false);
        const char *value = pack_bytes(p, from[i].value.p, from[i].value.len + 1);
        if (to)
            to[i] = (struct data_entry){key, {value, from[i].value.len}};
    }
}

static void pack_fields(struct pack *p, const struct field *table, const char *src, char *dst);

static void pack_list(struct pack *p, const struct field *f, const char *src, char *dst)
{
    const char *from = pointer_at(src + f->offset);
    uint32_t n;
    memcpy(&n, src + f->n_offset, sizeof(n));
    if (!from || n == 0)
        return;
    char *to = take(p, n * (size_t)f->size, 8);
    if (to)
        memcpy(to, from, n * (size_t)f->size);
    put_pointer(dst ? dst + f->offset : NULL, to);
    for (uint32_t i = 0; i < n; i++)
        pack_fields(p, f->sub, from + i * (size_t)f->size, to ? to + i * (size_t)f->size : NULL);
}

static void pack_struct_at(struct pack *p, const struct field *f, const char *src, char *dst)
{
    const char *from = pointer_at(src + f->offset);
    if (!from)
        return;
    char *to = take(p, f->size, 8);
    if (to)
        memcpy(to, from, f->size);
    put_pointer(dst ? dst + f->offset : NULL, to);
    pack_fields(p, f->sub, from, to);
}

static void pack_fields(struct pack *p, const struct field *table, const char *src, char *dst)
{
    for (const struct field *f = table; f->kind != FIELD_END; f++) {
        char *to = dst ? dst + f->offset : NULL;
        switch (f->kind) {
        case FIELD_TEXT:
            pack_pointer_text(p, src + f->offset, to, f->unique);
            break;
        case FIELD_JSON:
            pack_pointer_text(p, src + f->offset, to, true);
            break;
        case FIELD_LABELS:
            pack_array(p, src + f->offset, to, sizeof(struct label), true, false);
            break;
        case FIELD_NOTES:
            pack_array(p, src + f->offset, to, sizeof(struct label), true, true);
            break;
        case FIELD_RESOURCES:
            pack_array(p, src + f->offset, to, sizeof(struct resource_amount), false, false);
            break;
        case FIELD_STRINGS:
        case FIELD_NAMES:
            pack_array(p, src + f->offset, to, sizeof(char *), false, false);
            break;
        case FIELD_DATA:
            pack_data(p, f, src, dst);
            break;
        case FIELD_STRUCT:
            pack_fields(p, f->sub, src + f->offset, to);
            break;
        case FIELD_POINTER:
            pack_struct_at(p, f, src, dst);
            break;
        case FIELD_LIST:
            pack_list(p, f, src, dst);
            break;
        default:
            break; /* plain values came with their struct */
        }
    }
}

struct object *object_compact(const struct kind *k, const struct object *o, size_t before)
{
    struct pack p = {.at = before + k->size};
    pack_fields(&p, k->fields, (const char *)o, NULL);
    size_t bytes = p.at;
    char *block = xmalloc(bytes);
    char *to = block + before;
    memcpy(to, o, k->size);
    p = (struct pack){.base = block, .at = before + k->size};
    pack_fields(&p, k->fields, (const char *)o, to);
    struct object *made = (struct object *)(void *)to;
    made->bytes = (uint32_t)bytes;
    return made;
}
