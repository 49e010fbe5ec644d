/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The caches, and the few indexes over them that every look needs: pods by node and by owner, Nodes
 * and claims by provider id, the pods that wait. Handlers only mark; deciding is done elsewhere. */
#include <assert.h>

#include "provisioner/control/internal.h"
#include "provisioner/disrupt/empty.h"

/* Karpenter's own lease; whoever holds it may act on the same objects. */
#define KARPENTER_LEASE "karpenter-leader-election"
#define KARPENTER_ALIVE (60 * NS_PER_S)

VEC_DEFINE(id_names, char *);

static const struct kind *const kinds[CACHE_CLASS] = {
    [CACHE_POD] = &kind_pod,
    [CACHE_NODE] = &kind_node,
    [CACHE_NODECLAIM] = &kind_nodeclaim,
    [CACHE_NODEPOOL] = &kind_nodepool,
    [CACHE_DAEMONSET] = &kind_daemonset,
    [CACHE_DEPLOYMENT] = &kind_deployment,
    [CACHE_REPLICASET] = &kind_replicaset,
    [CACHE_STATEFULSET] = &kind_statefulset,
    [CACHE_JOB] = &kind_job,
    [CACHE_VOLUME_ATTACHMENT] = &kind_volume_attachment,
    [CACHE_NAMESPACE] = &kind_namespace,
    [CACHE_LEASE] = &kind_lease,
};

/* ---- Lookups ---- */

struct node_memory *cluster_node(struct control *c, const char *name)
{
    void **slot = map_slot(&c->cluster.nodes, str_from(name));

    if (!*slot)
        *slot = xcalloc(1, sizeof(struct node_memory));
    return *slot;
}

struct nodeclaim *cluster_claim(const struct control *c, const char *name)
{
    struct object *o = name ? informer_get(c->cluster.caches[CACHE_NODECLAIM], NULL, name) : NULL;

    return o ? nodeclaim_of(o) : NULL;
}

struct nodepool *cluster_pool(const struct control *c, const char *name)
{
    struct object *o = name ? informer_get(c->cluster.caches[CACHE_NODEPOOL], NULL, name) : NULL;

    return o ? nodepool_of(o) : NULL;
}

const struct node *cluster_node_of_id(const struct control *c, const char *provider_id,
                                      bool *ret_several)
{
    const struct id_names *names = map_get(&c->cluster.node_of_id, str_from(provider_id));
    struct object *o;

    if (ret_several)
        *ret_several = names && names->len > 1;
    if (!names || names->len == 0)
        return NULL;
    o = informer_get(c->cluster.caches[CACHE_NODE], NULL, names->v[0]);
    return o ? node_of(o) : NULL;
}

struct nodeclaim *cluster_claim_of_id(const struct control *c, const char *provider_id)
{
    const struct id_names *names =
        provider_id ? map_get(&c->cluster.claim_of_id, str_from(provider_id)) : NULL;

    return names && names->len > 0 ? cluster_claim(c, names->v[0]) : NULL;
}

struct cloud *cluster_cloud(const struct control *c, const struct node_class_ref *ref)
{
    for (size_t i = 0; i < c->n_clouds; i++)
        if (ref->group && ref->kind && strcmp(c->clouds[i]->vt->class_group, ref->group) == 0 &&
            strcmp(c->clouds[i]->vt->class_kind, ref->kind) == 0)
            return c->clouds[i];
    return NULL;
}

struct nodeclass *cluster_class(const struct control *c, const struct node_class_ref *ref,
                                struct cloud **ret_cloud)
{
    struct cloud *cloud = cluster_cloud(c, ref);
    struct object *o = NULL;

    for (size_t i = 0; cloud && ref->name && i < c->n_clouds; i++)
        if (c->clouds[i] == cloud)
            o = informer_get(c->cluster.caches[CACHE_CLASS + i], NULL, ref->name);
    if (ret_cloud)
        *ret_cloud = cloud;
    return o ? nodeclass_of(o) : NULL;
}

