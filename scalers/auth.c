/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Resolving parameters. What is watched and how is in auth_store.c. */
#include "scalers/auth.h"

#include "scalers/auth_store.h"

/* One resolution under way. */
struct resolver {
    struct auth_store *store;
    const struct auth_request *request;
    struct auth_lease *lease; /* the new one */
    struct arena *arena;
    bool waiting;
    struct err *err;
};

/* ---- Single values ---- */

/* The value of a key of a Secret or ConfigMap. False: waiting, or failed with err set. */
static bool config_value(struct resolver *r, enum auth_kind kind, const char *name, const char *key,
                         struct str *ret)
{
    struct auth_entry *e = auth_store_entry(r->store, r->lease, kind, r->request->namespace_, name);
    const struct config_data *data = NULL;
    switch (auth_entry_config(e, &data)) {
    case AUTH_WAITING:
        r->waiting = true;
        return false;
    case AUTH_FAILED:
        err_set(r->err, ERR_NOT_FOUND, "%s %s/%s does not exist", auth_kind_name(kind),
                r->request->namespace_, name);
        return false;
    default:
        break;
    }
    const struct data_entry *d = config_data_get(data, key);
    if (!d) {
        err_set(r->err, ERR_NOT_FOUND, "%s %s/%s has no key %s", auth_kind_name(kind),
                r->request->namespace_, name, key);
        return false;
    }
    *ret = d->value;
    return true;
}

static const struct container *find_container(const struct pod_spec *pod, const char *name)
{
    if (!name)
        return pod->n_containers ? &pod->containers[0] : NULL;
    for (uint32_t i = 0; i < pod->n_containers; i++)
        if (!strcmp(pod->containers[i].name, name))
            return &pod->containers[i];
    for (uint32_t i = 0; i < pod->n_init_containers; i++)
        if (!strcmp(pod->init_containers[i].name, name))
            return &pod->init_containers[i];
    return NULL;
}

static bool env_var_value(struct resolver *r, const struct env_var *v, struct str *ret)
{
    if (v->secret && v->secret_key)
        return config_value(r, AUTH_SECRET, v->secret, v->secret_key, ret);
    if (v->config_map && v->config_map_key)
        return config_value(r, AUTH_CONFIG_MAP, v->config_map, v->config_map_key, ret);
    if (!v->value) {
        err_set(r->err, ERR_INVALID, "the environment variable %s is only known inside the pod",
                v->name);
        return false;
    }
    *ret = str_from(v->value);
    return true;
}

/* 1 found, 0 not there, -1 waiting or failed. */
static int env_from_value(struct resolver *r, const struct env_from *from, const char *name,
                          struct str *ret)
{
    const char *prefix = from->prefix ? from->prefix : "";
    size_t len = strlen(prefix);
    if (strncmp(name, prefix, len) != 0)
        return 0;
    enum auth_kind kind = from->secret ? AUTH_SECRET : AUTH_CONFIG_MAP;
    const char *object = from->secret ? from->secret : from->config_map;
    if (!object)
        return 0;
    const struct config_data *data = NULL;
    struct auth_entry *e =
        auth_store_entry(r->store, r->lease, kind, r->request->namespace_, object);
    switch (auth_entry_config(e, &data)) {
    case AUTH_WAITING:
        r->waiting = true;
        return -1;
    case AUTH_FAILED:
        if (from->optional)
            return 0;
        err_set(r->err, ERR_NOT_FOUND, "%s %s/%s does not exist", auth_kind_name(kind),
                r->request->namespace_, object);
        return -1;
    default:
        break;
    }
    const struct data_entry *d = config_data_get(data, name + len);
    if (!d)
        return 0;
    *ret = d->value;
    return 1;
}

/* A variable of a container as the kubelet would set it: env before envFrom, the last of each. */
static bool env_value(struct resolver *r, const char *container_name, const char *name,
                      struct str *ret)
{
    const struct container *c = find_container(r->request->pod, container_name);
    if (!c) {
        err_set(r->err, ERR_NOT_FOUND, "the pod template has no container %s",
                container_name ? container_name : "at all");
        return false;
    }
    for (uint32_t i = c->n_env; i-- > 0;)
        if (!strcmp(c->env[i].name, name))
            return env_var_value(r, &c->env[i], ret);
    for (uint32_t i = c->n_env_from; i-- > 0;) {
        int found = env_from_value(r, &c->env_from[i], name, ret);
        if (found)
            return found > 0;
    }
    err_set(r->err, ERR_NOT_FOUND, "container %s has no environment variable %s", c->name, name);
    return false;
}

/* ---- The authentication ---- */

static void give(struct resolver *r, struct json *out, struct str parameter, struct str value)
{
    struct json *text = json_new_string(r->arena, str_trim(value));
    if (text)
        json_object_set(r->arena, out, parameter, text);
}

static char *member(struct resolver *r, const struct json *j, const char *key)
{
    struct str s = json_text(json_get(j, key));
    return s.len ? arena_cstr(r->arena, s) : NULL;
}

static bool from_list(struct resolver *r, const struct json *list, enum auth_kind kind,
                      struct json *out)
{
    for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
        const char *parameter = member(r, list->items[i], "parameter"),
                   *name = member(r, list->items[i], "name");
        const char *key = member(r, list->items[i], "key");
        struct str value;
        if (!parameter || !name || !key) {
            err_set(r->err, ERR_INVALID, "a target reference needs parameter, name and key");
            return false;
        }
        if (!config_value(r, kind, name, key, &value))
            return false;
        give(r, out, str_from(parameter), value);
    }
    return true;
}

