/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The simulated cloud: a market with stock, latency, spot prices and notices, on any loop.
 *
 * The same code serves the simulator (virtual time) and `weft run --cloud sim` (real time, real API
 * server). It does not touch Kubernetes: its host registers the Node objects when told to. Same
 * seed and same calls, same bytes. It keeps a bill of every instance: per second, 60 s at least. */
#ifndef CLOUD_SIM_SIM_H
#define CLOUD_SIM_SIM_H

#include "base/rng.h"
#include "cloud/cloud.h"

struct cloud_sim;

enum sim_node_stage {
    SIM_NODE_REGISTERED,   /* create the Node: not Ready, without extended resources */
    SIM_NODE_READY,        /* Ready becomes True */
    SIM_NODE_DEVICES,      /* extended resources appear in capacity and allocatable */
    SIM_NODE_STARTUP_DONE, /* startup taints are removed (by whoever sets them up) */
};

/* What the host (simulator or `run`) does for it. */
struct cloud_sim_host {
    /* The instance has booted: make its Node object with these labels, taints and resources.
     * Called again for each stage; the host applies what changed. */
    void (*node_up)(void *arg, const struct instance *i, const struct launch_request *request,
                    enum sim_node_stage stage);
    /* The machine is gone (terminated, interrupted): its kubelet falls silent. The host deletes
     * nothing that a cloud would not; a node lifecycle controller's work is the host's choice. */
    void (*node_down)(void *arg, const struct instance *i);
    void *arg;
};

/* Faults and stock, changed at any time by scenarios and tests. */
struct cloud_sim_faults {
    uint32_t launch_error_ppm; /* a launch fails with a transient error before anything happened */
    uint32_t launch_lost_ppm;  /* the instance is created, the answer is lost (UNKNOWN) */
    uint32_t throttle_ppm;     /* any call: THROTTLED */
    uint32_t never_register_ppm; /* the instance runs but no Node ever appears */
    uint32_t late_register_ppm;  /* registration takes 20 times as long */
    uint32_t no_device_ppm;      /* extended resources never appear */
    uint32_t terminate_error_ppm;
    int64_t describe_lag; /* ns until list/get see a new or terminated instance */
};

struct cloud_sim_options {
    uint64_t seed;
    struct catalog *catalog; /* NULL: the built-in one; a reference is taken */
    struct cloud_sim_host host;
    int64_t call_latency; /* ns of each API call; 0: 300 ms for launch, 100 ms else */
    double speed;         /* divides all delays; 0: 1 (real time runs use more) */
};

struct cloud_sim *cloud_sim_new(struct loop *l, const struct cloud_sim_options *o);
struct cloud *cloud_sim_cloud(struct cloud_sim *s); /* the seam; closing it frees the market */

struct cloud_sim_faults *cloud_sim_faults(struct cloud_sim *s);
/* Stock of an offering: < 0 unlimited (the start), 0 exhausted. Any of type/zone NULL: all. */
void cloud_sim_set_stock(struct cloud_sim *s, const char *type, const char *zone,
                         int capacity_type /* -1: all */, int64_t n);
void cloud_sim_set_price(struct cloud_sim *s, const char *type, const char *zone,
                         enum capacity_type t, int64_t price_uusd_h);
/* A spot notice now and the end of the machine at the deadline. False: no such running instance. */
bool cloud_sim_interrupt(struct cloud_sim *s, const char *provider_id, int64_t notice_ns);
/* An instance that exists at the start (scenarios): counted and billed from now. */
const struct instance *cloud_sim_adopt(struct cloud_sim *s, const char *provider_id,
                                       const char *type, const char *zone, enum capacity_type t,
                                       const char *nodeclaim, const char *nodepool,
                                       const char *cluster);

/* Observation: instances in launch order, calls in call order. */
size_t cloud_sim_instances(const struct cloud_sim *s,
                           const struct instance **ret); /* incl. terminated */
size_t cloud_sim_running(const struct cloud_sim *s);
int64_t cloud_sim_price_now(const struct cloud_sim *s); /* sum of running instances, uusd/h */
int64_t cloud_sim_bill(const struct cloud_sim *s);      /* micro-dollars so far */

struct cloud_sim_call {
    int64_t at; /* loop_now */
    enum {
        SIM_CALL_CATALOGUE,
        SIM_CALL_LAUNCH,
        SIM_CALL_GET,
        SIM_CALL_LIST,
        SIM_CALL_TERMINATE,
        SIM_CALL_NOTICES
    } what;
    const char *nodeclaim, *provider_id, *instance_type,
        *zone; /* of a launch: the offering chosen or first asked */
    enum capacity_type capacity_type;
    enum err_code result;
};
size_t cloud_sim_calls(const struct cloud_sim *s, const struct cloud_sim_call **ret);
/* Called before and after each call takes effect: the crash points of the kill tests. NULL: off. */
void cloud_sim_on_effect(struct cloud_sim *s,
                         void (*fn)(void *arg, const struct cloud_sim_call *call, bool after),
                         void *arg);

#endif
