/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The algebra of one requirement; sets of them are in requirements.c. */

#include "provisioner/model/requirement.h"

#include "base/buf.h"
#include "base/num.h"
#include "kube/api/nodepool.h"

static const struct {
    const char *old, *now;
} aliases[] = {
    {"failure-domain.beta.kubernetes.io/zone", LABEL_ZONE},
    {"failure-domain.beta.kubernetes.io/region", LABEL_REGION},
    {"beta.kubernetes.io/arch", LABEL_ARCH},
    {"beta.kubernetes.io/os", LABEL_OS},
    {"beta.kubernetes.io/instance-type", LABEL_INSTANCE_TYPE},
};

static const char *key_of_today(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (strcmp(aliases[i].old, key) == 0)
            return aliases[i].now;
    return key;
}

/* Adds to a sorted array of unique values; returns the new length. */
static uint32_t add_value(const char **v, uint32_t n, const char *value)
{
    uint32_t at = n;
    while (at > 0 && strcmp(v[at - 1], value) > 0)
        at--;
    if (at > 0 && strcmp(v[at - 1], value) == 0)
        return n;
    memmove(&v[at + 1], &v[at], (n - at) * sizeof(*v));
    v[at] = value;
    return n + 1;
}

static struct requirement nothing(const char *key, int32_t min_values)
{
    return (struct requirement){.key = key, .min_values = min_values};
}

static bool has_bounds(const struct requirement *r)
{
    return r->has_gte || r->has_lte;
}

static bool within_bounds(const struct requirement *r, const char *value)
{
    if (!has_bounds(r))
        return true;
    int64_t n;
    if (num_parse_i64(str_from(value), &n, NULL) < 0)
        return false;
    return (!r->has_gte || n >= r->gte) && (!r->has_lte || n <= r->lte);
}

static struct requirement from_bound(const struct selector_requirement *s, struct requirement r)
{
    int64_t n;
    if (s->values.n != 1 || num_parse_i64(str_from(s->values.v[0]), &n, NULL) < 0)
        return nothing(r.key, r.min_values);
    bool lower = s->op == SELECTOR_GT || s->op == SELECTOR_GTE;
    if ((s->op == SELECTOR_GT && n == INT64_MAX) || (s->op == SELECTOR_LT && n == INT64_MIN))
        return nothing(r.key, r.min_values);
    r.complement = true;
    if (lower) {
        r.has_gte = true;
        r.gte = s->op == SELECTOR_GT ? n + 1 : n;
    } else {
        r.has_lte = true;
        r.lte = s->op == SELECTOR_LT ? n - 1 : n;
    }
    return r;
}

struct requirement requirement_from(const struct selector_requirement *s, struct arena *a)
{
    struct requirement r = {.key = key_of_today(s->key), .min_values = s->min_values};
    switch (s->op) {
    case SELECTOR_IN:
    case SELECTOR_NOT_IN: {
        const char **v = ARENA_NEW_ARRAY(a, const char *, s->values.n + 1);
        for (uint32_t i = 0; i < s->values.n; i++)
            r.n_values = add_value(v, r.n_values, s->values.v[i]);
        r.values = v;
        r.complement = s->op == SELECTOR_NOT_IN;
        return r;
    }
    case SELECTOR_EXISTS:
        r.complement = true;
        return r;
    case SELECTOR_GT:
    case SELECTOR_LT:
    case SELECTOR_GTE:
    case SELECTOR_LTE:
        return from_bound(s, r);
    case SELECTOR_DOES_NOT_EXIST:
    case SELECTOR_OP_INVALID:
        break;
    }
    return r;
}

struct requirement requirement_equals(const char *key, const char *value, struct arena *a)
{
    const char **v = ARENA_NEW(a, const char *);
    v[0] = value;
    return (struct requirement){.key = key_of_today(key), .values = v, .n_values = 1};
}

