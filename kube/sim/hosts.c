/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* See hosts.h. */

#include "kube/sim/hosts.h"

void hosts_init(struct hosts *h, struct sim *s)
{
    *h = (struct hosts){.sim = s};
    h->resources[h->n_resources++] = xstrdup("cpu");
    h->resources[h->n_resources++] = xstrdup("memory");
    h->resources[h->n_resources++] = xstrdup("pods");
}

static size_t resource_index(struct hosts *h, const char *name)
{
    for (size_t i = 0; i < h->n_resources; i++)
        if (strcmp(h->resources[i], name) == 0)
            return i;
    if (h->n_resources == RESOURCES_MAX)
        return SIZE_MAX;
    h->resources[h->n_resources] = xstrdup(name);
    return h->n_resources++;
}

/* ---- Classes ---- */

/* Labels that only number the pods of one owner. */
static bool numbering(struct str key)
{
    static const char *const keys[] = {"statefulset.kubernetes.io/pod-name",
                                       "apps.kubernetes.io/pod-index",
                                       "batch.kubernetes.io/job-completion-index"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (str_eq_c(key, keys[i]))
            return true;
    return false;
}

static void class_text(const struct json *root, struct buf *out)
{
    struct json_writer w;
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    const struct json *spec = json_get(root, "spec"),
                      *labels = json_at(root, "metadata", "labels", NULL);
    for (size_t i = 0; spec && i < spec->n; i++) {
        if (str_eq_c(spec->members[i].key, "nodeName"))
            continue;
        json_w_key(&w, spec->members[i].key);
        json_w_tree(&w, spec->members[i].value);
    }
    json_w_kobject(&w, "labels");
    for (size_t i = 0; labels && i < labels->n; i++)
        if (!numbering(labels->members[i].key))
            json_w_kstr(&w, "-", json_text(labels->members[i].value)),
                json_w_kstr(&w, "+", labels->members[i].key);
    json_w_object_end(&w);
    json_w_kstr(&w, "namespace", json_text(json_at(root, "metadata", "namespace", NULL)));
    json_w_object_end(&w);
}

static void add_terms(struct vec_term *to, const struct pod_affinity_term *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        vec_push(to, (struct spread_term){
                         .selector = v[i].selector, .affinity = &v[i], .key = v[i].topology_key});
}

static void class_terms(struct class *c)
{
    const struct pod_spec *p = &class_pod(c)->spec;
    for (uint32_t i = 0; i < p->n_spreads; i++)
        if (!p->spreads[i].schedule_anyway)
            vec_push(&c->spreads, (struct spread_term){.selector = p->spreads[i].selector,
                                                       .spread = &p->spreads[i],
                                                       .key = p->spreads[i].topology_key});
    if (p->affinity) {
        add_terms(&c->affinities, p->affinity->pod_required, p->affinity->n_pod_required);
        add_terms(&c->anti, p->affinity->anti_required, p->affinity->n_anti_required);
    }
    for (uint32_t i = 0; i < p->n_containers; i++)
        c->ports |= p->containers[i].n_host_ports > 0;
    c->volumes = p->n_volumes > 0;
}

static bool picky(const struct class *c)
{
    return c->spreads.len || c->affinities.len || c->anti.len;
}

static void class_demands(struct hosts *h, struct class *c)
{
    const struct resource_list *l = &class_pod(c)->requests;
    c->demands = xcalloc(l->n + 1, sizeof(*c->demands));
    for (uint32_t i = 0; i < l->n; i++) {
        size_t r = resource_index(h, l->v[i].name);
        if (r != SIZE_MAX && l->v[i].amount > 0 && strcmp(l->v[i].name, "pods") != 0)
            c->demands[c->n_demands++] = (struct demand){(uint16_t)r, l->v[i].amount};
    }
    c->demands[c->n_demands++] = (struct demand){2, 1}; /* "pods": itself */
}

static uint32_t free_id(struct hosts *h)
{
    for (uint32_t i = 0; i < h->by_id.len; i++)
        if (!h->by_id.v[i])
            return i;
    vec_push(&h->by_id, NULL);
    return (uint32_t)h->by_id.len - 1;
}

struct class *class_of(struct hosts *h, struct item *pod)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    char key[40];
    struct object *o = item_typed(pod);
    if (!o)
        return NULL;
    class_text(pod->now->root, &text);
    snprintf(key, sizeof(key), "%016llx%016llx", (unsigned long long)str_hash(buf_view(&text), 1),
             (unsigned long long)str_hash(buf_view(&text), 2));
    struct class *c = map_get(&h->classes, str_from(key));
    if (c) {
        c->refs++;
        return c;
    }
    c = xcalloc(1, sizeof(*c));
    c->refs = 1;
    c->id = free_id(h);
    c->key = xstrdup(key);
    c->sample = object_ref(o);
    class_terms(c);
    class_demands(h, c);
    h->n_anti += c->anti.len > 0;
    h->n_picky += picky(c);
    h->by_id.v[c->id] = c;
    map_put(&h->classes, str_from(key), c);
    return c;
}

