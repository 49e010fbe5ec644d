/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What exists: /api, /apis, /api/v1, /apis/GROUP, /apis/GROUP/VERSION, /version, /healthz. */

#include "kube/sim/api.h"

static void resource_entry(struct json_writer *w, const struct resource *r, const char *sub,
                           const char *kind)
{
    char name[256];
    static const char *const verbs[] = {"create", "delete", "get",  "list",
                                        "patch",  "update", "watch"};
    snprintf(name, sizeof(name), "%s%s%s", r->plural, sub ? "/" : "", sub ? sub : "");
    json_w_object(w);
    json_w_kcstr(w, "name", name);
    json_w_kcstr(w, "singularName", "");
    json_w_kbool(w, "namespaced", r->namespaced);
    if (sub && strcmp(sub, "scale") == 0) {
        json_w_kcstr(w, "group", "autoscaling");
        json_w_kcstr(w, "version", "v1");
    }
    json_w_kcstr(w, "kind", kind);
    json_w_karray(w, "verbs");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (!sub || strcmp(verbs[i], "get") == 0 || strcmp(verbs[i], "patch") == 0 ||
            strcmp(verbs[i], "update") == 0)
            json_w_cstr(w, verbs[i]);
    json_w_array_end(w);
    json_w_object_end(w);
}

static bool resource_list(struct sim *s, struct str group, struct str version, struct buf *out)
{
    struct json_writer w;
    char name[256];
    bool any = false;
    snprintf(name, sizeof(name), "%.*s%s%.*s", STR_ARG(group), group.len ? "/" : "",
             STR_ARG(version));
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "kind", "APIResourceList");
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kcstr(&w, "groupVersion", name);
    json_w_karray(&w, "resources");
    vec_each(&s->resources, struct resource **, it) {
        const struct resource *r = *it;
        if (!str_eq_c(group, r->group) || !str_eq_c(version, r->version))
            continue;
        any = true;
        resource_entry(&w, r, NULL, r->kind);
        if (r->status)
            resource_entry(&w, r, "status", r->kind);
        if (r->scale)
            resource_entry(&w, r, "scale", "Scale");
        if (r == s->pods) {
            resource_entry(&w, r, "eviction", "Eviction");
            resource_entry(&w, r, "binding", "Binding");
        }
    }
    json_w_array_end(&w);
    json_w_object_end(&w);
    return any;
}

static void group_version(struct json_writer *w, const struct resource *r)
{
    char name[256];
    snprintf(name, sizeof(name), "%s/%s", r->group, r->version);
    json_w_object(w);
    json_w_kcstr(w, "groupVersion", name);
    json_w_kcstr(w, "version", r->version);
    json_w_object_end(w);
}

static bool first_of(struct sim *s, size_t i, bool version_too)
{
    const struct resource *r = s->resources.v[i];
    for (size_t k = 0; k < i; k++) {
        const struct resource *other = s->resources.v[k];
        if (strcmp(other->group, r->group) == 0 &&
            (!version_too || strcmp(other->version, r->version) == 0))
            return false;
    }
    return true;
}

static void group_entry(struct sim *s, struct json_writer *w, const struct resource *of)
{
    json_w_kcstr(w, "name", of->group);
    json_w_karray(w, "versions");
    for (size_t i = 0; i < s->resources.len; i++)
        if (strcmp(s->resources.v[i]->group, of->group) == 0 && first_of(s, i, true))
            group_version(w, s->resources.v[i]);
    json_w_array_end(w);
    json_w_key(w, STR("preferredVersion"));
    group_version(w, of);
}

static void group_list(struct sim *s, struct buf *out)
{
    struct json_writer w;
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "kind", "APIGroupList");
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_karray(&w, "groups");
    for (size_t i = 0; i < s->resources.len; i++) {
        if (!*s->resources.v[i]->group || !first_of(s, i, false))
            continue;
        json_w_object(&w);
        group_entry(s, &w, s->resources.v[i]);
        json_w_object_end(&w);
    }
    json_w_array_end(&w);
    json_w_object_end(&w);
}

static bool one_group(struct sim *s, struct str group, struct buf *out)
{
    struct json_writer w;
    vec_each(&s->resources, struct resource **, it) {
        if (!group.len || !str_eq_c(group, (*it)->group))
            continue;
        json_writer_init(&w, out, 0);
        json_w_object(&w);
        json_w_kcstr(&w, "kind", "APIGroup");
        json_w_kcstr(&w, "apiVersion", "v1");
        group_entry(s, &w, *it);
        json_w_object_end(&w);
        return true;
    }
    return false;
}

void handle_discovery(struct sim *s, struct str path, struct answer *ret)
{
    struct str part[4] = {0}, one, rest = str_sub(path, 1, path.len);
    size_t n = 0;
    while (n < ARRAY_LEN(part) && str_split(&rest, '/', &one))
        if (one.len)
            part[n++] = one;
    bool apis = n > 0 && str_eq_c(part[0], "apis"), known = true;
    ret->status = 200;
    if (n == 1 &&
        (str_eq_c(part[0], "healthz") || str_eq_c(part[0], "readyz") || str_eq_c(part[0], "livez")))
        buf_cstr(&ret->body, "ok");
    else if (n == 1 && str_eq_c(part[0], "version"))
        buf_cstr(&ret->body, "{\"major\":\"1\",\"minor\":\"34\",\"gitVersion\":\"v1.34.0-sim\"}");
    else if (n == 1 && str_eq_c(part[0], "api"))
        buf_cstr(&ret->body, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}");
    else if (n == 2 && str_eq_c(part[0], "api"))
        known = resource_list(s, STR(""), part[1], &ret->body);
    else if (apis && n == 1)
        group_list(s, &ret->body);
    else if (apis && n == 2)
        known = one_group(s, part[1], &ret->body);
    else if (apis && n == 3)
        known = resource_list(s, part[1], part[2], &ret->body);
    else
        known = false;
    if (!known)
        answer_fail(ret, 404, "NotFound", "the server could not find the requested resource");
}
