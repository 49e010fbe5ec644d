/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Building a catalogue: what the file reader and the built-in table share. */
#ifndef CLOUD_CATALOG_BUILD_H
#define CLOUD_CATALOG_BUILD_H

#include "base/vec.h"
#include "cloud/catalog.h"

/* Grows a list in any order; sorted into the arena at the end. */
VEC_DEFINE(vec_amount, struct resource_amount);
VEC_DEFINE(vec_label, struct label);
VEC_DEFINE(vec_offering, struct offering);

struct catalog *catalog_new(size_t cap_bytes); /* one reference, empty */
struct resource_list catalog_amounts(struct catalog *c, const struct vec_amount *v);
struct labels catalog_labels(struct catalog *c, const struct vec_label *v);
/* What is left of a node's capacity after kubelet and system: see catalog.c. */
struct resource_list catalog_allocatable(struct catalog *c, const struct resource_list *capacity);
/* Sorts types by name. A name that comes twice: NULL is not returned, its index + 1 is. */
size_t catalog_sort(struct instance_type *types, size_t n);

#endif
