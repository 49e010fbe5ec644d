/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The calls of the seam: each takes effect after half its latency and answers after the other
 * half. Faults, effects and the record of calls are here. */

#include "base/num.h"
#include "cloud/sim/internal.h"
#include "kube/api/podspec.h"

#define LAUNCH_LATENCY (300 * NS_PER_MS)
#define CALL_LATENCY (100 * NS_PER_MS)

struct cloud_op {
    struct cloud_sim *sim;
    struct cloud_op *next, *previous;
    struct loop_timer timer;
    struct cloud_sim_call call;
    int64_t half;
    union {
        cloud_catalog_done *catalog;
        cloud_instance_done *instance;
        cloud_list_done *list;
        cloud_done *plain;
        cloud_drift_done *drift;
        cloud_notices_done *notices;
    } done;
    enum {
        ANSWER_CATALOG,
        ANSWER_INSTANCE,
        ANSWER_LIST,
        ANSWER_PLAIN,
        ANSWER_DRIFT,
        ANSWER_NOTICES
    } kind;
    void *arg;
    /* The question. */
    char *text; /* provider id or cluster */
    struct order *order;
    struct nodeclass *node_class; /* a reference */
    /* The answer. */
    struct cloud_error error;
    bool failed, dead, busy;
    struct launch_offering *exhausted;
    struct machine *machine;
    struct catalog *catalog;
    struct vec_instance list;
    struct vec_notice notices;
};

/* ---- Life of a call ---- */

static void op_free(struct cloud_op *op)
{
    order_free(op->order);
    object_unref(op->node_class ? &op->node_class->obj : NULL);
    catalog_unref(op->catalog);
    vec_release(&op->list);
    vec_release(&op->notices);
    free(op->exhausted);
    free(op->text);
    free(op);
}

static void op_unlink(struct cloud_op *op)
{
    if (op->previous)
        op->previous->next = op->next;
    else
        op->sim->ops = op->next;
    if (op->next)
        op->next->previous = op->previous;
    loop_timer_cancel(op->sim->loop, &op->timer);
    op->dead = true;
}

static void op_answer(void *arg)
{
    struct cloud_op *op = arg;
    bool told = op->failed || op->error.n_exhausted;
    const struct cloud_error *e = told ? &op->error : NULL;
    op_unlink(op);
    switch (op->kind) {
    case ANSWER_CATALOG:
        op->done.catalog(op->arg, op->failed ? NULL : op->catalog, e);
        break;
    case ANSWER_INSTANCE:
        op->done.instance(op->arg, op->failed ? NULL : machine_instance(op->machine), e);
        break;
    case ANSWER_LIST:
        op->done.list(op->arg, op->list.v, op->list.len, e);
        break;
    case ANSWER_PLAIN:
        op->done.plain(op->arg, e);
        break;
    case ANSWER_DRIFT:
        op->done.drift(op->arg, NULL, e);
        break;
    default:
        op->done.notices(op->arg, op->notices.v, op->notices.len, e);
        break;
    }
    op_free(op);
}

static void op_fail(struct cloud_op *op, enum err_code code, const char *msg)
{
    op->failed = true;
    op->error.code = code;
    snprintf(op->error.msg, sizeof(op->error.msg), "%s", msg);
}

/* ---- What calls do ---- */

static void do_catalogue(struct cloud_op *op)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct sim_nodeclass_spec spec = {0};
    struct nodeclass *nc = op->node_class;
    if (nc && nc->obj.kind == &kind_sim_nodeclass &&
        sim_nodeclass_decode(nc, &a, &spec, NULL) < 0) {
        op_fail(op, ERR_INVALID, "the SimNodeClass is not valid");
        return;
    }
    op->catalog = market_catalog(op->sim, &spec.zones);
}

static bool zone_allowed(const struct launch_request *r, const char *zone)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct sim_nodeclass_spec spec = {0};
    const struct nodeclass *nc = r->node_class;
    if (!nc || nc->obj.kind != &kind_sim_nodeclass || sim_nodeclass_decode(nc, &a, &spec, NULL) < 0)
        return true;
    return spec.zones.n == 0 || string_list_has(&spec.zones, zone);
}

/* The first of the ranked offerings that has stock; the ones before it are told. */
static struct stall *choose(struct cloud_op *op)
{
    const struct launch_request *r = &op->order->request;
    op->exhausted = xcalloc(r->n_offerings + 1, sizeof(*op->exhausted));
    op->error.exhausted = op->exhausted;
    for (uint32_t i = 0; i < r->n_offerings; i++) {
        const struct launch_offering *o = &r->offerings[i];
        struct stall *v = market_find(op->sim, o->instance_type, o->zone, o->capacity_type);
        if (v && v->stock != 0 && v->base->available && zone_allowed(r, o->zone))
            return v;
        op->exhausted[op->error.n_exhausted++] = *o;
    }
    return NULL;
}

