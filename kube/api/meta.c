/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/meta.h"

#include "kube/api/decode.h"

const char *labels_get(const struct labels *l, const char *key)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(l->v[mid].key, key);
        if (c == 0)
            return l->v[mid].value;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

bool labels_has(const struct labels *l, const char *key)
{
    return labels_get(l, key) != NULL;
}

bool labels_equal(const struct labels *a, const struct labels *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->v[i].key, b->v[i].key) != 0 || strcmp(a->v[i].value, b->v[i].value) != 0)
            return false;
    return true;
}

const struct owner_ref *meta_controller(const struct meta *m)
{
    for (uint32_t i = 0; i < m->n_owners; i++)
        if (m->owners[i].controller)
            return &m->owners[i];
    return NULL;
}

bool string_list_has(const struct string_list *l, const char *s)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i], s) == 0)
            return true;
    return false;
}

bool meta_has_finalizer(const struct meta *m, const char *finalizer)
{
    return string_list_has(&m->finalizers, finalizer);
}

const struct condition *condition_find(const struct conditions *c, const char *type)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->v[i].type && strcmp(c->v[i].type, type) == 0)
            return &c->v[i];
    return NULL;
}

bool condition_is(const struct conditions *c, const char *type, enum condition_status s)
{
    const struct condition *found = condition_find(c, type);
    return found && found->status == s;
}

static const char *const status_names[] = {"Unknown", "False", "True", NULL};

const char *condition_status_name(enum condition_status s)
{
    return status_names[s];
}

/* ---- Tables ---- */

static const struct field fields_owner[] = {
    F(FIELD_TEXT, struct owner_ref, api_version, "apiVersion"),
    F(FIELD_TEXT, struct owner_ref, kind, "kind"),
    F(FIELD_TEXT, struct owner_ref, name, "name"),
    F(FIELD_TEXT, struct owner_ref, uid, "uid"),
    F(FIELD_BOOL, struct owner_ref, controller, "controller"),
    F(FIELD_BOOL, struct owner_ref, block_owner_deletion, "blockOwnerDeletion"),
    F_END,
};

const struct field fields_meta[] = {
    F_UNIQUE(struct meta, name, "name"),
    F(FIELD_TEXT, struct meta, namespace_, "namespace"),
    F_UNIQUE(struct meta, generate_name, "generateName"),
    F_UNIQUE(struct meta, uid, "uid"),
    F_UNIQUE(struct meta, resource_version, "resourceVersion"),
    F(FIELD_INT64, struct meta, generation, "generation"),
    F(FIELD_TIME, struct meta, creation, "creationTimestamp"),
    F(FIELD_TIME, struct meta, deletion, "deletionTimestamp"),
    F(FIELD_INT64, struct meta, deletion_grace_s, "deletionGracePeriodSeconds"),
    F(FIELD_LABELS, struct meta, labels, "labels"),
    F(FIELD_NOTES, struct meta, annotations, "annotations"),
    F_LIST(struct meta, owners, n_owners, "ownerReferences", struct owner_ref, fields_owner),
    F(FIELD_STRINGS, struct meta, finalizers, "finalizers"),
    F_END,
};

const struct field fields_condition[] = {
    F(FIELD_TEXT, struct condition, type, "type"),
    F(FIELD_TEXT, struct condition, reason, "reason"),
    F_UNIQUE(struct condition, message, "message"),
    F_ENUM(struct condition, status, "status", status_names),
    F(FIELD_TIME, struct condition, last_transition, "lastTransitionTime"),
    F(FIELD_TIME, struct condition, last_probe, "lastProbeTime"),
    F(FIELD_INT64, struct condition, observed_generation, "observedGeneration"),
    F_END,
};
