/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Reading kubeconfig files and the in-cluster environment. */

#include "kube/client/config.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/schema.h"
#include "base/yml.h"

#define FILE_BYTES_MAX (4u << 20)
#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* One file of KUBECONFIG. */
struct source {
    const char *path;
    struct json *root;
};

struct reader {
    struct kube_config *config;
    struct source files[16];
    size_t n_files;
    struct err *err;
};

static int fault(const struct reader *r, const struct source *s, const struct json *at,
                 const char *fmt, ...) PRINTF_LIKE(4, 5);
static int fault(const struct reader *r, const struct source *s, const struct json *at,
                 const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (at && at->pos.line)
        return err_set(r->err, ERR_INVALID, "%s:%u:%u: %s", s->path, at->pos.line, at->pos.column,
                       text);
    return err_set(r->err, ERR_INVALID, "%s: %s", s->path, text);
}

/* The entry `name` of a list of {name, <part>}: the first file that has it wins. */
static const struct json *find_entry(struct reader *r, const char *list, const char *part,
                                     struct str name, const struct source **ret_file)
{
    for (size_t f = 0; f < r->n_files; f++) {
        const struct json *entries = json_get(r->files[f].root, list);
        for (size_t i = 0; entries && entries->type == JSON_ARRAY && i < entries->n; i++) {
            if (str_eq(json_text(json_get(entries->items[i], "name")), name)) {
                *ret_file = &r->files[f];
                const struct json *found = json_get(entries->items[i], part);
                return found ? found : entries->items[i];
            }
        }
    }
    return NULL;
}

static const char *keep(struct reader *r, struct str s)
{
    return s.len ? arena_cstr(&r->config->arena, s) : NULL;
}

/* A path as the file means it: relative ones start at the file's folder. */
static const char *keep_path(struct reader *r, const struct source *s, struct str path)
{
    if (path.len == 0 || path.p[0] == '/')
        return keep(r, path);
    const char *slash = strrchr(s->path, '/');
    struct str folder = slash ? (struct str){s->path, (size_t)(slash - s->path)} : STR(".");
    return arena_printf(&r->config->arena, "%.*s/%.*s", STR_ARG(folder), STR_ARG(path)).p;
}

static int keep_data(struct reader *r, const struct source *s, const struct json *j,
                     struct str *ret)
{
    CLEANUP(buf_release) struct buf pem = BUF_INIT;
    struct err why = ERR_INIT;
    if (!j)
        return 0;
    if (crypto_base64_decode(&pem, json_text(j), &why) < 0)
        return fault(r, s, j, "%s", why.msg);
    *ret = arena_str(&r->config->arena, buf_view(&pem));
    return 0;
}

static int read_cluster(struct reader *r, const struct source *s, const struct json *c)
{
    struct kube_config *k = r->config;
    struct str server = json_text(json_get(c, "server"));
    while (server.len && server.p[server.len - 1] == '/')
        server.len--;
    if (!str_has_prefix(server, STR("https://")) && !str_has_prefix(server, STR("http://")))
        return fault(r, s, json_get(c, "server") ? json_get(c, "server") : c,
                     "cluster.server: an http(s) URL is needed");
    k->server = keep(r, server);
    k->tls.ca_file = keep_path(r, s, json_text(json_get(c, "certificate-authority")));
    k->tls.server_name = keep(r, json_text(json_get(c, "tls-server-name")));
    k->tls.insecure = json_bool(json_get(c, "insecure-skip-tls-verify"), false);
    k->proxy = keep(r, json_text(json_get(c, "proxy-url")));
    return keep_data(r, s, json_get(c, "certificate-authority-data"), &k->tls.ca_pem);
}

static const char **keep_list(struct reader *r, const struct json *list, const char *name,
                              const char *value)
{
    size_t n = list && list->type == JSON_ARRAY ? list->n : 0;
    const char **v = ARENA_NEW_ARRAY(&r->config->arena, const char *, n + 1);
    for (size_t i = 0; v && i < n; i++) {
        if (!name)
            v[i] = arena_cstr(&r->config->arena, json_text(list->items[i]));
        else
            v[i] = arena_printf(&r->config->arena, "%.*s=%.*s",
                                STR_ARG(json_text(json_get(list->items[i], name))),
                                STR_ARG(json_text(json_get(list->items[i], value))))
                       .p;
    }
    return v;
}

