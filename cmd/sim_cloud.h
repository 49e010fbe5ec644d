/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The simulated cloud for a real API server (`weft run --cloud sim`).
 *
 * The market is cloud/sim's. What a real cloud would remember for itself, which instances exist,
 * is kept as one ConfigMap an instance, so that it outlives this process and is the same for every
 * replica: each call first reads those records, and answers only when its own record is written.
 * As a cloud would, it makes the Node objects of its instances; it runs no containers. */
#ifndef CMD_SIM_CLOUD_H
#define CMD_SIM_CLOUD_H

#include "cloud/cloud.h"
#include "kube/client/client.h"

struct sim_cloud_options {
    const char *namespace_;  /* of the records */
    struct catalog *catalog; /* NULL: the built-in one */
    uint64_t seed;
    double speed;                 /* divides delays */
    const char *const *exhausted; /* "type/zone/capacity type", "*" for any; NULL at the end */
    bool kubelets; /* also mark Nodes Ready; off where something else plays the kubelets */
};

/* `client` must not be fenced: a cloud knows no leaders. It must outlive the cloud. NULL: an entry
 * of `exhausted` cannot be read. */
struct cloud *sim_cloud_new(struct client *client, const struct sim_cloud_options *o,
                            struct err *err);

#endif
