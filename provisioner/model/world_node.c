/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Building the world: nodes that exist and nodes that are on their way. */

#include "base/bits.h"
#include "base/num.h"
#include "provisioner/model/builder.h"

static const struct labels no_labels;

static const struct labels *labels_of(const struct node_input *in)
{
    if (in->node)
        return &in->node->obj.meta.labels;
    return in->claim ? &in->claim->obj.meta.labels : &no_labels;
}

static const char *label_of(const struct node_input *in, const char *key)
{
    const char *value = in->node ? labels_get(&in->node->obj.meta.labels, key) : NULL;
    if (!value && in->claim)
        value = labels_get(&in->claim->obj.meta.labels, key);
    return value;
}

static bool has_taint(const struct node *n, const char *key)
{
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, key) == 0)
            return true;
    return false;
}

static enum world_node_state state_of(const struct node_input *in)
{
    const struct node *n = in->node;
    bool going = in->options.deleting || (n && n->obj.meta.deletion) ||
                 (in->claim && in->claim->obj.meta.deletion);
    if (going || (n && has_taint(n, TAINT_DISRUPTED)))
        return WORLD_NODE_DELETING;
    if (in->options.closed || (n && n->unschedulable))
        return WORLD_NODE_CLOSED;
    if (!n)
        return WORLD_NODE_IN_FLIGHT;
    bool managed = in->claim || label_of(in, LABEL_NODEPOOL);
    if (managed && !labels_has(&n->obj.meta.labels, LABEL_INITIALIZED))
        return WORLD_NODE_STARTING;
    return node_is_ready(n) ? WORLD_NODE_READY : WORLD_NODE_CLOSED;
}

/* Taints that a node sheds by itself while it starts. */
static bool is_ephemeral(const struct taint *t)
{
    static const char *const keys[] = {
        "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable", "node.cloudprovider.kubernetes.io/uninitialized",
        TAINT_UNREGISTERED};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(keys[i], t->key) == 0)
            return true;
    return false;
}

static bool same_taint(const struct taint *x, const struct taint *y)
{
    return x->effect == y->effect && strcmp(x->key, y->key) == 0 &&
           str_eq(str_from(x->value), str_from(y->value));
}

static bool taint_in(const struct taint *t, const struct taint *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (same_taint(t, &v[i]))
            return true;
    return false;
}

/* The template of the claim, or of the pool for nodes without one; NULL for foreign nodes. */
static const struct node_template *template_of(const struct world_builder *b,
                                               const struct node_input *in, uint32_t pool)
{
    if (in->claim)
        return &in->claim->spec;
    return pool == WORLD_NONE ? NULL : &b->world->pools[pool].pool->template_;
}

static void set_taints(struct world_builder *b, const struct node_input *in, struct world_node *to)
{
    const struct node_template *t = template_of(b, in, to->pool);
    bool starting = to->state == WORLD_NODE_STARTING || to->state == WORLD_NODE_IN_FLIGHT;
    uint32_t n_is = in->node ? in->node->n_taints : 0;
    struct taint *v =
        ARENA_NEW_ARRAY(&b->world->arena, struct taint, n_is + (t ? t->n_taints : 0) + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_is; i++) {
        const struct taint *x = &in->node->taints[i];
        bool passing = starting && (is_ephemeral(x) ||
                                    (t && taint_in(x, t->startup_taints, t->n_startup_taints)));
        if (!passing)
            v[n++] = *x;
    }
    /* Until registration has synced them, the template's taints are not on the node. */
    if (starting && t && (!in->node || !labels_has(&in->node->obj.meta.labels, LABEL_REGISTERED)))
        for (uint32_t i = 0; i < t->n_taints; i++)
            if (!taint_in(&t->taints[i], v, n))
                v[n++] = t->taints[i];
    to->taints = v;
    to->n_taints = n;
}

/* ---- Type, place and labels ---- */