static struct workload *owner_of(const struct control *c, const struct meta *m)
{
    static const enum cache owners[] = {CACHE_REPLICASET, CACHE_DEPLOYMENT, CACHE_STATEFULSET,
                                        CACHE_JOB};
    const struct owner_ref *o = meta_controller(m);

    for (size_t i = 0; o && i < ARRAY_LEN(owners); i++)
        if (strcmp(kinds[owners[i]]->kind, o->kind) == 0) {
            struct object *found =
                informer_get(c->cluster.caches[owners[i]], m->namespace_, o->name);

            return found ? workload_of(found) : NULL;
        }
    return NULL;
}

struct workload *cluster_workload_of(const struct control *c, const struct pod *p)
{
    struct workload *w = owner_of(c, &p->obj.meta), *above = w ? owner_of(c, &w->obj.meta) : NULL;

    return above ? above : w;
}

const char *cluster_karpenter(const struct control *c)
{
    cluster_each(c, CACHE_LEASE, lease, l)
    {
        if (strcmp(l->obj.meta.name, KARPENTER_LEASE) == 0 && l->holder && l->holder[0] &&
            control_now(c) - l->renew_time < KARPENTER_ALIVE)
            return l->holder;
    }
    return NULL;
}

/* ---- Indexes ---- */

static void id_add(struct map *m, const char *id, const char *name)
{
    void **slot;
    struct id_names *names;

    if (!id || !id[0])
        return;
    slot = map_slot(m, str_from(id));
    if (!*slot)
        *slot = xcalloc(1, sizeof(*names));
    names = *slot;
    vec_push(names, xstrdup(name));
}

static void id_remove(struct map *m, const char *id, const char *name)
{
    struct id_names *names = id && id[0] ? map_get(m, str_from(id)) : NULL;

    for (size_t i = 0; names && i < names->len; i++)
        if (strcmp(names->v[i], name) == 0) {
            free(names->v[i]);
            vec_remove(names, i);
            break;
        }
    if (names && names->len == 0) {
        vec_release(names);
        free(map_remove(m, str_from(id)));
    }
}

static void id_free(void *p)
{
    struct id_names *names = p;

    vec_each(names, char **, it)
        free(*it);
    vec_release(names);
    free(names);
}

static bool live(const struct pod *p)
{
    return p && !pod_is_terminal(p) && !pod_is_terminating(p);
}

static bool decided(const struct pod *p)
{
    return live(p) && ((p->spec.node_name && p->spec.node_name[0]) || pod_is_provisionable(p));
}

static void count_owner(struct control *c, const struct pod *p, int64_t by)
{
    const struct owner_ref *o = p ? meta_controller(&p->obj.meta) : NULL;
    void **slot;
    struct owner_memory *m;

    if (!o || !o->uid)
        return;
    slot = map_slot(&c->cluster.owners, str_from(o->uid));
    if (!*slot)
        *slot = xcalloc(1, sizeof(*m));
    m = *slot;
    m->live += live(p) ? by : 0;
    m->decided += decided(p) ? by : 0;
    if (m->live == 0 && m->decided == 0)
        free(map_remove(&c->cluster.owners, str_from(o->uid)));
}

static const char *bound_to(const struct pod *p)
{
    return p && p->spec.node_name && p->spec.node_name[0] ? p->spec.node_name : NULL;
}

static void unbind(struct control *c, struct pod *p)
{
    struct node_memory *m = cluster_node(c, bound_to(p));

    for (size_t i = 0; i < m->pods.len; i++)
        if (strcmp(m->pods.v[i]->obj.meta.uid, p->obj.meta.uid) == 0) {
            object_unref(&m->pods.v[i]->obj);
            vec_remove(&m->pods, i);
            return;
        }
}

static void index_pod(struct control *c, struct pod *before, struct pod *after)
{
    char key[512];
    struct str k = object_key(key, after ? &after->obj : &before->obj);
    struct pod *was = map_remove(&c->cluster.unbound, k);

    if (before && bound_to(before))
        unbind(c, before);
    if (after && bound_to(after)) {
        struct node_memory *m = cluster_node(c, bound_to(after));

        object_ref(&after->obj);
        vec_push(&m->pods, after);
    }
    if (live(after) && !bound_to(after) && after->spec.scheduling_gates.n == 0 &&
        !pod_is_daemon(after)) {
        object_ref(&after->obj);
        map_put(&c->cluster.unbound, k, after);
    }
    count_owner(c, before, -1);
    count_owner(c, after, 1);
    if (was)
        object_unref(&was->obj);
}

