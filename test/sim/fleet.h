/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A cluster, a cloud and the provisioner on one virtual clock; the provisioner can be killed at any
 * effect and started again. */
#ifndef TEST_SIM_FLEET_H
#define TEST_SIM_FLEET_H

#include "cmd/sim_world.h"
#include "kube/client/client.h"
#include "kube/client/recorder.h"
#include "provisioner/control/control.h"

struct invariants;

struct fleet {
    struct sim_world world;
    struct loop *loop;       /* of the world, for short */
    struct sim *sim;         /* likewise */
    struct cloud_sim *cloud; /* likewise */
    struct worker *worker;
    struct kube_config config;
    struct control_options options;
    uint64_t seed;
    /* One life of the provisioner; NULL while it is dead. */
    struct client *client;
    struct recorder *recorder;
    struct control *control;
    struct loop_timer restart, burial;
    unsigned lives;
    /* Effects so far: each call counts twice, before and after. */
    uint64_t effects;
    uint64_t kill_at;      /* the provisioner dies at this one; 0: never */
    int64_t restart_after; /* ns */
    uint64_t decisions;
    bool print; /* decisions go to stderr */
    struct invariants *invariants;
};

/* `extra` NULL: the defaults. Starts nothing yet. */
struct fleet *fleet_new(uint64_t seed, const struct control_options *extra,
                        const struct sim_options *sim);
void fleet_free(struct fleet *f);
void fleet_start(struct fleet *f);
void fleet_kill(struct fleet *f);

void fleet_run(struct fleet *f, int64_t ns);
/* One object in JSON; ends the program on an error. */
void fleet_apply(struct fleet *f, const char *json);

/* Pods that run (label app=NAME; NULL: all), nodes, running instances. */
size_t fleet_running(struct fleet *f, const char *app);
size_t fleet_pods(struct fleet *f, const char *app);
size_t fleet_nodes(struct fleet *f);
size_t fleet_launched(struct fleet *f); /* instances ever made */

/* A NodePool of these types (quoted, comma-separated) with its SimNodeClass; `more` is added to the
 * template's spec. */
void fleet_pool(struct fleet *f, const char *name, const char *types, const char *capacity_type,
                const char *more);
void fleet_deployment(struct fleet *f, const char *name, int replicas, const char *requests);
void fleet_scale(struct fleet *f, const char *name, int replicas);

#endif