static bool from_env_list(struct resolver *r, const struct json *list, struct json *out)
{
    for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
        const char *parameter = member(r, list->items[i], "parameter"),
                   *name = member(r, list->items[i], "name");
        const char *container = member(r, list->items[i], "containerName");
        struct str value;
        if (!parameter || !name) {
            err_set(r->err, ERR_INVALID, "env needs parameter and name");
            return false;
        }
        if (!env_value(r, container ? container : r->request->env_container, name, &value))
            return false;
        give(r, out, str_from(parameter), value);
    }
    return true;
}

/* A TriggerAuthentication spec. Sources that weft does not read are an error that names them. */
static bool from_spec(struct resolver *r, const struct json *spec, struct json *out)
{
    for (size_t i = 0; spec->type == JSON_OBJECT && i < spec->n; i++) {
        struct str key = spec->members[i].key;
        if (!str_eq_c(key, "secretTargetRef") && !str_eq_c(key, "configMapTargetRef") &&
            !str_eq_c(key, "env")) {
            err_set(r->err, ERR_INVALID,
                    "authentication %s: the source %.*s is not read by this version",
                    r->request->trigger->auth_name, STR_ARG(key));
            return false;
        }
    }
    return from_list(r, json_get(spec, "configMapTargetRef"), AUTH_CONFIG_MAP, out) &&
           from_list(r, json_get(spec, "secretTargetRef"), AUTH_SECRET, out) &&
           from_env_list(r, json_get(spec, "env"), out);
}

/* All keys of a Secret as parameters. */
static bool from_secret(struct resolver *r, struct json *out)
{
    const char *name = r->request->trigger->auth_name;
    const struct config_data *data = NULL;
    struct auth_entry *e =
        auth_store_entry(r->store, r->lease, AUTH_SECRET, r->request->namespace_, name);
    switch (auth_entry_config(e, &data)) {
    case AUTH_WAITING:
        r->waiting = true;
        return false;
    case AUTH_FAILED:
        err_set(r->err, ERR_NOT_FOUND,
                "authenticationRef %s: there is no such entry in " ANNOTATION_PREFIX
                "auth, no TriggerAuthentication and no Secret of that name in namespace %s",
                name, r->request->namespace_);
        return false;
    default:
        break;
    }
    for (uint32_t i = 0; i < data->n_data; i++)
        give(r, out, str_from(data->data[i].key), data->data[i].value);
    return true;
}

static bool read_authentication(struct resolver *r, struct json *out)
{
    const struct trigger *t = r->request->trigger;
    if (!t->auth_name)
        return true;
    if (t->auth_kind && !strcmp(t->auth_kind, "ClusterTriggerAuthentication")) {
        err_set(r->err, ERR_INVALID,
                "ClusterTriggerAuthentication %s: only authentications of the workload's namespace "
                "are read",
                t->auth_name);
        return false;
    }
    if (t->auth_kind && !strcmp(t->auth_kind, "Secret"))
        return from_secret(r, out);
    const struct json *inner = json_get(r->request->auth, t->auth_name);
    if (inner)
        return from_spec(r, inner, out);
    const struct json *spec = NULL;
    struct auth_entry *e =
        auth_store_entry(r->store, r->lease, AUTH_TRIGGER, r->request->namespace_, t->auth_name);
    switch (auth_entry_spec(e, &spec, r->err)) {
    case AUTH_READY:
        return spec ? from_spec(r, spec, out) : from_secret(r, out);
    case AUTH_WAITING:
        r->waiting = true;
        return false;
    default:
        return false;
    }
}

/* ---- The whole ---- */

/* metadata, then authentication, then the environment. */
static bool resolve_one(struct resolver *r, const struct option *o, const struct json *auth,
                        struct json *out)
{
    const struct json *metadata = r->request->trigger->metadata;
    struct str value = str_trim(json_text(json_get(metadata, o->name)));
    if (!value.len)
        value = str_trim(json_text(json_get(auth, o->name)));
    char key[128];
    snprintf(key, sizeof(key), "%.100sFromEnv", o->name);
    const char *variable = member(r, metadata, key);
    if (!value.len && variable) {
        if (!env_value(r, r->request->env_container, variable, &value)) {
            if (!r->waiting)
                err_prefix(r->err, "%s", key);
            return false;
        }
        value = str_trim(value);
    }
    if (value.len)
        give(r, out, str_from(o->name), value);
    return true;
}

enum auth_outcome auth_resolve(struct auth_store *s, const struct auth_request *request,
                               struct auth_lease *l, struct arena *a, struct json **ret,
                               struct err *err)
{
    struct auth_lease fresh = {0};
    struct resolver r = {.store = s, .request = request, .lease = &fresh, .arena = a, .err = err};
    struct json *auth = json_new_object(a), *out = json_new_object(a);
    bool ok = auth && out && read_authentication(&r, auth);
    for (const struct option *o = request->schema; ok && o->kind != OPTION_KIND_END; o++)
        ok = resolve_one(&r, o, auth, out);
    auth_lease_replace(s, l, &fresh);
    if (ok)
        *ret = out;
    return ok ? AUTH_READY : r.waiting ? AUTH_WAITING : AUTH_FAILED;
}
