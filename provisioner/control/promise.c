/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Nominations and refusals: what the last plans said about each pod. */
#include "base/num.h"
#include "provisioner/control/provision.h"
#include "provisioner/disrupt/empty.h"

#define CREATION_SEEN (10 * NS_PER_S) /* until a created claim must be in the cache */
#define PLACE_UNUSED                                                                               \
    (60 * NS_PER_S) /* a ready place that the scheduler does not use holds no longer */
#define REFUSAL_LONGEST (30 * NS_PER_S)

static void count_target(struct control *c, const char *target, int by)
{
    void **slot = map_slot(&c->provision->targets, str_from(target));

    if (!*slot)
        *slot = xcalloc(1, sizeof(size_t));
    *(size_t *)*slot += (size_t)by;
    if (*(size_t *)*slot == 0)
        free(map_remove(&c->provision->targets, str_from(target)));
}

static void nomination_free(void *p)
{
    struct nomination *n = p;

    free(n->target);
    free(n);
}

void promise_break(struct control *c, const char *pod_key)
{
    struct nomination *n = map_remove(&c->provision->nominations, str_from(pod_key));

    if (!n)
        return;
    if (!n->stale)
        count_target(c, n->target, -1);
    nomination_free(n);
    disruption_touch(c); /* a node that nobody expects any more may be empty */
}

void promise_make(struct control *c, const char *pod_key, const char *target, bool claim)
{
    struct nomination *n = map_get(&c->provision->nominations, str_from(pod_key));
    struct refusal *r = map_remove(&c->provision->refusals, str_from(pod_key));

    if (r)
        free(r->why);
    free(r);
    /* The same place again: its time runs on, so that a place nobody uses is not held for ever. */
    if (n && strcmp(n->target, target) == 0)
        return;
    promise_break(c, pod_key);
    n = xcalloc(1, sizeof(*n));
    n->target = xstrdup(target);
    n->claim = claim;
    n->at = control_now(c);
    map_put(&c->provision->nominations, str_from(pod_key), n);
    count_target(c, target, 1);
    disruption_touch(c);
}

/* Since when the place could be used; TIME_NEVER: it cannot yet, or it is not there at all
 * (*ret_lost). */
static int64_t usable_since(struct control *c, const struct nomination *n, bool *ret_lost)
{
    struct object *o;

    *ret_lost = false;
    if (n->claim) {
        const struct nodeclaim *claim = cluster_claim(c, n->target);
        const struct condition *init =
            claim ? condition_find(&claim->conditions, CONDITION_INITIALIZED) : NULL;

        *ret_lost = claim ? claim->obj.meta.deletion != 0 : control_now(c) - n->at > CREATION_SEEN;
        return init && init->status == CONDITION_TRUE ? init->last_transition : TIME_NEVER;
    }
    o = informer_get(c->cluster.caches[CACHE_NODE], NULL, n->target);
    *ret_lost = !o || o->meta.deletion || node_of(o)->unschedulable;
    return o && node_is_ready(node_of(o)) ? n->at : TIME_NEVER;
}

/* The pod of the key, or NULL: it is only announced, or gone. */
static const struct pod *promised_pod(struct control *c, const char *key)
{
    char namespace_[256];
    const char *slash = strchr(key, '/');
    const struct object *o;

    snprintf(namespace_, sizeof(namespace_), "%.*s", slash ? (int)MIN(slash - key, 250) : 0, key);
    o = informer_get(c->cluster.caches[CACHE_POD], namespace_, slash ? slash + 1 : key);
    return o ? (const struct pod *)(const void *)o : NULL;
}

/* Whether somebody still wants the place: a pod without a node, a pod on a node that goes away, or
 * an announced pod, which nobody can see (its key is not a pod's): those end with their window, or
 * as soon as the workload announces no more. */
static bool wanted(struct control *c, const char *key, const struct nomination *n)
{
    const struct pod *p = promised_pod(c, key);
    const struct object *node;

    if (map_has(&c->cluster.unbound, str_from(key)))
        return true;
    if (!p)
        return control_now(c) - n->at < c->o.coming_for && coming_wants(c, key);
    if (!pod_keeps_node(p) || !p->spec.node_name || !p->spec.node_name[0])
        return false;
    node = informer_get(c->cluster.caches[CACHE_NODE], NULL, p->spec.node_name);
    return node && node->meta.deletion;
}

