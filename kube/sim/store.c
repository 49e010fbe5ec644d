/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* See store.h. */

#include "kube/sim/store.h"

#include "base/num.h"
#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

/* ---- Versions ---- */

struct version *version_new(void)
{
    struct version *v = xcalloc(1, sizeof(*v));
    v->refs = 1;
    arena_init(&v->arena, 0, 2048);
    return v;
}

struct version *version_edit(const struct item *it)
{
    struct version *v = version_new();
    v->root = json_copy(&v->arena, it->now->root);
    return v;
}

struct version *version_ref(struct version *v)
{
    if (v)
        v->refs++;
    return v;
}

void version_unref(struct version *v)
{
    if (!v || --v->refs)
        return;
    object_unref(v->typed);
    arena_release(&v->arena);
    free(v);
}

struct str version_text(struct version *v)
{
    if (!v->text.p) {
        CLEANUP(buf_release) struct buf out = BUF_INIT;
        json_print(&out, v->root, 0);
        v->text = arena_str(&v->arena, buf_view(&out));
    }
    return v->text;
}

struct object *version_typed(struct sim *s, const struct resource *r, struct version *v)
{
    if (!v->tried && r->typed) {
        v->tried = true;
        v->typed = object_from_json(r->typed, v->root, s->cache, NULL);
    }
    return v->typed;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

const struct labels *version_labels(struct version *v)
{
    if (v->has_labels)
        return &v->labels;
    v->has_labels = true;
    const struct json *j = json_at(v->root, "metadata", "labels", NULL);
    if (!j || j->type != JSON_OBJECT || j->n == 0)
        return &v->labels;
    struct label *out = ARENA_NEW_ARRAY(&v->arena, struct label, j->n);
    for (size_t i = 0; i < j->n; i++) {
        out[i].key = arena_cstr(&v->arena, j->members[i].key);
        out[i].value = arena_cstr(&v->arena, json_text(j->members[i].value));
    }
    qsort(out, j->n, sizeof(*out), by_key);
    v->labels = (struct labels){out, (uint32_t)j->n};
    return &v->labels;
}

/* ---- Resources ---- */

struct resource *store_resource(struct sim *s, struct str group, struct str plural)
{
    vec_each(&s->resources, struct resource **, r)
        if (str_eq_c(plural, (*r)->plural) && str_eq_c(group, (*r)->group))
            return *r;
    return NULL;
}

struct resource *store_resource_kind(struct sim *s, struct str kind)
{
    vec_each(&s->resources, struct resource **, r)
        if (str_eq_c(kind, (*r)->kind))
            return *r;
    return NULL;
}

struct resource *store_resource_gvk(struct sim *s, struct str api_version, struct str kind)
{
    size_t slash = str_find_char(api_version, '/', 0);
    struct str group = slash == SIZE_MAX ? STR("") : str_sub(api_version, 0, slash);
    struct str version =
        slash == SIZE_MAX ? api_version : str_sub(api_version, slash + 1, api_version.len);
    vec_each(&s->resources, struct resource **, r)
        if (str_eq_c(kind, (*r)->kind) && str_eq_c(group, (*r)->group) &&
            str_eq_c(version, (*r)->version))
            return *r;
    return NULL;
}

struct resource *store_add_resource(struct sim *s, const struct sim_resource *from,
                                    const struct kind *typed)
{
    struct resource *r = store_resource(s, str_from(from->group), str_from(from->plural));
    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    r->sim = s;
    r->group = xstrdup(from->group);
    r->version = xstrdup(from->version);
    r->kind = xstrdup(from->kind);
    r->plural = xstrdup(from->plural);
    r->namespaced = from->namespaced;
    r->status = from->status;
    r->scale = from->scale;
    r->typed = typed;
    r->ring_size = s->o.history;
    vec_push(&s->resources, r);
    return r;
}

static struct str make_key(struct buf *out, struct str namespace_, struct str name)
{
    if (namespace_.len) {
        buf_str(out, namespace_);
        buf_char(out, '/');
    }
    buf_str(out, name);
    return buf_view(out);
}

struct item *store_find(const struct resource *r, struct str namespace_, struct str name)
{
    char text[640];
    if (!r)
        return NULL;
    struct str key = name;
    if (r->namespaced) {
        int n = snprintf(text, sizeof(text), "%.*s/%.*s", STR_ARG(namespace_), STR_ARG(name));
        if (n < 0 || (size_t)n >= sizeof(text))
            return NULL;
        key = (struct str){text, (size_t)n};
    }
    return map_get(&r->objects, key);
}

struct item *store_find_uid(struct sim *s, struct str uid)
{
    return map_get(&s->uids, uid);
}

static int by_item_key(const void *a, const void *b)
{
    return strcmp((*(struct item *const *)a)->key, (*(struct item *const *)b)->key);
}

struct item **store_sorted(struct resource *r, size_t *ret_n)
{
    if (!r->sorted_fresh) {
        r->n_sorted = 0;
        r->sorted = xrealloc(r->sorted, (map_len(&r->objects) + 1) * sizeof(*r->sorted));
        map_each(&r->objects, e)
            r->sorted[r->n_sorted++] = e->value;
        if (r->n_sorted > 1)
            qsort(r->sorted, r->n_sorted, sizeof(*r->sorted), by_item_key);
        r->sorted_fresh = true;
    }
    *ret_n = r->n_sorted;
    return r->sorted;
}

/* ---- History ---- */

static void change_release(struct change *c)
{
    version_unref(c->before);
    version_unref(c->after);
}

static void append(struct resource *r, struct version *before, struct version *after, bool removed)
{
    if (!r->ring)
        r->ring = xcalloc(r->ring_size, sizeof(*r->ring));
    struct change *c = &r->ring[r->next % r->ring_size];
    if (r->next - r->first == r->ring_size) {
        r->expired = c->number;
        change_release(c);
        r->first++;
    }
    *c = (struct change){.number = after->number,
                         .at = sim_now(r->sim),
                         .before = version_ref(before),
                         .after = version_ref(after),
                         .removed = removed};
    r->next++;
    watch_wake(r);
}

void store_forget(struct resource *r)
{
    for (; r->first < r->next; r->first++)
        change_release(&r->ring[r->first % r->ring_size]);
    r->expired = r->sim->number;
}

/* ---- Families ---- */

static struct family *family_get(struct sim *s, struct str uid)
{
    void **slot = map_slot(&s->families, uid);
    if (!*slot) {
        struct family *f = xcalloc(1, sizeof(*f));
        f->uid = xstr_dup(uid);
        *slot = f;
    }
    return *slot;
}

/* The uid of the controlling owner, else of the first. */
static struct str owner_uid(const struct json *root)
{
    const struct json *refs = json_at(root, "metadata", "ownerReferences", NULL);
    if (!refs || refs->type != JSON_ARRAY || refs->n == 0)
        return STR_NONE;
    for (size_t i = 0; i < refs->n; i++)
        if (json_bool(json_get(refs->items[i], "controller"), false))
            return json_text(json_get(refs->items[i], "uid"));
    return json_text(json_get(refs->items[0], "uid"));
}

struct family *store_family(const struct item *it)
{
    return map_get(&it->res->sim->families, str_from(it->uid));
}

static void family_free(void *p)
{
    struct family *f = p;
    vec_release(&f->children);
    free(f->uid);
    free(f);
}

static void family_tidy(struct sim *s, struct family *f)
{
    if (f->owner || f->children.len)
        return;
    map_remove(&s->families, str_from(f->uid));
    family_free(f);
}

static void family_leave(struct item *it)
{
    struct family *f = it->family;
    if (!f)
        return;
    struct item *last = vec_last(&f->children);
    f->children.v[it->family_index] = last;
    last->family_index = it->family_index;
    f->children.len--;
    it->family = NULL;
    if (!f->owner)
        family_tidy(it->res->sim, f);
}

static void family_join(struct item *it)
{
    struct str uid = owner_uid(it->now->root);
    struct family *f = uid.len ? family_get(it->res->sim, uid) : NULL;
    if (f == it->family)
        return;
    family_leave(it);
    if (!f)
        return;
    f->owner = store_find_uid(it->res->sim, uid);
    it->family = f;
    it->family_index = f->children.len;
    vec_push(&f->children, it);
}

/* ---- Items ---- */

struct item *item_ref(struct item *it)
{
    it->refs++;
    return it;
}

void item_unref(struct item *it)
{
    if (!it || --it->refs)
        return;
    version_unref(it->now);
    job_state_free(it->job);
    budget_state_free(it->budget);
    free(it->key);
    free(it->uid);
    free(it);
}

bool item_deleting(const struct item *it)
{
    return json_at(it->now->root, "metadata", "deletionTimestamp", NULL) != NULL;
}

static void new_uid(struct sim *s, char out[37])
{
    uint64_t a = rng_u64(&s->ids), b = rng_u64(&s->ids);
    snprintf(out, 37, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
             ((unsigned)(b >> 48) & 0x3fff) | 0x8000, (unsigned long long)(b & 0xffffffffffffULL));
}

static void stamp(struct sim *s, struct version *v)
{
    char number[24];
    v->number = ++s->number;
    snprintf(number, sizeof(number), "%llu", (unsigned long long)v->number);
    tree_cstr(&v->arena, tree_object(&v->arena, v->root, "metadata"), "resourceVersion", number);
}

static struct str new_name(struct sim *s, struct version *v, const struct resource *r,
                           struct json *meta)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    struct str base = json_text(tree_get(meta, "generateName"));
    struct str namespace_ = json_text(tree_get(meta, "namespace"));
    for (int attempt = 0; base.len && attempt < 8; attempt++) {
        char tail[6];
        for (int i = 0; i < 5; i++)
            tail[i] = letters[rng_below(&s->ids, sizeof(letters) - 1)];
        tail[5] = 0;
        struct str name = arena_printf(&v->arena, "%.*s%s", STR_ARG(base), tail);
        if (!store_find(r, namespace_, name))
            return name;
    }
    return STR_NONE;
}

