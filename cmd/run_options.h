/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The options of `weft run`, from one table. */
#ifndef CMD_RUN_OPTIONS_H
#define CMD_RUN_OPTIONS_H

#include "base/schema.h"

struct run_options {
    const char *kubeconfig, *context;
    const char *mode, *cloud, *catalog;
    const char *cluster_name, *namespace_, *identity;
    bool take_over, leader_elect;
    int64_t lease_duration, renew_deadline, retry_period;
    int64_t batch_idle, batch_max;
    int64_t launch_deadline, registration_deadline, initialization_deadline;
    const char *bind_address;
    int64_t metrics_port, health_port;
    double kube_qps;
    int64_t kube_burst;
    const char *log_level, *log_format;
    double sim_speed;
    int64_t sim_seed;
    bool sim_kubelets;
    const char **sim_exhausted;
};

extern const struct option run_table[];

#endif
