/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/body.h"

void body_begin(struct json_writer *w, struct buf *out, const struct meta *m)
{
    json_writer_init(w, out, 0);
    json_w_object(w);
    json_w_kobject(w, "metadata");
    if (m && m->resource_version)
        json_w_kcstr(w, "resourceVersion", m->resource_version);
}

void body_metadata_end(struct json_writer *w)
{
    json_w_object_end(w);
}
void body_end(struct json_writer *w)
{
    json_w_object_end(w);
}

static void finalizers(struct json_writer *w, const struct meta *m, bool with)
{
    bool had = false;

    json_w_karray(w, "finalizers");
    for (uint32_t i = 0; i < m->finalizers.n; i++) {
        bool ours = strcmp(m->finalizers.v[i], FINALIZER_TERMINATION) == 0;

        had |= ours;
        if (!ours || with)
            json_w_cstr(w, m->finalizers.v[i]);
    }
    if (with && !had)
        json_w_cstr(w, FINALIZER_TERMINATION);
    json_w_array_end(w);
}

void body_finalizer(struct buf *out, const struct meta *m, bool with)
{
    struct json_writer w;

    body_begin(&w, out, m);
    finalizers(&w, m, with);
    body_metadata_end(&w);
    body_end(&w);
}

/* ---- Conditions ---- */

static const char *text_or_empty(const char *s)
{
    return s ? s : "";
}

static bool same_condition(const struct condition *c, const struct wanted_condition *w)
{
    return c && c->status == w->status && strcmp(text_or_empty(c->reason), w->reason) == 0 &&
           strcmp(text_or_empty(c->message), w->message) == 0;
}

bool conditions_differ(const struct conditions *old, const struct wanted_condition *want,
                       unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!same_condition(condition_find(old, want[i].type), &want[i]))
            return true;
    return false;
}

static void condition(struct json_writer *w, const char *type, enum condition_status status,
                      const char *reason, const char *message, int64_t transition,
                      int64_t generation)
{
    char at[40];

    json_w_object(w);
    json_w_kcstr(w, "type", type);
    json_w_kcstr(w, "status", condition_status_name(status));
    json_w_kcstr(w, "reason", text_or_empty(reason));
    json_w_kcstr(w, "message", text_or_empty(message));
    json_w_kstr(w, "lastTransitionTime", time_format(at, transition));
    if (generation > 0)
        json_w_ki64(w, "observedGeneration", generation);
    json_w_object_end(w);
}

void body_conditions(struct json_writer *w, const struct conditions *old,
                     const struct wanted_condition *want, unsigned n, int64_t generation,
                     int64_t now)
{
    json_w_karray(w, "conditions");
    for (uint32_t i = 0; i < old->n; i++) {
        const struct condition *c = &old->v[i];
        const struct wanted_condition *new = NULL;

        for (unsigned j = 0; j < n; j++)
            if (strcmp(want[j].type, c->type) == 0)
                new = &want[j];
        if (!new)
            condition(w, c->type, c->status, c->reason, c->message, c->last_transition,
                      c->observed_generation);
        else
            condition(w, c->type, new->status, new->reason, new->message,
                      new->status == c->status && c->last_transition ? c->last_transition : now,
                      generation);
    }
    for (unsigned j = 0; j < n; j++)
        if (!condition_find(old, want[j].type))
            condition(w, want[j].type, want[j].status, want[j].reason, want[j].message, now,
                      generation);
    json_w_array_end(w);
}

/* ---- Taints and nodes ---- */

void body_taint(struct json_writer *w, const struct taint *t)
{
    char at[40];

    json_w_object(w);
    json_w_kcstr(w, "key", t->key);
    if (t->value && t->value[0])
        json_w_kcstr(w, "value", t->value);
    json_w_kcstr(w, "effect", taint_effect_name(t->effect));
    if (t->time_added)
        json_w_kstr(w, "timeAdded", time_format(at, t->time_added));
    json_w_object_end(w);
}

static bool has_taint(const struct taint *v, uint32_t n, const struct taint *t)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(v[i].key, t->key) == 0 && v[i].effect == t->effect)
            return true;
    return false;
}

static void merge_taints(struct json_writer *w, const struct node *n, const struct taint *add,
                         uint32_t n_add)
{
    for (uint32_t i = 0; i < n_add; i++)
        if (!has_taint(n->taints, n->n_taints, &add[i]))
            body_taint(w, &add[i]);
}

