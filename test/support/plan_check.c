/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Judging plans. */

#include "test/support/plan_check.h"

struct check {
    const struct world *w;
    const struct plan *p;
    struct buf *out;
    unsigned faults;
    int *seen; /* per pod: times placed or refused */
};

#define FAULT(c, ...)                                                                              \
    do {                                                                                           \
        (c)->faults++;                                                                             \
        buf_printf((c)->out, __VA_ARGS__);                                                         \
        buf_char((c)->out, '\n');                                                                  \
    } while (0)

/* ---- Labels of a node, by key ---- */

struct where {
    const struct world_node *node; /* or */
    const struct plan_launch *launch;
    const struct plan_alternative *as;
};

static const char *value_at(const struct check *c, const struct where *at, const char *key)
{
    if (at->node) {
        if (strcmp(key, LABEL_HOSTNAME) == 0)
            return at->node->name;
        const char *v = at->node->node ? labels_get(&at->node->node->obj.meta.labels, key) : NULL;
        return !v && at->node->claim ? labels_get(&at->node->claim->obj.meta.labels, key) : v;
    }
    const struct world_offer *o = &c->w->offers[at->as->offer];
    const struct node_template *t = &c->w->pools[at->launch->pool].pool->template_;
    if (strcmp(key, LABEL_ZONE) == 0)
        return at->as->zone;
    if (strcmp(key, LABEL_CAPACITY_TYPE) == 0)
        return at->as->capacity_type;
    if (strcmp(key, LABEL_INSTANCE_TYPE) == 0)
        return o->type->name;
    if (strcmp(key, LABEL_ARCH) == 0)
        return o->type->arch;
    if (strcmp(key, LABEL_OS) == 0)
        return o->type->os;
    if (strcmp(key, LABEL_NODEPOOL) == 0)
        return at->launch->node_pool;
    if (strcmp(key, LABEL_HOSTNAME) == 0)
        return at->launch->name;
    const char *v = labels_get(&o->type->labels, key);
    v = v ? v : labels_get(&t->labels, key);
    return v ? v : labels_get(&at->launch->labels, key);
}

static bool expression_holds(const struct check *c, const struct where *at,
                             const struct selector_requirement *r)
{
    const char *v = value_at(c, at, r->key);
    struct label one = {r->key, v};
    struct labels l = {&one, v ? 1 : 0};
    return selector_requirement_matches(r, &l);
}

static bool node_affinity_holds(const struct check *c, const struct where *at,
                                const struct pod_spec *s)
{
    for (uint32_t i = 0; i < s->node_selector.n; i++) {
        const char *v = value_at(c, at, s->node_selector.v[i].key);
        if (!v || strcmp(v, s->node_selector.v[i].value) != 0)
            return false;
    }
    if (!s->affinity || !s->affinity->has_node_required)
        return true;
    for (uint32_t i = 0; i < s->affinity->n_node_required; i++) {
        const struct node_selector_term *t = &s->affinity->node_required[i];
        bool all = t->n_expressions > 0;
        for (uint32_t k = 0; k < t->n_expressions; k++)
            all = all && expression_holds(c, at, &t->expressions[k]);
        if (all)
            return true;
    }
    return false;
}

