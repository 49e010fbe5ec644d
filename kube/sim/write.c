/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the verbs mean: create, update, the patches, delete. */

#include "base/num.h"
#include "kube/sim/api.h"
#include "kube/sim/tree.h"

static void conflict(struct answer *ret, const struct item *it)
{
    answer_fail(ret, 409, "Conflict",
                "Operation cannot be fulfilled on %s \"%s\": the object has been modified; please "
                "apply your "
                "changes to the latest version and try again",
                it->res->plural, it->name);
}

/* kind and apiVersion may be left out; they may not be another's. */
static bool check_type(const struct request *r, const struct json *root, struct answer *ret)
{
    char api_version[256];
    const struct resource *res = r->res;
    struct str kind = json_text(json_get(root, "kind")),
               version = json_text(json_get(root, "apiVersion"));
    snprintf(api_version, sizeof(api_version), "%s%s%s", res->group, *res->group ? "/" : "",
             res->version);
    if (root->type != JSON_OBJECT || (kind.len && !str_eq_c(kind, res->kind)) ||
        (version.len && !str_eq_c(version, api_version))) {
        answer_fail(ret, 400, "BadRequest", "the object provided is not a %s %s", api_version,
                    res->kind);
        return false;
    }
    return true;
}

static void set_type(struct version *v, const struct resource *res)
{
    char api_version[256];
    snprintf(api_version, sizeof(api_version), "%s%s%s", res->group, *res->group ? "/" : "",
             res->version);
    tree_cstr(&v->arena, v->root, "kind", res->kind);
    tree_cstr(&v->arena, v->root, "apiVersion", api_version);
}

/* ---- Create ---- */

/* What admission and strategies do to a new object. */
static void admit(struct request *r, struct version *v)
{
    struct json *meta = tree_object(&v->arena, v->root, "metadata");
    set_type(v, r->res);
    if (r->res->namespaced)
        tree_str(&v->arena, meta, "namespace", r->namespace_);
    static const char *const dropped[] = {"uid",
                                          "resourceVersion",
                                          "creationTimestamp",
                                          "deletionTimestamp",
                                          "generation",
                                          "deletionGracePeriodSeconds",
                                          "managedFields"};
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        tree_drop(meta, dropped[i]);
    struct sim *s = r->res->sim;
    if (r->res->status && r->res != s->nodes)
        tree_drop(v->root, "status");
    if (r->res == s->pods)
        tree_cstr(&v->arena, tree_object(&v->arena, v->root, "status"), "phase", "Pending");
}

static void create_from(struct request *r, const struct json *body, struct answer *ret)
{
    struct err err = ERR_INIT;
    struct sim *s = r->res->sim;
    struct str named = json_text(json_at(body, "metadata", "namespace", NULL));
    if (!check_type(r, body, ret))
        return;
    if (r->res->namespaced && named.len && !str_eq(named, r->namespace_)) {
        answer_fail(ret, 400, "BadRequest",
                    "the namespace of the provided object does not match the namespace sent on the "
                    "request");
        return;
    }
    if (r->res->namespaced && !store_find(s->namespaces, STR_NONE, r->namespace_)) {
        answer_fail(ret, 404, "NotFound", "namespaces \"%.*s\" not found", STR_ARG(r->namespace_));
        return;
    }
    struct version *v = version_new();
    v->root = json_copy(&v->arena, body);
    admit(r, v);
    struct item *it = store_create(r->res, v, &err);
    if (it)
        answer_object(ret, 201, it->now);
    else if (err.code == ERR_EXISTS)
        answer_fail(ret, 409, "AlreadyExists", "%s", err.msg);
    else
        answer_fail(ret, 422, "Invalid", "%s", err.msg);
}

/* ---- Update and patch ---- */

/* NodeClaims are written once (their CRD says so). */
static bool immutable_spec(const struct resource *r)
{
    return strcmp(r->plural, "nodeclaims") == 0 && strcmp(r->group, "karpenter.sh") == 0;
}

static void keep_member(struct version *v, const struct json *old, const char *key)
{
    const struct json *value = json_get(old, key);
    if (value)
        tree_set(&v->arena, v->root, key, json_copy(&v->arena, value));
    else
        tree_drop(v->root, key);
}

/* A write to an object leaves its status, one to its status everything else. */
static void keep_other_half(struct request *r, struct item *it, struct version *v)
{
    const struct json *old = it->now->root;
    if (!r->res->status)
        return;
    if (!str_eq_c(r->subresource, "status")) {
        keep_member(v, old, "status");
        return;
    }
    const struct json *status = json_get(v->root, "status");
    struct json *root = json_copy(&v->arena, old);
    if (status)
        tree_set(&v->arena, root, "status", json_copy(&v->arena, status));
    else
        tree_drop(root, "status");
    v->root = root;
}

