/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* NodePools and node classes: what is valid, what is ready, what is used; and their catalogues.
 *
 * A NodePool that does not validate says so on itself, and its last valid version stays in force
 * for the nodes it has and for new ones. Catalogues are asked for once a class appears and again
 * every few minutes; an answer that fails leaves the last good catalogue in place. */
#include "base/num.h"
#include "provisioner/control/body.h"
#include "provisioner/control/internal.h"

#define CATALOGUE_RETRY (10 * NS_PER_S)

struct pool_memory {
    struct nodepool *good; /* the last valid version, a reference */
    char *blocked;         /* why nothing may be launched; NULL: it may */
};

struct class_memory {
    struct control *c;
    struct cloud *cloud;
    struct cloud_op *op;
    struct catalog *catalog;
    struct loop_timer timer;
    char *error; /* of the last answer; NULL: it was good */
    char name[]; /* of the node class */
};

struct pools {
    struct map pools;   /* name to struct pool_memory */
    struct map classes; /* "group/kind/name" to struct class_memory */
};

/* ---- Catalogues ---- */

static struct str class_key(char out[512], const struct node_class_ref *r)
{
    int n = snprintf(out, 512, "%s/%s/%s", r->group ? r->group : "", r->kind ? r->kind : "",
                     r->name ? r->name : "");

    return (struct str){out, (size_t)MIN(n, 511)};
}

static void ask(void *arg);

static void catalogue_done(void *arg, struct catalog *cat, const struct cloud_error *error)
{
    struct class_memory *m = arg;
    struct control *c = m->c;
    bool good = !error || error->code == ERR_NONE, news;

    m->op = NULL;
    loop_timer_in(c->loop, &m->timer, good ? c->o.catalogue_interval : CATALOGUE_RETRY, ask, m);
    free(m->error);
    m->error = good ? NULL : xstrdup(error->msg);
    if (!good) {
        log_warn("the catalogue could not be read", LOG_CSTR("node-class", m->name),
                 LOG_CSTR("error", error->msg));
        pools_touch_all(c);
        return;
    }
    news = !m->catalog || m->catalog->version != cat->version;
    catalog_ref(cat);
    if (m->catalog)
        catalog_unref(m->catalog);
    m->catalog = cat;
    if (news) {
        c->cluster.generation++;
        pools_touch_all(c);
        provision_poke(c);
    }
}

static void ask(void *arg)
{
    struct class_memory *m = arg;
    struct node_class_ref ref = {m->cloud->vt->class_group, m->cloud->vt->class_kind, m->name};
    struct nodeclass *class = cluster_class(m->c, &ref, NULL);

    if (class && !m->op)
        m->op = m->cloud->vt->catalogue(m->cloud, class, catalogue_done, m);
}

static void class_free(void *p)
{
    struct class_memory *m = p;

    if (m->op)
        m->cloud->vt->cancel(m->cloud, m->op);
    loop_timer_cancel(m->c->loop, &m->timer);
    if (m->catalog)
        catalog_unref(m->catalog);
    free(m->error);
    free(m);
}

/* NULL when no cloud knows such a class or it does not exist. */
static struct class_memory *class_of(struct control *c, const struct node_class_ref *ref)
{
    char text[512];
    struct str key = class_key(text, ref);
    struct class_memory *m = map_get(&c->pools->classes, key);
    struct cloud *cloud;
    size_t n;

    if (m || !cluster_class(c, ref, &cloud))
        return m;
    n = strlen(ref->name) + 1;
    m = xcalloc(1, sizeof(*m) + n);
    memcpy(m->name, ref->name, n);
    m->c = c;
    m->cloud = cloud;
    map_put(&c->pools->classes, key, m);
    ask(m);
    return m;
}

struct catalog *pools_catalog(const struct control *c, const struct node_class_ref *ref)
{
    char text[512];
    const struct class_memory *m = map_get(&c->pools->classes, class_key(text, ref));

    return m ? m->catalog : NULL;
}

/* ---- Pools ---- */

static void pool_free(void *p)
{
    struct pool_memory *m = p;

    if (m->good)
        object_unref(&m->good->obj);
    free(m->blocked);
    free(m);
}

static struct pool_memory *pool_memory(struct control *c, const char *name)
{
    void **slot = map_slot(&c->pools->pools, str_from(name));

    if (!*slot)
        *slot = xcalloc(1, sizeof(struct pool_memory));
    return *slot;
}

const struct nodepool *pools_last_good(const struct control *c, const char *name)
{
    const struct pool_memory *m = name ? map_get(&c->pools->pools, str_from(name)) : NULL;

    return m ? m->good : NULL;
}

const char *pools_blocked(const struct control *c, const char *name)
{
    const struct pool_memory *m = map_get(&c->pools->pools, str_from(name));

    return m ? m->blocked : "not looked at yet";
}

