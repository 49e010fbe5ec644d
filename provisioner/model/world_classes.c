/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Building the world: classes of pods that need a place.
 *
 * Two passes. The first keys pods by their specification, so that topology terms are read once per
 * distinct specification; it yields all groups that anybody counts. The second splits by which of
 * those groups a pod's labels put it in: labels that nobody selects on tell no pods apart. */

#include "base/bits.h"
#include "provisioner/model/builder.h"
#include "provisioner/model/signature.h"

struct shape {
    struct topology_use *spreads, *affinities, *antis;
    uint32_t n_spreads, n_affinities, n_antis;
    const char *refused;
    const int64_t *requests;
};

static void read_terms(struct world_builder *b, const struct world_pod *p,
                       const struct pod_affinity_term *v, uint32_t n, struct topology_use **ret,
                       uint32_t *ret_n, const char **refused)
{
    if (n == 0)
        return;
    *ret = ARENA_NEW_ARRAY(&b->world->arena, struct topology_use, n);
    *ret_n = n;
    for (uint32_t i = 0; i < n; i++)
        if (!topology_affinity_group(&b->topology, &v[i], p->namespace_, p->labels,
                                     &(*ret)[i].group))
            *refused =
                "its pod affinity selects namespaces by label, and no Namespace objects are known";
}

static const char *not_understood(const struct pod_spec *s)
{
    if (s->resource_claims.n)
        return "it uses resource claims (DRA), which no offering is known to serve";
    for (uint32_t i = 0; i < s->n_volumes; i++)
        if (s->volumes[i].pvc || s->volumes[i].ephemeral)
            return "it uses persistent volumes, whose place is not known";
    return NULL;
}

static struct shape *read_shape(struct world_builder *b, const struct world_pod *p)
{
    struct arena *a = &b->world->arena;
    struct shape *s = ARENA_NEW(a, struct shape);
    s->refused = not_understood(p->spec);
    int64_t *requests = builder_dense(b, p->requests);
    requests[RESOURCE_PODS] = 1;
    s->requests = requests;
    for (uint32_t i = 0; i < b->world->resources.n; i++)
        if (requests[i] < 0)
            s->refused = "it requests a negative amount";
    s->spreads = ARENA_NEW_ARRAY(a, struct topology_use, p->spec->n_spreads);
    for (uint32_t i = 0; i < p->spec->n_spreads; i++) {
        const struct topology_spread *t = &p->spec->spreads[i];
        if (t->schedule_anyway)
            continue;
        s->spreads[s->n_spreads++] = (struct topology_use){
            .group = topology_spread_group(&b->topology, t, p->namespace_, p->labels),
            .max_skew = MAX(t->max_skew, 1),
            .min_domains = t->min_domains,
            .affinity_ignore = t->affinity_ignore,
            .taints_honor = t->taints_honor,
        };
    }
    const struct affinity *f = p->spec->affinity;
    if (f) {
        read_terms(b, p, f->pod_required, f->n_pod_required, &s->affinities, &s->n_affinities,
                   &s->refused);
        read_terms(b, p, f->anti_required, f->n_anti_required, &s->antis, &s->n_antis, &s->refused);
    }
    return s;
}

static uint32_t number_of(struct map *m, const struct buf *text, uint32_t *count)
{
    void **slot = map_slot(m, buf_view(text));
    if (!*slot)
        *slot = (void *)(uintptr_t)++ * count;
    return (uint32_t)((uintptr_t)*slot - 1);
}

struct classing {
    struct map shapes, wheres, classes;
    struct shape **of; /* by pod */
    uint32_t *where;   /* by pod */
    struct buf text;
};

static void first_pass(struct world_builder *b, struct classing *c)
{
    struct world *w = b->world;
    for (uint32_t i = 0; i < w->n_pods; i++) {
        const struct world_pod *p = &w->pods[i];
        if (p->ignored)
            continue;
        buf_clear(&c->text);
        signature_where(&c->text, p->spec);
        c->where[i] = number_of(&c->wheres, &c->text, &w->n_wheres);
        signature_text(&c->text, p->namespace_);
        signature_spec(&c->text, p->spec, p->requests, p->labels);
        void **slot = map_slot(&c->shapes, buf_view(&c->text));
        if (!*slot)
            *slot = read_shape(b, p);
        c->of[i] = *slot;
    }
}