/* Only the server marks an object as being deleted. */
static void keep_deletion(struct item *it, struct version *v)
{
    static const char *const kept[] = {"deletionTimestamp", "deletionGracePeriodSeconds"};
    struct json *meta = tree_object(&v->arena, v->root, "metadata");
    const struct json *old = json_get(it->now->root, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        const struct json *value = json_get(old, kept[i]);
        if (value)
            tree_set(&v->arena, meta, kept[i], json_copy(&v->arena, value));
        else
            tree_drop(meta, kept[i]);
    }
    tree_drop(meta, "managedFields");
}

static void write_over(struct request *r, struct item *it, struct version *v, struct answer *ret)
{
    struct str uid = json_text(json_at(v->root, "metadata", "uid", NULL));
    struct str version = json_text(json_at(v->root, "metadata", "resourceVersion", NULL));
    char now[24];
    snprintf(now, sizeof(now), "%llu", (unsigned long long)it->now->number);
    if (!check_type(r, v->root, ret)) {
        version_unref(v);
        return;
    }
    if ((uid.len && !str_eq_c(uid, it->uid)) || (version.len && !str_eq_c(version, now))) {
        conflict(ret, it);
        version_unref(v);
        return;
    }
    set_type(v, r->res);
    keep_other_half(r, it, v);
    keep_deletion(it, v);
    const struct json *spec = json_get(v->root, "spec"), *old = json_get(it->now->root, "spec");
    if (immutable_spec(r->res) && (!spec || !old || !json_equal(spec, old))) {
        answer_fail(ret, 422, "Invalid",
                    "%s \"%s\" is invalid: spec: Invalid value: spec is immutable", r->res->kind,
                    it->name);
        version_unref(v);
        return;
    }
    item_ref(it);
    store_commit(it, v);
    answer_object(ret, 200, it->now);
    item_unref(it);
}

static void handle_update(struct request *r, struct item *it, struct answer *ret)
{
    struct json *body = request_json(r, ret);
    if (!body)
        return;
    struct str name = json_text(json_at(body, "metadata", "name", NULL));
    if (!str_eq(name, r->name)) {
        answer_fail(ret, 400, "BadRequest",
                    "the name of the object (%.*s) does not match the name on the URL (%.*s)",
                    STR_ARG(name), STR_ARG(r->name));
        return;
    }
    struct version *v = version_new();
    v->root = json_copy(&v->arena, body);
    write_over(r, it, v, ret);
}

enum patch_kind { PATCH_IS_MERGE, PATCH_IS_APPLY, PATCH_IS_JSON, PATCH_IS_UNKNOWN };

static enum patch_kind patch_kind_of(struct str content_type)
{
    struct str type = str_trim(
        str_sub(content_type, 0, MIN(str_find_char(content_type, ';', 0), content_type.len)));
    if (str_eq_c(type, "application/merge-patch+json"))
        return PATCH_IS_MERGE;
    if (str_eq_c(type, "application/json-patch+json"))
        return PATCH_IS_JSON;
    if (str_eq_c(type, "application/apply-patch+yaml") ||
        str_eq_c(type, "application/apply-patch+json") ||
        str_eq_c(type, "application/strategic-merge-patch+json"))
        return PATCH_IS_APPLY;
    return PATCH_IS_UNKNOWN;
}

static void handle_patch(struct request *r, struct item *it, struct answer *ret)
{
    struct err err = ERR_INIT;
    enum patch_kind kind = patch_kind_of(r->content_type);
    struct json *body = request_json(r, ret);
    if (!body)
        return;
    if (kind == PATCH_IS_UNKNOWN || (kind != PATCH_IS_JSON && body->type != JSON_OBJECT)) {
        answer_fail(ret, 415, "UnsupportedMediaType",
                    "the body of the request was in an unknown format: %.*s",
                    STR_ARG(r->content_type));
        return;
    }
    struct version *v = version_new();
    if (kind == PATCH_IS_JSON) {
        v->root = json_copy(&v->arena, it->now->root);
        if (tree_json_patch(&v->arena, &v->root, body, &err) < 0) {
            answer_fail(ret, 422, "Invalid", "%s", err.msg);
            version_unref(v);
            return;
        }
    } else if (kind == PATCH_IS_MERGE) {
        v->root = json_copy(&v->arena, json_merge_patch(&r->arena, it->now->root, body));
    } else {
        v->root = json_copy(&v->arena, tree_apply(&r->arena, it->now->root, body));
    }
    write_over(r, it, v, ret);
}

/* Server-side apply of what is not there creates it. */
static void apply_new(struct request *r, struct answer *ret)
{
    struct json *body = request_json(r, ret);
    if (!body)
        return;
    tree_str(&r->arena, tree_object(&r->arena, body, "metadata"), "name", r->name);
    create_from(r, body, ret);
}

/* ---- Delete ---- */

static bool preconditions_hold(const struct item *it, const struct json *options)
{
    const struct json *p = json_get(options, "preconditions");
    struct str uid = json_text(json_get(p, "uid")),
               version = json_text(json_get(p, "resourceVersion"));
    char now[24];
    snprintf(now, sizeof(now), "%llu", (unsigned long long)it->now->number);
    return (!uid.len || str_eq_c(uid, it->uid)) && (!version.len || str_eq_c(version, now));
}

