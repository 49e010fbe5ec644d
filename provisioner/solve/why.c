/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Reasons. */

#include "provisioner/solve/why.h"

#include "base/num.h"
#include "provisioner/solve/plan.h"

/* How far offerings of one pool get: each is counted at the first test it fails. */
struct tally {
    uint32_t total, labels, ports, room, unusable, limits, fit;
    const char *key;  /* of the label in the way */
    uint32_t lacking; /* resource that none of those that match offers enough of; WORLD_NONE */
    int64_t lacking_most;
};

static void note_room(const struct world *w, const struct podset *c, const struct world_offer *o,
                      struct tally *t)
{
    for (uint32_t r = 0; r < w->resources.n; r++)
        if (c->requests[r] > 0 && c->requests[r] > o->room[r]) {
            if (t->lacking == WORLD_NONE || (t->lacking == r && o->room[r] > t->lacking_most)) {
                t->lacking = r;
                t->lacking_most = MAX(o->room[r], 0);
            }
            return;
        }
}

static bool within(const struct world *w, const struct world_offer *o, const int64_t *left)
{
    for (uint32_t r = 0; r < w->resources.n; r++)
        if (left[r] != INT64_MAX && o->capacity[r] > 0 && o->capacity[r] > left[r])
            return false;
    return true;
}

static struct tally tally_pool(const struct world *w, const struct podset *c, uint32_t pool,
                               const int64_t *left)
{
    struct tally t = {.lacking = WORLD_NONE};
    for (uint32_t i = 0; i < w->n_offers; i++) {
        const struct world_offer *o = &w->offers[i];
        const char *key = NULL;
        if (o->pool != pool)
            continue;
        t.total++;
        if (!world_offer_accepts(w, o, c, &key)) {
            if (key) {
                t.labels++;
                t.key = key;
            } else {
                t.ports++;
            }
        } else if (!resources_fit(c->requests, o->room, w->resources.n)) {
            t.room++;
            note_room(w, c, o, &t);
        } else if (!o->usable) {
            t.unusable++;
        } else if (!within(w, o, left)) {
            t.limits++;
        } else {
            t.fit++;
        }
    }
    return t;
}

/* The label key of the pool or its types that is spelt most like the one asked for. */
static const char *near_miss(const struct world *w, uint32_t pool, const char *key)
{
    const char *best = NULL;
    unsigned least = 4;
    const struct requirements *sets[2] = {&w->pools[pool].requirements, NULL};
    for (uint32_t i = 0; i < w->n_offers && !sets[1]; i++)
        if (w->offers[i].pool == pool)
            sets[1] = w->offers[i].type_labels;
    for (int s = 0; s < 2; s++)
        for (uint32_t i = 0; sets[s] && i < sets[s]->n; i++) {
            unsigned d = str_distance(str_from(key), str_from(sets[s]->v[i].key), least);
            if (d > 0 && d < least) {
                least = d;
                best = sets[s]->v[i].key;
            }
        }
    return best;
}

static const char *label_reason(const struct world *w, const struct podset *c, uint32_t pool,
                                const char *key, struct arena *a)
{
    const char *wants = "";
    for (uint32_t i = 0; i < c->n_alternatives; i++) {
        const struct requirement *r = requirements_find(&c->alternatives[i], key);
        if (r)
            wants = requirement_format(r, a).p;
    }
    const char *near = near_miss(w, pool, key);
    return arena_printf(a, "no offering satisfies %s%s%s%s", *wants ? wants : key,
                        near ? " (did you mean " : "", near ? near : "", near ? "?)" : "")
        .p;
}

static const char *room_reason(const struct world *w, const struct podset *c, const struct tally *t,
                               struct arena *a)
{
    const char *name = w->resources.names[t->lacking];
    char need[32], most[32];
    quantity_format_for(need, str_from(name), c->requests[t->lacking]);
    quantity_format_for(most, str_from(name), t->lacking_most);
    if (t->lacking_most == 0)
        return arena_printf(a, "no offering has %s", name).p;
    return arena_printf(
               a,
               "no offering is large enough: %s of %s asked for, at most %s left beside daemonsets",
               need, name, most)
        .p;
}