static int complete(struct resource *r, struct version *v, struct err *err)
{
    struct sim *s = r->sim;
    struct json *meta = tree_object(&v->arena, v->root, "metadata");
    char uid[37];
    if (json_text(tree_get(meta, "name")).len == 0) {
        struct str name = new_name(s, v, r, meta);
        if (!name.len)
            return err_set(err, ERR_INVALID, "%s: name or generateName is required", r->kind);
        tree_str(&v->arena, meta, "name", name);
    }
    if (!r->namespaced)
        tree_drop(meta, "namespace");
    if (store_find(r, json_text(tree_get(meta, "namespace")), json_text(tree_get(meta, "name"))))
        return err_set(err, ERR_EXISTS, "%s \"%.*s\" already exists", r->plural,
                       STR_ARG(json_text(tree_get(meta, "name"))));
    if (json_text(tree_get(meta, "uid")).len == 0 ||
        store_find_uid(s, json_text(tree_get(meta, "uid")))) {
        new_uid(s, uid);
        tree_cstr(&v->arena, meta, "uid", uid);
    }
    if (!tree_get(meta, "creationTimestamp") ||
        tree_get(meta, "creationTimestamp")->type != JSON_STRING)
        tree_time(&v->arena, meta, "creationTimestamp", sim_wall(s));
    tree_i64(&v->arena, meta, "generation", 1);
    return 0;
}