static bool keeps(const struct pod *p)
{
    return p && bound_to(p) && pod_keeps_node(p);
}

static void forget_node(struct control *c, const char *name);

static void pod_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;
    struct pod *b = before ? pod_of(before) : NULL, *a = after ? pod_of(after) : NULL;
    const char *node = bound_to(a) ? bound_to(a) : bound_to(b);

    index_pod(c, b, a);
    /* Room was freed, so what did not fit before may fit now. */
    if (keeps(b) && !keeps(a))
        c->cluster.generation++;
    if (keeps(a) != keeps(b) && node && informer_synced(c->cluster.caches[CACHE_POD]))
        cluster_node(c, node)->last_pod_event = control_now(c);
    if (node) {
        struct object *n = informer_get(c->cluster.caches[CACHE_NODE], NULL, node);
        struct nodeclaim *claim = n ? cluster_claim_of_id(c, node_of(n)->provider_id) : NULL;

        if (claim && claim->obj.meta.deletion)
            claims_touch(c, claim->obj.meta.name);
        if (!n)
            forget_node(c, node);
        disruption_touch(c);
    }
    provision_poke(c);
}

static void node_free(void *p)
{
    struct node_memory *m = p;

    vec_each(&m->pods, struct pod **, it)
        object_unref(&(*it)->obj);
    vec_release(&m->pods);
    free(m);
}

/* A name is remembered while a Node or a pod uses it. */
static void forget_node(struct control *c, const char *name)
{
    struct node_memory *m = map_get(&c->cluster.nodes, str_from(name));

    if (m && m->pods.len == 0 && !informer_get(c->cluster.caches[CACHE_NODE], NULL, name))
        node_free(map_remove(&c->cluster.nodes, str_from(name)));
}

static void node_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;
    const struct node *b = before ? node_of(before) : NULL, *a = after ? node_of(after) : NULL;
    const char *id = a ? a->provider_id : b->provider_id;
    struct nodeclaim *claim;

    if (b)
        id_remove(&c->cluster.node_of_id, b->provider_id, b->obj.meta.name);
    if (a)
        id_add(&c->cluster.node_of_id, a->provider_id, a->obj.meta.name);
    claim = cluster_claim_of_id(c, id);
    if (claim)
        claims_touch(c, claim->obj.meta.name);
    if (!a)
        forget_node(c, b->obj.meta.name);
    if (!b || !a || b->n_taints != a->n_taints || b->unschedulable != a->unschedulable ||
        b->obj.meta.deletion != a->obj.meta.deletion || node_is_ready(b) != node_is_ready(a))
        c->cluster.generation++;
    disruption_touch(c);
    provision_poke(c);
}

static void claim_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;
    struct nodeclaim *b = before ? nodeclaim_of(before) : NULL,
                     *a = after ? nodeclaim_of(after) : NULL;
    const char *pool = labels_get(a ? &a->obj.meta.labels : &b->obj.meta.labels, LABEL_NODEPOOL);

    if (b)
        id_remove(&c->cluster.claim_of_id, b->provider_id, b->obj.meta.name);
    if (a)
        id_add(&c->cluster.claim_of_id, a->provider_id, a->obj.meta.name);
    if (!a || !b || (a->obj.meta.deletion != 0) != (b->obj.meta.deletion != 0))
        c->cluster.generation++;
    if (pool) /* several changes of one launch make one status */
        queue_add_after(c->pool_queue, str_from(pool), NS_PER_S);
    disruption_touch(c);
    provision_poke(c);
}

static void pool_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;

    if (!before || !after || before->meta.generation != after->meta.generation)
        c->cluster.generation++;
    pools_touch(c, (after ? after : before)->meta.name);
    disruption_touch(c);
}