static const char *port_reason(const struct world *w, const struct podset *c, uint32_t pool,
                               struct arena *a)
{
    for (uint32_t i = 0; i < w->n_offers; i++)
        for (uint32_t k = 0; w->offers[i].pool == pool && k < c->n_ports; k++)
            for (uint32_t j = 0; j < w->offers[i].n_ports; j++)
                if (host_port_conflicts(&c->ports[k], &w->offers[i].ports[j]))
                    return arena_printf(a,
                                        "host port %d is taken by a daemonset on all of its nodes",
                                        (int)c->ports[k].port)
                        .p;
    return "no offering satisfies its host ports";
}

static const char *pool_reason(const struct world *w, const struct podset *c, uint32_t pool,
                               const int64_t *left, struct arena *a)
{
    const struct world_pool *p = &w->pools[pool];
    if (p->blocked)
        return arena_printf(a, "nothing may be launched: %s", p->blocked).p;
    const struct taint *t = podset_untolerated(c->spec, p->taints, p->n_taints);
    if (t)
        return arena_printf(a, "taint %s%s%s:%s is not tolerated", t->key,
                            t->value && *t->value ? "=" : "", t->value ? t->value : "",
                            taint_effect_name(t->effect))
            .p;
    struct tally y = tally_pool(w, c, pool, left);
    if (y.total == 0)
        return "no instance type of the catalogue satisfies its template";
    const char *counts = arena_printf(a,
                                      " (%u offerings: %u by labels, %u by host ports, %u by room, "
                                      "%u unavailable, %u by limits)",
                                      y.total, y.labels, y.ports, y.room, y.unusable, y.limits)
                             .p;
    const char *text;
    if (left[w->resources.n] <= 0)
        text = "its limit of nodes is reached";
    else if (y.fit)
        text = "offerings fit it, but topology rules or pods it must share a node with leave none";
    else if (y.limits)
        text = "its limits leave no room for an offering that fits";
    else if (y.unusable)
        text = "every offering that fits is out of capacity or has no price";
    else if (y.room)
        text = room_reason(w, c, &y, a);
    else if (y.ports)
        text = port_reason(w, c, pool, a);
    else
        text = label_reason(w, c, pool, y.key, a);
    return arena_printf(a, "%s%s", text, counts).p;
}

struct why why_refused(const struct world *w, const struct podset *c, int64_t *const *limits_left,
                       struct arena *a)
{
    struct why why = {.reason = c->refused};
    const char **detail = ARENA_NEW_ARRAY(a, const char *, w->n_pools + 1);
    const char *first = NULL;
    for (uint32_t i = 0; i < w->n_pools; i++) {
        int64_t *left = ARENA_NEW_ARRAY(a, int64_t, w->resources.n + 1);
        memcpy(left, w->pools[i].limit_left, w->resources.n * sizeof(*left));
        left[w->resources.n] = w->pools[i].nodes_left;
        const char *text = pool_reason(w, c, i, limits_left ? limits_left[i] : left, a);
        first = first ? first : text;
        detail[why.detail.n++] = arena_printf(a, "nodepool %s: %s", w->pools[i].name, text).p;
    }
    why.detail.v = detail;
    if (!why.reason)
        why.reason = w->n_pools == 0   ? "there is no NodePool"
                     : w->n_pools == 1 ? first
                                       : "no NodePool can launch a node for it";
    return why;
}

/* ---- Explanations ---- */

static void line(struct buf *out, unsigned depth, const char *text)
{
    buf_printf(out, "%*s%s\n", (int)(2 * depth), "", text);
}

