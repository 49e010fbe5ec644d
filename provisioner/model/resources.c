/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Dense resource vectors. */

#include "provisioner/model/resources.h"

#include "base/num.h"

void resources_init(struct resources *r)
{
    r->names[RESOURCE_CPU] = "cpu";
    r->names[RESOURCE_MEMORY] = "memory";
    r->names[RESOURCE_PODS] = "pods";
    r->names[RESOURCE_STORAGE] = "ephemeral-storage";
    r->n = RESOURCE_FIRST_OTHER;
}

int resources_find(const struct resources *r, const char *name)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->names[i] == name || strcmp(r->names[i], name) == 0)
            return (int)i;
    return -1;
}

int resources_add(struct resources *r, const char *name)
{
    int at = resources_find(r, name);
    if (at >= 0)
        return at;
    if (r->n == RESOURCES_MAX)
        return -1;
    r->names[r->n] = name;
    return (int)r->n++;
}

void resources_dense(const struct resources *r, const struct resource_list *l, int64_t *ret)
{
    memset(ret, 0, r->n * sizeof(*ret));
    for (uint32_t i = 0; i < l->n; i++) {
        int at = resources_find(r, l->v[i].name);
        if (at >= 0)
            ret[at] = l->v[i].amount;
    }
}

struct resource_list resources_list(const struct resources *r, const int64_t *v, struct arena *a)
{
    struct resource_amount *out = ARENA_NEW_ARRAY(a, struct resource_amount, r->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (v[i] == 0 && i != RESOURCE_CPU && i != RESOURCE_MEMORY)
            continue;
        uint32_t at = n++;
        for (; at > 0 && strcmp(out[at - 1].name, r->names[i]) > 0; at--)
            out[at] = out[at - 1];
        out[at] = (struct resource_amount){r->names[i], v[i]};
    }
    return (struct resource_list){out, n};
}

void resources_sum(int64_t *to, const int64_t *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = num_add_sat(to[i], v[i]);
}

void resources_subtract(int64_t *to, const int64_t *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = num_add_sat(to[i], v[i] == INT64_MIN ? INT64_MAX : -v[i]);
}

bool resources_fit(const int64_t *need, const int64_t *have, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (need[i] > 0 && need[i] > have[i])
            return false;
    return true;
}

int64_t resources_copies(const int64_t *need, const int64_t *have, uint32_t n, int64_t most)
{
    for (uint32_t i = 0; i < n && most > 0; i++) {
        if (need[i] <= 0)
            continue;
        int64_t copies = have[i] < need[i] ? 0 : have[i] / need[i];
        most = MIN(most, copies);
    }
    return most;
}
