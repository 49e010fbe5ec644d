/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The catalogue: instance types, their offerings and prices. Pure, so that decisions may read it.
 *
 * Prices are int64_t micro-dollars per hour; an offering without a price above zero is unusable,
 * never free. A catalogue is immutable and counted. */
#ifndef CLOUD_CATALOG_H
#define CLOUD_CATALOG_H

#include "base/arena.h"
#include "base/err.h"
#include "kube/api/meta.h"
#include "kube/api/quantity.h"

enum capacity_type { CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_RESERVED };
const char *capacity_type_name(enum capacity_type t); /* "on-demand" … */
int capacity_type_parse(struct str s, enum capacity_type *ret, struct err *err);

/* One purchasable thing of an instance type. */
struct offering {
    const char *zone;
    enum capacity_type capacity_type;
    int64_t price_uusd_h;           /* <= 0: unknown, unusable */
    bool available;                 /* the vendor's word; the core's memory comes on top */
    int32_t interruption_ppm_month; /* chance of interruption in a month, parts per million */
};

struct instance_type {
    const char *name, *arch, *os;
    struct resource_list capacity;
    struct resource_list allocatable; /* before daemonsets */
    struct labels labels; /* well-known and vendor labels, without zone and capacity type */
    const struct offering *offerings;
    uint32_t n_offerings;
};

/* Immutable, reference-counted. */
struct catalog {
    uint32_t refs;
    struct arena arena;
    const char *region;
    int64_t as_of;                     /* when the prices were true, ns since 1970 */
    uint64_t version;                  /* changes whenever anything does */
    const struct instance_type *types; /* sorted by name, names unique */
    uint32_t n_types;
};

struct catalog *catalog_ref(struct catalog *c);
void catalog_unref(struct catalog *c);
const struct instance_type *catalog_find(const struct catalog *c, const char *name);
/* The JSON of docs/guide/catalogue (product contract). Duplicate names, unknown units, impossible
 * capacities: ERR_INVALID with line. Offerings whose price is absent, zero, negative or not a
 * number are kept as unusable and told through `warn` (may be NULL). `allocatable` is computed from
 * capacity where it is not given. */
struct catalog *catalog_parse(struct str text, const char *file_name,
                              void (*warn)(void *arg, const char *msg), void *arg, struct err *err);
/* The dated table inside the program: about 200 AWS types of us-east-1. */
struct catalog *catalog_builtin(void);

#endif
