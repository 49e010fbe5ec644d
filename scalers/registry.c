/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The trigger types there are, and what all of them share. */
#include <assert.h>

#include "scalers/scaler.h"
#include "scalers/types.h"

static const struct scaler_type *const types[] = {
    &scaler_cron,
    &scaler_redis,
};

static const struct scaler_type *extra;

void scaler_type_extra(const struct scaler_type *type)
{
    extra = type;
}

const struct scaler_type *const *scaler_types(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(types);
    return types;
}

const struct scaler_type *scaler_type_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (!strcmp(types[i]->name, name))
            return types[i];
    return extra && !strcmp(extra->name, name) ? extra : NULL;
}

const struct option *scaler_schema(const char *type)
{
    const struct scaler_type *t = scaler_type_find(type);
    return t ? t->schema : NULL;
}

/* ---- Rooms ---- */

struct scaler_room {
    void (*release)(void *room);
    void *data;
};

void *scaler_host_room(struct scaler_host *h, const char *name, size_t size,
                       void (*release)(void *room))
{
    struct scaler_room *room = map_get(&h->rooms, str_from(name));
    if (!room) {
        room = xcalloc(1, sizeof(*room));
        *room = (struct scaler_room){release, xcalloc(1, size)};
        map_put(&h->rooms, str_from(name), room);
    }
    return room->data;
}

static void room_free(void *p)
{
    struct scaler_room *room = p;
    room->release(room->data);
    free(room->data);
    free(room);
}

void scaler_host_release(struct scaler_host *h)
{
    map_release(&h->rooms, room_free);
}

/* ---- Life of a scaler ---- */

static void scaler_free(struct scaler *s)
{
    arena_release(&s->arena);
    free(s);
}

struct scaler *scaler_open(struct scaler_host *h, const struct scaler_type *type, unsigned index,
                           const struct json *parameters, struct err *err)
{
    assert(type->size >= sizeof(struct scaler));
    struct scaler *s = xcalloc(1, type->size);
    s->type = type;
    s->host = h;
    s->index = index;
    arena_init(&s->arena, 1024 * 1024, 512);
    if (type->open(s, parameters, err) == 0)
        return s;
    scaler_free(s);
    return NULL;
}

void scaler_poll(struct scaler *s, scaler_done *done, void *arg)
{
    assert(!s->done);
    s->done = done;
    s->done_arg = arg;
    s->type->poll(s);
}

void scaler_close(struct scaler *s)
{
    if (!s)
        return;
    s->done = NULL;
    s->type->close(s);
    scaler_free(s);
}

void scaler_answer(struct scaler *s, const struct scaler_value *values, size_t n,
                   const struct err *err)
{
    assert(s->done);
    assert(err || (n >= 1 && n <= SCALER_METRICS_MAX));
    scaler_done *done = s->done;
    s->done = NULL;
    done(s->done_arg, values, n, err);
}

const char *scaler_metric_name(struct scaler *s, struct str base)
{
    struct str name = arena_printf(&s->arena, "s%u-%.*s", s->index, STR_ARG(base));
    if (!name.p)
        return "s-";
    char *p = arena_cstr(&s->arena, name);
    for (char *c = p; c && *c; c++)
        if (strchr("/.:%()", *c))
            *c = '-';
    return p ? p : "s-";
}

void scaler_docs(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        buf_printf(out, "## %s\n\n", types[i]->name);
        schema_docs(types[i]->schema, out);
        buf_char(out, '\n');
    }
}