/* A catalogue that has been asked for and has not answered yet, well or badly. */
static bool awaited(const struct control *c, const struct nodepool *p)
{
    char text[512];
    const struct class_memory *m =
        map_get(&c->pools->classes, class_key(text, &p->template_.class_ref));

    return m && m->op && !m->catalog && !m->error;
}

bool pools_settled(const struct control *c)
{
    cluster_each(c, CACHE_NODEPOOL, nodepool, p)
    {
        if (!map_has(&c->pools->pools, str_from(p->obj.meta.name)) || awaited(c, p))
            return false;
    }
    return true;
}

struct pool_use {
    struct arena arena;
    struct map amounts; /* resource to int64_t */
    int64_t nodes;
};

static void add_amount(struct pool_use *u, const char *name, int64_t amount)
{
    void **slot = map_slot(&u->amounts, str_from(name));

    if (!*slot)
        *slot = ARENA_NEW(&u->arena, int64_t);
    *(int64_t *)*slot = num_add_sat(*(int64_t *)*slot, amount);
}

static void count_use(const struct control *c, const char *pool, struct pool_use *u)
{
    cluster_each(c, CACHE_NODECLAIM, nodeclaim, claim)
    {
        const char *of = labels_get(&claim->obj.meta.labels, LABEL_NODEPOOL);

        if (!of || strcmp(of, pool) != 0)
            continue;
        u->nodes++;
        for (uint32_t i = 0; i < claim->capacity.n; i++)
            add_amount(u, claim->capacity.v[i].name, claim->capacity.v[i].amount);
    }
    add_amount(u, "nodes", u->nodes);
}

static bool use_differs(const struct nodepool *p, const struct pool_use *u)
{
    if (p->nodes != u->nodes || p->used.n != map_len(&u->amounts))
        return true;
    map_each(&u->amounts, it) {
        if (resource_list_get(&p->used, it->key) != *(int64_t *)it->value)
            return true;
    }
    return false;
}

static void export_use(struct control *c, const struct nodepool *p, const struct pool_use *u)
{
    map_each(&u->amounts, it) {
        const struct str v[] = {map_key(it), str_from(p->obj.meta.name)};

        if (c->metric.pool_usage)
            metric_set(metric_of(c->metric.pool_usage, v, 2), (double)*(int64_t *)it->value);
    }
    for (uint32_t i = 0; i < p->limits.n; i++) {
        const struct str v[] = {str_from(p->limits.v[i].name), str_from(p->obj.meta.name)};

        if (c->metric.pool_limit)
            metric_set(metric_of(c->metric.pool_limit, v, 2), (double)p->limits.v[i].amount);
    }
}

static void patched(struct control *c, const char *name, const struct effect_answer *a)
{
    bool behind = a->err && (a->err->code == ERR_CONFLICT || a->err->code == ERR_NOT_FOUND);

    queue_done(c->pool_queue, str_from(name), !a->err || behind);
    if (behind || !a->err)
        queue_add_after(c->pool_queue, str_from(name), NS_PER_S);
}

static bool patch_hash(struct control *c, const struct nodepool *p)
{
    const struct labels *l = &p->obj.meta.annotations;
    const char *have = labels_get(l, ANNOTATION_NODEPOOL_HASH),
               *version = labels_get(l, ANNOTATION_NODEPOOL_HASH_VERSION);
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    char hash[17];

    nodepool_hash(p, hash);
    if (have && version && strcmp(have, hash) == 0 && strcmp(version, NODEPOOL_HASH_VERSION) == 0)
        return false;
    buf_printf(&body, "{\"metadata\":{\"annotations\":{\"%s\":\"%s\",\"%s\":\"%s\"}}}",
               ANNOTATION_NODEPOOL_HASH, hash, ANNOTATION_NODEPOOL_HASH_VERSION,
               NODEPOOL_HASH_VERSION);
    return execute_patch(c, CACHE_NODEPOOL, p->obj.meta.name, p->obj.meta.name, NULL,
                         buf_view(&body), patched);
}

static bool patch_status(struct control *c, const struct nodepool *p,
                         const struct wanted_condition *want, unsigned n,
                         const struct nodeclass *class)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct pool_use use = {0};
    struct json_writer w;
    bool started = false;
    int64_t generation = class ? class->obj.meta.generation : 0;

    count_use(c, p->obj.meta.name, &use);
    export_use(c, p, &use);
    if (use_differs(p, &use) || conditions_differ(&p->conditions, want, n) ||
        p->class_observed_generation != generation) {
        char q[32];

        body_begin(&w, &body, &p->obj.meta);
        body_metadata_end(&w);
        json_w_kobject(&w, "status");
        json_w_ki64(&w, "nodes", use.nodes);
        json_w_kobject(&w, "resources");
        for (uint32_t i = 0; i < p->used.n; i++)
            if (!map_has(&use.amounts, str_from(p->used.v[i].name)))
                json_w_kcstr(&w, p->used.v[i].name, NULL);
        map_each(&use.amounts, it)
            json_w_kstr(&w, it->key, quantity_format_for(q, map_key(it), *(int64_t *)it->value));
        json_w_object_end(&w);
        json_w_ki64(&w, "nodeClassObservedGeneration", generation);
        body_conditions(&w, &p->conditions, want, n, p->obj.meta.generation, control_now(c));
        json_w_object_end(&w);
        body_end(&w);
        started = execute_patch(c, CACHE_NODEPOOL, p->obj.meta.name, p->obj.meta.name, "status",
                                buf_view(&body), patched);
    }
    map_release(&use.amounts, NULL);
    arena_release(&use.arena);
    return started;
}

