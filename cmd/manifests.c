/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Reading manifests and making a world of them. */

#include "cmd/manifests.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/yml.h"

#define FILE_BYTES_MAX ((size_t)512 << 20)
#define FOLDER_DEPTH_MAX 16

static void unref(void *o)
{
    object_unref(o);
}

void manifests_release(struct manifests *m)
{
    map_release(&m->objects, unref);
    if (m->cache)
        decode_cache_free(m->cache);
    m->cache = NULL;
}

/* ---- Documents ---- */

static int add_document(struct manifests *m, const char *name, const struct json *j, unsigned depth,
                        struct err *err);

static int add_items(struct manifests *m, const char *name, const struct json *items,
                     unsigned depth, struct err *err)
{
    if (!items || items->type != JSON_ARRAY || depth > 1)
        return 0;
    for (size_t i = 0; i < items->n; i++)
        if (add_document(m, name, items->items[i], depth + 1, err) < 0)
            return -1;
    return 0;
}

static int add_document(struct manifests *m, const char *name, const struct json *j, unsigned depth,
                        struct err *err)
{
    struct str kind = json_text(json_get(j, "kind")),
               version = json_text(json_get(j, "apiVersion"));
    if (kind.len == 0)
        return err_set(err, ERR_INVALID, "%s:%u:%u: not a Kubernetes object: it has no kind", name,
                       j->pos.line, j->pos.column);
    const struct kind *k = kind_find(version, kind, false);
    if (!k) {
        if (str_has_suffix(kind, STR("List")))
            return add_items(m, name, json_get(j, "items"), depth, err);
        m->n_unknown++;
        return 0;
    }
    if (!m->cache)
        m->cache = decode_cache_new();
    struct object *o = object_from_json(k, j, m->cache, err);
    if (!o)
        return err_prefix(err, "%s:%u: %s", name, j->pos.line, k->kind);
    if (!o->meta.name) {
        object_unref(o);
        return err_set(err, ERR_INVALID, "%s:%u: %s has no metadata.name", name, j->pos.line,
                       k->kind);
    }
    CLEANUP(buf_release) struct buf key = BUF_INIT;
    buf_printf(&key, "%s %s/%s", k->kind,
               k->namespaced && o->meta.namespace_ ? o->meta.namespace_ : "default", o->meta.name);
    object_unref(map_put(&m->objects, buf_view(&key), o));
    return 0;
}

int manifests_read_text(struct manifests *m, const char *name, struct str text, struct err *err)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct yml_documents documents = {0};
    const struct yml_limits limits = {.bytes_max = FILE_BYTES_MAX};
    if (yml_parse(&a, text, &limits, &documents, err) < 0)
        return err_prefix(err, "%s", name);
    for (size_t i = 0; i < documents.n; i++)
        if (add_document(m, name, documents.v[i], 0, err) < 0)
            return -1;
    return 0;
}

/* ---- Files ---- */

static int read_stream(FILE *f, const char *name, struct buf *to, struct err *err)
{
    char chunk[65536];
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_add(to, chunk, n);
    if (ferror(f))
        return err_errno(err, errno, "cannot read %s", name);
    if (to->overflow)
        return err_set(err, ERR_INVALID, "%s is larger than %zu MiB", name, FILE_BYTES_MAX >> 20);
    return 0;
}

static int read_all(const char *path, struct buf *to, struct err *err)
{
    buf_init(to, FILE_BYTES_MAX);
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", to, err);
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_errno(err, errno, "cannot open %s", path);
    int result = read_stream(f, path, to, err);
    fclose(f);
    return result;
}

static bool is_manifest_name(const char *name)
{
    struct str s = str_from(name);
    return str_has_suffix(s, STR(".yaml")) || str_has_suffix(s, STR(".yml")) ||
           str_has_suffix(s, STR(".json"));
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

struct reader {
    manifests_take *take;
    void *arg;
};

static int read_path(const struct reader *r, const char *path, unsigned depth, struct err *err);

static int read_folder(const struct reader *r, const char *path, unsigned depth, struct err *err)
{
    if (depth > FOLDER_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "%s is more than %d folders deep", path, FOLDER_DEPTH_MAX);
    DIR *d = opendir(path);
    if (!d)
        return err_errno(err, errno, "cannot open %s", path);
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct {
        VEC(char *);
    } names = {0};
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        char *full = arena_cstr(&a, arena_printf(&a, "%s/%s", path, e->d_name));
        struct stat st;
        if (stat(full, &st) == 0 && (S_ISDIR(st.st_mode) || is_manifest_name(e->d_name)))
            vec_push(&names, full);
    }
    closedir(d);
    if (names.len)
        qsort(names.v, names.len, sizeof(*names.v), by_text);
    int result = 0;
    for (size_t i = 0; i < names.len && result == 0; i++)
        result = read_path(r, names.v[i], depth + 1, err);
    vec_release(&names);
    return result;
}

