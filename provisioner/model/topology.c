/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Topology groups. */

#include "provisioner/model/topology.h"

#include "base/vec.h"
#include "provisioner/model/signature.h"

bool topology_group_matches(const struct topology_group *g, const char *namespace_,
                            const struct labels *labels)
{
    if (!g->any_namespace && !string_list_has(&g->namespaces, namespace_))
        return false;
    return selector_matches(g->selector, labels);
}

void topology_table_release(struct topology_table *t)
{
    vec_release(t);
    map_release(&t->by_text, NULL);
}

/* The selector narrowed to pods that agree (or differ) with this pod on the keys. Keys that the pod
 * lacks are ignored, as the API says. */
static const struct label_selector *narrowed(struct arena *a, const struct label_selector *s,
                                             const struct string_list *match,
                                             const struct string_list *mismatch,
                                             const struct labels *labels)
{
    uint32_t more = match->n + (mismatch ? mismatch->n : 0);
    if (!s || more == 0)
        return s;
    struct label_selector *to = ARENA_NEW(a, struct label_selector);
    struct selector_requirement *v =
        ARENA_NEW_ARRAY(a, struct selector_requirement, s->n_requirements + more);
    *to = *s;
    if (s->n_requirements)
        memcpy(v, s->requirements, s->n_requirements * sizeof(*v));
    for (uint32_t i = 0; i < more; i++) {
        bool in = i < match->n;
        const char *key = in ? match->v[i] : mismatch->v[i - match->n];
        const char *value = labels_get(labels, key);
        if (!value)
            continue;
        const char **values = ARENA_NEW(a, const char *);
        values[0] = value;
        v[to->n_requirements++] = (struct selector_requirement){
            .key = key, .op = in ? SELECTOR_IN : SELECTOR_NOT_IN, .values = {values, 1}};
    }
    to->requirements = v;
    return to;
}

static uint32_t find_or_add(struct topology_table *t, struct topology_group g)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    signature_text(&text, g.key);
    signature_selector(&text, g.selector);
    buf_char(&text, g.any_namespace ? '*' : '=');
    for (uint32_t i = 0; i < g.namespaces.n; i++)
        signature_text(&text, g.namespaces.v[i]);
    void **slot = map_slot(&t->by_text, buf_view(&text));
    if (!*slot) {
        vec_push(t, g);
        *slot = (void *)(uintptr_t)t->len;
    }
    return (uint32_t)((uintptr_t)*slot - 1);
}

static struct string_list just(struct arena *a, const char *namespace_)
{
    const char **v = ARENA_NEW(a, const char *);
    v[0] = namespace_;
    return (struct string_list){v, 1};
}

uint32_t topology_spread_group(struct topology_table *t, const struct topology_spread *s,
                               const char *namespace_, const struct labels *pod_labels)
{
    return find_or_add(
        t, (struct topology_group){
               .key = s->topology_key,
               .selector = narrowed(t->arena, s->selector, &s->match_label_keys, NULL, pod_labels),
               .namespaces = just(t->arena, namespace_),
           });
}

/* Names of the term's list and of the namespaces its selector picks, in that order. */
static struct string_list picked(struct topology_table *t, const struct pod_affinity_term *term)
{
    const char **v = ARENA_NEW_ARRAY(t->arena, const char *, term->namespaces.n + t->n_namespaces);
    struct string_list out = {v, 0};
    for (uint32_t i = 0; i < term->namespaces.n; i++)
        v[out.n++] = term->namespaces.v[i];
    for (size_t i = 0; i < t->n_namespaces; i++) {
        const struct meta *m = &t->namespaces[i]->meta;
        if (selector_matches(term->namespace_selector, &m->labels) &&
            !string_list_has(&out, m->name))
            v[out.n++] = m->name;
    }
    return out;
}

bool topology_affinity_group(struct topology_table *t, const struct pod_affinity_term *term,
                             const char *namespace_, const struct labels *pod_labels,
                             uint32_t *ret_group)
{
    bool known = true;
    struct topology_group g = {
        .key = term->topology_key,
        .selector = narrowed(t->arena, term->selector, &term->match_label_keys,
                             &term->mismatch_label_keys, pod_labels),
    };
    const struct label_selector *over = term->namespace_selector;
    if (over && over->match_labels.n + over->n_requirements == 0) {
        g.any_namespace = true;
    } else if (over) {
        known = t->n_namespaces > 0;
        g.any_namespace = !known;
        if (known)
            g.namespaces = picked(t, term);
    } else if (term->namespaces.n) {
        g.namespaces = term->namespaces;
    } else {
        g.namespaces = just(t->arena, namespace_);
    }
    *ret_group = find_or_add(t, g);
    return known;
}
