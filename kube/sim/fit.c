/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The parts of fit that a pod and a node decide between themselves. */

#include "kube/sim/internal.h"

bool fit_term(const struct node_selector_term *t, const struct labels *node, const char *node_name)
{
    if (t->n_expressions == 0 && t->n_fields == 0)
        return false; /* an empty term matches nothing */
    for (uint32_t i = 0; i < t->n_expressions; i++)
        if (!selector_requirement_matches(&t->expressions[i], node))
            return false;
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const struct selector_requirement *f = &t->fields[i];
        bool in = string_list_has(&f->values, node_name);
        if (strcmp(f->key, "metadata.name") != 0 || (f->op == SELECTOR_IN) != in)
            return false;
    }
    return true;
}

bool fit_node_labels(const struct pod_spec *p, const struct labels *node, const char *node_name)
{
    for (uint32_t i = 0; i < p->node_selector.n; i++) {
        const char *value = labels_get(node, p->node_selector.v[i].key);
        if (!value || strcmp(value, p->node_selector.v[i].value) != 0)
            return false;
    }
    const struct affinity *a = p->affinity;
    if (!a || !a->has_node_required)
        return true;
    for (uint32_t i = 0; i < a->n_node_required; i++)
        if (fit_term(&a->node_required[i], node, node_name))
            return true;
    return false;
}

bool fit_taints(const struct pod_spec *p, const struct taint *taints, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bool tolerated = taints[i].effect == TAINT_PREFER_NO_SCHEDULE;
        for (uint32_t k = 0; k < p->n_tolerations && !tolerated; k++)
            tolerated = toleration_tolerates(&p->tolerations[k], &taints[i]);
        if (!tolerated)
            return false;
    }
    return true;
}