static bool tolerates(const struct pod_spec *s, const struct taint *taints, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bool ok = taints[i].effect == TAINT_PREFER_NO_SCHEDULE;
        for (uint32_t k = 0; k < s->n_tolerations; k++)
            ok = ok || toleration_tolerates(&s->tolerations[k], &taints[i]);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- One place and its pods ---- */

static bool ports_clash(const struct pod_spec *x, const struct pod_spec *y)
{
    for (uint32_t i = 0; i < x->n_containers; i++)
        for (uint32_t k = 0; k < x->containers[i].n_host_ports; k++)
            for (uint32_t j = 0; j < y->n_containers; j++)
                for (uint32_t l = 0; l < y->containers[j].n_host_ports; l++)
                    if (x->containers[i].host_ports[k].host_port ==
                        y->containers[j].host_ports[l].host_port)
                        return true;
    return false;
}

static void check_sum(struct check *c, const char *name, const struct resource_list *allocatable,
                      const uint32_t *pods, uint32_t n, const struct pod *const *there,
                      uint32_t n_there)
{
    for (uint32_t r = 0; r < c->w->resources.n; r++) {
        const char *resource = c->w->resources.names[r];
        bool count = strcmp(resource, "pods") == 0;
        int64_t sum = count ? (int64_t)n + n_there : 0;
        for (uint32_t i = 0; i < n && !count; i++)
            sum += resource_list_get(c->w->pods[pods[i]].requests, resource);
        for (uint32_t i = 0; i < n_there && !count; i++)
            sum += resource_list_get(&there[i]->requests, resource);
        if (sum > 0 && sum > resource_list_get(allocatable, resource))
            FAULT(c, "%s: %lld of %s asked for, %lld there", name, (long long)sum, resource,
                  (long long)resource_list_get(allocatable, resource));
    }
}

static void check_pods(struct check *c, const struct where *at, const char *name,
                       const uint32_t *pods, uint32_t n, const struct taint *taints,
                       uint32_t n_taints)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct world_pod *x = &c->w->pods[pods[i]];
        if (!node_affinity_holds(c, at, x->spec))
            FAULT(c, "%s: %s may not run there by its node selector or affinity", name, x->key);
        if (!tolerates(x->spec, taints, n_taints))
            FAULT(c, "%s: %s does not tolerate its taints", name, x->key);
        for (uint32_t k = 0; k < i; k++)
            if (ports_clash(x->spec, c->w->pods[pods[k]].spec))
                FAULT(c, "%s: %s and %s use the same host port", name, x->key,
                      c->w->pods[pods[k]].key);
    }
}

static void check_launch(struct check *c, const struct plan_launch *l)
{
    const struct world_pool *pool = &c->w->pools[l->pool];
    const struct node_template *t = &pool->pool->template_;
    if (l->n_pods == 0)
        FAULT(c, "%s: launched for nothing", l->name);
    if (pool->blocked)
        FAULT(c, "%s: its pool is blocked", l->name);
    for (uint32_t a = 0; a < l->n_alternatives; a++) {
        struct where at = {.launch = l, .as = &l->alternatives[a]};
        const struct world_offer *o = &c->w->offers[l->alternatives[a].offer];
        if (o->pool != l->pool || !o->usable || o->price_uusd_h != l->alternatives[a].price_uusd_h)
            FAULT(c, "%s: alternative %u is not an offering of the pool at that price", l->name, a);
        if (a && l->alternatives[a].price_uusd_h < l->alternatives[a - 1].price_uusd_h)
            FAULT(c, "%s: alternatives are not ranked", l->name);
        for (uint32_t i = 0; i < t->n_requirements; i++)
            if (!expression_holds(c, &at, &t->requirements[i]))
                FAULT(c, "%s: alternative %u breaks the pool's requirement on %s", l->name, a,
                      t->requirements[i].key);
        check_pods(c, &at, l->name, l->pods, l->n_pods, t->taints, t->n_taints);
        check_sum(c, l->name, &o->type->allocatable, l->pods, l->n_pods, NULL, 0);
    }
}

static void check_node(struct check *c, const struct world_node *n)
{
    uint32_t *pods = xcalloc(c->p->n_places + 1, sizeof(*pods)), count = 0;
    for (uint32_t i = 0; i < c->p->n_places; i++)
        if (strcmp(c->p->places[i].node, n->name) == 0)
            pods[count++] = c->p->places[i].pod;
    struct where at = {.node = n};
    if (count && n->node) {
        if (n->node->unschedulable)
            FAULT(c, "%s: is cordoned and gets pods", n->name);
        check_pods(c, &at, n->name, pods, count, n->node->taints, n->node->n_taints);
        check_sum(c, n->name, &n->node->allocatable, pods, count, n->pods, n->n_pods);
    }
    free(pods);
}

/* ---- Topology: every pod of the outcome, with the node it is on ---- */

struct settled {
    const char *namespace_;
    const struct labels *labels;
    const struct pod_spec *spec;
    struct where at;
    bool planned;
};

