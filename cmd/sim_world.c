/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* See sim_world.h. */

#include "cmd/sim_world.h"

#define DEFAULT_START (INT64_C(1784505600) * NS_PER_S)

/* "sim:///us-east-1a/i-0001" is the machine of the Node "i-0001". */
static const char *node_name(const struct instance *i)
{
    const char *slash = strrchr(i->provider_id, '/');
    return slash ? slash + 1 : i->provider_id;
}

/* ---- The host ---- */

static void node_register(struct sim_world *w, const struct instance *i, const struct label *labels,
                          uint32_t n_labels, const struct taint *taints, uint32_t n_taints,
                          const char *name)
{
    const struct instance_type *t = catalog_find(w->catalog, i->instance_type);
    struct sim_node n = {.name = name,
                         .provider_id = i->provider_id,
                         .instance_type = i->instance_type,
                         .zone = i->zone,
                         .region = w->catalog->region,
                         .labels = labels,
                         .n_labels = n_labels,
                         .arch = t ? t->arch : NULL,
                         .os = t ? t->os : NULL,
                         .taints = taints,
                         .n_taints = n_taints,
                         .capacity = i->capacity,
                         .allocatable = i->allocatable};
    sim_node_register(w->sim, &n);
}

/* Only the NodeClaim tells which of the taints are for the time of set-up. */
static void drop_startup_taints(struct sim_world *w, const struct instance *i)
{
    const struct json *claim =
        i->nodeclaim ? sim_get(w->sim, "NodeClaim", NULL, i->nodeclaim) : NULL;
    const struct json *list = json_at(claim, "spec", "startupTaints", NULL);
    for (size_t k = 0; list && list->type == JSON_ARRAY && k < list->n; k++) {
        CLEANUP(arena_release) struct arena a = ARENA_INIT;
        struct str key = json_text(json_get(list->items[k], "key"));
        struct str effect = json_text(json_get(list->items[k], "effect"));
        enum taint_effect e = TAINT_ANY_EFFECT;
        for (enum taint_effect x = TAINT_NO_SCHEDULE; x <= TAINT_NO_EXECUTE; x++)
            if (str_eq_c(effect, taint_effect_name(x)))
                e = x;
        sim_node_remove_taint(w->sim, node_name(i), arena_cstr(&a, key), e);
    }
}

static void node_up(void *arg, const struct instance *i, const struct launch_request *r,
                    enum sim_node_stage stage)
{
    struct sim_world *w = arg;
    switch (stage) {
    case SIM_NODE_REGISTERED:
        node_register(w, i, r->labels, r->n_labels, r->taints, r->n_taints, node_name(i));
        break;
    case SIM_NODE_READY:
        sim_node_ready(w->sim, node_name(i));
        break;
    case SIM_NODE_DEVICES:
        sim_node_devices(w->sim, node_name(i), &i->capacity, &i->allocatable);
        break;
    default:
        drop_startup_taints(w, i);
        break;
    }
}

struct search {
    const char *provider_id;
    char name[256];
};

static void match_provider_id(void *arg, const struct json *node)
{
    struct search *s = arg;
    if (str_eq_c(json_text(json_at(node, "spec", "providerID", NULL)), s->provider_id))
        snprintf(s->name, sizeof(s->name), "%.*s",
                 STR_ARG(json_text(json_at(node, "metadata", "name", NULL))));
}

/* Scenarios name their own Nodes, so the machine's id is what counts. */
static void node_down(void *arg, const struct instance *i)
{
    struct sim_world *w = arg;
    struct search s = {.provider_id = i->provider_id};
    if (sim_get(w->sim, "Node", NULL, node_name(i)))
        snprintf(s.name, sizeof(s.name), "%s", node_name(i));
    else
        sim_each(w->sim, "Node", match_provider_id, &s);
    if (*s.name)
        sim_node_down(w->sim, s.name);
}

/* ---- Life ---- */

void sim_world_init(struct sim_world *w, const struct sim_world_options *o)
{
    const struct sim_world_options none = {0};
    if (!o)
        o = &none;
    *w = (struct sim_world){0};
    w->loop = loop_new_virtual(o->wall_start ? o->wall_start : DEFAULT_START);
    w->sim = sim_new(w->loop, o->seed, o->sim);
    w->catalog = o->catalog ? catalog_ref(o->catalog) : catalog_builtin();
    struct cloud_sim_options c = {.seed = o->seed,
                                  .catalog = w->catalog,
                                  .host = {.node_up = node_up, .node_down = node_down, .arg = w},
                                  .call_latency = o->cloud_call_latency};
    w->cloud_sim = cloud_sim_new(w->loop, &c);
    w->cloud = cloud_sim_cloud(w->cloud_sim);
    w->http = sim_http(w->sim, "weft", o->watch_lag);
    sim_apply_text(
        w->sim,
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"weft-system\"}}",
        NULL);
}

void sim_world_release(struct sim_world *w)
{
    if (!w->loop)
        return;
    http_close(w->http);
    w->cloud->vt->close(w->cloud);
    sim_free(w->sim);
    catalog_unref(w->catalog);
    loop_free(w->loop);
    *w = (struct sim_world){0};
}

struct http *sim_world_http(struct sim_world *w, const char *name, int64_t watch_lag)
{
    return sim_http(w->sim, name, watch_lag);
}

void sim_world_run(struct sim_world *w, double seconds)
{
    loop_run_until(w->loop, loop_now(w->loop) + (int64_t)(seconds * (double)NS_PER_S));
}

bool sim_world_add_node(struct sim_world *w, const char *name, const char *type, const char *zone,
                        enum capacity_type t, const struct label *labels, uint32_t n_labels)
{
    char id[320];
    snprintf(id, sizeof(id), "sim:///%s/%s", zone, name);
    const struct instance *i = cloud_sim_adopt(w->cloud_sim, id, type, zone, t, NULL, NULL, NULL);
    if (!i)
        return false;
    node_register(w, i, labels, n_labels, NULL, 0, name);
    sim_node_devices(w->sim, name, &i->capacity, &i->allocatable);
    sim_node_ready(w->sim, name);
    sim_node_remove_taint(w->sim, name, "node.kubernetes.io/not-ready", TAINT_ANY_EFFECT);
    return true;
}
