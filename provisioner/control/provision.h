/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* From pending pods to NodeClaims: the batch, the plan, and what was promised to whom.
 *
 * A pod that a plan gave a place is nominated to it, and no plan is made for it again while the
 * place lives and keeps its deadlines. A pod that no plan could place is remembered with the state
 * of the cluster, and tried again when something that matters has changed. */
#ifndef PROVISIONER_CONTROL_PROVISION_H
#define PROVISIONER_CONTROL_PROVISION_H

#include "provisioner/control/internal.h"
#include "provisioner/solve/solve.h"

struct nomination {
    char *target; /* claim or Node */
    bool claim;
    bool stale; /* the place is ready and the scheduler has not used it: no longer holds the node */
    int64_t at;
};

struct refusal {         /* why a pod has no place */
    uint64_t generation; /* of the cluster when it was planned for */
    int64_t at, again;   /* not before */
    unsigned tries;
    char *why;
};

/* One plan under way. Runs on a worker with the frozen world. */
struct pass {
    struct control *c; /* NULL once control is gone */
    struct world *world;
    struct plan *plan;
    struct solve_options options;
    uint64_t generation;
    struct catalog **catalogs; /* references, for as long as the world lives */
    size_t n_catalogs;
};

struct provision {
    struct loop_timer timer;
    struct map waiting;     /* pod key to int64_t: since when a place is wanted */
    struct map nominations; /* pod key to struct nomination */
    struct map targets;     /* target to size_t: nominations that hold it */
    struct map refusals;    /* pod key to struct refusal */
    struct pass *pass;
    struct worker_job *job;
    unsigned creating; /* claims whose creation is under way */
    uint64_t plans;
};

/* world.c: the frozen world of now, or NULL with err. */
struct pass *pass_new(struct control *c, struct err *err);
void pass_free(struct pass *p);

/* promise.c */
void promise_make(struct control *c, const char *pod_key, const char *target, bool claim);
void promise_break(struct control *c, const char *pod_key);
void promise_sweep(struct control *c); /* drops those whose pod or place is gone */
void promise_release(struct control *c);
void refuse(struct control *c, const char *pod_key, uint64_t generation,
            const char *why); /* `why` NULL: keep the last */
/* Refused, and nothing relevant has changed since or it is too early to ask again: *ret_again (may
 * be NULL) is then when it may be asked, TIME_NEVER while nothing changes. */
bool refused_now(const struct control *c, const char *pod_key, int64_t *ret_again);

/* claim_new.c: creates the claim of a launch; false: not even started. */
bool claim_create(struct control *c, const struct pass *p, const struct plan_launch *l);
/* perform.c: what a finished plan says, done. */
void perform_plan(struct control *c, struct pass *p);

#endif
