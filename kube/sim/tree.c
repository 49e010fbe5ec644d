/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* See tree.h. */

#include "kube/sim/tree.h"

#include "base/num.h"
#include "base/time.h"

struct json *tree_get(struct json *object, const char *key)
{
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    for (size_t i = 0; i < object->n; i++)
        if (str_eq_c(object->members[i].key, key))
            return object->members[i].value;
    return NULL;
}

void tree_set(struct arena *a, struct json *object, const char *key, struct json *value)
{
    json_object_set(a, object, str_from(key), value);
}

struct json *tree_object(struct arena *a, struct json *object, const char *key)
{
    struct json *j = tree_get(object, key);
    if (!j || j->type != JSON_OBJECT) {
        j = json_new_object(a);
        tree_set(a, object, key, j);
    }
    return j;
}

struct json *tree_array(struct arena *a, struct json *object, const char *key)
{
    struct json *j = tree_get(object, key);
    if (!j || j->type != JSON_ARRAY) {
        j = json_new_array(a);
        tree_set(a, object, key, j);
    }
    return j;
}

void tree_str(struct arena *a, struct json *object, const char *key, struct str value)
{
    tree_set(a, object, key, json_new_string(a, value));
}

void tree_cstr(struct arena *a, struct json *object, const char *key, const char *value)
{
    tree_str(a, object, key, str_from(value));
}

void tree_i64(struct arena *a, struct json *object, const char *key, int64_t value)
{
    tree_set(a, object, key, json_new_i64(a, value));
}

void tree_bool(struct arena *a, struct json *object, const char *key, bool value)
{
    tree_set(a, object, key, json_new_bool(a, value));
}

void tree_time(struct arena *a, struct json *object, const char *key, int64_t value)
{
    char text[40];
    tree_str(a, object, key, time_format(text, value));
}

static void drop_member(struct json *object, size_t i)
{
    memmove(&object->members[i], &object->members[i + 1],
            (object->n - i - 1) * sizeof(*object->members));
    object->n--;
}

void tree_drop(struct json *object, const char *key)
{
    if (!object || object->type != JSON_OBJECT)
        return;
    for (size_t i = 0; i < object->n; i++) {
        if (str_eq_c(object->members[i].key, key)) {
            drop_member(object, i);
            return;
        }
    }
}

void tree_drop_item(struct json *array, size_t i)
{
    memmove(&array->items[i], &array->items[i + 1], (array->n - i - 1) * sizeof(struct json *));
    array->n--;
}

struct json *tree_add_object(struct arena *a, struct json *array)
{
    struct json *j = json_new_object(a);
    json_array_add(a, array, j);
    return j;
}

static struct json *find_by(struct json *array, const char *key, struct str value)
{
    for (size_t i = 0; i < array->n; i++)
        if (str_eq(json_text(json_get(array->items[i], key)), value))
            return array->items[i];
    return NULL;
}

static bool set_text(struct arena *a, struct json *object, const char *key, const char *value)
{
    if (!value) {
        bool had = tree_get(object, key) != NULL;
        tree_drop(object, key);
        return had;
    }
    if (tree_get(object, key) && str_eq_c(json_text(tree_get(object, key)), value))
        return false;
    tree_cstr(a, object, key, value);
    return true;
}

bool tree_condition(struct arena *a, struct json *root, const char *type, const char *status,
                    const char *reason, const char *message, int64_t wall)
{
    struct json *list = tree_array(a, tree_object(a, root, "status"), "conditions");
    struct json *c = find_by(list, "type", str_from(type));
    if (!c) {
        c = tree_add_object(a, list);
        tree_cstr(a, c, "type", type);
    }
    bool moved = set_text(a, c, "status", status);
    if (moved)
        tree_time(a, c, "lastTransitionTime", wall);
    bool reasoned = set_text(a, c, "reason", reason);
    bool told = set_text(a, c, "message", message);
    return moved || reasoned || told;
}

/* ---- RFC 6902 ---- */

/* Unescapes one token of a JSON pointer: ~1 is a slash, ~0 a tilde. */
static struct str pointer_token(struct arena *a, struct str raw)
{
    char *out = arena_bytes(a, raw.len + 1);
    size_t n = 0;
    if (!out)
        return STR_NONE;
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.p[i];
        if (c == '~' && i + 1 < raw.len) {
            i++;
            c = raw.p[i] == '1' ? '/' : '~';
        }
        out[n++] = c;
    }
    return (struct str){out, n};
}