/* Why the class cannot be launched from; NULL: it can. */
static const char *class_fault(const struct nodeclass *class, const struct class_memory *m)
{
    const struct condition *ready = class ? condition_find(&class->conditions, "Ready") : NULL;

    if (!class)
        return "the node class does not exist";
    if (class->invalid)
        return class->invalid;
    if (ready && ready->status == CONDITION_FALSE && strcmp(class->obj.kind->group, "weft.sh") != 0)
        return ready->message && ready->message[0] ? ready->message : "the node class is not Ready";
    if (!m || !m->catalog)
        return m && m->error ? m->error : "its catalogue has not been read yet";
    return NULL;
}

static void keep_good(struct pool_memory *m, struct nodepool *p)
{
    if (m->good == p)
        return;
    object_ref(&p->obj);
    if (m->good)
        object_unref(&m->good->obj);
    m->good = p;
}

static void reconcile(struct control *c, struct nodepool *p, struct pool_memory *m)
{
    struct err err = ERR_INIT;
    bool valid = !p->invalid && nodepool_validate(p, &err) == 0;
    const char *fault = valid ? NULL : p->invalid ? p->invalid : err.msg, *class_wrong;
    const struct node_class_ref *ref;
    struct nodeclass *class;
    char *was = m->blocked;

    if (valid)
        keep_good(m, p);
    ref = &(m->good ? m->good : p)->template_.class_ref;
    class = cluster_class(c, ref, NULL);
    class_wrong = class_fault(class, class_of(c, ref));
    m->blocked = !m->good      ? xstr_dup(str_from(fault))
                 : class_wrong ? xstr_dup(str_from(class_wrong))
                               : NULL;
    if ((was == NULL) != (m->blocked == NULL))
        c->cluster.generation++;
    provision_poke(c); /* a plan waits until every pool has been looked at */
    free(was);
    if (!valid)
        control_event(c, &p->obj, true, "NodePoolValidationFailed", "%s%s", fault,
                      m->good ? "; the last valid version stays in force" : "");
    struct wanted_condition want[] = {
        {"ValidationSucceeded", valid ? CONDITION_TRUE : CONDITION_FALSE,
         valid ? "ValidationSucceeded" : "NodePoolValidationFailed", valid ? "" : fault},
        {"NodeClassReady", class_wrong ? CONDITION_FALSE : CONDITION_TRUE,
         class_wrong ? "NodeClassNotReady" : "NodeClassReady", class_wrong ? class_wrong : ""},
        {"Ready", valid && !class_wrong ? CONDITION_TRUE : CONDITION_FALSE,
         valid && !class_wrong ? "Ready" : "UnhealthyDependents",
         valid && !class_wrong ? ""
         : valid               ? class_wrong
                               : fault},
    };
    if ((valid && patch_hash(c, p)) || patch_status(c, p, want, ARRAY_LEN(want), class))
        return;
    queue_done(c->pool_queue, str_from(p->obj.meta.name), true);
}

static void process(void *arg, struct str key)
{
    struct control *c = arg;
    char name[256];
    struct nodepool *p;

    snprintf(name, sizeof(name), "%.*s", STR_ARG(key));
    p = c->ready ? cluster_pool(c, name) : NULL;
    if (!p) {
        struct pool_memory *m = c->ready ? map_remove(&c->pools->pools, str_from(name)) : NULL;

        if (m)
            pool_free(m);
        queue_done(c->pool_queue, key, true);
        return;
    }
    object_ref(&p->obj);
    reconcile(c, p, pool_memory(c, name));
    object_unref(&p->obj);
}

void pools_touch(struct control *c, const char *name)
{
    queue_add(c->pool_queue, str_from(name));
}

void pools_touch_all(struct control *c)
{
    cluster_each(c, CACHE_NODEPOOL, nodepool, p) pools_touch(c, p->obj.meta.name);
}

void pools_init(struct control *c)
{
    c->pools = xcalloc(1, sizeof(*c->pools));
    c->pool_queue = queue_new(c->loop, c->o.seed ^ 2, 8, process, c);
}

void pools_release(struct control *c)
{
    queue_free(c->pool_queue);
    map_release(&c->pools->pools, pool_free);
    map_release(&c->pools->classes, class_free);
    free(c->pools);
}