static int read_path(const struct reader *r, const char *path, unsigned depth, struct err *err)
{
    struct stat st;
    if (strcmp(path, "-") != 0) {
        if (stat(path, &st) < 0)
            return err_errno(err, errno, "cannot open %s", path);
        if (S_ISDIR(st.st_mode))
            return read_folder(r, path, depth, err);
    }
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    if (read_all(path, &text, err) < 0)
        return -1;
    return r->take(r->arg, strcmp(path, "-") == 0 ? "standard input" : path, buf_view(&text), err);
}

int manifests_each(const char *path, manifests_take *take, void *arg, struct err *err)
{
    return read_path(&(struct reader){take, arg}, path, 0, err);
}

static int take_text(void *arg, const char *name, struct str text, struct err *err)
{
    return manifests_read_text(arg, name, text, err);
}

int manifests_read(struct manifests *m, const char *path, struct err *err)
{
    return manifests_each(path, take_text, m, err);
}

/* ---- The world of them ---- */

static bool same_namespace(const struct meta *x, const struct meta *y)
{
    struct str p = x->namespace_ ? str_from(x->namespace_) : STR("default");
    struct str q = y->namespace_ ? str_from(y->namespace_) : STR("default");
    return str_eq(p, q);
}

static bool owns(const struct workload *w, const struct pod *p)
{
    if (!same_namespace(&w->obj.meta, &p->obj.meta) || pod_is_terminal(p))
        return false;
    if (w->obj.kind == &kind_job) {
        const struct owner_ref *o = meta_controller(&p->obj.meta);
        return o && strcmp(o->kind, "Job") == 0 && strcmp(o->name, w->obj.meta.name) == 0;
    }
    return w->selector && selector_matches(w->selector, &p->obj.meta.labels);
}

static int64_t wanted_pods(const struct workload *w)
{
    if (w->obj.kind != &kind_job)
        return w->replicas;
    if (w->suspend)
        return 0;
    int64_t parallelism = w->parallelism < 0 ? 1 : w->parallelism;
    return w->completions < 0 ? parallelism
                              : MIN(parallelism, MAX(w->completions - w->succeeded, 0));
}

static bool makes_pods(const struct object *o)
{
    if (o->kind == &kind_deployment || o->kind == &kind_statefulset)
        return true;
    /* Those that another object manages are counted there. */
    return (o->kind == &kind_replicaset || o->kind == &kind_job) && !meta_controller(&o->meta);
}

static void add_coming(struct world_builder *b, const struct manifests *m, struct workload *w)
{
    int64_t live = 0;
    map_each(&m->objects, it) {
        struct object *o = it->value;
        if (o->kind == &kind_pod && owns(w, pod_of(o)))
            live++;
    }
    world_builder_coming(b, w, live, wanted_pods(w) - live);
}

static struct nodeclaim *claim_of(const struct manifests *m, const struct node *n)
{
    map_each(&m->objects, it) {
        struct object *o = it->value;
        if (o->kind != &kind_nodeclaim)
            continue;
        struct nodeclaim *c = nodeclaim_of(o);
        bool by_name = c->node_name && strcmp(c->node_name, n->obj.meta.name) == 0;
        bool by_id =
            c->provider_id && n->provider_id && strcmp(c->provider_id, n->provider_id) == 0;
        if (by_name || by_id)
            return c;
    }
    return NULL;
}

static bool has_node(const struct manifests *m, const struct nodeclaim *c)
{
    map_each(&m->objects, it) {
        struct object *o = it->value;
        if (o->kind == &kind_node && claim_of(m, node_of(o)) == c)
            return true;
    }
    return false;
}

static void add_object(struct world_builder *b, const struct manifests *m, const struct catalog *c,
                       struct object *o)
{
    static const struct world_node_options as_it_is;
    struct err err = ERR_INIT;
    if (o->kind == &kind_nodepool)
        world_builder_pool(b, nodepool_of(o), c,
                           nodepool_validate(nodepool_of(o), &err) < 0 ? err.msg : NULL);
    else if (o->kind == &kind_node)
        world_builder_node(b, node_of(o), claim_of(m, node_of(o)), as_it_is);
    else if (o->kind == &kind_nodeclaim && !has_node(m, nodeclaim_of(o)))
        world_builder_node(b, NULL, nodeclaim_of(o), as_it_is);
    else if (o->kind == &kind_pod)
        world_builder_pod(b, pod_of(o));
    else if (o->kind == &kind_daemonset)
        world_builder_daemonset(b, workload_of(o));
    else if (o->kind == &kind_namespace)
        world_builder_namespace(b, o);
    else if (makes_pods(o))
        add_coming(b, m, workload_of(o));
}

struct world *manifests_world(const struct manifests *m, const struct catalog *c, int64_t now,
                              struct err *err)
{
    struct world_builder *b = world_builder_new();
    map_each(&m->objects, it)
        add_object(b, m, c, it->value);
    return world_build(b, now, err);
}

static void warn(void *arg, const char *message)
{
    fprintf(stderr, "weft: %s: %s\n", (const char *)arg, message);
}

struct catalog *manifests_catalog(const char *path, struct err *err)
{
    if (!path)
        return catalog_builtin();
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    if (read_all(path, &text, err) < 0)
        return NULL;
    char name[256];
    snprintf(name, sizeof(name), "%s", path);
    return catalog_parse(buf_view(&text), path, warn, name, err);
}