/* Where a pointer leads: the container of its last token. */
struct place {
    struct json *parent; /* NULL: the root itself */
    struct str token;
};

static bool index_of(struct str token, size_t n, size_t *ret)
{
    int64_t i;
    if (num_parse_range(token, 0, (int64_t)n - 1, &i, NULL) < 0)
        return false;
    *ret = (size_t)i;
    return true;
}

static struct json *child_of(struct json *parent, struct str token)
{
    if (parent->type == JSON_OBJECT) {
        for (size_t i = 0; i < parent->n; i++)
            if (str_eq(parent->members[i].key, token))
                return parent->members[i].value;
        return NULL;
    }
    size_t i;
    return parent->type == JSON_ARRAY && index_of(token, parent->n, &i) ? parent->items[i] : NULL;
}

static int resolve(struct arena *a, struct json *root, struct str path, struct place *ret,
                   struct err *err)
{
    *ret = (struct place){0};
    if (path.len == 0)
        return 0;
    if (path.p[0] != '/')
        return err_set(err, ERR_INVALID, "json patch: path '%.*s' does not begin with a slash",
                       STR_ARG(path));
    struct json *at = root;
    struct str rest = str_sub(path, 1, path.len);
    for (;;) {
        size_t slash = str_find_char(rest, '/', 0);
        struct str token = pointer_token(a, str_sub(rest, 0, MIN(slash, rest.len)));
        if (slash == SIZE_MAX) {
            *ret = (struct place){at, token};
            return 0;
        }
        at = child_of(at, token);
        if (!at || (at->type != JSON_OBJECT && at->type != JSON_ARRAY))
            return err_set(err, ERR_INVALID, "json patch: there is no '%.*s'", STR_ARG(path));
        rest = str_sub(rest, slash + 1, rest.len);
    }
}

static struct json *look(struct json *root, const struct place *p)
{
    return p->parent ? child_of(p->parent, p->token) : root;
}

static int insert(struct arena *a, struct json **root, const struct place *p, struct json *value,
                  struct err *err)
{
    if (!p->parent) {
        *root = value;
        return 0;
    }
    if (p->parent->type == JSON_OBJECT) {
        json_object_set(a, p->parent, p->token, value);
        return 0;
    }
    size_t i = p->parent->n;
    if (!str_eq_c(p->token, "-") && !index_of(p->token, p->parent->n + 1, &i))
        return err_set(err, ERR_INVALID, "json patch: no index '%.*s'", STR_ARG(p->token));
    json_array_add(a, p->parent, value);
    memmove(&p->parent->items[i + 1], &p->parent->items[i],
            (p->parent->n - 1 - i) * sizeof(struct json *));
    p->parent->items[i] = value;
    return 0;
}

static int take(struct json *root, const struct place *p, struct json **ret, struct err *err)
{
    struct json *found = look(root, p);
    if (!found || !p->parent)
        return err_set(err, ERR_INVALID, "json patch: nothing to remove at '%.*s'",
                       STR_ARG(p->token));
    *ret = found;
    if (p->parent->type == JSON_OBJECT) {
        for (size_t i = 0; i < p->parent->n; i++) {
            if (p->parent->members[i].value == found) {
                drop_member(p->parent, i);
                break;
            }
        }
        return 0;
    }
    size_t i = 0;
    if (index_of(p->token, p->parent->n, &i))
        tree_drop_item(p->parent, i);
    return 0;
}

