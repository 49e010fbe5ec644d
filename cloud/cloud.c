/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Names of the seam, and catalogues: reference counting, look-up, building. */

#include "cloud/cloud.h"

#include "base/num.h"
#include "cloud/catalog_build.h"

static const char *const capacity_names[] = {
    [CAPACITY_ON_DEMAND] = "on-demand",
    [CAPACITY_SPOT] = "spot",
    [CAPACITY_RESERVED] = "reserved",
};

const char *capacity_type_name(enum capacity_type t)
{
    return capacity_names[t];
}

int capacity_type_parse(struct str s, enum capacity_type *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(capacity_names); i++) {
        if (str_eq_c(s, capacity_names[i])) {
            *ret = (enum capacity_type)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "'%.*s' is no capacity type; they are on-demand, spot and reserved", STR_ARG(s));
}

/* ---- Life ---- */

struct catalog *catalog_new(size_t cap_bytes)
{
    struct catalog *c = xcalloc(1, sizeof(*c));
    c->refs = 1;
    arena_init(&c->arena, cap_bytes, 64 * 1024);
    return c;
}

struct catalog *catalog_ref(struct catalog *c)
{
    if (c)
        c->refs++;
    return c;
}

void catalog_unref(struct catalog *c)
{
    if (!c || --c->refs)
        return;
    arena_release(&c->arena);
    free(c);
}

const struct instance_type *catalog_find(const struct catalog *c, const char *name)
{
    size_t lo = 0, hi = c->n_types;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        int order = strcmp(c->types[middle].name, name);
        if (order == 0)
            return &c->types[middle];
        if (order < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return NULL;
}

/* ---- Building ---- */

static int by_amount_name(const void *a, const void *b)
{
    return strcmp(((const struct resource_amount *)a)->name,
                  ((const struct resource_amount *)b)->name);
}

static int by_label_key(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static int by_type_name(const void *a, const void *b)
{
    return strcmp(((const struct instance_type *)a)->name, ((const struct instance_type *)b)->name);
}

struct resource_list catalog_amounts(struct catalog *c, const struct vec_amount *v)
{
    struct resource_amount *out = ARENA_NEW_ARRAY(&c->arena, struct resource_amount, v->len);
    if (!out || v->len == 0)
        return (struct resource_list){NULL, 0};
    memcpy(out, v->v, v->len * sizeof(*out));
    qsort(out, v->len, sizeof(*out), by_amount_name);
    return (struct resource_list){out, (uint32_t)v->len};
}

struct labels catalog_labels(struct catalog *c, const struct vec_label *v)
{
    struct label *out = ARENA_NEW_ARRAY(&c->arena, struct label, v->len);
    if (!out || v->len == 0)
        return (struct labels){NULL, 0};
    memcpy(out, v->v, v->len * sizeof(*out));
    qsort(out, v->len, sizeof(*out), by_label_key);
    return (struct labels){out, (uint32_t)v->len};
}

size_t catalog_sort(struct instance_type *types, size_t n)
{
    if (n > 1)
        qsort(types, n, sizeof(*types), by_type_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(types[i - 1].name, types[i].name) == 0)
            return i + 1;
    return 0;
}

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

/* What the kubelet reserves of `milli` milli-CPU: 6 % of the first core, 1 % of the second, half a
 * percent of the next two, a quarter of the rest. */
static int64_t reserved_cpu(int64_t milli)
{
    static const struct {
        int64_t cores_milli, per_100000;
    } steps[] = {{1000, 6000}, {1000, 1000}, {2000, 500}, {INT64_MAX, 250}};
    int64_t left = milli, sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(steps) && left > 0; i++) {
        int64_t part = MIN(left, steps[i].cores_milli);
        sum += part * steps[i].per_100000;
        left -= part;
    }
    return (sum + 99999) / 100000;
}

/* The model of the Amazon images, also Karpenter's: kube-reserved memory 255 MiB + 11 MiB a pod,
 * 1 GiB of storage, and the eviction thresholds of 100 MiB of memory and a tenth of the storage.
 * The share of memory that the hypervisor keeps is not known from a capacity and not taken off. */
struct resource_list catalog_allocatable(struct catalog *c, const struct resource_list *capacity)
{
    struct resource_amount *out = ARENA_NEW_ARRAY(&c->arena, struct resource_amount, capacity->n);
    int64_t pods = resource_list_has(capacity, "pods") ? resource_list_get(capacity, "pods") : 110;
    for (uint32_t i = 0; out && i < capacity->n; i++) {
        int64_t all = capacity->v[i].amount, keep = 0;
        out[i].name = capacity->v[i].name;
        if (strcmp(out[i].name, "cpu") == 0)
            keep = reserved_cpu(all);
        else if (strcmp(out[i].name, "memory") == 0)
            keep = num_mul_sat(pods, 11 * MIB) + 355 * MIB;
        else if (strcmp(out[i].name, "ephemeral-storage") == 0)
            keep = all / 10 + GIB;
        out[i].amount = MAX(all - keep, 0);
    }
    return (struct resource_list){out, out ? capacity->n : 0};
}
