/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the files of the scaling controller share. */
#ifndef SCALERS_WORKLOAD_INTERNAL_H
#define SCALERS_WORKLOAD_INTERNAL_H

#include "base/map.h"
#include "kube/api/workload.h"
#include "kube/client/queue.h"
#include "scalers/annotations.h"
#include "scalers/auth.h"
#include "scalers/rivals.h"
#include "scalers/workload.h"

struct scaled;

/* One trigger of a workload, running or failing. */
struct trigger_run {
    struct scaled *scaled;
    const struct trigger *trigger; /* of the configuration in force */
    unsigned index;
    const struct scaler_type *type; /* NULL: there is no such type */
    struct auth_lease lease;
    struct scaler *scaler; /* NULL: not open; `error` says why */
    char fingerprint[65];  /* of the parameters it was opened with */
    bool resolve;          /* something it was resolved from has changed */
    bool polling;
    int64_t asked;    /* when the poll under way began */
    int64_t answered; /* last success, loop_now; 0: never */
    int64_t failures; /* in a row */
    bool told_failure;
    char error[320]; /* of the last poll; empty: it worked */
    struct scaler_value values[SCALER_METRICS_MAX];
    size_t n_values; /* of the last success */
};

enum scaled_state {
    SCALED_STARTING,
    SCALED_ACTIVE,
    SCALED_IDLE,
    SCALED_PAUSED,
    SCALED_ERROR,
    SCALED_INVALID,
    SCALED_REFUSED
};

/* One managed workload. */
struct scaled {
    struct scalers *owner;
    char *key; /* "Deployment/namespace/name" */
    struct object *object;
    const struct kind *kind;
    struct annotations *config; /* in force; NULL: none was ever good */
    char hash[17];              /* of the annotations seen last, good or bad */
    char *invalid;              /* why those are not in force; NULL: they are */
    struct trigger_run *runs;
    size_t n_runs;
    int64_t generation; /* of the template the triggers were resolved with */

    /* Rounds */
    struct loop_timer round, refresh;
    size_t polling; /* triggers that have not answered in this round */
    int64_t last_round;

    /* Decisions */
    struct decide_state decide;
    struct decide_output last; /* of the last decision */
    bool decided, was_fallback, was_paused;
    char rival[320];
    int64_t original; /* count found at the beginning; -1: unknown */

    /* Writing */
    struct client_op *write;
    int64_t write_from, write_to;
    unsigned conflicts;
    bool restoring;         /* the write gives the original count back, then it ends */
    int64_t known_replicas; /* what our own write set, until the informer catches up; -1: none */
    int64_t known_generation;
    char known_version[128]; /* resourceVersion of that */

    /* Status */
    struct client_op *status_write;
    struct loop_timer status_timer;
    int64_t status_at; /* last write, loop_now */
    char *status_material;
    char last_error[400];
};

struct scalers {
    struct client *client;
    struct loop *loop;
    struct recorder *recorder;
    struct scalers_options options;
    struct informer *informers[2]; /* Deployments, StatefulSets */
    bool owns[2];
    bool leading, running; /* running: leading and synced */
    int64_t running_since;
    struct queue *queue;
    struct map scaled; /* by key */
    struct auth_store *auth;
    struct rivals *rivals;
    struct scaler_host host;
    struct {
        struct metric_family *value, *active, *latency, *errors, *object_errors, *paused;
        struct metric_family *decisions, *writes, *polls;
        struct metric *workloads;
    } metrics;
};

/* workload.c */
const struct workload *scaled_workload(const struct scaled *s);
int64_t scaled_replicas(const struct scaled *s); /* by our own writes, else as the informer says */
void scaled_end(struct scaled *s);               /* stops everything and frees it */

/* workload_poll.c */
/* Builds the triggers of `config`; on success they replace the running ones. -1: one of them can
 * not be opened with these parameters (err says which), and nothing has changed. `keep_old` false:
 * takes over anyway, that trigger counting as failed. */
int runs_replace(struct scaled *s, struct annotations *config, bool keep_old, struct err *err);
void runs_end(struct scaled *s);
void runs_resolve_all(struct scaled *s); /* the template has changed */
void round_start(struct scaled *s, bool at_once);
void round_stop(struct scaled *s);
size_t runs_samples(const struct scaled *s,
                    struct decide_sample *out); /* up to DECIDE_SAMPLES_MAX */

/* workload_act.c */
void scaled_decide(struct scaled *s);
void scaled_restore(struct scaled *s); /* writes the original count, then ends `s` */

/* workload_tell.c */
void tell_metrics_init(struct scalers *s);
void tell_event(struct scaled *s, bool warning, const char *reason, const char *text);
void tell_status(struct scaled *s);
void tell_status_load(struct scaled *s); /* what an earlier leader wrote */
void tell_decision(struct scaled *s, const char *result, const char *blocked_by);
void tell_polled(struct trigger_run *r);
void scaled_print(const struct scaled *s, struct buf *out, bool material_only);
enum scaled_state scaled_state_of(const struct scaled *s);

#endif