static uint32_t settle(const struct check *c, struct settled *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->w->n_nodes; i++)
        for (uint32_t k = 0;
             k < c->w->nodes[i].n_pods && c->w->nodes[i].state != WORLD_NODE_DELETING; k++) {
            const struct pod *x = c->w->nodes[i].pods[k];
            v[n++] = (struct settled){x->obj.meta.namespace_ ? x->obj.meta.namespace_ : "default",
                                      &x->obj.meta.labels,
                                      &x->spec,
                                      {.node = &c->w->nodes[i]},
                                      false};
        }
    for (uint32_t i = 0; i < c->p->n_places; i++) {
        const struct world_pod *x = &c->w->pods[c->p->places[i].pod];
        v[n++] = (struct settled){x->namespace_,
                                  x->labels,
                                  x->spec,
                                  {.node = world_find_node(c->w, c->p->places[i].node)},
                                  true};
    }
    for (uint32_t i = 0; i < c->p->n_launches; i++)
        for (uint32_t k = 0; k < c->p->launches[i].n_pods; k++) {
            const struct world_pod *x = &c->w->pods[c->p->launches[i].pods[k]];
            v[n++] = (struct settled){
                x->namespace_,
                x->labels,
                x->spec,
                {.launch = &c->p->launches[i], .as = &c->p->launches[i].alternatives[0]},
                true};
        }
    return n;
}

/* Namespaces by name or the pod's own: selectors over namespaces are not used in these tests. */
static bool term_counts(const struct pod_affinity_term *t, const struct settled *who,
                        const struct settled *other)
{
    bool in = t->namespaces.n ? string_list_has(&t->namespaces, other->namespace_)
                              : strcmp(who->namespace_, other->namespace_) == 0;
    return in && selector_matches(t->selector, other->labels);
}

static void check_inter_pod(struct check *c, const struct settled *v, uint32_t n, uint32_t i)
{
    const struct affinity *f = v[i].spec->affinity;
    for (uint32_t t = 0; f && t < f->n_anti_required; t++)
        for (uint32_t k = 0; k < n; k++) {
            const char *key = f->anti_required[t].topology_key;
            const char *a = value_at(c, &v[i].at, key), *b = value_at(c, &v[k].at, key);
            if (k != i && (v[i].planned || v[k].planned) && a && b && strcmp(a, b) == 0 &&
                term_counts(&f->anti_required[t], &v[i], &v[k]))
                FAULT(c, "anti-affinity on %s: two pods in %s", key, a);
        }
    for (uint32_t t = 0; f && t < f->n_pod_required && v[i].planned; t++) {
        const char *key = f->pod_required[t].topology_key, *a = value_at(c, &v[i].at, key);
        bool any = false, anywhere = false;
        for (uint32_t k = 0; k < n; k++) {
            const char *b = value_at(c, &v[k].at, key);
            if (k == i || !term_counts(&f->pod_required[t], &v[i], &v[k]))
                continue;
            anywhere = true;
            any = any || (a && b && strcmp(a, b) == 0);
        }
        bool first = !anywhere && term_counts(&f->pod_required[t], &v[i], &v[i]);
        if (!a || (!any && !first))
            FAULT(c, "affinity on %s: no match in %s", key, a ? a : "nowhere");
    }
}

/* Pods that the spread counts in the domain. Planned pods without such a rule on themselves may be
 * scheduled before or after those that have one: `all` counts them, else they are left out. */
static int64_t in_domain(const struct check *c, const struct settled *v, uint32_t n,
                         const struct settled *who, const struct topology_spread *s,
                         const char *domain, bool all)
{
    int64_t count = 0;
    for (uint32_t k = 0; k < n; k++) {
        bool ruled = all || !v[k].planned;
        for (uint32_t t = 0; t < v[k].spec->n_spreads; t++)
            ruled = ruled || (strcmp(v[k].spec->spreads[t].topology_key, s->topology_key) == 0 &&
                              selector_matches(v[k].spec->spreads[t].selector, v[k].labels));
        const char *b = value_at(c, &v[k].at, s->topology_key);
        bool counted = s->affinity_ignore || node_affinity_holds(c, &v[k].at, who->spec);
        count += counted && ruled && b && strcmp(b, domain) == 0 &&
                 strcmp(v[k].namespace_, who->namespace_) == 0 &&
                 selector_matches(s->selector, v[k].labels);
    }
    return count;
}

/* The least count over domains of nodes and of the pod's offerings; for hostnames there is always a
 * new one. */
