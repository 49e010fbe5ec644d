/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The provisioner's loops: they read the cluster, let the pure rooms decide, and perform the plan.
 *
 * One control serves one cluster and any number of clouds (a NodePool's node class says which). It
 * is crash-only: everything it needs is in the API server and in the cloud's tags, and what it
 * keeps in memory only saves work. Nothing is decided before every cache has synced, and nothing is
 * done without leadership. In observe mode it decides and logs, and has no effects. */
#ifndef PROVISIONER_CONTROL_CONTROL_H
#define PROVISIONER_CONTROL_CONTROL_H

#include "base/metrics.h"
#include "base/worker.h"
#include "cloud/cloud.h"
#include "kube/client/client.h"
#include "kube/client/recorder.h"

struct control;

/* Durations in ns; 0 means the default. Texts are copied. */
struct control_options {
    const char *cluster_name;        /* tag of its instances; NULL: "default" */
    const char *namespace_;          /* where its own objects live; NULL: "weft-system" */
    bool observe;                    /* decide and log, do nothing */
    bool take_over;                  /* act although a Karpenter holds its lease */
    int64_t batch_idle;              /* 1 s after the last new pending pod … */
    int64_t batch_max;               /* … and at most 10 s after the first */
    int64_t launch_deadline;         /* 5 min */
    int64_t registration_deadline;   /* 15 min */
    int64_t initialization_deadline; /* 15 min */
    int64_t coming_for;              /* 30 s: how long announced pods are planned for */
    int64_t gc_interval;             /* 2 min */
    int64_t notice_interval;         /* 10 s */
    int64_t catalogue_interval;      /* 5 min */
    int64_t empty_settle;            /* 2 s between the taint and the last look at an empty node */
    int64_t solve_budget;            /* work units of one plan; 0: the solver's own */
    int64_t solve_cost;              /* virtual time a plan takes in the simulator; 20 ms */
    uint64_t seed;                   /* of jitter */
    /* One JSON object, without a newline, for each decision (docs: the decision log). */
    void (*decision)(void *arg, struct str line);
    void *decision_arg;
};

/* Everything passed in must outlive it. `recorder` and `metrics` may be NULL. */
struct control *control_new(struct loop *l, struct worker *w, struct client *c, struct recorder *r,
                            struct metrics *m, struct cloud *const *clouds, size_t n_clouds,
                            const struct control_options *o);
void control_start(struct control *c);
/* Cancels everything under way. What was sent may still take effect; the next start finds it. */
void control_free(struct control *c);

bool control_ready(const struct control *c); /* every cache has synced */
/* How long ago the API server last told the cache that has heard least, ns. A stream that lives is
 * told something every minute or so (bookmarks). */
int64_t control_age(const struct control *c);
void control_set_leader(struct control *c, bool leader);

/* What it is busy with, for tests and pages. */
struct control_state {
    bool ready, leader, blocked_by_karpenter;
    size_t pending_pods;   /* provisionable and not nominated */
    size_t nominated_pods; /* expected on nodes on their way */
    size_t unschedulable_pods;
    size_t effects; /* calls under way */
    uint64_t plans, launches, terminations, evictions;
};
void control_state(const struct control *c, struct control_state *ret);
/* Why the pod was not placed by the last plan that saw it, or NULL. Borrowed. */
const char *control_why_pending(const struct control *c, const char *namespace_, const char *pod);

#endif