static void register_taints(struct json_writer *w, const struct nodeclaim *c, const struct node *n)
{
    bool sync = !labels_has(&n->obj.meta.labels, LABEL_DO_NOT_SYNC_TAINTS);
    bool before = labels_has(&n->obj.meta.labels, LABEL_REGISTERED);

    json_w_kobject(w, "spec");
    json_w_karray(w, "taints");
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, TAINT_UNREGISTERED) != 0)
            body_taint(w, &n->taints[i]);
    if (sync)
        merge_taints(w, n, c->spec.taints, c->spec.n_taints);
    if (sync && !before)
        merge_taints(w, n, c->spec.startup_taints, c->spec.n_startup_taints);
    json_w_array_end(w);
    json_w_object_end(w);
}

static void owners(struct json_writer *w, const struct nodeclaim *c, const struct node *n)
{
    bool had = false;
    char version[128];

    json_w_karray(w, "ownerReferences");
    for (uint32_t i = 0; i < n->obj.meta.n_owners; i++) {
        const struct owner_ref *o = &n->obj.meta.owners[i];

        had |= o->uid && strcmp(o->uid, c->obj.meta.uid) == 0;
        json_w_object(w);
        json_w_kcstr(w, "apiVersion", o->api_version);
        json_w_kcstr(w, "kind", o->kind);
        json_w_kcstr(w, "name", o->name);
        json_w_kcstr(w, "uid", o->uid);
        if (o->controller)
            json_w_kbool(w, "controller", true);
        if (o->block_owner_deletion)
            json_w_kbool(w, "blockOwnerDeletion", true);
        json_w_object_end(w);
    }
    if (!had) {
        json_w_object(w);
        json_w_kstr(w, "apiVersion", kind_api_version(version, &kind_nodeclaim));
        json_w_kcstr(w, "kind", kind_nodeclaim.kind);
        json_w_kcstr(w, "name", c->obj.meta.name);
        json_w_kcstr(w, "uid", c->obj.meta.uid);
        json_w_kbool(w, "blockOwnerDeletion", true);
        json_w_object_end(w);
    }
    json_w_array_end(w);
}

void body_register(struct buf *out, const struct nodeclaim *c, const struct node *n)
{
    const struct meta *m = &c->obj.meta;
    struct json_writer w;

    body_begin(&w, out, &n->obj.meta);
    json_w_kobject(&w, "labels");
    for (uint32_t i = 0; i < m->labels.n; i++)
        if (strcmp(m->labels.v[i].key, LABEL_REGISTERED) != 0)
            json_w_kcstr(&w, m->labels.v[i].key, m->labels.v[i].value);
    json_w_kcstr(&w, LABEL_REGISTERED, "true");
    json_w_object_end(&w);
    json_w_kobject(&w, "annotations");
    for (uint32_t i = 0; i < m->annotations.n; i++)
        if (!str_has_prefix(str_from(m->annotations.v[i].key), STR("weft.sh/launch-")) &&
            strcmp(m->annotations.v[i].key, ANNOTATION_ALTERNATIVES) != 0)
            json_w_kcstr(&w, m->annotations.v[i].key, m->annotations.v[i].value);
    json_w_object_end(&w);
    owners(&w, c, n);
    finalizers(&w, &n->obj.meta, true);
    body_metadata_end(&w);
    register_taints(&w, c, n);
    body_end(&w);
}

void body_disrupted(struct buf *out, const struct node *n, bool on)
{
    static const struct taint disrupted = {.key = TAINT_DISRUPTED, .effect = TAINT_NO_SCHEDULE};
    struct json_writer w;

    body_begin(&w, out, &n->obj.meta);
    json_w_kobject(&w, "labels");
    json_w_kcstr(&w, LABEL_EXCLUDE_BALANCERS, on ? "karpenter" : NULL);
    json_w_object_end(&w);
    body_metadata_end(&w);
    json_w_kobject(&w, "spec");
    json_w_karray(&w, "taints");
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, TAINT_DISRUPTED) != 0)
            body_taint(&w, &n->taints[i]);
    if (on)
        body_taint(&w, &disrupted);
    json_w_array_end(&w);
    json_w_object_end(&w);
    body_end(&w);
}

void body_resources(struct json_writer *w, const char *key, const struct resource_list *l)
{
    char q[32];

    json_w_kobject(w, key);
    for (uint32_t i = 0; i < l->n; i++)
        json_w_kstr(w, l->v[i].name,
                    quantity_format_for(q, str_from(l->v[i].name), l->v[i].amount));
    json_w_object_end(w);
}