static struct item *item_new(struct resource *r, struct version *v)
{
    CLEANUP(buf_release) struct buf key = BUF_INIT;
    struct json *meta = tree_get(v->root, "metadata");
    struct str namespace_ = r->namespaced ? json_text(tree_get(meta, "namespace")) : STR_NONE;
    make_key(&key, namespace_, json_text(tree_get(meta, "name")));
    struct item *it = xcalloc(1, sizeof(*it));
    it->res = r;
    it->refs = 1;
    it->uid = xstr_dup(json_text(tree_get(meta, "uid")));
    /* One allocation: "namespace/name\0namespace\0". */
    it->key = xcalloc(1, key.len + 1 + namespace_.len + 1);
    memcpy(it->key, key.data, key.len);
    it->name = it->key;
    if (namespace_.len) {
        it->name = it->key + namespace_.len + 1;
        memcpy(it->key + key.len + 1, namespace_.p, namespace_.len);
        it->namespace_ = it->key + key.len + 1;
    }
    it->now = v;
    it->born = ++r->sim->born;
    return it;
}

struct item *store_create(struct resource *r, struct version *v, struct err *err)
{
    struct sim *s = r->sim;
    if (complete(r, v, err) < 0) {
        version_unref(v);
        return NULL;
    }
    stamp(s, v);
    struct item *it = item_new(r, v);
    map_put(&r->objects, str_from(it->key), it);
    map_put(&s->uids, str_from(it->uid), it);
    r->sorted_fresh = false;
    family_join(it);
    struct family *own = store_family(it);
    if (own)
        own->owner = it;
    s->counters.objects_created++;
    append(r, NULL, v, false);
    sim_changed(s, it, NULL, v);
    return it;
}

/* Equal apart from metadata and status. */
static bool same_spec(const struct json *a, const struct json *b)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        struct str k = a->members[i].key;
        if (str_eq_c(k, "metadata") || str_eq_c(k, "status"))
            continue;
        n++;
        const struct json *other = json_get_str(b, k);
        if (!other || !json_equal(a->members[i].value, other))
            return false;
    }
    for (size_t i = 0; i < b->n; i++) {
        struct str k = b->members[i].key;
        n -= !str_eq_c(k, "metadata") && !str_eq_c(k, "status");
    }
    return n == 0;
}

