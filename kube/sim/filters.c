/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The scheduler's filters and its score, for one pod against all hosts.
 *
 * What depends on the whole cluster (spread, affinity, anti-affinity) is counted once a round, by
 * topology domain; a host is then judged by its own domain. Source of the rules: kube-scheduler's
 * plugins NodeAffinity, TaintToleration, NodePorts, NodeResourcesFit, PodTopologySpread,
 * InterPodAffinity, VolumeBinding. */

#include "kube/api/misc.h"
#include "kube/sim/hosts.h"
#include "kube/sim/tree.h"

enum rule_kind { RULE_SPREAD, RULE_AFFINITY, RULE_ANTI };

/* Counts by value of a topology key. */
struct domain_rule {
    enum rule_kind kind;
    const char *key;
    struct map counts; /* value -> count + 1 */
    int64_t least;     /* of the eligible domains (spread) */
    int64_t max_skew;
    bool self;     /* the pod counts where it lands */
    bool anywhere; /* affinity: nobody matches yet, and the pod itself would */
};

static const char *domain_of(const struct host *host, const char *key)
{
    return labels_get(&host_node(host)->obj.meta.labels, key);
}

static int64_t count_get(const struct domain_rule *rule, const char *value)
{
    return (int64_t)(uintptr_t)map_get(&rule->counts, str_from(value)) - 1; /* -1: no such domain */
}

static void count_add(struct domain_rule *rule, const char *value, int64_t n)
{
    void **slot = map_slot(&rule->counts, str_from(value));
    *slot = (void *)(uintptr_t)((*slot ? (uintptr_t)*slot : 1) + (uintptr_t)n);
}

/* ---- Which pods a term is about ---- */

static bool namespace_matches(struct sim *s, const struct pod_affinity_term *t, const char *own,
                              const char *other)
{
    if (!t->namespace_selector && t->namespaces.n == 0)
        return strcmp(own, other) == 0;
    if (string_list_has(&t->namespaces, other))
        return true;
    struct item *it =
        t->namespace_selector ? store_find(s->namespaces, STR_NONE, str_from(other)) : NULL;
    return it && selector_matches(t->namespace_selector, version_labels(it->now));
}

/* matchLabelKeys: the other has the value that the pod has; mismatchLabelKeys: another. */
static bool keys_match(const struct string_list *keys, const struct labels *own,
                       const struct labels *other, bool equal)
{
    for (uint32_t i = 0; i < keys->n; i++) {
        const char *a = labels_get(own, keys->v[i]), *b = labels_get(other, keys->v[i]);
        if (a && (b && strcmp(a, b) == 0) != equal)
            return false;
    }
    return true;
}

static bool ask(struct sim *s, const struct spread_term *t, const struct class *own,
                const struct class *other)
{
    const struct meta *a = &own->sample->meta, *b = &other->sample->meta;
    if (!selector_matches(t->selector, &b->labels))
        return false;
    if (t->spread)
        return strcmp(a->namespace_, b->namespace_) == 0 &&
               keys_match(&t->spread->match_label_keys, &a->labels, &b->labels, true);
    return namespace_matches(s, t->affinity, a->namespace_, b->namespace_) &&
           keys_match(&t->affinity->match_label_keys, &a->labels, &b->labels, true) &&
           keys_match(&t->affinity->mismatch_label_keys, &a->labels, &b->labels, false);
}

static bool term_about(struct sim *s, struct spread_term *t, const struct class *own,
                       const struct class *other)
{
    while (t->matches.len <= other->id)
        vec_push(&t->matches, 0);
    uint8_t *known = &t->matches.v[other->id];
    if (!*known)
        *known = ask(s, t, own, other) ? 2 : 1;
    return *known == 2;
}

/* ---- Counting ---- */

static int64_t matching_on(struct sim *s, const struct host *host, struct spread_term *t,
                           const struct class *own, bool leaving_too)
{
    int64_t n = 0;
    for (size_t i = 0; i < host->tallies.len; i++) {
        const struct tally *y = &host->tallies.v[i];
        if (term_about(s, t, own, y->class_))
            n += leaving_too ? y->n : y->n - y->leaving;
    }
    return n;
}

static bool counts_for_spread(struct round *r, const struct topology_spread *t,
                              const struct host *host)
{
    const struct node *n = host_node(host);
    const struct pod_spec *p = &class_pod(r->class_)->spec;
    return (t->affinity_ignore || fit_node_labels(p, &n->obj.meta.labels, n->obj.meta.name)) &&
           (!t->taints_honor || fit_taints(p, n->taints, n->n_taints));
}

