/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The objects of one kind in the order of their keys. Private to kube/client. */
#ifndef KUBE_CLIENT_STORE_H
#define KUBE_CLIENT_STORE_H

#include "base/vec.h"
#include "kube/api/kind.h"

/* A sorted vector: reading is a binary search, iteration is free, and an insertion moves pointers,
 * which for the 150,000 pods of the largest clusters is a memmove of a megabyte at most. Lists
 * arrive in key order, so that filling appends. */
struct store {
    VEC(struct object *); /* one reference each */
    size_t bytes;
};

void store_release(struct store *s);
struct object *store_get(const struct store *s, const char *namespace_, const char *name);
/* Takes over the reference; returns the object that was there before (the caller's now), or NULL.
 */
struct object *store_put(struct store *s, struct object *o);
struct object *store_remove(struct store *s, const char *namespace_, const char *name);
/* By (namespace, name). */
int store_compare(const struct object *a, const struct object *b);

#endif