static int patch_one(struct arena *a, struct json **root, const struct json *op, struct err *err)
{
    struct str what = json_text(json_get(op, "op"));
    struct place to, from;
    struct json *value = json_get(op, "value") ? json_copy(a, json_get(op, "value")) : NULL;
    struct json *old = NULL;
    if (resolve(a, *root, json_text(json_get(op, "path")), &to, err) < 0)
        return -1;
    bool moves = str_eq_c(what, "move"), copies = str_eq_c(what, "copy");
    if (moves || copies) {
        if (resolve(a, *root, json_text(json_get(op, "from")), &from, err) < 0)
            return -1;
        const struct json *source = look(*root, &from);
        if (!source)
            return err_set(err, ERR_INVALID, "json patch: '%.*s' copies from nothing",
                           STR_ARG(what));
        value = json_copy(a, source);
        if (moves && take(*root, &from, &old, err) < 0)
            return -1;
        return insert(a, root, &to, value, err);
    }
    if (str_eq_c(what, "remove"))
        return take(*root, &to, &old, err);
    if (!value)
        return err_set(err, ERR_INVALID, "json patch: '%.*s' without a value", STR_ARG(what));
    if (str_eq_c(what, "add"))
        return insert(a, root, &to, value, err);
    if (str_eq_c(what, "test")) {
        const struct json *found = look(*root, &to);
        if (!found || !json_equal(found, value))
            return err_set(err, ERR_INVALID, "json patch: test of '%.*s' failed",
                           STR_ARG(to.token));
        return 0;
    }
    if (!str_eq_c(what, "replace"))
        return err_set(err, ERR_INVALID, "json patch: no operation '%.*s'", STR_ARG(what));
    if (to.parent && take(*root, &to, &old, err) < 0)
        return -1;
    return insert(a, root, &to, value, err);
}

int tree_json_patch(struct arena *a, struct json **root, const struct json *patch, struct err *err)
{
    if (!patch || patch->type != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "json patch: not a list of operations");
    for (size_t i = 0; i < patch->n; i++)
        if (patch_one(a, root, patch->items[i], err) < 0)
            return -1;
    return 0;
}

/* ---- Apply ---- */

static const struct {
    const char *list, *key;
} merge_keys[] = {
    {"conditions", "type"},
    {"containers", "name"},
    {"initContainers", "name"},
    {"volumes", "name"},
    {"env", "name"},
    {"ports", "containerPort"},
    {"ownerReferences", "uid"},
    {"volumeMounts", "mountPath"},
    {"resourceClaims", "name"},
};

static const char *merge_key(struct str list)
{
    for (size_t i = 0; i < ARRAY_LEN(merge_keys); i++)
        if (str_eq_c(list, merge_keys[i].list))
            return merge_keys[i].key;
    return NULL;
}

static struct json *apply_list(struct arena *a, const struct json *target, const struct json *patch,
                               const char *key)
{
    struct json *out = json_copy(a, target);
    for (size_t i = 0; i < patch->n; i++) {
        struct str id = json_text(json_get(patch->items[i], key));
        size_t at = 0;
        while (at < out->n && !str_eq(json_text(json_get(out->items[at], key)), id))
            at++;
        if (at < out->n && id.p)
            out->items[at] = tree_apply(a, out->items[at], patch->items[i]);
        else
            json_array_add(a, out, json_copy(a, patch->items[i]));
    }
    return out;
}

/* finalizers is a set: applying adds. */
static struct json *apply_set(struct arena *a, const struct json *target, const struct json *patch)
{
    struct json *out = json_copy(a, target);
    for (size_t i = 0; i < patch->n; i++) {
        size_t at = 0;
        while (at < out->n && !json_equal(out->items[at], patch->items[i]))
            at++;
        if (at == out->n)
            json_array_add(a, out, json_copy(a, patch->items[i]));
    }
    return out;
}

static struct json *apply_member(struct arena *a, struct str name, const struct json *old,
                                 const struct json *v)
{
    const char *key = merge_key(name);
    bool lists = old && old->type == JSON_ARRAY && v->type == JSON_ARRAY;
    if (lists && key)
        return apply_list(a, old, v, key);
    if (lists && str_eq_c(name, "finalizers"))
        return apply_set(a, old, v);
    return tree_apply(a, old, v);
}

struct json *tree_apply(struct arena *a, const struct json *target, const struct json *patch)
{
    if (patch->type != JSON_OBJECT)
        return json_copy(a, patch);
    bool merge = target && target->type == JSON_OBJECT;
    struct json *out = merge ? json_copy(a, target) : json_new_object(a);
    for (size_t i = 0; i < patch->n; i++) {
        struct str name = patch->members[i].key;
        const struct json *v = patch->members[i].value;
        char key[256];
        if (v->type == JSON_NULL) {
            if (name.len < sizeof(key)) {
                snprintf(key, sizeof(key), "%.*s", STR_ARG(name));
                tree_drop(out, key);
            }
            continue;
        }
        json_object_set(a, out, name, apply_member(a, name, json_get_str(out, name), v));
    }
    return out;
}