/* The same token is the same launch, or a mistake. True: the answer is made. */
static bool repeated(struct cloud_op *op)
{
    struct machine *m = map_get(&op->sim->tokens, str_from(op->order->request.token));
    if (!m)
        return false;
    if (m->order->hash != op->order->hash)
        op_fail(op, ERR_CONFLICT, "the token was used for a launch with other parameters");
    else
        op->machine = m;
    return true;
}

static void do_launch(struct cloud_op *op)
{
    struct cloud_sim *s = op->sim;
    if (op->order->request.n_offerings == 0) {
        op_fail(op, ERR_INVALID, "a launch needs at least one offering");
        return;
    }
    market_walk(s);
    if (!repeated(op)) {
        struct stall *v = choose(op);
        if (!v) {
            op_fail(op, ERR_CAPACITY, "none of the offerings has capacity");
            return;
        }
        struct order *o = op->order;
        op->order = NULL;
        op->machine = fleet_launch(s, o, v);
        if (o->request.token && *o->request.token)
            map_put(&s->tokens, str_from(o->request.token), op->machine);
    }
    if (!op->machine)
        return;
    const struct instance *i = machine_instance(op->machine);
    op->call.provider_id = i->provider_id;
    op->call.instance_type = i->instance_type;
    op->call.zone = i->zone;
    op->call.capacity_type = i->capacity_type;
    if (rng_chance(&s->faults_rng, s->faults.launch_lost_ppm))
        op_fail(op, ERR_UNKNOWN, "the answer to the launch was lost");
}

static void do_get(struct cloud_op *op)
{
    struct machine *m = map_get(&op->sim->by_id, str_from(op->text));
    if (!m || !fleet_visible(m))
        op_fail(op, ERR_NOT_FOUND, "there is no such instance");
    else
        op->machine = m;
}

static void do_list(struct cloud_op *op)
{
    struct cloud_sim *s = op->sim;
    fleet_tidy(s);
    vec_each(&s->live, struct machine **, it) {
        const struct instance *i = machine_instance(*it);
        if (fleet_visible(*it) && i->cluster && strcmp(i->cluster, op->text) == 0)
            vec_push(&op->list, *i);
    }
}

static void do_terminate(struct cloud_op *op)
{
    struct cloud_sim *s = op->sim;
    struct machine *m = map_get(&s->by_id, str_from(op->text));
    if (rng_chance(&s->faults_rng, s->faults.terminate_error_ppm))
        op_fail(op, ERR_RETRY, "the termination failed");
    else if (!m || machine_instance(m)->state == INSTANCE_TERMINATED)
        op_fail(op, ERR_NOT_FOUND, "there is no such instance");
    else
        fleet_stop(m);
}

static void do_notices(struct cloud_op *op)
{
    op->notices = op->sim->notices;
    op->sim->notices = (struct vec_notice){0};
}

static void perform(struct cloud_op *op)
{
    struct cloud_sim *s = op->sim;
    if (rng_chance(&s->faults_rng, s->faults.throttle_ppm)) {
        op_fail(op, ERR_THROTTLED, "request limit exceeded");
        return;
    }
    switch (op->call.what) {
    case SIM_CALL_CATALOGUE:
        if (op->kind == ANSWER_CATALOG)
            do_catalogue(op);
        break;
    case SIM_CALL_LAUNCH:
        if (rng_chance(&s->faults_rng, s->faults.launch_error_ppm))
            op_fail(op, ERR_RETRY, "internal error");
        else
            do_launch(op);
        break;
    case SIM_CALL_GET:
        do_get(op);
        break;
    case SIM_CALL_LIST:
        do_list(op);
        break;
    case SIM_CALL_TERMINATE:
        do_terminate(op);
        break;
    default:
        do_notices(op);
        break;
    }
}

static void op_effect(void *arg)
{
    struct cloud_op *op = arg;
    struct cloud_sim *s = op->sim;
    op->busy = true;
    op->call.at = loop_now(s->loop);
    if (s->effect)
        s->effect(s->effect_arg, &op->call, false);
    if (!op->dead) {
        perform(op);
        op->call.result = op->failed ? op->error.code : ERR_NONE;
        vec_push(&s->calls, op->call);
        if (s->effect)
            s->effect(s->effect_arg, &op->call, true);
    }
    op->busy = false;
    if (op->dead)
        op_free(op);
    else
        loop_timer_in(s->loop, &op->timer, op->half, op_answer, op);
}

