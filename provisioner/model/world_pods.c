/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Building the world: pods on nodes, pods that need a place, and their classes. */

#include "base/bits.h"
#include "base/num.h"
#include "provisioner/model/builder.h"
#include "provisioner/model/signature.h"

/* ---- Pods on nodes ---- */

struct tally {
    int64_t *daemon_used;
    const struct pod **pods; /* filled in the second pass */
    struct host_port *ports;
    uint32_t n_ports;
};

static uint32_t node_of_pod(const struct world_builder *b, const struct pod *p)
{
    const char *promised =
        map_len(&b->promises) ? map_get(&b->promises, str_from(p->obj.meta.uid)) : NULL;
    uintptr_t at = promised ? (uintptr_t)map_get(&b->node_index, str_from(promised)) : 0;
    if (at)
        return (uint32_t)(at - 1);
    if (!p->spec.node_name || !*p->spec.node_name)
        return WORLD_NONE;
    at = (uintptr_t)map_get(&b->node_index, str_from(p->spec.node_name));
    return at ? (uint32_t)(at - 1) : WORLD_NONE;
}

/* Adds the pod's requests without making a dense copy: this runs for every pod of the cluster. */
static void use(const struct resources *r, int64_t *to, const struct resource_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        int at = resources_find(r, l->v[i].name);
        if (at >= 0)
            to[at] = num_add_sat(to[at], l->v[i].amount);
    }
    to[RESOURCE_PODS]++;
}

static void add_node_ports(struct world_builder *b, struct tally *t, const struct pod *p)
{
    uint32_t n;
    const struct host_port *v = podset_ports(&p->spec, &n, &b->world->arena);
    if (n == 0)
        return;
    struct host_port *all = ARENA_NEW_ARRAY(&b->world->arena, struct host_port, t->n_ports + n);
    if (t->n_ports)
        memcpy(all, t->ports, t->n_ports * sizeof(*all));
    memcpy(all + t->n_ports, v, n * sizeof(*all));
    t->ports = all;
    t->n_ports += n;
}

static void add_antis(struct world_builder *b, const struct pod *p, uint32_t node,
                      struct world_anti **v, size_t *len, size_t *cap)
{
    const struct affinity *f = p->spec.affinity;
    const char *namespace_ = p->obj.meta.namespace_ ? p->obj.meta.namespace_ : "default";
    for (uint32_t i = 0; f && i < f->n_anti_required; i++) {
        struct world_anti anti = {.node = node};
        topology_affinity_group(&b->topology, &f->anti_required[i], namespace_, &p->obj.meta.labels,
                                &anti.group);
        struct {
            VEC(struct world_anti);
        } to = {*v, *len, *cap};
        vec_push(&to, anti);
        *v = to.v;
        *len = to.len;
        *cap = to.cap;
    }
}

static void count_bound(struct world_builder *b, struct tally *tallies)
{
    struct world *w = b->world;
    struct world_anti *antis = NULL;
    size_t len = 0, cap = 0;
    vec_each(&b->pods, struct pod **, it) {
        uint32_t at = node_of_pod(b, *it);
        if (at == WORLD_NONE)
            continue;
        struct world_node *n = &w->nodes[at];
        n->n_pods++;
        use(&w->resources, n->used, &(*it)->requests);
        if (pod_is_daemon(*it)) {
            if (!tallies[at].daemon_used)
                tallies[at].daemon_used = ARENA_NEW_ARRAY(&w->arena, int64_t, w->resources.n);
            use(&w->resources, tallies[at].daemon_used, &(*it)->requests);
        }
        add_node_ports(b, &tallies[at], *it);
        if (n->state != WORLD_NODE_DELETING || pod_is_daemon(*it))
            add_antis(b, *it, at, &antis, &len, &cap);
    }
    w->antis = ARENA_NEW_ARRAY(&w->arena, struct world_anti, len + 1);
    if (len)
        memcpy(w->antis, antis, len * sizeof(*antis));
    w->n_antis = (uint32_t)len;
    free(antis);
}

static void list_bound(struct world_builder *b, struct tally *tallies)
{
    struct world *w = b->world;
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        tallies[i].pods = ARENA_NEW_ARRAY(&w->arena, const struct pod *, w->nodes[i].n_pods);
        w->nodes[i].pods = tallies[i].pods;
        w->nodes[i].n_pods = 0;
    }
    vec_each(&b->pods, struct pod **, it) {
        uint32_t at = node_of_pod(b, *it);
        if (at != WORLD_NONE)
            tallies[at].pods[w->nodes[at].n_pods++] = *it;
    }
}

static bool daemon_runs_on(const struct daemon *d, const struct world_node *n)
{
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (!str_has_prefix(str_from(n->taints[i].key), STR("node.kubernetes.io/")) &&
            podset_untolerated(d->set.spec, &n->taints[i], 1))
            return false;
    return podset_compatible(&d->set, &n->labels, NULL);
}