static void terms_release(struct vec_term *v)
{
    vec_each(v, struct spread_term *, t)
        vec_release(&t->matches);
    vec_release(v);
}

static void terms_forget(struct vec_term *v, uint32_t id)
{
    vec_each(v, struct spread_term *, t)
        if (id < t->matches.len)
            t->matches.v[id] = 0;
}

static void class_free(struct class *c)
{
    terms_release(&c->spreads);
    terms_release(&c->affinities);
    terms_release(&c->anti);
    vec_release(&c->fixed);
    object_unref(c->sample);
    free(c->demands);
    free(c->key);
    free(c);
}

void class_unref(struct hosts *h, struct class *c)
{
    if (!c || --c->refs)
        return;
    map_remove(&h->classes, str_from(c->key));
    h->by_id.v[c->id] = NULL;
    h->n_anti -= c->anti.len > 0;
    h->n_picky -= picky(c);
    vec_each(&h->by_id, struct class **, other) {
        if (!*other)
            continue;
        terms_forget(&(*other)->spreads, c->id);
        terms_forget(&(*other)->affinities, c->id);
        terms_forget(&(*other)->anti, c->id);
    }
    class_free(c);
}

/* ---- Hosts ---- */

static struct tally *tally_of(struct host *host, struct class *c)
{
    vec_each(&host->tallies, struct tally *, t)
        if (t->class_ == c)
            return t;
    vec_push(&host->tallies, (struct tally){.class_ = c});
    return &vec_last(&host->tallies);
}

void host_count(struct host *host, struct class *c, int sign, bool leaving)
{
    struct tally *t = tally_of(host, c);
    for (size_t i = 0; i < c->n_demands; i++)
        host->used[c->demands[i].resource] += sign * c->demands[i].amount;
    t->n = (uint32_t)((int64_t)t->n + sign);
    t->leaving = (uint32_t)((int64_t)t->leaving + (leaving ? sign : 0));
    if (t->n == 0)
        vec_remove(&host->tallies, (size_t)(t - host->tallies.v));
}

void host_leaving(struct host *host, struct class *c)
{
    tally_of(host, c)->leaving++;
}

static uint32_t free_slot(struct hosts *h)
{
    for (uint32_t i = 0; h->n_hosts < h->slots.len && i < h->slots.len; i++)
        if (!h->slots.v[i])
            return i;
    vec_push(&h->slots, NULL);
    return (uint32_t)h->slots.len - 1;
}

static void host_free(struct host *host)
{
    vec_release(&host->tallies);
    free(host);
}

static void forget_slot(struct hosts *h, uint32_t slot)
{
    vec_each(&h->by_id, struct class **, c)
        if (*c && slot < (*c)->fixed.len)
            (*c)->fixed.v[slot] = 0;
}

void hosts_node(struct hosts *h, struct item *it)
{
    struct node_state *n = it->node;
    struct object *o = item_typed(it);
    struct host *host = n->host;
    if (host)
        forget_slot(h, host->slot);
    if (it->gone || !o) {
        if (host) {
            h->slots.v[host->slot] = NULL;
            h->n_hosts--;
            n->host = NULL;
            host_free(host);
        }
        return;
    }
    if (!host) {
        host = n->host = xcalloc(1, sizeof(*host));
        host->node = n;
        host->slot = free_slot(h);
        h->slots.v[host->slot] = host;
        h->n_hosts++;
    }
    memset(host->allocatable, 0, sizeof(host->allocatable));
    const struct resource_list *l = &node_of(o)->allocatable;
    for (uint32_t i = 0; i < l->n; i++) {
        size_t r = resource_index(h, l->v[i].name);
        if (r != SIZE_MAX)
            host->allocatable[r] = l->v[i].amount;
    }
}

void hosts_release(struct hosts *h)
{
    vec_each(&h->slots, struct host **, host)
        if (*host)
            host_free(*host);
    vec_each(&h->by_id, struct class **, c)
        if (*c)
            class_free(*c);
    vec_release(&h->slots);
    vec_release(&h->by_id);
    map_release(&h->classes, NULL);
    for (size_t i = 0; i < h->n_resources; i++)
        free((char *)(uintptr_t)h->resources[i]);
}
