/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What a pod asks of its node. */

#include "provisioner/model/podset.h"

static bool any_address(const char *ip)
{
    return !*ip || strcmp(ip, "0.0.0.0") == 0 || strcmp(ip, "::") == 0;
}

bool host_port_conflicts(const struct host_port *a, const struct host_port *b)
{
    if (a->port != b->port || strcmp(a->protocol, b->protocol) != 0)
        return false;
    return any_address(a->ip) || any_address(b->ip) || strcmp(a->ip, b->ip) == 0;
}

static uint32_t add_ports(struct host_port *to, const struct container *v, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < v[i].n_host_ports; j++) {
            const struct container_port *p = &v[i].host_ports[j];
            if (p->host_port == 0)
                continue;
            if (to)
                to[count] = (struct host_port){p->host_port, p->host_ip ? p->host_ip : "0.0.0.0",
                                               p->protocol ? p->protocol : "TCP"};
            count++;
        }
    }
    return count;
}

const struct host_port *podset_ports(const struct pod_spec *s, uint32_t *ret_n, struct arena *a)
{
    uint32_t n = add_ports(NULL, s->containers, s->n_containers) +
                 add_ports(NULL, s->init_containers, s->n_init_containers);
    *ret_n = n;
    if (n == 0)
        return NULL;
    struct host_port *v = ARENA_NEW_ARRAY(a, struct host_port, n);
    uint32_t first = add_ports(v, s->containers, s->n_containers);
    add_ports(v + first, s->init_containers, s->n_init_containers);
    return v;
}

bool podset_ports_conflict(const struct podset *c, const struct host_port *ports, uint32_t n)
{
    for (uint32_t i = 0; i < c->n_ports; i++)
        for (uint32_t j = 0; j < n; j++)
            if (host_port_conflicts(&c->ports[i], &ports[j]))
                return true;
    return false;
}

static struct requirements term_requirements(const struct node_selector_term *t, struct arena *a)
{
    struct requirements labels = requirements_from_selectors(t->expressions, t->n_expressions, a);
    if (t->n_fields == 0)
        return labels;
    struct selector_requirement *v = ARENA_NEW_ARRAY(a, struct selector_requirement, t->n_fields);
    for (uint32_t i = 0; i < t->n_fields; i++) {
        v[i] = t->fields[i];
        if (strcmp(v[i].key, "metadata.name") == 0)
            v[i].key = REQUIREMENT_FIELD_NAME;
        else
            v[i].op = SELECTOR_IN; /* no other field exists, and none can be met */
    }
    struct requirements fields = requirements_from_selectors(v, t->n_fields, a);
    return requirements_merge(&labels, &fields, a);
}

const struct requirements *podset_alternatives(const struct pod_spec *s, uint32_t *ret_n,
                                               struct arena *a)
{
    struct requirements base = requirements_from_labels(&s->node_selector, a);
    const struct affinity *f = s->affinity;
    if (!f || !f->has_node_required) {
        struct requirements *one = ARENA_NEW(a, struct requirements);
        *one = base;
        *ret_n = 1;
        return one;
    }
    struct requirements *v = ARENA_NEW_ARRAY(a, struct requirements, f->n_node_required + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_node_required; i++) {
        const struct node_selector_term *t = &f->node_required[i];
        if (t->n_expressions + t->n_fields == 0)
            continue; /* a term without conditions matches nothing */
        struct requirements term = term_requirements(t, a);
        v[n++] = requirements_merge(&base, &term, a);
    }
    if (n == 0) {
        /* No term can match: a demand that no node meets says so to whoever asks. */
        struct requirement *never = ARENA_NEW(a, struct requirement);
        *never = requirement_equals(REQUIREMENT_FIELD_NAME, "", a);
        v[n++] = (struct requirements){never, 1};
    }
    *ret_n = n;
    return v;
}

bool podset_compatible(const struct podset *c, const struct requirements *node,
                       const char **ret_key)
{
    const char *key = NULL, *furthest = NULL;
    for (uint32_t i = 0; i < c->n_alternatives; i++) {
        if (requirements_compatible(node, &c->alternatives[i], NULL, &key))
            return true;
        if (!furthest || strcmp(key, furthest) > 0)
            furthest = key;
    }
    if (ret_key)
        *ret_key = furthest;
    return false;
}

const struct taint *podset_untolerated(const struct pod_spec *s, const struct taint *taints,
                                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (taints[i].effect == TAINT_PREFER_NO_SCHEDULE)
            continue;
        bool tolerated = false;
        for (uint32_t j = 0; j < s->n_tolerations && !tolerated; j++)
            tolerated = toleration_tolerates(&s->tolerations[j], &taints[i]);
        if (!tolerated)
            return &taints[i];
    }
    return NULL;
}