/* "type/zone/capacity type", the offering of the launch under way. */
static void read_offering(const struct node_input *in, struct arena *a, const char *ret_part[3])
{
    const char *text =
        in->claim ? labels_get(&in->claim->obj.meta.annotations, ANNOTATION_LAUNCH_OFFERING) : NULL;
    struct str rest = str_from(text), part;
    for (int i = 0; i < 3 && str_split(&rest, '/', &part); i++)
        if (part.len)
            ret_part[i] = arena_cstr(a, part);
}

static const char *only_value(const struct nodeclaim *c, const char *key)
{
    if (!c)
        return NULL;
    for (uint32_t i = 0; i < c->spec.n_requirements; i++) {
        const struct selector_requirement *r = &c->spec.requirements[i];
        if (r->op == SELECTOR_IN && r->values.n == 1 && strcmp(r->key, key) == 0)
            return r->values.v[0];
    }
    return NULL;
}

static const char *part_of(const struct node_input *in, const char *key, const char *announced)
{
    const char *value = label_of(in, key);
    if (!value)
        value = announced;
    return value ? value : only_value(in->claim, key);
}

static void set_type(struct world_builder *b, const struct node_input *in, struct world_node *to)
{
    const char *announced[3] = {NULL, NULL, NULL};
    read_offering(in, &b->world->arena, announced);
    const char *type = part_of(in, LABEL_INSTANCE_TYPE, announced[0]);
    const char *zone = part_of(in, LABEL_ZONE, announced[1]);
    const char *capacity_type = part_of(in, LABEL_CAPACITY_TYPE, announced[2]);
    to->zone = zone ? zone : "";
    to->capacity_type = capacity_type ? capacity_type : "";
    if (!type || to->pool == WORLD_NONE || !b->world->pools[to->pool].catalog)
        return;
    const struct catalog *c = b->world->pools[to->pool].catalog;
    for (uint32_t low = 0, high = c->n_types; low < high && !to->type;) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(c->types[middle].name, type);
        if (order == 0)
            to->type = &c->types[middle];
        else if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = 0; to->type && i < to->type->n_offerings; i++) {
        const struct offering *o = &to->type->offerings[i];
        if (o->price_uusd_h > 0 && str_eq_c(str_from(o->zone), to->zone) &&
            strcmp(world_capacity_type(o->capacity_type), to->capacity_type) == 0)
            to->price_uusd_h = o->price_uusd_h;
    }
}

static void put_label(struct requirements *s, const char *key, const char *value, struct arena *a)
{
    if (!value || !*value || requirements_find(s, key))
        return;
    struct requirement r = requirement_equals(key, value, a);
    *s = requirements_merge(s, &(struct requirements){&r, 1}, a);
}

/* What the node carries; before it registers, also what it will carry. */
static void set_labels(struct world_builder *b, const struct node_input *in, struct world_node *to)
{
    struct arena *a = &b->world->arena;
    struct requirements s = requirements_from_labels(labels_of(in), a);
    bool starting = to->state == WORLD_NODE_STARTING || to->state == WORLD_NODE_IN_FLIGHT;
    if (starting || !in->node) {
        if (in->node && in->claim)
            for (uint32_t i = 0; i < in->claim->obj.meta.labels.n; i++)
                put_label(&s, in->claim->obj.meta.labels.v[i].key,
                          in->claim->obj.meta.labels.v[i].value, a);
        for (uint32_t i = 0; in->claim && i < in->claim->spec.n_requirements; i++) {
            const char *key = in->claim->spec.requirements[i].key;
            put_label(&s, key, only_value(in->claim, key), a);
        }
        put_label(&s, LABEL_ZONE, to->zone, a);
        put_label(&s, LABEL_CAPACITY_TYPE, to->capacity_type, a);
        if (to->type) {
            const struct requirements *t =
                builder_type_facts(b, b->world->pools[to->pool].catalog, to->type)->labels;
            for (uint32_t i = 0; i < t->n; i++)
                if (t->v[i].n_values == 1)
                    put_label(&s, t->v[i].key, t->v[i].values[0], a);
        }
    }
    put_label(&s, REQUIREMENT_FIELD_NAME, to->name, a);
    put_label(&s, LABEL_HOSTNAME, to->name, a);
    to->labels = s;
}