/* Children of an orphaning delete keep living: they lose the owner. */
static void orphan_children(struct item *it)
{
    struct family *f = store_family(it);
    struct vec_item children = {0};
    for (size_t i = 0; f && i < f->children.len; i++)
        vec_push(&children, item_ref(f->children.v[i]));
    vec_each(&children, struct item **, child) {
        struct version *v = version_edit(*child);
        tree_drop(tree_get(v->root, "metadata"), "ownerReferences");
        store_commit(*child, v);
        item_unref(*child);
    }
    vec_release(&children);
}

void handle_delete_options(struct request *r, struct item *it, const struct json *options,
                           struct answer *ret)
{
    int64_t grace = json_i64(json_get(options, "gracePeriodSeconds"), -1);
    struct str policy = json_text(json_get(options, "propagationPolicy"));
    num_parse_range(request_query(r, "gracePeriodSeconds"), 0, INT32_MAX, &grace, NULL);
    if (request_query(r, "propagationPolicy").len)
        policy = request_query(r, "propagationPolicy");
    if (!preconditions_hold(it, options)) {
        answer_fail(
            ret, 409, "Conflict",
            "Precondition failed: UID or resourceVersion in precondition does not match %s \"%s\"",
            it->res->plural, it->name);
        return;
    }
    item_ref(it);
    if (str_eq_c(policy, "Orphan"))
        orphan_children(it);
    if (store_delete(it, grace))
        answer_success(ret, 200);
    else
        answer_object(ret, 200, it->now);
    item_unref(it);
}

static void handle_delete(struct request *r, struct item *it, struct answer *ret)
{
    struct json *options = r->body.len ? request_json(r, ret) : NULL;
    if (!r->body.len || options)
        handle_delete_options(r, it, options, ret);
}

/* ---- Dispatch ---- */

static bool dispatch_subresource(struct sim *s, struct request *r, struct item *it,
                                 struct answer *ret)
{
    bool post = str_eq_c(r->method, "POST");
    if (str_eq_c(r->subresource, "scale") && r->res->scale && !post)
        handle_scale(s, r, it, ret);
    else if (str_eq_c(r->subresource, "eviction") && r->res == s->pods && post)
        handle_eviction(s, r, it, ret);
    else if (str_eq_c(r->subresource, "binding") && r->res == s->pods && post)
        handle_binding(s, r, it, ret);
    else
        return false;
    return true;
}

static void handle_named(struct sim *s, struct request *r, struct answer *ret)
{
    struct item *it = store_find(r->res, r->namespace_, r->name);
    bool put = str_eq_c(r->method, "PUT"), patch = str_eq_c(r->method, "PATCH");
    bool status = str_eq_c(r->subresource, "status") && r->res->status;
    if (!it && patch && !r->subresource.len && patch_kind_of(r->content_type) == PATCH_IS_APPLY &&
        !str_eq_c(r->content_type, "application/strategic-merge-patch+json")) {
        apply_new(r, ret);
        return;
    }
    if (!it) {
        answer_not_found(ret, r);
        return;
    }
    if (r->subresource.len && !status) {
        if (!dispatch_subresource(s, r, it, ret))
            answer_fail(ret, 404, "NotFound", "the server could not find the requested resource");
        return;
    }
    if (put)
        handle_update(r, it, ret);
    else if (patch)
        handle_patch(r, it, ret);
    else if (str_eq_c(r->method, "DELETE") && !status)
        handle_delete(r, it, ret);
    else
        answer_fail(ret, 405, "MethodNotAllowed",
                    "the server does not allow this method on the requested resource");
}

void handle_write(struct sim *s, struct request *r, struct answer *ret)
{
    if (!r->res) {
        answer_not_found(ret, r);
        return;
    }
    if (r->name.len) {
        handle_named(s, r, ret);
        return;
    }
    if (!str_eq_c(r->method, "POST") || (r->res->namespaced && !r->namespace_.len)) {
        answer_fail(ret, 405, "MethodNotAllowed",
                    "the server does not allow this method on the requested resource");
        return;
    }
    struct json *body = request_json(r, ret);
    if (body)
        create_from(r, body, ret);
}

void handle_read(struct sim *s, struct request *r, struct answer *ret)
{
    if (!r->res) {
        handle_discovery(s, r->path, ret);
        return;
    }
    if (!r->name.len) {
        handle_list(s, r, ret);
        return;
    }
    struct item *it = store_find(r->res, r->namespace_, r->name);
    if (!it)
        answer_not_found(ret, r);
    else if (str_eq_c(r->subresource, "scale") && r->res->scale)
        handle_scale(s, r, it, ret);
    else if (!r->subresource.len || (str_eq_c(r->subresource, "status") && r->res->status))
        answer_object(ret, 200, it->now);
    else
        answer_fail(ret, 404, "NotFound", "the server could not find the requested resource");
}