static void spread_rule(struct round *r, struct spread_term *t, struct domain_rule *rule)
{
    struct sim *s = r->hosts->sim;
    *rule =
        (struct domain_rule){.kind = RULE_SPREAD, .key = t->key, .max_skew = t->spread->max_skew};
    rule->self = term_about(s, t, r->class_, r->class_);
    vec_each(&r->hosts->slots, struct host **, host) {
        const char *domain = *host ? domain_of(*host, t->key) : NULL;
        if (domain && counts_for_spread(r, t->spread, *host))
            count_add(rule, domain, matching_on(s, *host, t, r->class_, false));
    }
    rule->least = INT64_MAX;
    map_each(&rule->counts, e)
        rule->least = MIN(rule->least, (int64_t)(uintptr_t)e->value - 1);
    if (map_len(&rule->counts) == 0 || (int64_t)map_len(&rule->counts) < t->spread->min_domains)
        rule->least = 0;
}

static void affinity_rule(struct round *r, struct spread_term *t, const struct class *own,
                          enum rule_kind kind, struct domain_rule *rule)
{
    struct sim *s = r->hosts->sim;
    int64_t total = 0;
    *rule = (struct domain_rule){.kind = kind, .key = t->key};
    vec_each(&r->hosts->slots, struct host **, host) {
        const char *domain = *host ? domain_of(*host, t->key) : NULL;
        int64_t n = domain ? matching_on(s, *host, t, own, true) : 0;
        if (n)
            count_add(rule, domain, n);
        total += n;
    }
    rule->anywhere = total == 0 && term_about(s, t, own, own);
}

/* Pods that are there may refuse this one: domains of their terms that are about it. */
static void refusal_rule(struct round *r, struct spread_term *t, struct class *theirs,
                         struct domain_rule *rule)
{
    *rule = (struct domain_rule){.kind = RULE_ANTI, .key = t->key};
    if (!term_about(r->hosts->sim, t, theirs, r->class_))
        return;
    vec_each(&r->hosts->slots, struct host **, host) {
        const char *domain = *host ? domain_of(*host, t->key) : NULL;
        for (size_t i = 0; domain && i < (*host)->tallies.len; i++)
            if ((*host)->tallies.v[i].class_ == theirs)
                count_add(rule, domain, 1);
    }
}

static size_t rules_needed(struct hosts *h, const struct class *c)
{
    size_t n = c->spreads.len + c->affinities.len + c->anti.len;
    for (size_t i = 0; h->n_anti && i < h->by_id.len; i++)
        n += h->by_id.v[i] ? h->by_id.v[i]->anti.len : 0;
    return n;
}

static void make_rules(struct round *r)
{
    struct hosts *h = r->hosts;
    struct class *c = r->class_;
    size_t n = rules_needed(h, c);
    if (!n)
        return;
    r->rules = ARENA_NEW_ARRAY(&r->arena, struct domain_rule, n);
    vec_each(&c->spreads, struct spread_term *, t)
        spread_rule(r, t, &r->rules[r->n_rules++]);
    vec_each(&c->affinities, struct spread_term *, t)
        affinity_rule(r, t, c, RULE_AFFINITY, &r->rules[r->n_rules++]);
    vec_each(&c->anti, struct spread_term *, t)
        affinity_rule(r, t, c, RULE_ANTI, &r->rules[r->n_rules++]);
    for (size_t i = 0; h->n_anti && i < h->by_id.len; i++)
        for (size_t k = 0; h->by_id.v[i] && k < h->by_id.v[i]->anti.len; k++)
            refusal_rule(r, &h->by_id.v[i]->anti.v[k], h->by_id.v[i], &r->rules[r->n_rules++]);
}

/* ---- Volumes ---- */

struct terms {
    const struct node_selector_term *v;
    uint32_t n;
};

static struct object *object_at(struct sim *s, const char *group, const char *plural,
                                const char *namespace_, const char *name)
{
    struct resource *r = store_resource(s, str_from(group), str_from(plural));
    struct item *it = name ? store_find(r, str_from(namespace_), str_from(name)) : NULL;
    return it ? item_typed(it) : NULL;
}

/* Where a claim lets its pod run. False: the pod has to wait. */
static bool claim_terms(struct sim *s, const char *namespace_, const char *name, struct terms *ret)
{
    struct object *claim = object_at(s, "", "persistentvolumeclaims", namespace_, name);
    *ret = (struct terms){0};
    if (!claim || claim->meta.deletion)
        return false;
    const struct pvc *c = (const struct pvc *)(const void *)claim;
    if (c->volume_name) {
        const struct pv *v = (const struct pv *)(const void *)object_at(s, "", "persistentvolumes",
                                                                        NULL, c->volume_name);
        if (!v)
            return false;
        *ret = (struct terms){v->node_terms, v->n_node_terms};
        return true;
    }
    const struct storage_class *k = (const struct storage_class *)(const void *)object_at(
        s, "storage.k8s.io", "storageclasses", NULL, c->storage_class);
    if (!k || !k->wait_for_first_consumer)
        return false;
    *ret = (struct terms){k->topologies, k->n_topologies};
    return true;
}