static int64_t least_domain(const struct check *c, const struct settled *v, uint32_t n,
                            const struct settled *who, const struct topology_spread *s, bool all)
{
    int64_t least = INT64_MAX;
    if (strcmp(s->topology_key, LABEL_HOSTNAME) == 0)
        return 0;
    for (uint32_t o = 0; o < c->w->n_offers; o++) {
        const struct world_offer *x = &c->w->offers[o];
        struct plan_launch l = {.pool = x->pool,
                                .node_pool = c->w->pools[x->pool].name,
                                .name = "any",
                                .labels =
                                    who->spec->node_selector}; /* open keys take what is asked */
        struct plan_alternative as = {.offer = o,
                                      .zone = x->offering->zone,
                                      .capacity_type =
                                          world_capacity_type(x->offering->capacity_type)};
        struct where at = {.launch = &l, .as = &as};
        const char *domain = value_at(c, &at, s->topology_key);
        if (!domain || !x->usable || !node_affinity_holds(c, &at, who->spec))
            continue;
        int64_t count = in_domain(c, v, n, who, s, domain, all);
        least = count < least ? count : least;
    }
    for (uint32_t i = 0; i < c->w->n_nodes; i++) {
        struct where at = {.node = &c->w->nodes[i]};
        const char *domain = value_at(c, &at, s->topology_key);
        if (!domain || c->w->nodes[i].state == WORLD_NODE_DELETING ||
            !node_affinity_holds(c, &at, who->spec))
            continue;
        int64_t count = in_domain(c, v, n, who, s, domain, all);
        least = count < least ? count : least;
    }
    return least == INT64_MAX ? 0 : least;
}

static void check_spread(struct check *c, const struct settled *v, uint32_t n, uint32_t i)
{
    for (uint32_t t = 0; t < v[i].spec->n_spreads && v[i].planned; t++) {
        const struct topology_spread *s = &v[i].spec->spreads[t];
        const char *mine = value_at(c, &v[i].at, s->topology_key);
        if (s->schedule_anyway)
            continue;
        if (!mine) {
            FAULT(c, "spread over %s: on a node without it", s->topology_key);
            continue;
        }
        bool wrong = true; /* in every order of scheduling */
        int64_t here = 0, least = 0;
        for (int all = 0; all < 2; all++) {
            here = in_domain(c, v, n, &v[i], s, mine, all);
            least = least_domain(c, v, n, &v[i], s, all);
            wrong = wrong && here > 0 && here - least > s->max_skew;
        }
        if (wrong)
            FAULT(c, "spread over %s: %lld in %s, %lld elsewhere", s->topology_key, (long long)here,
                  mine, (long long)least);
    }
}

static void check_topology(struct check *c)
{
    uint32_t most = c->p->n_places;
    for (uint32_t i = 0; i < c->w->n_nodes; i++)
        most += c->w->nodes[i].n_pods;
    for (uint32_t i = 0; i < c->p->n_launches; i++)
        most += c->p->launches[i].n_pods;
    struct settled *v = xcalloc(most + 1, sizeof(*v));
    uint32_t n = settle(c, v);
    for (uint32_t i = 0; i < n; i++) {
        check_inter_pod(c, v, n, i);
        check_spread(c, v, n, i);
    }
    free(v);
}

/* ---- Limits, once each, money ---- */

static void check_limits(struct check *c)
{
    for (uint32_t i = 0; i < c->w->n_pools; i++) {
        const struct resource_list *limits = &c->w->pools[i].pool->limits;
        for (uint32_t k = 0; k < limits->n; k++) {
            bool nodes = strcmp(limits->v[k].name, "nodes") == 0;
            int64_t used = 0;
            for (uint32_t j = 0; j < c->w->n_nodes; j++)
                if (c->w->nodes[j].pool == i)
                    used +=
                        nodes ? 1
                        : c->w->nodes[j].node
                            ? resource_list_get(&c->w->nodes[j].node->capacity, limits->v[k].name)
                            : 0;
            bool launched = false;
            for (uint32_t j = 0; j < c->p->n_launches; j++) {
                const struct plan_launch *l = &c->p->launches[j];
                int64_t most = 0;
                for (uint32_t a = 0; a < l->n_alternatives && l->pool == i; a++) {
                    int64_t has = nodes
                                      ? 1
                                      : resource_list_get(
                                            &c->w->offers[l->alternatives[a].offer].type->capacity,
                                            limits->v[k].name);
                    most = has > most ? has : most;
                }
                launched = launched || most > 0;
                used += most;
            }
            if (launched && used > limits->v[k].amount)
                FAULT(c, "nodepool %s: %lld of its limit of %lld %s", c->w->pools[i].name,
                      (long long)used, (long long)limits->v[k].amount, limits->v[k].name);
        }
    }
}