/* What the server alone writes comes from the state before. */
static void keep_system_fields(struct item *it, struct version *v)
{
    static const char *const kept[] = {"name",       "namespace",   "uid", "creationTimestamp",
                                       "generation", "generateName"};
    const struct json *old = json_get(it->now->root, "metadata");
    struct json *meta = tree_object(&v->arena, v->root, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        const struct json *value = json_get(old, kept[i]);
        if (value)
            tree_set(&v->arena, meta, kept[i], json_copy(&v->arena, value));
        else
            tree_drop(meta, kept[i]);
    }
    tree_set(&v->arena, meta, "resourceVersion",
             json_copy(&v->arena, json_get(old, "resourceVersion")));
}

static bool may_go(const struct json *root)
{
    const struct json *meta = json_get(root, "metadata");
    const struct json *finalizers = json_get(meta, "finalizers");
    return json_get(meta, "deletionTimestamp") &&
           json_i64(json_get(meta, "deletionGracePeriodSeconds"), 0) == 0 &&
           (!finalizers || finalizers->n == 0);
}

void store_commit(struct item *it, struct version *v)
{
    struct sim *s = it->res->sim;
    struct version *before = it->now;
    keep_system_fields(it, v);
    if (it->gone || json_equal(before->root, v->root)) {
        version_unref(v);
        return;
    }
    if (!same_spec(before->root, v->root)) {
        struct json *meta = tree_get(v->root, "metadata");
        tree_i64(&v->arena, meta, "generation", json_i64(json_get(meta, "generation"), 1) + 1);
    }
    if (may_go(v->root)) {
        it->now = v;
        version_unref(before);
        store_drop(it);
        return;
    }
    stamp(s, v);
    it->now = v;
    family_join(it);
    s->counters.objects_changed++;
    append(it->res, before, v, false);
    sim_changed(s, it, before, v);
    version_unref(before);
}

void store_drop(struct item *it)
{
    struct sim *s = it->res->sim;
    struct resource *r = it->res;
    if (it->gone)
        return;
    struct version *before = it->now;
    it->now = version_new();
    it->now->root = json_copy(&it->now->arena, before->root);
    stamp(s, it->now);
    it->gone = true;
    map_remove(&r->objects, str_from(it->key));
    map_remove(&s->uids, str_from(it->uid));
    r->sorted_fresh = false;
    s->counters.objects_deleted++;
    append(r, before, it->now, true);
    sim_changed(s, it, before, NULL);
    family_leave(it);
    struct family *own = store_family(it);
    if (own) {
        own->owner = NULL;
        family_tidy(s, own);
    }
    version_unref(before);
    item_unref(it);
}

static int64_t own_grace(const struct item *it)
{
    const struct json *root = it->now->root;
    if (it->res != it->res->sim->pods)
        return 0;
    struct str phase = json_text(json_at(root, "status", "phase", NULL));
    bool bound = json_text(json_at(root, "spec", "nodeName", NULL)).len > 0;
    if (!bound || str_eq_c(phase, "Succeeded") || str_eq_c(phase, "Failed"))
        return 0;
    return json_i64(json_at(root, "spec", "terminationGracePeriodSeconds", NULL), 30);
}

bool store_delete(struct item *it, int64_t grace_s)
{
    const struct json *finalizers = json_at(it->now->root, "metadata", "finalizers", NULL);
    int64_t own = own_grace(it);
    int64_t grace = grace_s < 0 || own == 0 ? own : grace_s;
    if (grace == 0 && (!finalizers || finalizers->n == 0)) {
        store_drop(it);
        return true;
    }
    const struct json *old = json_get(it->now->root, "metadata");
    if (json_get(old, "deletionTimestamp") &&
        (grace_s < 0 || json_i64(json_get(old, "deletionGracePeriodSeconds"), 0) <= grace))
        return false; /* it only gets shorter */
    struct version *v = version_edit(it);
    struct json *meta = tree_get(v->root, "metadata");
    tree_time(&v->arena, meta, "deletionTimestamp", sim_wall(it->res->sim) + grace * NS_PER_S);
    tree_i64(&v->arena, meta, "deletionGracePeriodSeconds", grace);
    store_commit(it, v);
    return it->gone;
}

static void resource_free(struct resource *r)
{
    map_each(&r->objects, e)
        item_unref(e->value);
    map_release(&r->objects, NULL);
    for (uint64_t i = r->first; i < r->next; i++)
        change_release(&r->ring[i % r->ring_size]);
    free(r->ring);
    free(r->sorted);
    free(r->group);
    free(r->version);
    free(r->kind);
    free(r->plural);
    free(r);
}

void store_clear(struct sim *s)
{
    vec_each(&s->resources, struct resource **, r)
        resource_free(*r);
    vec_release(&s->resources);
    map_release(&s->families, family_free);
    map_release(&s->uids, NULL);
}
