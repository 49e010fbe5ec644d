/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Nodes from the outside (sim_node_*) and the node lifecycle controller. */

#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

#define NOT_READY "node.kubernetes.io/not-ready"
#define UNREACHABLE "node.kubernetes.io/unreachable"
#define UNSCHEDULABLE "node.kubernetes.io/unschedulable"

/* ---- Taints ---- */

static size_t find_taint(const struct json *list, const char *key, const char *effect)
{
    for (size_t i = 0; list && i < list->n; i++)
        if (str_eq_c(json_text(json_get(list->items[i], "key")), key) &&
            (!effect || str_eq_c(json_text(json_get(list->items[i], "effect")), effect)))
            return i;
    return SIZE_MAX;
}

static struct json *taint_list(struct version *v)
{
    return tree_array(&v->arena, tree_object(&v->arena, v->root, "spec"), "taints");
}

static void put_taint(struct version *v, const char *key, const char *value, const char *effect,
                      int64_t wall)
{
    struct json *list = taint_list(v);
    if (find_taint(list, key, effect) != SIZE_MAX)
        return;
    struct json *t = tree_add_object(&v->arena, list);
    tree_cstr(&v->arena, t, "key", key);
    if (value && *value)
        tree_cstr(&v->arena, t, "value", value);
    tree_cstr(&v->arena, t, "effect", effect);
    if (wall)
        tree_time(&v->arena, t, "timeAdded", wall);
}

static void drop_taint(struct version *v, const char *key, const char *effect)
{
    struct json *spec = tree_get(v->root, "spec");
    struct json *list = tree_get(spec, "taints");
    size_t i;
    while ((i = find_taint(list, key, effect)) != SIZE_MAX)
        tree_drop_item(list, i);
    if (list && list->n == 0)
        tree_drop(spec, "taints");
}

static void want_taint(struct version *v, bool want, const char *key, const char *effect,
                       int64_t wall)
{
    if (want)
        put_taint(v, key, NULL, effect, wall);
    else
        drop_taint(v, key, effect);
}

/* ---- The node lifecycle controller ---- */

static void go_silent(struct sim *s, struct version *v)
{
    static const char *const types[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        tree_condition(&v->arena, v->root, types[i], "Unknown", "NodeStatusUnknown",
                       "Kubelet stopped posting node status.", sim_wall(s));
}

/* Pods of a silent node are not ready. */
static void pods_not_ready(struct sim *s, struct node_state *n)
{
    struct vec_item items = {0};
    for (struct pod_state *p = n->first; p; p = p->next)
        vec_push(&items, item_ref(p->item));
    vec_each(&items, struct item **, it) {
        struct object *o = (*it)->gone ? NULL : item_typed(*it);
        if (o && pod_is_ready(pod_of(o))) {
            struct version *v = version_edit(*it);
            tree_condition(&v->arena, v->root, "Ready", "False", "NodeNotReady", NULL, sim_wall(s));
            store_commit(*it, v);
        }
        item_unref(*it);
    }
    vec_release(&items);
}

void node_reconcile(struct sim *s, struct item *it)
{
    struct node_state *n = it->node;
    struct object *o = item_typed(it);
    if (!n || !o)
        return;
    bool silent = n->down && sim_now(s) >= n->down_at + s->o.node_not_ready;
    if (n->down && !silent)
        controllers_at(s, it, n->down_at + s->o.node_not_ready);
    struct version *v = version_edit(it);
    if (silent)
        go_silent(s, v);
    bool ready = !silent && node_is_ready(node_of(o));
    const struct condition *c = condition_find(&node_of(o)->conditions, "Ready");
    bool unknown = silent || !c || c->status == CONDITION_UNKNOWN;
    int64_t wall = sim_wall(s);
    want_taint(v, !ready && !unknown, NOT_READY, "NoSchedule", 0);
    want_taint(v, !ready && !unknown, NOT_READY, "NoExecute", wall);
    want_taint(v, !ready && unknown, UNREACHABLE, "NoSchedule", 0);
    want_taint(v, !ready && unknown, UNREACHABLE, "NoExecute", wall);
    want_taint(v, node_of(o)->unschedulable, UNSCHEDULABLE, "NoSchedule", 0);
    item_ref(it);
    store_commit(it, v);
    if (silent && !it->gone)
        pods_not_ready(s, n);
    item_unref(it);
}

/* ---- From the outside ---- */

static struct item *node_item(struct sim *s, const char *name)
{
    return store_find(s->nodes, STR_NONE, str_from(name));
}

static void put_resources(struct version *v, const char *member, const struct resource_list *list,
                          bool extended)
{
    struct json *to = tree_object(&v->arena, tree_object(&v->arena, v->root, "status"), member);
    for (uint32_t i = 0; i < list->n; i++) {
        char text[32];
        struct str name = str_from(list->v[i].name);
        if ((str_find_char(name, '/', 0) != SIZE_MAX) != extended)
            continue;
        tree_str(&v->arena, to, list->v[i].name,
                 quantity_format_for(text, name, list->v[i].amount));
    }
}

static void put_labels(struct version *v, const struct sim_node *n)
{
    struct arena *a = &v->arena;
    struct json *to = tree_object(a, tree_object(a, v->root, "metadata"), "labels");
    const struct label own[] = {
        {"kubernetes.io/hostname", n->name},
        {"kubernetes.io/arch", n->arch ? n->arch : "amd64"},
        {"kubernetes.io/os", n->os ? n->os : "linux"},
        {"node.kubernetes.io/instance-type", n->instance_type},
        {"topology.kubernetes.io/zone", n->zone},
        {"topology.kubernetes.io/region", n->region},
    };
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i].value)
            tree_cstr(a, to, own[i].key, own[i].value);
    for (uint32_t i = 0; i < n->n_labels; i++)
        tree_cstr(a, to, n->labels[i].key, n->labels[i].value);
}