/* ---- Room ---- */

/* Values of `more` where `to` has none yet. */
static void fill_gaps(int64_t *to, const int64_t *more, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (to[i] == 0)
            to[i] = more[i];
}

static void set_capacity(struct world_builder *b, const struct node_input *in,
                         struct world_node *to)
{
    static const struct resource_list none;
    uint32_t n = b->world->resources.n;
    to->capacity = builder_dense(b, in->node ? &in->node->capacity : &none);
    to->allocatable = builder_dense(b, in->node ? &in->node->allocatable : &none);
    if (to->state == WORLD_NODE_READY || (in->node && to->state == WORLD_NODE_CLOSED && !in->claim))
        return;
    /* Devices register late: until the node is initialised its type's word counts for what is
     * missing. */
    if (in->claim) {
        fill_gaps(to->capacity, builder_dense(b, &in->claim->capacity), n);
        fill_gaps(to->allocatable, builder_dense(b, &in->claim->allocatable), n);
    }
    if (to->type) {
        const struct type_facts *f =
            builder_type_facts(b, b->world->pools[to->pool].catalog, to->type);
        fill_gaps(to->capacity, f->capacity, n);
        fill_gaps(to->allocatable, f->allocatable, n);
    } else if (in->claim) {
        const int64_t *requests = builder_dense(b, &in->claim->requests);
        fill_gaps(to->capacity, requests, n);
        fill_gaps(to->allocatable, requests, n);
    }
}

static void charge_pool(struct world_builder *b, const struct world_node *n)
{
    if (n->pool == WORLD_NONE)
        return;
    struct world_pool *p = &b->world->pools[n->pool];
    uint32_t count = b->world->resources.n;
    p->nodes++;
    if (p->nodes_left != INT64_MAX)
        p->nodes_left--;
    resources_sum(p->used, n->capacity, count);
    for (uint32_t i = 0; i < count; i++)
        if (p->limit_left[i] != INT64_MAX)
            p->limit_left[i] = num_add_sat(p->limit_left[i], -n->capacity[i]);
}

static int by_state_and_name(const void *x, const void *y)
{
    const struct world_node *p = x, *q = y;
    bool p_ready = p->state == WORLD_NODE_READY, q_ready = q->state == WORLD_NODE_READY;
    if (p_ready != q_ready)
        return p_ready ? -1 : 1;
    return strcmp(p->name, q->name);
}

void builder_nodes(struct world_builder *b)
{
    struct world *w = b->world;
    w->nodes = ARENA_NEW_ARRAY(&w->arena, struct world_node, b->nodes.len + 1);
    vec_each(&b->nodes, struct node_input *, it) {
        struct world_node *to = &w->nodes[w->n_nodes++];
        to->node = it->node;
        to->claim = it->claim;
        to->name = it->node ? it->node->obj.meta.name : it->claim->obj.meta.name;
        to->state = state_of(it);
        const char *pool = label_of(it, LABEL_NODEPOOL);
        to->pool = pool ? world_find_pool(w, pool) : WORLD_NONE;
        set_type(b, it, to);
        set_taints(b, it, to);
        set_labels(b, it, to);
        set_capacity(b, it, to);
        to->used = ARENA_NEW_ARRAY(&w->arena, int64_t, w->resources.n);
        charge_pool(b, to);
    }
    if (w->n_nodes)
        qsort(w->nodes, w->n_nodes, sizeof(*w->nodes), by_state_and_name);
    for (uint32_t i = 0; i < w->n_nodes; i++)
        map_put(&b->node_index, str_from(w->nodes[i].name), (void *)(uintptr_t)(i + 1));
}