static void class_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;

    (void)before;
    (void)after;
    c->cluster.generation++;
    pools_touch_all(c);
}

static void daemonset_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;

    if (!before || !after || before->meta.generation != after->meta.generation)
        c->cluster.generation++;
    provision_poke(c);
}

static void workload_changed(void *arg, struct object *before, struct object *after)
{
    coming_changed(arg, before ? workload_of(before) : NULL, after ? workload_of(after) : NULL);
    provision_poke(arg);
}

static void attachment_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;
    const struct volume_attachment *a = (const void *)(after ? after : before);
    struct object *n =
        a->node_name ? informer_get(c->cluster.caches[CACHE_NODE], NULL, a->node_name) : NULL;
    struct nodeclaim *claim = n ? cluster_claim_of_id(c, node_of(n)->provider_id) : NULL;

    if (claim && claim->obj.meta.deletion)
        claims_touch(c, claim->obj.meta.name);
}

static void namespace_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;

    (void)before;
    if (after && strcmp(after->meta.name, "kube-system") == 0)
        snprintf(c->cluster.uid, sizeof(c->cluster.uid), "%s", after->meta.uid);
}

/* ---- Life ---- */

static void synced(void *arg)
{
    struct control *c = arg;

    if (++c->cluster.n_synced < c->cluster.n_caches)
        return;
    if (!c->cluster.uid[0])
        snprintf(c->cluster.uid, sizeof(c->cluster.uid), "%s", c->cluster_name);
    control_synced(c);
}

static const struct kind *class_kind(const struct cloud *cloud)
{
    size_t n;
    const struct kind *const *all = kind_all(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->group, cloud->vt->class_group) == 0 &&
            strcmp(all[i]->kind, cloud->vt->class_kind) == 0)
            return all[i];
    assert(!"a cloud whose node class is in no table");
    return NULL;
}

void cluster_init(struct control *c)
{
    static informer_changed *const handlers[CACHE_CLASS] = {
        [CACHE_POD] = pod_changed,
        [CACHE_NODE] = node_changed,
        [CACHE_NODECLAIM] = claim_changed,
        [CACHE_NODEPOOL] = pool_changed,
        [CACHE_DAEMONSET] = daemonset_changed,
        [CACHE_DEPLOYMENT] = workload_changed,
        [CACHE_REPLICASET] = workload_changed,
        [CACHE_STATEFULSET] = workload_changed,
        [CACHE_JOB] = workload_changed,
        [CACHE_VOLUME_ATTACHMENT] = attachment_changed,
        [CACHE_NAMESPACE] = namespace_changed,
    };
    static const struct informer_options karpenter_lease = {.field_selector =
                                                                "metadata.name=" KARPENTER_LEASE};

    for (size_t i = 0; i < CACHE_CLASS + c->n_clouds; i++) {
        const struct kind *k = i < CACHE_CLASS ? kinds[i] : class_kind(c->clouds[i - CACHE_CLASS]);

        c->cluster.caches[i] =
            informer_new(c->client, k, i == CACHE_LEASE ? &karpenter_lease : NULL);
        if (i >= CACHE_CLASS || handlers[i])
            informer_on_change(c->cluster.caches[i], i < CACHE_CLASS ? handlers[i] : class_changed,
                               c);
        informer_on_sync(c->cluster.caches[i], synced, c);
    }
    c->cluster.n_caches = CACHE_CLASS + c->n_clouds;
}

void cluster_start(struct control *c)
{
    for (size_t i = 0; i < c->cluster.n_caches; i++)
        informer_start(c->cluster.caches[i]);
}

static void pod_free(void *p)
{
    object_unref(&((struct pod *)p)->obj);
}

void cluster_release(struct control *c)
{
    map_release(&c->cluster.unbound, pod_free);
    map_release(&c->cluster.nodes, node_free);
    map_release(&c->cluster.owners, free);
    map_release(&c->cluster.node_of_id, id_free);
    map_release(&c->cluster.claim_of_id, id_free);
    for (size_t i = 0; i < c->cluster.n_caches; i++)
        informer_free(c->cluster.caches[i]);
}
