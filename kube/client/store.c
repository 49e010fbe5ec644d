/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/client/store.h"

static int compare_key(const struct object *o, const char *namespace_, const char *name)
{
    const char *ns = o->meta.namespace_ ? o->meta.namespace_ : "";
    int c = strcmp(ns, namespace_ ? namespace_ : "");
    return c ? c : strcmp(o->meta.name, name);
}

int store_compare(const struct object *a, const struct object *b)
{
    return compare_key(a, b->meta.namespace_, b->meta.name);
}

/* The place of the key, or where it would go. */
static size_t find(const struct store *s, const char *namespace_, const char *name, bool *ret_found)
{
    size_t lo = 0, hi = s->len;
    *ret_found = false;
    if (hi && compare_key(s->v[hi - 1], namespace_, name) < 0)
        return hi;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare_key(s->v[mid], namespace_, name);
        if (c == 0) {
            *ret_found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void store_release(struct store *s)
{
    for (size_t i = 0; i < s->len; i++)
        object_unref(s->v[i]);
    vec_release(s);
    s->bytes = 0;
}

struct object *store_get(const struct store *s, const char *namespace_, const char *name)
{
    bool found;
    size_t i = find(s, namespace_, name, &found);
    return found ? s->v[i] : NULL;
}

struct object *store_put(struct store *s, struct object *o)
{
    bool found;
    size_t i = find(s, o->meta.namespace_, o->meta.name, &found);
    s->bytes += o->bytes;
    if (found) {
        struct object *before = s->v[i];
        s->bytes -= before->bytes;
        s->v[i] = o;
        return before;
    }
    vec_push(s, o);
    memmove(&s->v[i + 1], &s->v[i], (s->len - 1 - i) * sizeof(*s->v));
    s->v[i] = o;
    return NULL;
}

struct object *store_remove(struct store *s, const char *namespace_, const char *name)
{
    bool found;
    size_t i = find(s, namespace_, name, &found);
    if (!found)
        return NULL;
    struct object *o = s->v[i];
    s->bytes -= o->bytes;
    vec_remove(s, i);
    return o;
}
