/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The one file with effects: every call of the provisioner that changes the API server or the cloud
 * goes out from here, and only while this replica leads, may act and has seen everything. */
#include "provisioner/control/internal.h"

struct effect {
    struct effect *next, **link;
    struct control *c;
    struct client_op *client_op;
    struct cloud *cloud;
    struct cloud_op *cloud_op;
    enum cache which;
    bool returns_object;
    effect_done *done;
    char key[]; /* the caller's */
};

bool execute_allowed(const struct control *c)
{
    return c->started && c->leader && c->ready && !c->o.observe &&
           (c->o.take_over || !cluster_karpenter(c));
}

static struct effect *effect_new(struct control *c, const char *key, effect_done *done)
{
    size_t n = strlen(key) + 1;
    struct effect *e = xcalloc(1, sizeof(*e) + n);

    memcpy(e->key, key, n);
    e->c = c;
    e->done = done;
    e->next = c->effects;
    e->link = &c->effects;
    if (e->next)
        e->next->link = &e->next;
    c->effects = e;
    c->n_effects++;
    return e;
}

static void effect_unlink(struct effect *e)
{
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
    e->c->n_effects--;
}

static void effect_finish(struct effect *e, const struct effect_answer *a)
{
    effect_unlink(e);
    if (e->done)
        e->done(e->c, e->key, a);
    free(e);
}

void execute_cancel_all(struct control *c)
{
    while (c->effects) {
        struct effect *e = c->effects;

        if (e->cloud_op)
            e->cloud->vt->cancel(e->cloud, e->cloud_op);
        client_cancel(e->client_op);
        effect_unlink(e);
        free(e);
    }
}

/* ---- API server ---- */

/* What we wrote is in the cache before anybody looks again, so that a lagging watch does not make
 * us do things twice. A write that took the last finalizer of a deleted object was its end. */
static void remember_write(struct control *c, enum cache which, struct object *o)
{
    struct informer *i = c->cluster.caches[which];

    if (!o->meta.uid)
        return; /* a Status, where the server does not return the object */
    if (o->meta.deletion && o->meta.finalizers.n == 0 && which != CACHE_POD)
        informer_gone(i, o->meta.namespace_, o->meta.name, o->meta.uid);
    else
        informer_wrote(i, o);
}

static void api_done(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct effect *e = arg;
    struct effect_answer a = {.err = err, .answer = answer};

    if (!err && e->returns_object && answer && answer->object)
        remember_write(e->c, e->which, answer->object);
    effect_finish(e, &a);
}

/* Every call gives a handle; without one the effect is over before it began. */
static bool api_started(struct effect *e, struct client_op *op)
{
    if (!op) {
        effect_unlink(e);
        free(e);
        return false;
    }
    e->client_op = op;
    return true;
}

static const struct kind *kind_of(const struct control *c, enum cache which)
{
    return informer_kind(c->cluster.caches[which]);
}

bool execute_create(struct control *c, enum cache which, const char *key, struct str body,
                    effect_done *done)
{
    struct effect *e;

    if (!execute_allowed(c))
        return false;
    e = effect_new(c, key, done);
    e->which = which;
    e->returns_object = true;
    return api_started(e, client_create(c->client, kind_of(c, which), NULL, body, api_done, e));
}

bool execute_patch(struct control *c, enum cache which, const char *key, const char *name,
                   const char *subresource, struct str body, effect_done *done)
{
    struct effect *e;

    if (!execute_allowed(c))
        return false;
    e = effect_new(c, key, done);
    e->which = which;
    e->returns_object = true;
    return api_started(e, client_patch(c->client, kind_of(c, which), NULL, name, subresource,
                                       PATCH_MERGE, body, api_done, e));
}