static int read_exec(struct reader *r, const struct source *s, const struct json *e)
{
    struct kube_exec *x = ARENA_NEW(&r->config->arena, struct kube_exec);
    struct str command = json_text(json_get(e, "command"));
    struct str version = json_text(json_get(e, "apiVersion"));
    if (command.len == 0)
        return fault(r, s, e, "user.exec.command: missing");
    if (!str_eq_c(version, "client.authentication.k8s.io/v1") &&
        !str_eq_c(version, "client.authentication.k8s.io/v1beta1"))
        return fault(r, s, json_get(e, "apiVersion") ? json_get(e, "apiVersion") : e,
                     "user.exec.apiVersion: '%.*s' is neither v1 nor v1beta1 of "
                     "client.authentication.k8s.io",
                     STR_ARG(str_sub(version, 0, 60)));
    /* As kubectl: a bare name is looked up in PATH, a relative path starts at the file's folder. */
    x->command =
        str_find_char(command, '/', 0) == SIZE_MAX ? keep(r, command) : keep_path(r, s, command);
    x->api_version = keep(r, version);
    x->args = keep_list(r, json_get(e, "args"), NULL, NULL);
    x->env = keep_list(r, json_get(e, "env"), "name", "value");
    x->provide_cluster_info = json_bool(json_get(e, "provideClusterInfo"), false);
    r->config->exec = x;
    return 0;
}

static int read_user(struct reader *r, const struct source *s, const struct json *u)
{
    struct kube_config *k = r->config;
    k->token = keep(r, json_text(json_get(u, "token")));
    k->token_file = keep_path(r, s, json_text(json_get(u, "tokenFile")));
    k->username = keep(r, json_text(json_get(u, "username")));
    k->password = keep(r, json_text(json_get(u, "password")));
    k->impersonate = keep(r, json_text(json_get(u, "as")));
    k->tls.cert_file = keep_path(r, s, json_text(json_get(u, "client-certificate")));
    k->tls.key_file = keep_path(r, s, json_text(json_get(u, "client-key")));
    if (json_get(u, "auth-provider"))
        return fault(r, s, json_get(u, "auth-provider"),
                     "user.auth-provider: was removed from Kubernetes; use an exec plugin");
    if (keep_data(r, s, json_get(u, "client-certificate-data"), &k->tls.cert_pem) < 0 ||
        keep_data(r, s, json_get(u, "client-key-data"), &k->tls.key_pem) < 0)
        return -1;
    const struct json *exec = json_get(u, "exec");
    return exec ? read_exec(r, s, exec) : 0;
}

static int resolve(struct reader *r, const char *context)
{
    const struct source *first = &r->files[0], *file = first;
    struct str name = str_from(context);
    for (size_t i = 0; i < r->n_files && name.len == 0; i++)
        name = json_text(json_get(r->files[i].root, "current-context"));
    if (name.len == 0)
        return fault(r, first, NULL, "there is no current-context");
    const struct json *c = find_entry(r, "contexts", "context", name, &file);
    if (!c)
        return fault(r, first, NULL, "there is no context '%.*s'", STR_ARG(str_sub(name, 0, 100)));
    r->config->namespace_ = keep(r, json_text(json_get(c, "namespace")));
    r->config->source =
        arena_printf(&r->config->arena, "%s, context %.*s", file->path, STR_ARG(name)).p;
    struct str cluster = json_text(json_get(c, "cluster")), user = json_text(json_get(c, "user"));
    const struct json *found = find_entry(r, "clusters", "cluster", cluster, &file);
    if (!found)
        return fault(r, first, c, "there is no cluster '%.*s'", STR_ARG(str_sub(cluster, 0, 100)));
    if (read_cluster(r, file, found) < 0)
        return -1;
    if (user.len == 0)
        return 0;
    found = find_entry(r, "users", "user", user, &file);
    if (!found)
        return fault(r, first, c, "there is no user '%.*s'", STR_ARG(str_sub(user, 0, 100)));
    return read_user(r, file, found);
}