static const char *claim_name(struct arena *a, const struct pod_volume *v, const struct item *pod)
{
    if (v->pvc && !v->ephemeral)
        return v->pvc;
    return v->ephemeral ? arena_printf(a, "%s-%s", pod->name, v->name).p : NULL;
}

static bool volumes_fit(struct round *r, const struct host *host)
{
    const struct pod_spec *p = &class_pod(r->class_)->spec;
    const struct node *n = host_node(host);
    for (uint32_t i = 0; i < p->n_volumes; i++) {
        struct terms t;
        const char *name = claim_name(&r->arena, &p->volumes[i], r->pod);
        if (!name)
            continue;
        if (!claim_terms(r->hosts->sim, r->pod->namespace_, name, &t))
            return false;
        bool any = t.n == 0;
        for (uint32_t k = 0; k < t.n && !any; k++)
            any = fit_term(&t.v[k], &n->obj.meta.labels, n->obj.meta.name);
        if (!any)
            return false;
    }
    return true;
}

static void bind_claim(struct sim *s, struct item *claim, const struct node *n)
{
    char name[80];
    const char *zone = labels_get(&n->obj.meta.labels, "topology.kubernetes.io/zone");
    snprintf(name, sizeof(name), "pvc-%s", claim->uid);
    struct version *v = version_new();
    struct arena *a = &v->arena;
    v->root = json_new_object(a);
    tree_cstr(a, v->root, "apiVersion", "v1");
    tree_cstr(a, v->root, "kind", "PersistentVolume");
    tree_cstr(a, tree_object(a, v->root, "metadata"), "name", name);
    struct json *spec = tree_object(a, v->root, "spec");
    struct str class_ = json_text(json_at(claim->now->root, "spec", "storageClassName", NULL));
    tree_str(a, spec, "storageClassName", class_);
    struct object *k =
        object_at(s, "storage.k8s.io", "storageclasses", NULL, arena_cstr(a, class_));
    const char *driver = k ? ((const struct storage_class *)(const void *)k)->provisioner : NULL;
    tree_cstr(a, tree_object(a, spec, "csi"), "driver", driver ? driver : "sim.weft.sh");
    if (zone) {
        struct json *required = tree_object(a, tree_object(a, spec, "nodeAffinity"), "required");
        struct json *term = tree_add_object(a, tree_array(a, required, "nodeSelectorTerms"));
        struct json *e = tree_add_object(a, tree_array(a, term, "matchExpressions"));
        tree_cstr(a, e, "key", "topology.kubernetes.io/zone");
        tree_cstr(a, e, "operator", "In");
        json_array_add(a, tree_array(a, e, "values"), json_new_string(a, str_from(zone)));
    }
    store_create(store_resource(s, STR(""), STR("persistentvolumes")), v, NULL);
    struct version *c = version_edit(claim);
    tree_cstr(&c->arena, tree_object(&c->arena, c->root, "spec"), "volumeName", name);
    tree_cstr(&c->arena, tree_object(&c->arena, c->root, "status"), "phase", "Bound");
    store_commit(claim, c);
}

void volumes_bind(struct sim *s, struct item *pod, const struct node *n)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    const struct pod *p = pod_at(pod);
    for (uint32_t i = 0; p && i < p->spec.n_volumes; i++) {
        const char *name = claim_name(&a, &p->spec.volumes[i], pod);
        struct resource *r = store_resource(s, STR(""), STR("persistentvolumeclaims"));
        struct item *claim = name ? store_find(r, str_from(pod->namespace_), str_from(name)) : NULL;
        if (claim && !json_text(json_at(claim->now->root, "spec", "volumeName", NULL)).len)
            bind_claim(s, claim, n);
    }
}

/* ---- Ports ---- */

static bool ports_clash(const struct container_port *a, const struct container_port *b)
{
    const char *pa = a->protocol ? a->protocol : "TCP", *pb = b->protocol ? b->protocol : "TCP";
    bool any = !a->host_ip || !b->host_ip || strcmp(a->host_ip, "0.0.0.0") == 0 ||
               strcmp(b->host_ip, "0.0.0.0") == 0;
    return a->host_port == b->host_port && strcmp(pa, pb) == 0 &&
           (any || strcmp(a->host_ip, b->host_ip) == 0);
}