static void put_status(struct sim *s, struct version *v, const struct sim_node *n)
{
    static const char *const fine[] = {"MemoryPressure", "DiskPressure", "PIDPressure"};
    put_resources(v, "capacity", &n->capacity, false);
    put_resources(v, "allocatable", &n->allocatable, false);
    for (size_t i = 0; i < ARRAY_LEN(fine); i++)
        tree_condition(&v->arena, v->root, fine[i], "False", "KubeletHasSufficient", NULL,
                       sim_wall(s));
    tree_condition(&v->arena, v->root, "Ready", "False", "KubeletNotReady",
                   "container runtime network not ready", sim_wall(s));
}

void sim_node_register(struct sim *s, const struct sim_node *n)
{
    if (node_item(s, n->name))
        return;
    struct version *v = version_new();
    struct arena *a = &v->arena;
    v->root = json_new_object(a);
    tree_cstr(a, v->root, "apiVersion", "v1");
    tree_cstr(a, v->root, "kind", "Node");
    tree_cstr(a, tree_object(a, v->root, "metadata"), "name", n->name);
    put_labels(v, n);
    if (n->provider_id)
        tree_cstr(a, tree_object(a, v->root, "spec"), "providerID", n->provider_id);
    for (uint32_t i = 0; i < n->n_taints; i++)
        put_taint(v, n->taints[i].key, n->taints[i].value, taint_effect_name(n->taints[i].effect),
                  0);
    put_taint(v, NOT_READY, NULL, "NoSchedule", 0);
    put_status(s, v, n);
    struct item *it = store_create(s->nodes, v, NULL);
    if (it)
        it->node->down = false;
}

void sim_node_ready(struct sim *s, const char *name)
{
    struct item *it = node_item(s, name);
    if (!it)
        return;
    it->node->down = false;
    struct version *v = version_edit(it);
    tree_condition(&v->arena, v->root, "Ready", "True", "KubeletReady",
                   "kubelet is posting ready status", sim_wall(s));
    store_commit(it, v);
}

void sim_node_devices(struct sim *s, const char *name, const struct resource_list *capacity,
                      const struct resource_list *allocatable)
{
    struct item *it = node_item(s, name);
    if (!it)
        return;
    struct version *v = version_edit(it);
    put_resources(v, "capacity", capacity, true);
    put_resources(v, "allocatable", allocatable, true);
    store_commit(it, v);
}

void sim_node_remove_taint(struct sim *s, const char *name, const char *key,
                           enum taint_effect effect)
{
    struct item *it = node_item(s, name);
    if (!it)
        return;
    struct version *v = version_edit(it);
    drop_taint(v, key, effect == TAINT_ANY_EFFECT ? NULL : taint_effect_name(effect));
    store_commit(it, v);
}

void sim_node_down(struct sim *s, const char *name)
{
    struct node_state *n = node_state_find(s, str_from(name));
    if (!n || n->down)
        return;
    n->down = true;
    n->down_at = sim_now(s);
    kubelets_went_down(s, n);
    if (n->item)
        controllers_dirty(s, n->item);
}

void sim_node_add(struct sim *s, const struct sim_node *n)
{
    sim_node_register(s, n);
    sim_node_devices(s, n->name, &n->capacity, &n->allocatable);
    sim_node_ready(s, n->name);
    sim_node_remove_taint(s, n->name, NOT_READY, TAINT_ANY_EFFECT);
}
