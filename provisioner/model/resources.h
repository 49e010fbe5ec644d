/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Resource amounts as dense vectors over the names that one world knows.
 *
 * A vector is an array of `n` int64_t in base units (kube/api/quantity.h), one per name, in the
 * order of the table: cpu, memory, pods, ephemeral-storage, then the others as they were first
 * seen. Nothing that is printed depends on that order. Sums saturate. */
#ifndef MODEL_RESOURCES_H
#define MODEL_RESOURCES_H

#include "base/arena.h"
#include "kube/api/quantity.h"

#define RESOURCES_MAX 64 /* distinct names in one world; more is an error of the input */

enum { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_PODS, RESOURCE_STORAGE, RESOURCE_FIRST_OTHER };

struct resources {
    const char *names[RESOURCES_MAX];
    uint32_t n;
};

void resources_init(struct resources *r);
/* Index of the name, added when new; -1 when the table is full. The text is borrowed. */
int resources_add(struct resources *r, const char *name);
int resources_find(const struct resources *r, const char *name); /* -1: unknown */
/* The dense form of a list; names that the table lacks are ignored. */
void resources_dense(const struct resources *r, const struct resource_list *l, int64_t *ret);
/* The list form, sorted by name; zeros left out unless they are cpu or memory. */
struct resource_list resources_list(const struct resources *r, const int64_t *v, struct arena *a);

void resources_sum(int64_t *to, const int64_t *v, uint32_t n);
void resources_subtract(int64_t *to, const int64_t *v, uint32_t n);
/* Whether `need` is at most `have` in every resource of which something is needed. */
bool resources_fit(const int64_t *need, const int64_t *have, uint32_t n);
/* How many copies of `need` go into `have`, at most `most`. */
int64_t resources_copies(const int64_t *need, const int64_t *have, uint32_t n, int64_t most);

#endif
