/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/selector.h"

#include "base/num.h"
#include "base/vec.h"
#include "kube/api/decode.h"

static const char *const op_names[] = {"In",  "NotIn", "Exists", "DoesNotExist", "Gt", "Lt",
                                       "Gte", "Lte",   NULL};

const char *selector_op_name(enum selector_op op)
{
    return op < SELECTOR_OP_INVALID ? op_names[op] : "?";
}

static bool compares(enum selector_op op, const struct string_list *values, const char *value)
{
    int64_t have, want;
    if (values->n != 1 || num_parse_i64(str_from(value), &have, NULL) < 0 ||
        num_parse_i64(str_from(values->v[0]), &want, NULL) < 0)
        return false;
    switch (op) {
    case SELECTOR_GT:
        return have > want;
    case SELECTOR_LT:
        return have < want;
    case SELECTOR_GTE:
        return have >= want;
    default:
        return have <= want;
    }
}

bool selector_requirement_matches(const struct selector_requirement *r, const struct labels *labels)
{
    const char *value = labels_get(labels, r->key);
    switch (r->op) {
    case SELECTOR_IN:
        return value && string_list_has(&r->values, value);
    case SELECTOR_NOT_IN:
        return !value || !string_list_has(&r->values, value);
    case SELECTOR_EXISTS:
        return value != NULL;
    case SELECTOR_DOES_NOT_EXIST:
        return value == NULL;
    case SELECTOR_GT:
    case SELECTOR_LT:
    case SELECTOR_GTE:
    case SELECTOR_LTE:
        return value && compares(r->op, &r->values, value);
    case SELECTOR_OP_INVALID:
        break;
    }
    return false;
}

bool selector_matches(const struct label_selector *s, const struct labels *labels)
{
    if (!s)
        return false;
    for (uint32_t i = 0; i < s->match_labels.n; i++) {
        const char *value = labels_get(labels, s->match_labels.v[i].key);
        if (!value || strcmp(value, s->match_labels.v[i].value) != 0)
            return false;
    }
    for (uint32_t i = 0; i < s->n_requirements; i++)
        if (!selector_requirement_matches(&s->requirements[i], labels))
            return false;
    return true;
}

/* ---- The string form ---- */

struct cursor {
    struct str rest;
    struct arena *arena;
};

static void skip_space(struct cursor *c)
{
    c->rest = str_trim(c->rest);
}

static bool take(struct cursor *c, const char *text)
{
    skip_space(c);
    if (!str_has_prefix(c->rest, str_from(text)))
        return false;
    c->rest = str_sub(c->rest, strlen(text), c->rest.len);
    return true;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
}

static struct str take_word(struct cursor *c)
{
    skip_space(c);
    size_t n = 0;
    while (n < c->rest.len && is_word_char(c->rest.p[n]))
        n++;
    struct str word = str_sub(c->rest, 0, n);
    c->rest = str_sub(c->rest, n, c->rest.len);
    return word;
}

VEC_DEFINE(vec_text, const char *);

static int finish_values(struct cursor *c, const struct vec_text *found,
                         struct selector_requirement *r, struct err *err)
{
    const char **v = ARENA_NEW_ARRAY(c->arena, const char *, found->len);
    if (!v)
        return err_set(err, ERR_CAPACITY, "the selector is too long");
    if (found->len)
        memcpy(v, found->v, found->len * sizeof(*v));
    r->values = (struct string_list){v, (uint32_t)found->len};
    return 0;
}

static int take_set(struct cursor *c, struct selector_requirement *r, struct err *err)
{
    struct vec_text found = {0};
    int code = -1;
    if (!take(c, "(")) {
        err_set(err, ERR_INVALID, "'(' is missing after in or notin");
    } else {
        do {
            struct str word = take_word(c);
            vec_push(&found, arena_cstr(c->arena, word));
        } while (take(c, ","));
        if (take(c, ")"))
            code = finish_values(c, &found, r, err);
        else
            err_set(err, ERR_INVALID, "')' is missing after a list of values");
    }
    vec_release(&found);
    return code;
}

static int take_value(struct cursor *c, struct selector_requirement *r, struct err *err)
{
    struct vec_text one = {0};
    vec_push(&one, arena_cstr(c->arena, take_word(c)));
    int code = finish_values(c, &one, r, err);
    vec_release(&one);
    return code;
}

static int take_requirement(struct cursor *c, struct selector_requirement *r, struct err *err)
{
    bool absent = take(c, "!");
    struct str key = take_word(c);
    if (key.len == 0)
        return err_set(err, ERR_INVALID, "a label key is missing");
    r->key = arena_cstr(c->arena, key);
    r->op = absent ? SELECTOR_DOES_NOT_EXIST : SELECTOR_EXISTS;
    if (absent)
        return 0;
    if (take(c, "!=")) {
        r->op = SELECTOR_NOT_IN;
        return take_value(c, r, err);
    }
    if (take(c, "==") || take(c, "=")) {
        r->op = SELECTOR_IN;
        return take_value(c, r, err);
    }
    if (take(c, "notin")) {
        r->op = SELECTOR_NOT_IN;
        return take_set(c, r, err);
    }
    if (take(c, "in")) {
        r->op = SELECTOR_IN;
        return take_set(c, r, err);
    }
    return 0;
}

int selector_parse(struct arena *a, struct str text, struct label_selector *ret, struct err *err)
{
    enum { REQUIREMENTS_MAX = 1000 };
    struct cursor c = {text, a};
    VEC_DEFINE(vec_requirement, struct selector_requirement);
    struct vec_requirement found = {0};
    int code = 0;
    skip_space(&c);
    while (code == 0 && c.rest.len) {
        struct selector_requirement r = {0};
        code = take_requirement(&c, &r, err);
        if (code < 0)
            break;
        vec_push(&found, r);
        skip_space(&c);
        if (c.rest.len &&
            (!take(&c, ",") || found.len >= REQUIREMENTS_MAX || str_trim(c.rest).len == 0))
            code = err_set(err, ERR_INVALID, "'%.*s' cannot be read in a label selector",
                           STR_ARG(str_sub(c.rest, 0, 20)));
    }
    if (code == 0) {
        struct selector_requirement *v = ARENA_NEW_ARRAY(a, struct selector_requirement, found.len);
        if (v && found.len)
            memcpy(v, found.v, found.len * sizeof(*v));
        *ret = (struct label_selector){.requirements = v, .n_requirements = (uint32_t)found.len};
    }
    vec_release(&found);
    return code;
}

/* ---- Tables ---- */

const struct field fields_selector_requirement[] = {
    F(FIELD_TEXT, struct selector_requirement, key, "key"),
    F_ENUM(struct selector_requirement, op, "operator", op_names),
    F(FIELD_STRINGS, struct selector_requirement, values, "values"),
    F(FIELD_INT32, struct selector_requirement, min_values, "minValues"),
    F_END,
};

const struct field fields_label_selector[] = {
    F(FIELD_LABELS, struct label_selector, match_labels, "matchLabels"),
    F_LIST(struct label_selector, requirements, n_requirements, "matchExpressions",
           struct selector_requirement, fields_selector_requirement),
    F_END,
};