static void explain_wishes(const struct world *w, const struct world_pod *pod, struct buf *out)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    const struct podset *c = &w->classes[pod->class_];
    buf_printf(out, "  asks for");
    for (uint32_t i = 0; i < pod->requests->n; i++) {
        char text[32];
        quantity_format_for(text, str_from(pod->requests->v[i].name), pod->requests->v[i].amount);
        buf_printf(out, "%s %s %s", i ? "," : "", pod->requests->v[i].name, text);
    }
    buf_printf(out, "; %u pods are like it\n", c->n_pods);
    for (uint32_t i = 0; i < c->n_alternatives; i++)
        for (uint32_t k = 0; k < c->alternatives[i].n; k++)
            buf_printf(out, "  %s %.*s\n", i && k == 0 ? "or needs" : "needs",
                       STR_ARG(requirement_format(&c->alternatives[i].v[k], &a)));
}

static void explain_placed(const struct plan_launch *l, struct buf *out)
{
    const struct plan_alternative *x = &l->alternatives[0];
    char price[32];
    num_format_fixed(price, x->price_uusd_h, 6);
    buf_printf(out, "  would run on new node %s: %s in %s, %s, %s $/h, with %u pods\n", l->name,
               x->instance_type, x->zone, x->capacity_type, price, l->n_pods);
}

void why_explain_pod(const struct world *w, const struct plan *p, const struct world_pod *pod,
                     struct buf *out)
{
    static const char *const origins[] = {"is pending", "must move from a node that goes away",
                                          "is announced by its workload"};
    uint32_t index = (uint32_t)(pod - w->pods);
    buf_printf(out, "pod %s %s\n", pod->key, origins[pod->origin]);
    if (pod->ignored) {
        buf_printf(out, "  is left alone: %s\n", pod->ignored);
        return;
    }
    explain_wishes(w, pod, out);
    for (uint32_t i = 0; i < p->n_places; i++)
        if (p->places[i].pod == index)
            buf_printf(out, "  has room on node %s\n", p->places[i].node);
    for (uint32_t i = 0; i < p->n_launches; i++)
        for (uint32_t k = 0; k < p->launches[i].n_pods; k++)
            if (p->launches[i].pods[k] == index)
                explain_placed(&p->launches[i], out);
    for (uint32_t i = 0; i < p->n_refusals; i++) {
        if (p->refusals[i].pod != index)
            continue;
        buf_printf(out, "  cannot be placed: %s\n", p->refusals[i].reason);
        for (uint32_t k = 0; k < p->refusals[i].detail.n; k++)
            line(out, 2, p->refusals[i].detail.v[k]);
    }
}

void why_explain_node(const struct world *w, const struct plan *p, const struct world_node *n,
                      struct buf *out)
{
    static const char *const states[] = {"is on its way", "is starting", "is ready",
                                         "takes no new pods", "is going away"};
    char text[32];
    buf_printf(out, "node %s %s\n", n->name, states[n->state]);
    buf_printf(out, "  %s%s\n",
               n->pool == WORLD_NONE ? "belongs to no NodePool" : "belongs to nodepool ",
               n->pool == WORLD_NONE ? "" : w->pools[n->pool].name);
    if (n->type) {
        num_format_fixed(text, n->price_uusd_h, 6);
        buf_printf(out, "  is %s in %s, %s, %s $/h\n", n->type->name, n->zone, n->capacity_type,
                   text);
    }
    for (uint32_t r = 0; r < w->resources.n; r++) {
        if (n->allocatable[r] == 0)
            continue;
        char all[32];
        quantity_format_for(all, str_from(w->resources.names[r]), n->allocatable[r]);
        quantity_format_for(text, str_from(w->resources.names[r]), n->room[r]);
        buf_printf(out, "  %s: %s free of %s\n", w->resources.names[r], text, all);
    }
    buf_printf(out, "  holds %u pods\n", n->n_pods);
    for (uint32_t i = 0; i < n->n_pods; i++)
        buf_printf(out, "    %s/%s\n",
                   n->pods[i]->obj.meta.namespace_ ? n->pods[i]->obj.meta.namespace_ : "default",
                   n->pods[i]->obj.meta.name);
    for (uint32_t i = 0; i < p->n_places; i++)
        if (strcmp(p->places[i].node, n->name) == 0)
            buf_printf(out, "    %s (planned)\n", p->places[i].pod_key);
}