bool execute_apply(struct control *c, const struct kind *k, const char *key, const char *namespace_,
                   const char *name, struct str body, effect_done *done)
{
    struct effect *e;

    if (!execute_allowed(c))
        return false;
    e = effect_new(c, key, done);
    return api_started(
        e, client_patch(c->client, k, namespace_, name, NULL, PATCH_APPLY, body, api_done, e));
}

void execute_read(struct control *c, enum cache which, const char *key, const char *name,
                  effect_done *done)
{
    struct effect *e = effect_new(c, key, done);

    e->which = which;
    (void)api_started(e, client_get(c->client, kind_of(c, which), NULL, name, api_done, e));
}

bool execute_delete(struct control *c, enum cache which, const char *key, const char *namespace_,
                    const char *name, const char *uid, int64_t grace_s, effect_done *done)
{
    struct effect *e;

    if (!execute_allowed(c))
        return false;
    e = effect_new(c, key, done);
    e->which = which;
    e->returns_object = true;
    return api_started(e, client_delete(c->client, kind_of(c, which), namespace_, name, uid,
                                        grace_s, api_done, e));
}

bool execute_evict(struct control *c, const char *key, const struct pod *p, effect_done *done)
{
    struct effect *e;

    if (!execute_allowed(c))
        return false;
    e = effect_new(c, key, done);
    e->which = CACHE_POD;
    return api_started(e, client_evict(c->client, p->obj.meta.namespace_, p->obj.meta.name,
                                       p->obj.meta.uid, -1, api_done, e));
}

/* ---- Cloud ---- */

static void cloud_finish(struct effect *e, struct effect_answer *a, const struct cloud_error *error)
{
    struct err err = ERR_INIT;

    a->cloud_error = error;
    if (error && error->code != ERR_NONE) {
        err_set(&err, error->code, "%s", error->msg);
        a->err = &err;
        control_count(e->c->metric.cloud_errors, e->cloud->vt->name, err_code_name(error->code),
                      NULL);
    }
    effect_finish(e, a);
}

static void cloud_instance(void *arg, const struct instance *i, const struct cloud_error *error)
{
    cloud_finish(arg, &(struct effect_answer){.instance = i}, error);
}

static void cloud_list(void *arg, const struct instance *v, size_t n,
                       const struct cloud_error *error)
{
    cloud_finish(arg, &(struct effect_answer){.instances = v, .n_instances = n}, error);
}

static void cloud_plain(void *arg, const struct cloud_error *error)
{
    cloud_finish(arg, &(struct effect_answer){0}, error);
}

static struct effect *cloud_effect(struct control *c, struct cloud *cloud, const char *key,
                                   effect_done *done)
{
    struct effect *e = effect_new(c, key, done);

    e->cloud = cloud;
    return e;
}

bool execute_launch(struct control *c, struct cloud *cloud, const char *key,
                    const struct launch_request *r, effect_done *done)
{
    struct effect *e;

    if (!execute_allowed(c))
        return false;
    c->launches++;
    e = cloud_effect(c, cloud, key, done);
    e->cloud_op = cloud->vt->launch(cloud, r, cloud_instance, e);
    return true;
}

bool execute_terminate(struct control *c, struct cloud *cloud, const char *key,
                       const char *provider_id, effect_done *done)
{
    struct effect *e;

    if (!execute_allowed(c))
        return false;
    c->terminations++;
    e = cloud_effect(c, cloud, key, done);
    e->cloud_op = cloud->vt->terminate(cloud, provider_id, cloud_plain, e);
    return true;
}

void execute_get(struct control *c, struct cloud *cloud, const char *key, const char *provider_id,
                 effect_done *done)
{
    struct effect *e = cloud_effect(c, cloud, key, done);

    e->cloud_op = cloud->vt->get(cloud, provider_id, cloud_instance, e);
}

void execute_list(struct control *c, struct cloud *cloud, const char *key, effect_done *done)
{
    struct effect *e = cloud_effect(c, cloud, key, done);

    e->cloud_op = cloud->vt->list(cloud, c->cluster_name, cloud_list, e);
}