static void begin_class(struct world_builder *b, const struct classing *c, uint32_t pod,
                        const uint64_t *matches, struct podset *to)
{
    struct arena *a = &b->world->arena;
    const struct world_pod *p = &b->world->pods[pod];
    const struct shape *s = c->of[pod];
    to->example = p;
    to->spec = p->spec;
    to->labels = p->labels;
    to->namespace_ = p->namespace_;
    to->requests = s->requests;
    to->alternatives = podset_alternatives(p->spec, &to->n_alternatives, a);
    to->ports = podset_ports(p->spec, &to->n_ports, a);
    to->where = c->where[pod];
    to->spreads = s->spreads;
    to->n_spreads = s->n_spreads;
    to->affinities = s->affinities;
    to->n_affinities = s->n_affinities;
    to->antis = s->antis;
    to->n_antis = s->n_antis;
    to->refused = s->refused;
    size_t words = BITS_WORDS(b->world->n_groups) + 1;
    uint64_t *copy = ARENA_NEW_ARRAY(a, uint64_t, words);
    memcpy(copy, matches, words * sizeof(*copy));
    to->matches = copy;
}

static void second_pass(struct world_builder *b, struct classing *c)
{
    struct world *w = b->world;
    struct {
        VEC(struct podset);
    } classes = {0};
    size_t words = BITS_WORDS(w->n_groups) + 1;
    uint64_t *matches = xcalloc(words, sizeof(*matches));
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->n_pods; i++) {
        struct world_pod *p = &w->pods[i];
        if (p->ignored)
            continue;
        memset(matches, 0, words * sizeof(*matches));
        for (uint32_t g = 0; g < w->n_groups; g++)
            if (topology_group_matches(&w->groups[g], p->namespace_, p->labels))
                bits_set(matches, g);
        buf_clear(&c->text);
        uintptr_t shape = (uintptr_t)c->of[i];
        buf_add(&c->text, &shape, sizeof(shape));
        buf_add(&c->text, matches, words * sizeof(*matches));
        p->class_ = number_of(&c->classes, &c->text, &count);
        if (p->class_ == classes.len) {
            vec_push(&classes, (struct podset){.id = p->class_});
            begin_class(b, c, i, matches, &vec_last(&classes));
        }
        classes.v[p->class_].n_pods++;
    }
    free(matches);
    w->n_classes = (uint32_t)classes.len;
    w->classes = ARENA_NEW_ARRAY(&w->arena, struct podset, classes.len + 1);
    if (classes.len)
        memcpy(w->classes, classes.v, classes.len * sizeof(*classes.v));
    vec_release(&classes);
}

static void list_members(struct world *w)
{
    uint32_t **at = xcalloc(w->n_classes + 1, sizeof(*at));
    for (uint32_t i = 0; i < w->n_classes; i++) {
        at[i] = ARENA_NEW_ARRAY(&w->arena, uint32_t, w->classes[i].n_pods);
        w->classes[i].pods = at[i];
    }
    for (uint32_t i = 0; i < w->n_pods; i++)
        if (w->pods[i].class_ != WORLD_NONE)
            *at[w->pods[i].class_]++ = i;
    free(at);
}

void builder_classes(struct world_builder *b)
{
    struct world *w = b->world;
    struct classing c = {
        .of = xcalloc(w->n_pods + 1, sizeof(*c.of)),
        .where = xcalloc(w->n_pods + 1, sizeof(*c.where)),
    };
    first_pass(b, &c);
    w->n_groups = (uint32_t)b->topology.len;
    w->groups = ARENA_NEW_ARRAY(&w->arena, struct topology_group, w->n_groups + 1);
    if (w->n_groups)
        memcpy(w->groups, b->topology.v, w->n_groups * sizeof(*w->groups));
    second_pass(b, &c);
    list_members(w);
    map_release(&c.shapes, NULL);
    map_release(&c.wheres, NULL);
    map_release(&c.classes, NULL);
    buf_release(&c.text);
    free(c.of);
    free(c.where);
}
