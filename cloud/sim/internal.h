/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the market, the fleet and the calls of the simulated cloud share. */
#ifndef CLOUD_SIM_INTERNAL_H
#define CLOUD_SIM_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "cloud/sim/sim.h"

/* One offering as the market has it. */
struct stall {
    const struct instance_type *type;
    const struct offering *base;
    int64_t price;      /* uusd/h now */
    int64_t factor_ppm; /* of the base price; walks around a million (spot) */
    int64_t stock;      /* < 0: unlimited */
    bool pinned;        /* set by hand: walks no more */
};

/* What is kept of a launch request. */
struct order {
    struct arena arena;
    struct launch_request request; /* node_class is a reference */
    uint64_t hash;
};

/* One machine, from its launch on; its instance is at the same index. */
struct machine {
    struct cloud_sim *sim;
    size_t index;
    struct arena arena;  /* the instance's texts */
    struct order *order; /* NULL: adopted */
    struct stall *stall; /* NULL: adopted without one */
    struct loop_timer boot, end;
    enum {
        BOOT_PENDING,
        BOOT_RUNNING,
        BOOT_REGISTERED,
        BOOT_READY,
        BOOT_DEVICES,
        BOOT_DONE
    } boot_stage;
    int64_t registration, ready, devices, startup; /* delays of the stages, ns, before speed */
    bool never_registers, no_devices, late;
    int64_t seen_from, seen_until; /* loop_now: when list and get learn of it, forget it */
    int64_t began, ended, settled; /* loop_now; ended TIME_NEVER: still running */
    __int128 owed;                 /* uusd/h times ns, up to `settled` */
    int64_t deadline;              /* of an interruption; 0: none */
};

VEC_DEFINE(vec_instance, struct instance);
VEC_DEFINE(vec_machine, struct machine *);
VEC_DEFINE(vec_call, struct cloud_sim_call);
VEC_DEFINE(vec_notice, struct notice);

struct cloud_sim {
    struct cloud cloud; /* first */
    struct loop *loop;
    struct cloud_sim_options o;
    struct rng prices, faults_rng, ids, ends;
    struct catalog *base, *current; /* current NULL: to be made */
    struct stall *stalls;
    size_t n_stalls;
    uint64_t version;
    int64_t walked; /* loop_now up to which prices have walked */
    struct vec_instance instances;
    struct vec_machine machines;
    struct vec_machine live;  /* not yet forgotten, in launch order */
    __int128 closed;          /* owed by machines that have ended */
    struct map tokens, by_id; /* -> struct machine */
    struct vec_notice notices;
    struct vec_call calls;
    struct arena call_arena;
    struct cloud_sim_faults faults;
    struct cloud_op *ops;
    void (*effect)(void *arg, const struct cloud_sim_call *call, bool after);
    void *effect_arg;
};

/* market.c */
void market_init(struct cloud_sim *s);
void market_release(struct cloud_sim *s);
void market_walk(struct cloud_sim *s); /* brings prices up to now; settles bills on the way */
struct stall *market_find(struct cloud_sim *s, const char *type, const char *zone,
                          enum capacity_type t);
/* One reference. `zones` empty: all. */
struct catalog *market_catalog(struct cloud_sim *s, const struct string_list *zones);

/* fleet.c */
struct machine *fleet_launch(struct cloud_sim *s, struct order *o, struct stall *stall);
void fleet_stop(struct machine *m); /* an API termination: stopping, then gone */
void fleet_settle(struct machine *m, int64_t now);
bool fleet_visible(const struct machine *m);
void fleet_tidy(struct cloud_sim *s); /* drops from `live` what nobody can see any more */
void fleet_release(struct cloud_sim *s);
void order_free(struct order *o);
static inline struct instance *machine_instance(const struct machine *m)
{
    return &m->sim->instances.v[m->index];
}
static inline int64_t sim_delay(const struct cloud_sim *s, int64_t d)
{
    return s->o.speed == 1 ? d : (int64_t)((double)d / s->o.speed);
}

#endif
