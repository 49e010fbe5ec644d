/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Machines: booting by stages, ending, and what they cost.
 *
 * A machine is billed from its launch to the moment it is told to stop, by the second and for a
 * minute at least, at the price of its offering as it moves. What is owed is kept as price times
 * time, exactly, and divided once. */

#include "cloud/sim/internal.h"

#define STOPPING_TAKES (5 * NS_PER_S)
#define BILLED_AT_LEAST NS_PER_MIN
#define MONTH (30 * NS_PER_DAY)

/* ---- The bill ---- */

void fleet_settle(struct machine *m, int64_t now)
{
    m->owed += (__int128)machine_instance(m)->price_uusd_h * (now - m->settled);
    m->settled = now;
}

/* What rounding up to a second and to the least time adds. */
static __int128 rounding(const struct machine *m, int64_t until)
{
    int64_t used = until - m->began;
    int64_t billed = MAX((used + NS_PER_S - 1) / NS_PER_S * NS_PER_S, BILLED_AT_LEAST);
    return (__int128)machine_instance(m)->price_uusd_h * (billed - used);
}

static void close_bill(struct machine *m)
{
    int64_t now = loop_now(m->sim->loop);
    if (m->ended != TIME_NEVER)
        return;
    market_walk(m->sim);
    fleet_settle(m, now);
    m->ended = now;
    m->sim->closed += m->owed + rounding(m, now);
}

int64_t cloud_sim_bill(const struct cloud_sim *s)
{
    int64_t now = loop_now(s->loop);
    market_walk((struct cloud_sim *)(uintptr_t)s); /* the hours that have passed, no more */
    __int128 sum = s->closed;
    for (size_t i = 0; i < s->live.len; i++) {
        const struct machine *m = s->live.v[i];
        if (m->ended == TIME_NEVER)
            sum += m->owed + (__int128)machine_instance(m)->price_uusd_h * (now - m->settled) +
                   rounding(m, now);
    }
    return (int64_t)((sum + NS_PER_HOUR / 2) / NS_PER_HOUR);
}

int64_t cloud_sim_price_now(const struct cloud_sim *s)
{
    int64_t sum = 0;
    for (size_t i = 0; i < s->live.len; i++)
        if (s->live.v[i]->ended == TIME_NEVER)
            sum += machine_instance(s->live.v[i])->price_uusd_h;
    return sum;
}

size_t cloud_sim_running(const struct cloud_sim *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->live.len; i++)
        n += s->live.v[i]->ended == TIME_NEVER;
    return n;
}

size_t cloud_sim_instances(const struct cloud_sim *s, const struct instance **ret)
{
    *ret = s->instances.v;
    return s->instances.len;
}

/* ---- Ending ---- */

static void gone(void *arg)
{
    struct machine *m = arg;
    struct cloud_sim *s = m->sim;
    loop_timer_cancel(s->loop, &m->boot);
    close_bill(m);
    machine_instance(m)->state = INSTANCE_TERMINATED;
    m->seen_until = loop_now(s->loop) + s->faults.describe_lag;
    if (m->deadline)
        vec_push(&s->notices, (struct notice){.kind = NOTICE_STATE_CHANGE,
                                              .provider_id = machine_instance(m)->provider_id,
                                              .at = loop_wall(s->loop)});
    if (m->stall && m->stall->stock >= 0)
        m->stall->stock++;
    if (s->o.host.node_down && m->boot_stage >= BOOT_REGISTERED && !m->never_registers)
        s->o.host.node_down(s->o.host.arg, machine_instance(m));
}

void fleet_stop(struct machine *m)
{
    struct instance *i = machine_instance(m);
    if (i->state == INSTANCE_STOPPING || i->state == INSTANCE_TERMINATED)
        return;
    i->state = INSTANCE_STOPPING;
    m->deadline = 0;
    loop_timer_cancel(m->sim->loop, &m->boot);
    close_bill(m);
    loop_timer_in(m->sim->loop, &m->end, sim_delay(m->sim, STOPPING_TAKES), gone, m);
}

