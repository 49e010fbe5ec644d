/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Pods that are announced and do not exist yet.
 *
 * When weft has raised the replicas of a workload, its pods follow through a controller and the
 * scheduler, which takes a second or more. Planning for them from the template at once saves that
 * second. The head start cannot run away: it covers replicas beyond the pods that live, for a short
 * while after the raise, and only workloads that weft scales itself. */
#include "base/num.h"
#include "provisioner/control/internal.h"

#define ANNOTATION_TRIGGERS "weft.sh/triggers"
#define ANNOTATION_SPEC "weft.sh/spec"
#define ANNOTATION_PRE_PROVISION "weft.sh/pre-provision"

struct coming {
    enum cache which;
    int64_t since;   /* of the last raise */
    int64_t planned; /* announced pods that a plan has covered */
    char *namespace_, *name;
};

static void coming_free(void *p)
{
    struct coming *m = p;

    free(m->namespace_);
    free(m->name);
    free(m);
}

void coming_release(struct control *c)
{
    map_release(&c->coming, coming_free);
}

bool coming_scaled(const struct workload *w)
{
    const struct labels *a = &w->obj.meta.annotations;
    const char *pre = labels_get(a, ANNOTATION_PRE_PROVISION);

    return (labels_has(a, ANNOTATION_TRIGGERS) || labels_has(a, ANNOTATION_SPEC)) &&
           !(pre && strcmp(pre, "false") == 0);
}

static void add_owned(const struct control *c, const char *uid, struct owner_memory *to)
{
    const struct owner_memory *m = map_get(&c->cluster.owners, str_from(uid));

    to->live += m ? m->live : 0;
    to->decided += m ? m->decided : 0;
}

/* The workload's pods, through its ReplicaSets where it has them. */
static struct owner_memory owned(const struct control *c, const struct workload *w)
{
    struct owner_memory n = {0};

    add_owned(c, w->obj.meta.uid, &n);
    if (w->obj.kind != &kind_deployment)
        return n;
    cluster_each(c, CACHE_REPLICASET, workload, rs)
    {
        const struct owner_ref *o = meta_controller(&rs->obj.meta);

        if (o && strcmp(o->uid, w->obj.meta.uid) == 0)
            add_owned(c, rs->obj.meta.uid, &n);
    }
    return n;
}

int64_t coming_live(const struct control *c, const struct workload *w)
{
    return owned(c, w).live;
}

void coming_changed(struct control *c, const struct workload *before, const struct workload *after)
{
    const struct workload *w = after ? after : before;
    struct coming *m;
    void **slot;

    if (w->obj.kind != &kind_deployment && w->obj.kind != &kind_statefulset)
        return;
    if (!before || !after || !coming_scaled(after) || after->replicas <= before->replicas)
        return;
    slot = map_slot(&c->coming, str_from(after->obj.meta.uid));
    if (!*slot) {
        m = *slot = xcalloc(1, sizeof(*m));
        m->which = w->obj.kind == &kind_deployment ? CACHE_DEPLOYMENT : CACHE_STATEFULSET;
        m->namespace_ = xstrdup(after->obj.meta.namespace_);
        m->name = xstrdup(after->obj.meta.name);
    }
    m = *slot;
    m->since = control_now(c);
    m->planned = MIN(m->planned, MAX(before->replicas - coming_live(c, after), 0));
}

/* False: the announcement is over. */
static bool coming_open(struct control *c, struct coming *m, const char *uid,
                        struct coming_pods *ret)
{
    struct object *o = informer_get(c->cluster.caches[m->which], m->namespace_, m->name);
    struct workload *w = o ? workload_of(o) : NULL;
    int64_t live;

    if (!w || strcmp(w->obj.meta.uid, uid) != 0 || !coming_scaled(w) ||
        control_now(c) - m->since >= c->o.coming_for)
        return false;
    live = coming_live(c, w);
    *ret = (struct coming_pods){w, live, MAX(w->replicas - live, 0), false};
    ret->wanting = ret->count > m->planned;
    return ret->count > 0;
}

bool coming_next(struct control *c, size_t *cursor, struct coming_pods *ret)
{
    struct map_entry *e;

    while ((e = map_at(&c->coming, *cursor))) {
        *cursor = (size_t)(e - c->coming.entries) + 1;
        if (coming_open(c, e->value, e->key, ret))
            return true;
        coming_free(map_remove(&c->coming, map_key(e)));
    }
    return false;
}

static struct workload *workload_named(const struct control *c, const char *namespace_,
                                       const char *name)
{
    struct object *o = informer_get(c->cluster.caches[CACHE_DEPLOYMENT], namespace_, name);

    if (!o)
        o = informer_get(c->cluster.caches[CACHE_STATEFULSET], namespace_, name);
    return o ? workload_of(o) : NULL;
}

/* An announced pod's key is its workload's with an index: "namespace/name-3". Its place is wanted
 * while pods are still to come, and while those that came have neither a node nor the scheduler's
 * word: until then nobody knows whose place it is. */
bool coming_wants(struct control *c, const char *key)
{
    const char *slash = strchr(key, '/'), *dash = strrchr(key, '-');
    char namespace_[256], name[256];
    const struct workload *w;
    struct owner_memory n;

    if (!slash || !dash || dash < slash)
        return false;
    snprintf(namespace_, sizeof(namespace_), "%.*s", (int)MIN(slash - key, 250), key);
    snprintf(name, sizeof(name), "%.*s", (int)MIN(dash - slash - 1, 250), slash + 1);
    w = workload_named(c, namespace_, name);
    if (!w)
        return false;
    n = owned(c, w);
    return w->replicas > n.live || n.decided < n.live;
}

void coming_planned(struct control *c)
{
    map_each(&c->coming, it) {
        struct coming *m = it->value;
        struct coming_pods p;

        if (coming_open(c, m, it->key, &p))
            m->planned = MAX(m->planned, p.count);
    }
}