static void check_once(struct check *c)
{
    for (uint32_t i = 0; i < c->p->n_places; i++)
        c->seen[c->p->places[i].pod]++;
    for (uint32_t i = 0; i < c->p->n_refusals; i++)
        c->seen[c->p->refusals[i].pod]++;
    for (uint32_t i = 0; i < c->p->n_launches; i++)
        for (uint32_t k = 0; k < c->p->launches[i].n_pods; k++)
            c->seen[c->p->launches[i].pods[k]]++;
    for (uint32_t i = 0; i < c->w->n_pods; i++)
        if (c->seen[i] != (c->w->pods[i].ignored ? 0 : 1))
            FAULT(c, "%s: appears %d times", c->w->pods[i].key, c->seen[i]);
}

static void check_money(struct check *c)
{
    int64_t sum = 0, bound = 0;
    for (uint32_t i = 0; i < c->p->n_launches; i++)
        sum += c->p->launches[i].alternatives[0].price_uusd_h;
    if (sum != c->p->launch_uusd_h || sum != c->p->objective_uusd_h)
        FAULT(c, "launches cost %lld, the plan says %lld", (long long)sum,
              (long long)c->p->launch_uusd_h);
    for (uint32_t i = 0; i < c->p->n_classes; i++)
        bound += c->p->classes[i].value_nusd_h * c->p->classes[i].pods;
    if (c->p->bound_uusd_h > bound / 1000 || c->p->bound_uusd_h > sum)
        FAULT(c, "bound %lld is not what its values add up to, %lld, or above the price",
              (long long)c->p->bound_uusd_h, (long long)bound / 1000);
}

/* The worthiest set by dynamic enumeration: exact, for small worlds. */
static int64_t worthiest(const struct check *c, const struct world_offer *o, uint32_t at,
                         int64_t *room)
{
    if (at == c->p->n_classes)
        return 0;
    const struct podset *x = &c->w->classes[c->p->classes[at].id];
    int64_t best = worthiest(c, o, at + 1, room);
    if (!o->usable || !world_offer_accepts(c->w, o, x, NULL))
        return best;
    uint32_t n = c->w->resources.n, taken = 0;
    while (taken < c->p->classes[at].pods) {
        bool fits = true;
        for (uint32_t r = 0; r < n; r++)
            fits = fits && (x->requests[r] == 0 || x->requests[r] <= room[r]);
        if (!fits || (taken && x->n_ports))
            break;
        taken++;
        for (uint32_t r = 0; r < n; r++)
            room[r] -= x->requests[r];
        int64_t worth = taken * c->p->classes[at].value_nusd_h + worthiest(c, o, at + 1, room);
        best = worth > best ? worth : best;
        if (x->n_antis) /* by hostname in these tests: one a node */
            break;
    }
    for (uint32_t r = 0; r < n; r++)
        room[r] += taken * x->requests[r];
    return best;
}

static void check_certificate(struct check *c)
{
    if (c->p->n_classes > 6)
        return; /* exponential */
    for (uint32_t i = 0; i < c->w->n_offers; i++) {
        int64_t room[RESOURCES_MAX];
        memcpy(room, c->w->offers[i].room, c->w->resources.n * sizeof(*room));
        int64_t worth = worthiest(c, &c->w->offers[i], 0, room);
        if (worth > c->w->offers[i].price_uusd_h * 1000 &&
            !c->w->pools[c->w->offers[i].pool].weight)
            FAULT(c, "certificate: %s holds pods worth %lld, costs %lld",
                  c->w->offers[i].type->name, (long long)worth,
                  (long long)c->w->offers[i].price_uusd_h * 1000);
    }
}

unsigned plan_check(const struct world *w, const struct plan *p, struct buf *out)
{
    struct check c = {.w = w, .p = p, .out = out};
    c.seen = xcalloc(w->n_pods + 1, sizeof(*c.seen));
    check_once(&c);
    for (uint32_t i = 0; i < p->n_launches; i++)
        check_launch(&c, &p->launches[i]);
    for (uint32_t i = 0; i < w->n_nodes; i++)
        check_node(&c, &w->nodes[i]);
    check_topology(&c);
    check_limits(&c);
    check_money(&c);
    check_certificate(&c);
    free(c.seen);
    return c.faults;
}
