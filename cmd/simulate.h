/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A simulated fleet: queues that fill, services that drain them, and what it all costs.
 *
 * The controller is the real one; only the cluster, the cloud, the clock and the customers are
 * simulated. Same seed and options, same bytes. */
#ifndef CMD_SIMULATE_H
#define CMD_SIMULATE_H

#include "base/rng.h"
#include "base/vec.h"
#include "base/worker.h"
#include "cmd/sim_world.h"
#include "kube/client/recorder.h"
#include "provisioner/control/control.h"
#include "scalers/workload.h"

#define SERVICES_MAX 8

/* One annotated Deployment and the queue it works off. */
struct service {
    const char *name;
    double per_second;        /* mean arrivals over the day */
    double served_per_second; /* by one ready replica */
    double burst;             /* arrivals in a burst, on top; 0: none */
    int64_t target;           /* queue length a replica is meant for */
    const char *pod_spec;     /* JSON */
    const char *triggers;     /* JSON; NULL: the queue's */
    int64_t min, max;
    /* State. */
    double queue;
    int64_t burst_until;
    struct rng rng;
    size_t pods, ready; /* live pods, and those that serve */
    int64_t desired;
    int64_t signal_at; /* when the queue first asked for more than there is; 0: it does not */
    int64_t raised_by; /* when the last raise was asked for */
    int64_t owed;      /* pods of that raise that do not exist yet */
    struct workload *workload; /* the object, a reference */
};

struct sample {
    int64_t at;
    double queue;
    size_t desired, ready, pending, nodes;
    int64_t price_uusd_h, bound_uusd_h;
};

VEC_DEFINE(vec_i64, int64_t);
VEC_DEFINE(vec_sample, struct sample);

struct simulation {
    struct sim_world world;
    struct worker *worker;
    struct kube_config config;
    struct client *client;
    struct recorder *recorder;
    struct control *control;
    struct scalers *scalers;
    struct service services[SERVICES_MAX];
    size_t n_services;
    uint64_t seed;
    struct loop_timer tick, prices;
    struct catalog *catalog; /* with the prices of now; NULL: not known */
    struct nodepool *pools[4];
    size_t n_pools;
    struct map bounds;    /* counts and prices -> int64_t uusd/h */
    int64_t bound_uusd_h; /* of the pods that live now */
    int64_t bound_since;  /* loop_now */
    __int128 bound_total; /* uusd/h * ns */
    int64_t peak_uusd_h;
    size_t pending;
    struct map asked;         /* uid of a live pod that has not served yet -> int64_t, its signal */
    struct map reclaimed;     /* names of claims whose machines the cloud announced to take */
    struct vec_i64 latencies; /* ns from signal to ready */
    struct vec_sample samples;
    uint64_t decisions;
    void (*decision)(void *arg, struct str line);
    void *decision_arg;
};

/* A reference of the catalogue is taken. */
void simulation_init(struct simulation *s, uint64_t seed, uint32_t fault_ppm,
                     struct catalog *catalog);
/* The fleet of the demo: a chat model, a document model, an evaluation job queue, a CPU service. */
void simulation_inference_fleet(struct simulation *s);
void simulation_start(struct simulation *s);
/* Virtual seconds further; takes a sample at the end. */
void simulation_run(struct simulation *s, double seconds);
void simulation_release(struct simulation *s);

struct bill {
    double hours;
    int64_t spent_uusd, always_on_uusd;
    int64_t bound_uusd;             /* -1: not known, for the pods are none of ours */
    int64_t signal_p50, signal_p99; /* ns; -1: no pod was asked for */
    size_t pods_started, launches;
    size_t ended, interruptions; /* machines that are gone, and those of them the cloud took */
    uint64_t evictions;
};
void simulation_bill(struct simulation *s, struct bill *ret);

#endif