/* Keeps room and ports for daemonset pods that will come to the node but are not there yet. */
static void set_room(struct world_builder *b, struct world_node *n, struct tally *t)
{
    uint32_t count = b->world->resources.n;
    uint64_t *set = ARENA_NEW_ARRAY(&b->world->arena, uint64_t, BITS_WORDS(b->daemons.len) + 1);
    bool any = false;
    for (size_t i = 0; i < b->daemons.len; i++)
        if (daemon_runs_on(&b->daemons.v[i], n)) {
            bits_set(set, i);
            any = true;
            const struct podset *d = &b->daemons.v[i].set;
            if (d->n_ports && !podset_ports_conflict(d, t->ports, t->n_ports)) {
                struct pod as_pod = {.spec = *d->spec};
                add_node_ports(b, t, &as_pod);
            }
        }
    n->room = ARENA_NEW_ARRAY(&b->world->arena, int64_t, count);
    memcpy(n->room, n->allocatable, count * sizeof(*n->room));
    resources_subtract(n->room, n->used, count);
    if (any) {
        int64_t *due = builder_daemon_sum(b, set);
        if (t->daemon_used)
            resources_subtract(due, t->daemon_used, count);
        for (uint32_t i = 0; i < count; i++)
            n->room[i] = num_add_sat(n->room[i], -MAX(due[i], 0));
    }
    n->ports = t->ports;
    n->n_ports = t->n_ports;
}

/* ---- Pods that need a place ---- */

static const char *why_ignored(const struct world_builder *b, const struct pod *p)
{
    if (pod_is_mirror(p))
        return "it is a static pod of a node";
    if (pod_is_daemon(p))
        return "its DaemonSet places it";
    if (pod_is_terminating(p))
        return "it is being deleted";
    if (p->spec.scheduling_gates.n)
        return arena_printf(&b->world->arena, "it waits for scheduling gate %s",
                            p->spec.scheduling_gates.v[0])
            .p;
    if (p->nominated_node && *p->nominated_node)
        return arena_printf(&b->world->arena, "the scheduler makes room for it on node %s",
                            p->nominated_node)
            .p;
    return NULL;
}

static const char *key_of(struct arena *a, const char *namespace_, const char *name)
{
    return arena_printf(a, "%s/%s", namespace_ ? namespace_ : "default", name).p;
}

static struct world_pod from_pod(struct world_builder *b, const struct pod *p,
                                 enum world_pod_origin origin)
{
    return (struct world_pod){
        .key = key_of(&b->world->arena, p->obj.meta.namespace_, p->obj.meta.name),
        .namespace_ = p->obj.meta.namespace_ ? p->obj.meta.namespace_ : "default",
        .name = p->obj.meta.name,
        .origin = origin,
        .pod = p,
        .spec = &p->spec,
        .labels = &p->obj.meta.labels,
        .requests = &p->requests,
        .creation = p->obj.meta.creation,
        .class_ = WORLD_NONE,
        .ignored = why_ignored(b, p),
    };
}

static struct world_pod from_workload(struct world_builder *b, const struct workload *x,
                                      int64_t index)
{
    struct arena *a = &b->world->arena;
    const char *name = arena_printf(a, "%s-%lld", x->obj.meta.name, (long long)index).p;
    return (struct world_pod){
        .key = key_of(a, x->obj.meta.namespace_, name),
        .namespace_ = x->obj.meta.namespace_ ? x->obj.meta.namespace_ : "default",
        .name = name,
        .origin = WORLD_POD_COMING,
        .workload = x,
        .spec = &x->template_.spec,
        .labels = &x->template_.labels,
        .requests = &x->template_.requests,
        .class_ = WORLD_NONE,
    };
}

static int by_key(const void *x, const void *y)
{
    const struct world_pod *p = x, *q = y;
    int c = strcmp(p->key, q->key);
    return c ? c : (int)p->origin - (int)q->origin;
}

static void list_pending(struct world_builder *b)
{
    struct world *w = b->world;
    struct {
        VEC(struct world_pod);
    } found = {0};
    vec_each(&b->pods, struct pod **, it) {
        uint32_t at = node_of_pod(b, *it);
        bool bound = at != WORLD_NONE || ((*it)->spec.node_name && *(*it)->spec.node_name);
        if (!bound)
            vec_push(&found, from_pod(b, *it, WORLD_POD_PENDING));
        else if (at != WORLD_NONE && w->nodes[at].state == WORLD_NODE_DELETING &&
                 !why_ignored(b, *it))
            vec_push(&found, from_pod(b, *it, WORLD_POD_MOVING));
    }
    vec_each(&b->coming, struct coming_input *, it)
        for (int64_t i = 0; i < it->count; i++)
            vec_push(&found, from_workload(b, it->workload, it->first + i));
    w->n_pods = (uint32_t)found.len;
    w->pods = ARENA_NEW_ARRAY(&w->arena, struct world_pod, found.len + 1);
    if (found.len) {
        memcpy(w->pods, found.v, found.len * sizeof(*found.v));
        qsort(w->pods, w->n_pods, sizeof(*w->pods), by_key);
    }
    vec_release(&found);
}

void builder_pods(struct world_builder *b)
{
    struct world *w = b->world;
    struct tally *tallies = xcalloc(w->n_nodes + 1, sizeof(*tallies));
    count_bound(b, tallies);
    list_bound(b, tallies);
    for (uint32_t i = 0; i < w->n_nodes; i++)
        set_room(b, &w->nodes[i], &tallies[i]);
    free(tallies);
    list_pending(b);
    int64_t coming = 0;
    vec_each(&b->coming, struct coming_input *, it)
        coming += it->count;
    w->n_pods_seen = (uint32_t)(b->pods.len + (size_t)coming);
}