static struct cloud_op *op_start(struct cloud *c, int what, int kind, void *arg)
{
    struct cloud_sim *s = (struct cloud_sim *)(void *)c;
    struct cloud_op *op = xcalloc(1, sizeof(*op));
    int64_t latency = s->o.call_latency         ? s->o.call_latency
                      : what == SIM_CALL_LAUNCH ? LAUNCH_LATENCY
                                                : CALL_LATENCY;
    op->sim = s;
    op->kind = kind;
    op->call.what = what;
    op->arg = arg;
    op->half = sim_delay(s, MAX(latency, 0)) / 2;
    op->next = s->ops;
    if (op->next)
        op->next->previous = op;
    s->ops = op;
    loop_timer_in(s->loop, &op->timer, op->half, op_effect, op);
    return op;
}

/* ---- Copying a launch request ---- */

static const char *text(struct order *o, const char *s)
{
    return s ? arena_cstr(&o->arena, str_from(s)) : NULL;
}

static uint64_t mix(uint64_t h, const char *s)
{
    return str_hash(str_from(s), h);
}

static void copy_offerings(struct order *o, const struct launch_request *r)
{
    struct launch_offering *v = ARENA_NEW_ARRAY(&o->arena, struct launch_offering, r->n_offerings);
    for (uint32_t i = 0; i < r->n_offerings; i++) {
        v[i] =
            (struct launch_offering){text(o, r->offerings[i].instance_type),
                                     text(o, r->offerings[i].zone), r->offerings[i].capacity_type};
        o->hash = mix(mix(o->hash + (uint64_t)v[i].capacity_type, v[i].instance_type), v[i].zone);
    }
    o->request.offerings = v;
}

static struct order *order_new(const struct launch_request *r)
{
    struct order *o = xcalloc(1, sizeof(*o));
    arena_init(&o->arena, 0, 1024);
    o->request = *r;
    o->request.nodeclaim = text(o, r->nodeclaim);
    o->request.nodepool = text(o, r->nodepool);
    o->request.cluster = text(o, r->cluster);
    o->request.nodeclaim_uid = text(o, r->nodeclaim_uid);
    o->request.token = text(o, r->token);
    o->hash = mix(mix(mix(mix(1, r->nodeclaim), r->nodepool), r->cluster), r->nodeclaim_uid);
    if (r->node_class)
        object_ref(&((struct nodeclass *)(uintptr_t)r->node_class)->obj);
    copy_offerings(o, r);
    struct label *labels = ARENA_NEW_ARRAY(&o->arena, struct label, r->n_labels);
    for (uint32_t i = 0; i < r->n_labels; i++)
        labels[i] = (struct label){text(o, r->labels[i].key), text(o, r->labels[i].value)};
    struct taint *taints = ARENA_NEW_ARRAY(&o->arena, struct taint, r->n_taints);
    for (uint32_t i = 0; i < r->n_taints; i++) {
        taints[i] = r->taints[i];
        taints[i].key = text(o, r->taints[i].key);
        taints[i].value = text(o, r->taints[i].value);
    }
    o->request.labels = labels;
    o->request.taints = taints;
    return o;
}

/* ---- The vtable ---- */

static struct cloud_op *sim_catalogue(struct cloud *c, const struct nodeclass *nc,
                                      cloud_catalog_done *done, void *arg)
{
    struct cloud_op *op = op_start(c, SIM_CALL_CATALOGUE, ANSWER_CATALOG, arg);
    op->done.catalog = done;
    if (nc) {
        op->node_class = (struct nodeclass *)(uintptr_t)nc;
        object_ref(&op->node_class->obj);
    }
    return op;
}

static struct cloud_op *sim_launch(struct cloud *c, const struct launch_request *r,
                                   cloud_instance_done *done, void *arg)
{
    struct cloud_op *op = op_start(c, SIM_CALL_LAUNCH, ANSWER_INSTANCE, arg);
    struct cloud_sim *s = op->sim;
    op->done.instance = done;
    op->order = order_new(r);
    op->call.nodeclaim = r->nodeclaim ? arena_cstr(&s->call_arena, str_from(r->nodeclaim)) : NULL;
    if (r->n_offerings) {
        op->call.instance_type =
            arena_cstr(&s->call_arena, str_from(r->offerings[0].instance_type));
        op->call.zone = arena_cstr(&s->call_arena, str_from(r->offerings[0].zone));
        op->call.capacity_type = r->offerings[0].capacity_type;
    }
    return op;
}

