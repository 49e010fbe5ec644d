/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Kubernetes quantities ("1500m", "2Gi", "1e3") as checked integers.
 *
 * Resources are int64_t in base units (docs/architecture.md): cpu in milli-CPU, everything else in
 * units (bytes, counts). Fractions round up, as the API server's Value() and MilliValue() do.
 * Source: k8s.io/apimachinery, pkg/api/resource, the quantity grammar. */
#ifndef KUBE_API_QUANTITY_H
#define KUBE_API_QUANTITY_H

#include "base/err.h"
#include "base/str.h"

/* Value in units / in thousandths, rounded up; ERR_INVALID for bad grammar, saturating beyond
 * int64. Negative values parse. */
int quantity_parse(struct str s, int64_t *ret_units, struct err *err);
int quantity_parse_milli(struct str s, int64_t *ret_milli, struct err *err);

/* By resource name: milli for "cpu" (and names ending in ".cpu", as requests.cpu), units else. */
int quantity_parse_for(struct str resource, struct str s, int64_t *ret, struct err *err);

/* Canonical text: cpu 1500 -> "1500m", 2000 -> "2"; memory in the largest binary suffix that
 * divides it ("2Gi", "14758Mi"), else plain. At most 32 bytes. */
struct str quantity_format_for(char out[32], struct str resource, int64_t amount);

struct resource_amount {
    const char *name;
    int64_t amount;
};

/* Sorted by name, names unique. */
struct resource_list {
    const struct resource_amount *v;
    uint32_t n;
};

/* 0 when absent; use resource_list_has to tell. */
int64_t resource_list_get(const struct resource_list *l, const char *name);
bool resource_list_has(const struct resource_list *l, const char *name);

#endif
