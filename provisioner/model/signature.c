/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Signatures: every text is written with its length, so that no two inputs run together. */

#include "provisioner/model/signature.h"

void signature_text(struct buf *b, const char *s)
{
    if (!s) {
        buf_char(b, '-');
        return;
    }
    size_t n = strlen(s);
    char number[24];
    int digits = snprintf(number, sizeof(number), "%zu:", n);
    buf_add(b, number, (size_t)digits);
    buf_add(b, s, n);
}

static void number(struct buf *b, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%lld,", (long long)v);
    buf_add(b, text, (size_t)n);
}

void signature_labels(struct buf *b, const struct labels *l)
{
    number(b, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        signature_text(b, l->v[i].key);
        signature_text(b, l->v[i].value);
    }
}

static void string_list(struct buf *b, const struct string_list *l)
{
    number(b, l->n);
    for (uint32_t i = 0; i < l->n; i++)
        signature_text(b, l->v[i]);
}

static void expressions(struct buf *b, const struct selector_requirement *v, uint32_t n)
{
    number(b, n);
    for (uint32_t i = 0; i < n; i++) {
        signature_text(b, v[i].key);
        number(b, (int64_t)v[i].op);
        string_list(b, &v[i].values);
    }
}

void signature_selector(struct buf *b, const struct label_selector *s)
{
    if (!s) {
        buf_char(b, '-');
        return;
    }
    signature_labels(b, &s->match_labels);
    expressions(b, s->requirements, s->n_requirements);
}

void signature_where(struct buf *b, const struct pod_spec *s)
{
    signature_labels(b, &s->node_selector);
    if (s->affinity && s->affinity->has_node_required) {
        number(b, s->affinity->n_node_required);
        for (uint32_t i = 0; i < s->affinity->n_node_required; i++) {
            const struct node_selector_term *t = &s->affinity->node_required[i];
            expressions(b, t->expressions, t->n_expressions);
            expressions(b, t->fields, t->n_fields);
        }
    }
    buf_char(b, 't');
    for (uint32_t i = 0; i < s->n_tolerations; i++) {
        const struct toleration *t = &s->tolerations[i];
        signature_text(b, t->key);
        signature_text(b, t->value);
        number(b, (int64_t)t->effect * 2 + t->exists);
    }
}

/* Values of the pod's labels that matchLabelKeys point at. */
static void label_values(struct buf *b, const struct string_list *keys, const struct labels *labels)
{
    number(b, keys->n);
    for (uint32_t i = 0; i < keys->n; i++) {
        signature_text(b, keys->v[i]);
        signature_text(b, labels_get(labels, keys->v[i]));
    }
}

static void affinity_terms(struct buf *b, const struct pod_affinity_term *v, uint32_t n,
                           const struct labels *labels)
{
    number(b, n);
    for (uint32_t i = 0; i < n; i++) {
        signature_text(b, v[i].topology_key);
        signature_selector(b, v[i].selector);
        if (v[i].namespace_selector)
            buf_char(b, 'n');
        signature_selector(b, v[i].namespace_selector);
        string_list(b, &v[i].namespaces);
        label_values(b, &v[i].match_label_keys, labels);
        label_values(b, &v[i].mismatch_label_keys, labels);
    }
}

static void ports(struct buf *b, const struct container *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < v[i].n_host_ports; j++) {
            const struct container_port *p = &v[i].host_ports[j];
            number(b, p->host_port);
            signature_text(b, p->host_ip);
            signature_text(b, p->protocol);
        }
    }
}

void signature_spec(struct buf *b, const struct pod_spec *s, const struct resource_list *requests,
                    const struct labels *labels)
{
    for (uint32_t i = 0; i < requests->n; i++) {
        signature_text(b, requests->v[i].name);
        number(b, requests->v[i].amount);
    }
    buf_char(b, 'p');
    ports(b, s->containers, s->n_containers);
    ports(b, s->init_containers, s->n_init_containers);
    buf_char(b, 's');
    for (uint32_t i = 0; i < s->n_spreads; i++) {
        const struct topology_spread *t = &s->spreads[i];
        signature_text(b, t->topology_key);
        number(b, t->max_skew);
        number(b, t->min_domains);
        number(b, t->schedule_anyway + 2 * t->affinity_ignore + 4 * t->taints_honor);
        signature_selector(b, t->selector);
        label_values(b, &t->match_label_keys, labels);
    }
    buf_char(b, 'a');
    if (s->affinity) {
        affinity_terms(b, s->affinity->pod_required, s->affinity->n_pod_required, labels);
        affinity_terms(b, s->affinity->anti_required, s->affinity->n_anti_required, labels);
    }
    buf_char(b, 'v');
    for (uint32_t i = 0; i < s->n_volumes; i++)
        if (s->volumes[i].pvc || s->volumes[i].ephemeral) {
            signature_text(b, s->volumes[i].pvc);
            signature_text(b, s->volumes[i].storage_class);
        }
    string_list(b, &s->resource_claims);
}