static bool specs_clash(const struct pod_spec *a, const struct pod_spec *b)
{
    for (uint32_t i = 0; i < a->n_containers; i++)
        for (uint32_t k = 0; k < b->n_containers; k++)
            for (uint32_t x = 0; x < a->containers[i].n_host_ports; x++)
                for (uint32_t y = 0; y < b->containers[k].n_host_ports; y++)
                    if (ports_clash(&a->containers[i].host_ports[x],
                                    &b->containers[k].host_ports[y]))
                        return true;
    return false;
}

static bool ports_free(struct round *r, const struct host *host)
{
    for (size_t i = 0; i < host->tallies.len; i++) {
        const struct class *other = host->tallies.v[i].class_;
        if (other->ports && specs_clash(&class_pod(r->class_)->spec, &class_pod(other)->spec))
            return false;
    }
    return true;
}

/* ---- A round ---- */

void round_begin(struct round *r, struct hosts *h, struct class *c, struct item *pod)
{
    *r = (struct round){.hosts = h, .class_ = c, .pod = pod};
    make_rules(r);
}

void round_end(struct round *r)
{
    for (size_t i = 0; i < r->n_rules; i++)
        map_release(&r->rules[i].counts, NULL);
    arena_release(&r->arena);
}

static enum verdict fixed_verdict(const struct class *c, const struct host *host)
{
    const struct node *n = host_node(host);
    const struct pod_spec *p = &class_pod(c)->spec;
    if (n->unschedulable) {
        const struct taint t = {.key = "node.kubernetes.io/unschedulable",
                                .effect = TAINT_NO_SCHEDULE};
        if (!fit_taints(p, &t, 1))
            return FIT_UNSCHEDULABLE;
    }
    if (!fit_taints(p, n->taints, n->n_taints))
        return FIT_TAINT;
    return fit_node_labels(p, &n->obj.meta.labels, n->obj.meta.name) ? FIT : FIT_LABELS;
}

static enum verdict rule_verdict(const struct domain_rule *rule, const struct host *host)
{
    const char *domain = domain_of(host, rule->key);
    int64_t n = domain ? count_get(rule, domain) : -1;
    switch (rule->kind) {
    case RULE_SPREAD:
        if (!domain)
            return FIT_SPREAD;
        return MAX(n, 0) + rule->self - rule->least > rule->max_skew ? FIT_SPREAD : FIT;
    case RULE_AFFINITY:
        return domain && (n > 0 || rule->anywhere) ? FIT : FIT_AFFINITY;
    default:
        return n > 0 ? FIT_ANTI : FIT;
    }
}

enum verdict round_filter(struct round *r, struct host *host)
{
    struct class *c = r->class_;
    while (c->fixed.len <= host->slot)
        vec_push(&c->fixed, 0);
    uint8_t *known = &c->fixed.v[host->slot];
    if (!*known)
        *known = (uint8_t)(fixed_verdict(c, host) + 1);
    if (*known != FIT + 1)
        return (enum verdict)(*known - 1);
    for (size_t i = 0; i < c->n_demands; i++) {
        const struct demand *d = &c->demands[i];
        if (host->used[d->resource] + d->amount > host->allocatable[d->resource]) {
            r->resource = d->resource;
            return FIT_RESOURCE;
        }
    }
    if (c->ports && !ports_free(r, host))
        return FIT_PORTS;
    if (c->volumes && !volumes_fit(r, host))
        return FIT_VOLUME;
    for (size_t i = 0; i < r->n_rules; i++) {
        enum verdict v = rule_verdict(&r->rules[i], host);
        if (v != FIT)
            return v;
    }
    return FIT;
}

int64_t round_score(struct round *r, struct host *host)
{
    const struct class *c = r->class_;
    const struct affinity *a = class_pod(c)->spec.affinity;
    const struct node *n = host_node(host);
    int64_t score = 0;
    for (size_t i = 0; i < 2; i++) { /* cpu and memory */
        int64_t all = host->allocatable[i], used = host->used[i];
        for (size_t k = 0; k < c->n_demands; k++)
            used += c->demands[k].resource == i ? c->demands[k].amount : 0;
        if (all > 0)
            score += (int64_t)(((__int128)(all - used) * 50) / all);
    }
    for (uint32_t i = 0; a && i < a->n_node_preferred; i++)
        if (fit_term(&a->node_preferred[i].term, &n->obj.meta.labels, n->obj.meta.name))
            score += a->node_preferred[i].weight;
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (n->taints[i].effect == TAINT_PREFER_NO_SCHEDULE)
            score -= 100;
    return score;
}