/* The scheduler makes its own choice among nodes that fit. A pod that took the place of another
 * leaves its own to it, and so on along a chain of them, so that the place which is free in the end
 * is the one that is expected to be used, and not judged empty. */
static void exchange(struct control *c, struct nomination *mine, const char *node)
{
    const struct object *o = informer_get(c->cluster.caches[CACHE_NODE], NULL, node);
    const char *id = o ? ((const struct node *)(const void *)o)->provider_id : NULL;
    const struct nodeclaim *claim = id ? cluster_claim_of_id(c, id) : NULL;

    if (mine->stale || strcmp(mine->target, node) == 0 ||
        (claim && strcmp(mine->target, claim->obj.meta.name) == 0))
        return;
    map_each(&c->provision->nominations, it) {
        struct nomination *other = it->value;
        bool here = strcmp(other->target, node) == 0 ||
                    (claim && strcmp(other->target, claim->obj.meta.name) == 0);
        char *target = mine->target;
        bool of_claim = mine->claim;

        if (other == mine || other->stale || !here || !promised_pod(c, it->key))
            continue;
        mine->target = other->target;
        mine->claim = other->claim;
        other->target = target;
        other->claim = of_claim;
        return;
    }
}

void promise_sweep(struct control *c)
{
    int64_t now = control_now(c);

    map_each(&c->provision->nominations, it) {
        const struct pod *p = promised_pod(c, it->key);

        if (p && p->spec.node_name && p->spec.node_name[0])
            exchange(c, it->value, p->spec.node_name);
    }

    map_each(&c->provision->nominations, it) {
        struct nomination *n = it->value;
        bool lost;
        int64_t since = usable_since(c, n, &lost);

        if (lost || !wanted(c, it->key, n)) {
            promise_break(c, it->key);
        } else if (!n->stale && since != TIME_NEVER && now - MAX(since, n->at) > PLACE_UNUSED) {
            n->stale = true;
            count_target(c, n->target, -1);
            disruption_touch(c);
        }
    }
    map_each(&c->provision->refusals, it) {
        struct refusal *r = it->value;

        if (!map_has(&c->cluster.unbound, map_key(it)) && now - r->at > c->o.coming_for) {
            map_remove(&c->provision->refusals, map_key(it));
            free(r->why);
            free(r);
        }
    }
}

void promise_release(struct control *c)
{
    map_release(&c->provision->nominations, nomination_free);
    map_release(&c->provision->targets, free);
    map_each(&c->provision->refusals, it)
        free(((struct refusal *)it->value)->why);
    map_release(&c->provision->refusals, free);
}

void refuse(struct control *c, const char *pod_key, uint64_t generation, const char *why)
{
    char *key = xstrdup(pod_key); /* it may be that of the nomination that ends here */
    void **slot;
    struct refusal *r;

    promise_break(c, key);
    slot = map_slot(&c->provision->refusals, str_from(key));
    free(key);
    if (!*slot)
        *slot = xcalloc(1, sizeof(*r));
    r = *slot;
    r->generation = generation;
    r->at = control_now(c);
    r->again = r->at + MIN(NS_PER_S << MIN(r->tries, 10u), REFUSAL_LONGEST);
    r->tries++;
    if (why) {
        free(r->why);
        r->why = xstrdup(why);
    }
}

bool refused_now(const struct control *c, const char *pod_key, int64_t *ret_again)
{
    const struct refusal *r = map_get(&c->provision->refusals, str_from(pod_key));
    bool same = r && r->generation == c->cluster.generation;

    if (!r || (!same && control_now(c) >= r->again))
        return false;
    if (ret_again)
        *ret_again = same ? TIME_NEVER : r->again;
    return true;
}

size_t provision_nominated(const struct control *c, const char *claim_or_node)
{
    const size_t *n =
        claim_or_node ? map_get(&c->provision->targets, str_from(claim_or_node)) : NULL;

    return n ? *n : 0;
}
