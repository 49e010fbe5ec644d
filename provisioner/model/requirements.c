/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Sets of requirements, sorted by key. */

#include "provisioner/model/requirement.h"

static uint32_t position(const struct requirement *v, uint32_t n, const char *key)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(v[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct requirement *requirements_find(const struct requirements *s, const char *key)
{
    uint32_t at = position(s->v, s->n, key);
    return at < s->n && strcmp(s->v[at].key, key) == 0 ? &s->v[at] : NULL;
}

/* Adds to an array with room for one more, intersecting with one of the same key. */
static void add(struct requirement *v, uint32_t *n, struct requirement r, struct arena *a)
{
    uint32_t at = position(v, *n, r.key);
    if (at < *n && strcmp(v[at].key, r.key) == 0) {
        v[at] = requirement_intersect(&v[at], &r, a);
        return;
    }
    memmove(&v[at + 1], &v[at], (*n - at) * sizeof(*v));
    v[at] = r;
    ++*n;
}

struct requirements requirements_merge(const struct requirements *x, const struct requirements *y,
                                       struct arena *a)
{
    struct requirement *v = ARENA_NEW_ARRAY(a, struct requirement, x->n + y->n + 1);
    uint32_t n = x->n;
    if (n)
        memcpy(v, x->v, n * sizeof(*v));
    for (uint32_t i = 0; i < y->n; i++)
        add(v, &n, y->v[i], a);
    return (struct requirements){v, n};
}

struct requirements requirements_from_selectors(const struct selector_requirement *s,
                                                uint32_t count, struct arena *a)
{
    struct requirement *v = ARENA_NEW_ARRAY(a, struct requirement, count + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        add(v, &n, requirement_from(&s[i], a), a);
    return (struct requirements){v, n};
}

struct requirements requirements_from_labels(const struct labels *l, struct arena *a)
{
    struct requirement *v = ARENA_NEW_ARRAY(a, struct requirement, l->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++)
        add(v, &n, requirement_equals(l->v[i].key, l->v[i].value ? l->v[i].value : "", a), a);
    return (struct requirements){v, n};
}

bool requirements_compatible(const struct requirements *node, const struct requirements *pod,
                             bool (*undefined_ok)(const char *key), const char **ret_key)
{
    for (uint32_t i = 0; i < pod->n; i++) {
        const struct requirement *want = &pod->v[i], *is = requirements_find(node, want->key);
        bool ok;
        if (!is)
            ok = requirement_allows_absent(want) || (undefined_ok && undefined_ok(want->key));
        else
            ok = requirement_overlaps(is, want) ||
                 (requirement_allows_absent(is) && requirement_allows_absent(want));
        if (!ok) {
            if (ret_key)
                *ret_key = want->key;
            return false;
        }
    }
    return true;
}

static bool same(const struct requirement *x, const struct requirement *y)
{
    if (strcmp(x->key, y->key) != 0 || x->complement != y->complement ||
        x->n_values != y->n_values || x->has_gte != y->has_gte || x->has_lte != y->has_lte ||
        x->min_values != y->min_values)
        return false;
    if ((x->has_gte && x->gte != y->gte) || (x->has_lte && x->lte != y->lte))
        return false;
    for (uint32_t i = 0; i < x->n_values; i++)
        if (strcmp(x->values[i], y->values[i]) != 0)
            return false;
    return true;
}

bool requirements_equal(const struct requirements *x, const struct requirements *y)
{
    if (x->n != y->n)
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (!same(&x->v[i], &y->v[i]))
            return false;
    return true;
}
