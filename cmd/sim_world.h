/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A whole simulated world: virtual time, a cluster and a cloud that registers its machines there.
 *
 * One constructor for `weft simulate` and for every simulator test, so that a seed means the same
 * everywhere. What it adds to its parts is the host of cloud/sim: machines become Nodes named after
 * their instance id, startup taints (of the NodeClaim) are removed when set-up is done, and a
 * machine that is gone makes its Node silent. */
#ifndef CMD_SIM_WORLD_H
#define CMD_SIM_WORLD_H

#include "cloud/sim/sim.h"
#include "kube/sim/sim.h"

struct sim_world {
    struct loop *loop;
    struct sim *sim;
    struct cloud_sim *cloud_sim;
    struct cloud *cloud; /* the seam of cloud_sim */
    struct http *http;   /* the first client's way in, named "weft" */
    struct catalog *catalog;
};

struct sim_world_options {
    uint64_t seed;
    int64_t wall_start;            /* ns since 1970; 0: 2026-07-20T00:00:00Z, a Monday */
    struct catalog *catalog;       /* NULL: the built-in one; a reference is taken */
    const struct sim_options *sim; /* NULL: as they are */
    int64_t watch_lag;             /* of the first client, ns */
    int64_t cloud_call_latency;    /* 0: as cloud/sim has it */
};

/* `o` may be NULL: seed 0. Namespace weft-system exists. */
void sim_world_init(struct sim_world *w, const struct sim_world_options *o);
/* Other clients' seams must be closed before. */
void sim_world_release(struct sim_world *w);

/* Another client's way in, to be closed with http_close; a closed `http` may be replaced with it.
 */
struct http *sim_world_http(struct sim_world *w, const char *name, int64_t watch_lag);
/* Runs for so many seconds of virtual time. */
void sim_world_run(struct sim_world *w, double seconds);

/* A node that is there from the start, billed from now: instance and Node in one, ready, with the
 * labels that a NodeClaim of the pool would give it. False: there is no such offering. */
bool sim_world_add_node(struct sim_world *w, const char *name, const char *type, const char *zone,
                        enum capacity_type t, const struct label *labels, uint32_t n_labels);

#endif