static void interrupt(struct machine *m, int64_t notice_ns)
{
    struct cloud_sim *s = m->sim;
    m->deadline = loop_wall(s->loop) + notice_ns;
    vec_push(&s->notices, (struct notice){.kind = NOTICE_SPOT,
                                          .provider_id = machine_instance(m)->provider_id,
                                          .at = loop_wall(s->loop),
                                          .deadline = m->deadline});
    loop_timer_in(s->loop, &m->end, notice_ns, gone, m);
}

static void reclaimed(void *arg)
{
    struct machine *m = arg;
    interrupt(m, sim_delay(m->sim, 2 * NS_PER_MIN));
}

bool cloud_sim_interrupt(struct cloud_sim *s, const char *provider_id, int64_t notice_ns)
{
    struct machine *m = map_get(&s->by_id, str_from(provider_id));
    if (!m || machine_instance(m)->state > INSTANCE_RUNNING)
        return false;
    interrupt(m, MAX(notice_ns, 0));
    return true;
}

/* A spot machine's natural end: a constant chance, by its offering's share a month. */
static void plan_reclaim(struct machine *m)
{
    struct cloud_sim *s = m->sim;
    double mean_draw = rng_exp(&s->ends, 1);
    int32_t ppm = m->stall->base->interruption_ppm_month;
    if (m->stall->base->capacity_type != CAPACITY_SPOT || ppm <= 0)
        return;
    double in = mean_draw * (double)MONTH * 1e6 / (double)ppm;
    if (in < (double)(365 * NS_PER_DAY))
        loop_timer_in(s->loop, &m->end, sim_delay(s, (int64_t)in), reclaimed, m);
}

/* ---- Booting ---- */

static void boot(void *arg);

static void boot_in(struct machine *m, int64_t delay)
{
    loop_timer_in(m->sim->loop, &m->boot, sim_delay(m->sim, delay), boot, m);
}

static void tell(struct machine *m, enum sim_node_stage stage)
{
    struct cloud_sim *s = m->sim;
    if (s->o.host.node_up)
        s->o.host.node_up(s->o.host.arg, machine_instance(m), &m->order->request, stage);
}

static void boot(void *arg)
{
    struct machine *m = arg;
    m->boot_stage++;
    switch (m->boot_stage) {
    case BOOT_RUNNING:
        machine_instance(m)->state = INSTANCE_RUNNING;
        if (!m->never_registers)
            boot_in(m, m->late ? 20 * m->registration : m->registration);
        break;
    case BOOT_REGISTERED:
        boot_in(m, m->ready);
        tell(m, SIM_NODE_REGISTERED);
        break;
    case BOOT_READY:
        boot_in(m, m->devices);
        tell(m, SIM_NODE_READY);
        break;
    case BOOT_DEVICES:
        boot_in(m, MAX(m->startup - m->devices, 0));
        if (!m->no_devices)
            tell(m, SIM_NODE_DEVICES);
        break;
    default:
        tell(m, SIM_NODE_STARTUP_DONE);
        break;
    }
}

static int64_t read_delays(struct machine *m, const struct nodeclass *nc)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct sim_nodeclass_spec spec;
    bool sim =
        nc && nc->obj.kind == &kind_sim_nodeclass && sim_nodeclass_decode(nc, &a, &spec, NULL) == 0;
    m->registration = sim ? spec.registration_delay : 20 * NS_PER_S;
    m->ready = sim ? spec.ready_delay : 10 * NS_PER_S;
    m->devices = sim ? spec.device_delay : 0;
    m->startup = sim ? spec.startup_taint_delay : 5 * NS_PER_S;
    return sim ? spec.launch_delay : 5 * NS_PER_S;
}

/* ---- Beginning ---- */

static const char *text(struct machine *m, const char *s)
{
    return s ? arena_cstr(&m->arena, str_from(s)) : NULL;
}

