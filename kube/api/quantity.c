/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/quantity.h"

#include "base/num.h"

struct suffix {
    const char *text;
    int8_t exponent; /* of ten, or of 2^10 */
    bool binary;
};

static const struct suffix suffixes[] = {
    {"", 0, false},   {"n", -9, false}, {"u", -6, false}, {"m", -3, false},
    {"k", 3, false},  {"M", 6, false},  {"G", 9, false},  {"T", 12, false},
    {"P", 15, false}, {"E", 18, false}, {"Ki", 1, true},  {"Mi", 2, true},
    {"Gi", 3, true},  {"Ti", 4, true},  {"Pi", 5, true},  {"Ei", 6, true},
};

static int malformed(struct str s, struct err *err)
{
    struct str shown = str_sub(s, 0, 40);
    return err_set(err, ERR_INVALID, "'%.*s' is not a quantity such as 500m, 2 or 1Gi",
                   STR_ARG(shown));
}

/* mantissa * 10^exponent * 1024^binary; digits beyond what 128 bits hold are folded into a last
 * digit of 1, since everything rounds up. */
struct quantity {
    bool negative;
    unsigned __int128 mantissa;
    int64_t exponent;
    unsigned binary;
};

static bool parse_digits(struct str s, struct quantity *q, size_t *ret_end)
{
    enum { DIGITS_MAX = 27 };
    bool point = false, sticky = false;
    unsigned digits = 0, kept = 0;
    size_t i = 0;
    for (; i < s.len && ((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] == '.' && !point)); i++) {
        if (s.p[i] == '.') {
            point = true;
            continue;
        }
        unsigned digit = (unsigned)(s.p[i] - '0');
        digits++;
        if (kept < DIGITS_MAX) {
            q->mantissa = q->mantissa * 10 + digit;
            kept += q->mantissa != 0;
            q->exponent -= point;
        } else {
            sticky |= digit != 0;
            q->exponent += !point;
        }
    }
    if (sticky) {
        q->mantissa = q->mantissa * 10 + 1;
        q->exponent--;
    }
    *ret_end = i;
    return digits > 0;
}

static bool parse_suffix(struct str s, struct quantity *q)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (!str_eq_c(s, suffixes[i].text))
            continue;
        if (suffixes[i].binary)
            q->binary = (unsigned)suffixes[i].exponent;
        else
            q->exponent += suffixes[i].exponent;
        return true;
    }
    int64_t e;
    if (s.len < 2 || (s.p[0] != 'e' && s.p[0] != 'E') ||
        num_parse_i64(str_sub(s, 1, s.len), &e, NULL) < 0)
        return false;
    q->exponent += MAX(MIN(e, (int64_t)1000), (int64_t)-1000);
    return true;
}

/* The value times 10^scale, rounded up (away from zero, as the API server rounds), saturating. */
static int64_t scaled(const struct quantity *q, unsigned scale)
{
    unsigned __int128 v = q->mantissa;
    const unsigned __int128 most = (unsigned __int128)1 << 100;
    for (unsigned i = 0; i < q->binary && v < most; i++)
        v *= 1024;
    int64_t places = q->exponent + (int64_t)scale;
    bool rest = false;
    for (; places < 0 && v; places++) {
        rest |= v % 10 != 0;
        v /= 10;
    }
    v += rest;
    for (; places > 0 && v && v <= INT64_MAX; places--)
        v *= 10;
    if (v > INT64_MAX)
        return q->negative ? INT64_MIN : INT64_MAX;
    return q->negative ? -(int64_t)v : (int64_t)v;
}

static int parse(struct str s, unsigned scale, int64_t *ret, struct err *err)
{
    struct quantity q = {0};
    struct str rest = s;
    if (rest.len && (rest.p[0] == '+' || rest.p[0] == '-')) {
        q.negative = rest.p[0] == '-';
        rest = str_sub(rest, 1, rest.len);
    }
    size_t end;
    if (!parse_digits(rest, &q, &end) || !parse_suffix(str_sub(rest, end, rest.len), &q))
        return malformed(s, err);
    *ret = scaled(&q, scale);
    return 0;
}

int quantity_parse(struct str s, int64_t *ret_units, struct err *err)
{
    return parse(s, 0, ret_units, err);
}

int quantity_parse_milli(struct str s, int64_t *ret_milli, struct err *err)
{
    return parse(s, 3, ret_milli, err);
}

static bool is_cpu(struct str resource)
{
    return str_eq_c(resource, "cpu") || str_has_suffix(resource, STR(".cpu"));
}

int quantity_parse_for(struct str resource, struct str s, int64_t *ret, struct err *err)
{
    return parse(s, is_cpu(resource) ? 3 : 0, ret, err);
}

static bool is_bytes(struct str resource)
{
    return str_has_suffix(resource, STR("memory")) || str_has_suffix(resource, STR("storage")) ||
           str_has_prefix(resource, STR("hugepages-"));
}

struct str quantity_format_for(char out[32], struct str resource, int64_t amount)
{
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    const char *suffix = "";
    if (is_cpu(resource)) {
        suffix = amount % 1000 == 0 ? "" : "m";
        amount = amount % 1000 == 0 ? amount / 1000 : amount;
    } else if (is_bytes(resource)) {
        unsigned power = 0;
        for (; amount && amount % 1024 == 0 && power < 6; power++)
            amount /= 1024;
        suffix = binary[power];
    }
    int n = snprintf(out, 32, "%lld%s", (long long)amount, suffix);
    return (struct str){out, (size_t)n};
}

static const struct resource_amount *find(const struct resource_list *l, const char *name)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].name, name) == 0)
            return &l->v[i];
    return NULL;
}

int64_t resource_list_get(const struct resource_list *l, const char *name)
{
    const struct resource_amount *r = find(l, name);
    return r ? r->amount : 0;
}

bool resource_list_has(const struct resource_list *l, const char *name)
{
    return find(l, name) != NULL;
}