static bool lists(const struct requirement *r, const char *value)
{
    uint32_t low = 0, high = r->n_values;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int c = strcmp(r->values[middle], value);
        if (c == 0)
            return true;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool requirement_has(const struct requirement *r, const char *value)
{
    return lists(r, value) != r->complement && within_bounds(r, value);
}

bool requirement_allows_absent(const struct requirement *r)
{
    if (r->complement)
        return r->n_values > 0 && !has_bounds(r);
    return r->n_values == 0;
}

static struct requirement with_common_bounds(const struct requirement *x,
                                             const struct requirement *y)
{
    struct requirement r = {.key = x->key, .min_values = MAX(x->min_values, y->min_values)};
    r.has_gte = x->has_gte || y->has_gte;
    r.has_lte = x->has_lte || y->has_lte;
    r.gte = MAX(x->has_gte ? x->gte : INT64_MIN, y->has_gte ? y->gte : INT64_MIN);
    r.lte = MIN(x->has_lte ? x->lte : INT64_MAX, y->has_lte ? y->lte : INT64_MAX);
    return r;
}

static bool bounds_cross(const struct requirement *r)
{
    return r->has_gte && r->has_lte && r->gte > r->lte;
}

struct requirement requirement_intersect(const struct requirement *x, const struct requirement *y,
                                         struct arena *a)
{
    struct requirement r = with_common_bounds(x, y);
    if (bounds_cross(&r))
        return nothing(r.key, r.min_values);
    const char **v = ARENA_NEW_ARRAY(a, const char *, x->n_values + y->n_values + 1);
    r.complement = x->complement && y->complement;
    const struct requirement *sides[2] = {x, y};
    for (int side = 0; side < 2; side++) {
        const struct requirement *from = sides[side], *other = sides[1 - side];
        if (!r.complement && from->complement)
            continue; /* only the plain side's values can be in the result */
        for (uint32_t i = 0; i < from->n_values; i++) {
            const char *value = from->values[i];
            bool keep = r.complement || lists(other, value) != other->complement;
            if (keep && within_bounds(&r, value))
                r.n_values = add_value(v, r.n_values, value);
        }
    }
    r.values = v;
    if (!r.complement) /* a concrete result has its bounds worked in */
        r.has_gte = r.has_lte = false;
    if (!r.has_gte)
        r.gte = 0;
    if (!r.has_lte)
        r.lte = 0;
    return r;
}

bool requirement_overlaps(const struct requirement *x, const struct requirement *y)
{
    struct requirement r = with_common_bounds(x, y);
    if (bounds_cross(&r))
        return false;
    if (x->complement && y->complement)
        return true;
    const struct requirement *plain = x->complement ? y : x, *other = x->complement ? x : y;
    for (uint32_t i = 0; i < plain->n_values; i++) {
        const char *value = plain->values[i];
        if (lists(other, value) != other->complement && within_bounds(&r, value))
            return true;
    }
    return false;
}

const char *requirement_any(const struct requirement *r, struct arena *a)
{
    if (!r->complement) {
        for (uint32_t i = 0; i < r->n_values; i++)
            if (within_bounds(r, r->values[i]))
                return r->values[i];
        return NULL;
    }
    /* One more candidate than there are exclusions, so one of them is free unless the bounds end.
     */
    int64_t start = r->has_gte ? r->gte : 0;
    if (!r->has_gte && r->has_lte && r->lte < 0)
        start = r->lte < INT64_MIN + r->n_values ? INT64_MIN : r->lte - r->n_values;
    for (uint32_t i = 0; i <= r->n_values && start <= INT64_MAX - i; i++) {
        struct str text = arena_printf(a, "%lld", (long long)(start + i));
        if (requirement_has(r, text.p))
            return text.p;
    }
    return NULL;
}

static void add_values_text(struct buf *b, const struct requirement *r)
{
    buf_char(b, '[');
    for (uint32_t i = 0; i < r->n_values && i < 8; i++)
        buf_printf(b, "%s%s", i ? " " : "", r->values[i]);
    if (r->n_values > 8)
        buf_printf(b, " and %u more", r->n_values - 8);
    buf_char(b, ']');
}

struct str requirement_format(const struct requirement *r, struct arena *a)
{
    CLEANUP(buf_release) struct buf b = BUF_INIT;
    buf_cstr(&b, strcmp(r->key, REQUIREMENT_FIELD_NAME) == 0 ? "metadata.name" : r->key);
    if (has_bounds(r)) {
        if (r->has_gte)
            buf_printf(&b, " >= %lld", (long long)r->gte);
        if (r->has_lte)
            buf_printf(&b, "%s <= %lld", r->has_gte ? " and" : "", (long long)r->lte);
        if (r->n_values) {
            buf_cstr(&b, " NotIn ");
            add_values_text(&b, r);
        }
    } else if (r->n_values) {
        buf_cstr(&b, r->complement ? " NotIn " : " In ");
        add_values_text(&b, r);
    } else {
        buf_cstr(&b, r->complement ? " Exists" : " DoesNotExist");
    }
    return arena_str(a, buf_view(&b));
}

bool label_is_well_known(const char *key)
{
    static const char *const names[] = {
        LABEL_ZONE,
        LABEL_REGION,
        LABEL_INSTANCE_TYPE,
        LABEL_ARCH,
        LABEL_OS,
        LABEL_CAPACITY_TYPE,
        LABEL_HOSTNAME,
        "node.kubernetes.io/windows-build",
        "topology.k8s.aws/zone-id",
    };
    static const char *const prefixes[] = {
        "karpenter.k8s.aws/",
        "karpenter.k8s.gcp/",
        "cloud.google.com/",
        "weft.sh/instance-",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], key) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (str_has_prefix(str_from(key), str_from(prefixes[i])))
            return true;
    return false;
}