static struct machine *machine_new(struct cloud_sim *s, const char *provider_id)
{
    struct machine *m = xcalloc(1, sizeof(*m));
    m->sim = s;
    m->index = s->instances.len;
    arena_init(&m->arena, 0, 512);
    vec_push(&s->instances, (struct instance){0});
    vec_push(&s->machines, m);
    vec_push(&s->live, m);
    struct instance *i = machine_instance(m);
    i->provider_id = text(m, provider_id);
    i->image_id = "sim-image-1";
    i->launched = loop_wall(s->loop);
    m->began = m->settled = loop_now(s->loop);
    m->seen_from = m->began + s->faults.describe_lag;
    m->ended = m->seen_until = TIME_NEVER;
    map_put(&s->by_id, str_from(i->provider_id), m);
    return m;
}

static void describe(struct machine *m, struct stall *v)
{
    struct instance *i = machine_instance(m);
    m->stall = v;
    i->instance_type = v->type->name;
    i->zone = v->base->zone;
    i->capacity_type = v->base->capacity_type;
    i->price_uusd_h = v->price;
    i->capacity = v->type->capacity;
    i->allocatable = v->type->allocatable;
}

struct machine *fleet_launch(struct cloud_sim *s, struct order *o, struct stall *v)
{
    char id[160];
    snprintf(id, sizeof(id), "sim:///%s/i-%08llx%08x", v->base->zone,
             (unsigned long long)s->instances.len + 1, (unsigned)rng_u64(&s->ids));
    struct machine *m = machine_new(s, id);
    struct instance *i = machine_instance(m);
    describe(m, v);
    m->order = o;
    i->nodeclaim = text(m, o->request.nodeclaim);
    i->nodepool = text(m, o->request.nodepool);
    i->cluster = text(m, o->request.cluster);
    i->token = text(m, o->request.token);
    m->never_registers = rng_chance(&s->faults_rng, s->faults.never_register_ppm);
    m->late = rng_chance(&s->faults_rng, s->faults.late_register_ppm);
    m->no_devices = rng_chance(&s->faults_rng, s->faults.no_device_ppm);
    if (v->stock > 0)
        v->stock--;
    boot_in(m, read_delays(m, o->request.node_class));
    plan_reclaim(m);
    return m;
}

const struct instance *cloud_sim_adopt(struct cloud_sim *s, const char *provider_id,
                                       const char *type, const char *zone, enum capacity_type t,
                                       const char *nodeclaim, const char *nodepool,
                                       const char *cluster)
{
    market_walk(s);
    struct stall *v = market_find(s, type, zone, t);
    if (!v || map_has(&s->by_id, str_from(provider_id)))
        return NULL;
    struct machine *m = machine_new(s, provider_id);
    struct instance *i = machine_instance(m);
    describe(m, v);
    i->state = INSTANCE_RUNNING;
    i->nodeclaim = text(m, nodeclaim);
    i->nodepool = text(m, nodepool);
    i->cluster = text(m, cluster);
    m->boot_stage = BOOT_DONE;
    m->seen_from = m->began;
    if (v->stock > 0)
        v->stock--;
    plan_reclaim(m);
    return i;
}

/* ---- Being seen, being forgotten ---- */

bool fleet_visible(const struct machine *m)
{
    int64_t now = loop_now(m->sim->loop);
    return now >= m->seen_from && now < m->seen_until;
}

void fleet_tidy(struct cloud_sim *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->live.len; i++) {
        struct machine *m = s->live.v[i];
        if (machine_instance(m)->state != INSTANCE_TERMINATED || loop_now(s->loop) < m->seen_until)
            s->live.v[n++] = m;
    }
    s->live.len = n;
}

void order_free(struct order *o)
{
    if (!o)
        return;
    object_unref(o->request.node_class
                     ? &((struct nodeclass *)(uintptr_t)o->request.node_class)->obj
                     : NULL);
    arena_release(&o->arena);
    free(o);
}

void fleet_release(struct cloud_sim *s)
{
    vec_each(&s->machines, struct machine **, it) {
        struct machine *m = *it;
        loop_timer_cancel(s->loop, &m->boot);
        loop_timer_cancel(s->loop, &m->end);
        order_free(m->order);
        arena_release(&m->arena);
        free(m);
    }
    vec_release(&s->machines);
    vec_release(&s->instances);
    vec_release(&s->live);
}
