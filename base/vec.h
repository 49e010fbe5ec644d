/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Typed vectors: struct { T *v; size_t len, cap; } with a handful of macros.
 *
 *     struct vec_pod { VEC(struct pod *) };      or      VEC_DEFINE(vec_pod, struct pod *);
 *     struct vec_pod pods = {0};
 *     vec_push(&pods, p);
 *     vec_each (&pods, struct pod **, it) use(*it);
 *     vec_release(&pods);
 *
 * Elements are copied by value. Pointers into a vector die at the next push. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/attr.h"

#define VEC(type)                                                                                  \
    type *v;                                                                                       \
    size_t len, cap

#define VEC_DEFINE(name, type)                                                                     \
    struct name {                                                                                  \
        VEC(type);                                                                                 \
    }

/* Room for one more of `size` bytes; ends the process without memory. */
void *vec_grow_raw(void *v, size_t *cap, size_t need, size_t size);

#define vec_reserve(vec, need)                                                                     \
    do {                                                                                           \
        if ((vec)->cap < (need))                                                                   \
            (vec)->v = vec_grow_raw((vec)->v, &(vec)->cap, (need), sizeof(*(vec)->v));             \
    } while (0)

#define vec_push(vec, ...)                                                                         \
    do {                                                                                           \
        vec_reserve((vec), (vec)->len + 1);                                                        \
        (vec)->v[(vec)->len++] = (__VA_ARGS__);                                                    \
    } while (0)

#define vec_pop(vec) ((vec)->v[--(vec)->len])
#define vec_last(vec) ((vec)->v[(vec)->len - 1])
#define vec_clear(vec) ((void)((vec)->len = 0))

/* Removes element `i`, keeping order / by moving the last one in. */
#define vec_remove(vec, i)                                                                         \
    do {                                                                                           \
        size_t vec_i_ = (i);                                                                       \
        memmove(&(vec)->v[vec_i_], &(vec)->v[vec_i_ + 1],                                          \
                ((vec)->len - vec_i_ - 1) * sizeof(*(vec)->v));                                    \
        (vec)->len--;                                                                              \
    } while (0)
#define vec_remove_swap(vec, i) ((vec)->v[(i)] = (vec)->v[--(vec)->len])

#define vec_release(vec)                                                                           \
    do {                                                                                           \
        free((vec)->v);                                                                            \
        (vec)->v = NULL;                                                                           \
        (vec)->len = (vec)->cap = 0;                                                               \
    } while (0)

#define vec_each(vec, ptr_type, it)                                                                \
    for (ptr_type it = (vec)->v; it && it < (vec)->v + (vec)->len; it++)

#endif
