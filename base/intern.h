/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* One shared copy of each text, so that ten thousand pods keep one "app.kubernetes.io/name".
 *
 * Counted: a text leaves when its last user does. Interned texts of one table are equal exactly
 * when their pointers are. Not for use by several threads. */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/str.h"

struct intern;

struct intern *intern_new(void);
void intern_free(struct intern *t);

/* NUL-terminated; never NULL. Each call is one reference. */
const char *intern_get(struct intern *t, struct str s);
/* Without a reference, or NULL when it is not there. */
const char *intern_find(const struct intern *t, struct str s);
const char *intern_ref(struct intern *t, const char *interned);
void intern_unref(struct intern *t, const char *interned); /* NULL is harmless */
size_t intern_len(const char *interned);                   /* O(1) */
static inline struct str intern_str(const char *s)
{
    return s ? (struct str){s, intern_len(s)} : STR_NONE;
}
size_t intern_count(const struct intern *t);
size_t intern_bytes(const struct intern *t);

#endif