static int add_file(struct reader *r, struct str text, const char *path)
{
    if (r->n_files == ARRAY_LEN(r->files))
        return err_set(r->err, ERR_INVALID, "KUBECONFIG: more than %zu files", ARRAY_LEN(r->files));
    struct source *s = &r->files[r->n_files];
    s->path = arena_cstr(&r->config->arena, str_from(path));
    if (yml_parse_one(&r->config->arena, text, &(struct yml_limits){.bytes_max = FILE_BYTES_MAX},
                      &s->root, r->err) < 0)
        return err_prefix(r->err, "%s", path);
    if (!s->root)
        return 0; /* an empty file adds nothing */
    if (s->root->type != JSON_OBJECT)
        return fault(r, s, s->root, "a kubeconfig is an object");
    r->n_files++;
    return 0;
}

void kube_config_free(struct kube_config *c)
{
    if (!c)
        return;
    arena_release(&c->arena);
    free(c);
}

static struct kube_config *finish(struct reader *r, int code, const char *context)
{
    if (code == 0 && r->n_files == 0)
        code = err_set(r->err, ERR_INVALID, "the kubeconfig is empty");
    if (code == 0)
        code = resolve(r, context);
    if (code == 0)
        return r->config;
    kube_config_free(r->config);
    return NULL;
}

static struct kube_config *new_config(void)
{
    struct kube_config *c = xcalloc(1, sizeof(*c));
    arena_init(&c->arena, 64u << 20, 0);
    return c;
}

struct kube_config *kube_config_parse(struct str text, const char *file_name, const char *context,
                                      struct err *err)
{
    struct reader r = {.config = new_config(), .err = err};
    return finish(&r, add_file(&r, text, file_name), context);
}

static struct kube_config *load_files(struct str paths, const char *context, struct err *err)
{
    struct reader r = {.config = new_config(), .err = err};
    struct str path;
    int code = 0;
    size_t found = 0;
    struct err last = ERR_INIT;
    while (code == 0 && str_split(&paths, ':', &path)) {
        if (path.len == 0)
            continue;
        CLEANUP(buf_release) struct buf text = BUF_INIT;
        char *name = xstr_dup(path);
        /* A file of a list may be missing, as with kubectl, if another is there. */
        if (file_read(name, FILE_BYTES_MAX, &text, &last) == 0) {
            found++;
            code = add_file(&r, buf_view(&text), name);
        }
        free(name);
    }
    if (code == 0 && found == 0)
        code = err_set(err, last.code ? last.code : ERR_NOT_FOUND, "kubeconfig: %s",
                       last.code ? last.msg : "no file is named");
    return finish(&r, code, context);
}

static struct kube_config *load_in_cluster(struct err *err)
{
    const char *host = env_get("KUBERNETES_SERVICE_HOST"),
               *port = env_get("KUBERNETES_SERVICE_PORT");
    struct kube_config *c = new_config();
    bool v6 = strchr(host, ':') != NULL;
    c->server = arena_printf(&c->arena, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
                             port ? port : "443")
                    .p;
    c->token_file = ACCOUNT_DIR "/token";
    c->tls.ca_file = ACCOUNT_DIR "/ca.crt";
    c->source = "in-cluster";
    CLEANUP(buf_release) struct buf ns = BUF_INIT;
    if (file_read(ACCOUNT_DIR "/namespace", FILE_BYTES_MAX, &ns, err) == 0)
        c->namespace_ = arena_cstr(&c->arena, str_trim(buf_view(&ns)));
    return c;
}

struct kube_config *kube_config_load(const char *path, const char *context, struct err *err)
{
    const char *env = env_get("KUBECONFIG"), *home = env_get("HOME");
    if (path && *path) {
        CLEANUP(buf_release) struct buf text = BUF_INIT;
        if (file_read(path, FILE_BYTES_MAX, &text, err) < 0)
            return NULL;
        return kube_config_parse(buf_view(&text), path, context, err);
    }
    if (env && *env)
        return load_files(str_from(env), context, err);
    if (env_get("KUBERNETES_SERVICE_HOST") && access(ACCOUNT_DIR "/token", R_OK) == 0)
        return load_in_cluster(err);
    CLEANUP(buf_release) struct buf standard = BUF_INIT;
    buf_printf(&standard, "%s/.kube/config", home ? home : "");
    return load_files(buf_view(&standard), context, err);
}