static struct cloud_op *start_text(struct cloud *c, int what, int kind, const char *s, void *arg)
{
    struct cloud_op *op = op_start(c, what, kind, arg);
    op->text = xstrdup(s);
    if (what != SIM_CALL_LIST)
        op->call.provider_id = arena_cstr(&op->sim->call_arena, str_from(s));
    return op;
}

static struct cloud_op *sim_get_instance(struct cloud *c, const char *provider_id,
                                         cloud_instance_done *done, void *arg)
{
    struct cloud_op *op = start_text(c, SIM_CALL_GET, ANSWER_INSTANCE, provider_id, arg);
    op->done.instance = done;
    return op;
}

static struct cloud_op *sim_list(struct cloud *c, const char *cluster, cloud_list_done *done,
                                 void *arg)
{
    struct cloud_op *op = start_text(c, SIM_CALL_LIST, ANSWER_LIST, cluster, arg);
    op->done.list = done;
    return op;
}

static struct cloud_op *sim_terminate(struct cloud *c, const char *provider_id, cloud_done *done,
                                      void *arg)
{
    struct cloud_op *op = start_text(c, SIM_CALL_TERMINATE, ANSWER_PLAIN, provider_id, arg);
    op->done.plain = done;
    return op;
}

/* Nothing drifts here. */
static struct cloud_op *sim_drifted(struct cloud *c, const struct nodeclass *nc,
                                    const char *provider_id, cloud_drift_done *done, void *arg)
{
    (void)nc;
    struct cloud_op *op = start_text(c, SIM_CALL_CATALOGUE, ANSWER_DRIFT, provider_id, arg);
    op->done.drift = done;
    return op;
}

static struct cloud_op *sim_poll_notices(struct cloud *c, cloud_notices_done *done, void *arg)
{
    struct cloud_op *op = op_start(c, SIM_CALL_NOTICES, ANSWER_NOTICES, arg);
    op->done.notices = done;
    return op;
}

static void sim_cancel(struct cloud *c, struct cloud_op *op)
{
    (void)c;
    op_unlink(op);
    if (!op->busy)
        op_free(op);
}

static void sim_close(struct cloud *c)
{
    struct cloud_sim *s = (struct cloud_sim *)(void *)c;
    while (s->ops)
        sim_cancel(c, s->ops);
    fleet_release(s);
    market_release(s);
    map_release(&s->tokens, NULL);
    map_release(&s->by_id, NULL);
    vec_release(&s->notices);
    vec_release(&s->calls);
    arena_release(&s->call_arena);
    free(s);
}

static const struct cloud_vtable sim_vtable = {
    .name = "sim",
    .class_group = "weft.sh",
    .class_kind = "SimNodeClass",
    .catalogue = sim_catalogue,
    .launch = sim_launch,
    .get = sim_get_instance,
    .list = sim_list,
    .terminate = sim_terminate,
    .drifted = sim_drifted,
    .poll_notices = sim_poll_notices,
    .cancel = sim_cancel,
    .close = sim_close,
};

/* ---- Making and looking ---- */

struct cloud_sim *cloud_sim_new(struct loop *l, const struct cloud_sim_options *o)
{
    struct cloud_sim *s = xcalloc(1, sizeof(*s));
    s->cloud.vt = &sim_vtable;
    s->loop = l;
    s->o = *o;
    if (s->o.speed <= 0)
        s->o.speed = 1;
    s->base = o->catalog ? catalog_ref(o->catalog) : catalog_builtin();
    s->o.catalog = NULL;
    rng_split(&s->prices, o->seed, "cloud/sim prices");
    rng_split(&s->faults_rng, o->seed, "cloud/sim faults");
    rng_split(&s->ids, o->seed, "cloud/sim ids");
    rng_split(&s->ends, o->seed, "cloud/sim ends");
    market_init(s);
    return s;
}

struct cloud *cloud_sim_cloud(struct cloud_sim *s)
{
    return &s->cloud;
}

struct cloud_sim_faults *cloud_sim_faults(struct cloud_sim *s)
{
    return &s->faults;
}

size_t cloud_sim_calls(const struct cloud_sim *s, const struct cloud_sim_call **ret)
{
    *ret = s->calls.v;
    return s->calls.len;
}

void cloud_sim_on_effect(struct cloud_sim *s,
                         void (*fn)(void *arg, const struct cloud_sim_call *call, bool after),
                         void *arg)
{
    s->effect = fn;
    s->effect_arg = arg;
}
