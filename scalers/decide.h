/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* From samples of triggers to a replica count: pure, one call a tick, state in and out.
 *
 * Two decisions in one. Activation moves between nothing and something: a trigger is active when
 * its value is strictly above its activation value; a workload with no active trigger goes to idle
 * or zero once its cooldown is over. Sizing moves between one and many with the arithmetic of the
 * HorizontalPodAutoscaler (k8s.io/kubernetes pkg/controller/podautoscaler): ratio, tolerance,
 * stabilisation windows and rate policies. One writer does both, so idle counts other than zero
 * work, and from zero the count jumps straight to what the values ask for.
 *
 * The law of safety: a sample that is not known (failed, stale, empty) never scales in. Scaling out
 * may use whatever is known. Only `max`, the pause keys and a declared fallback, all a person's
 * word, lower the count without knowing every value.
 *
 * Values are milli-units, tolerances millionths, instants and durations ns, `now` wall time. */
#ifndef SCALERS_DECIDE_H
#define SCALERS_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECIDE_POLICIES_MAX 8
#define DECIDE_RECORDS_MAX 32
#define DECIDE_EVENTS_MAX 32
#define DECIDE_SAMPLES_MAX 64
#define DECIDE_TOLERANCE 100000 /* the HPA's 0.1 */

enum decide_metric { DECIDE_AVERAGE_VALUE, DECIDE_VALUE };
enum decide_verdict {
    VERDICT_UNKNOWN, /* the poll failed, is overdue or has not ended yet */
    VERDICT_EMPTY,   /* the source answered that it has no value: not the same as zero */
    VERDICT_KNOWN,
};
enum decide_combine { COMBINE_MAX, COMBINE_MIN, COMBINE_SUM, COMBINE_ALL };
enum decide_select { SELECT_MAX, SELECT_MIN, SELECT_DISABLED };
enum decide_fallback_behavior {
    FALLBACK_STATIC,
    FALLBACK_CURRENT,
    FALLBACK_CURRENT_IF_HIGHER,
    FALLBACK_CURRENT_IF_LOWER,
};

struct decide_policy {
    bool percent; /* else pods */
    int64_t value, period;
};

struct decide_rules { /* one direction of `behavior` */
    bool given;       /* the user wrote this direction */
    int64_t window;
    enum decide_select select;
    struct decide_policy policies[DECIDE_POLICIES_MAX];
    unsigned n_policies;
    int64_t tolerance;
};

struct decide_config {
    int64_t min, max, idle; /* idle -1: unset */
    int64_t cooldown, initial_cooldown;
    enum decide_combine combine;
    bool has_behavior; /* either direction was written; fills both with the API's defaults */
    struct decide_rules up, down;
    bool has_fallback;
    int64_t fallback_threshold, fallback_replicas;
    enum decide_fallback_behavior fallback_behavior;
    bool paused, paused_in, paused_out, force_activation;
    int64_t paused_replicas; /* -1: unset */
    bool compat_keda;        /* answer as KEDA with an HPA does where weft would differ */
};

struct decide_sample {
    const char *name;
    enum decide_metric metric;
    enum decide_verdict verdict;
    int64_t value, target, activation;
    int64_t failures; /* polls that failed in a row */
};

struct decide_record {
    int64_t at, replicas;
};

struct decide_event {
    int64_t at, delta;
};

/* What is remembered of one workload. Zero-initialise. Lists are oldest first.
 *
 * `highs` and `lows` are the recommendations as monotonic queues: highs fall from oldest to newest
 * and answer "the highest within the window", lows rise. A full queue merges its two oldest
 * entries towards caution (holding longer), so the memory is bounded whatever the tick. */
struct decide_state {
    int64_t since;       /* when weft began to manage it */
    int64_t last_active; /* 0: never */
    struct decide_record highs[DECIDE_RECORDS_MAX], lows[DECIDE_RECORDS_MAX];
    unsigned n_highs, n_lows;
    struct decide_event ups[DECIDE_EVENTS_MAX], downs[DECIDE_EVENTS_MAX];
    unsigned n_ups, n_downs;
};

struct decide_input {
    int64_t now;
    int64_t spec_replicas, status_replicas, ready_replicas;
    const struct decide_sample *samples;
    size_t n_samples; /* 1..DECIDE_SAMPLES_MAX */
};

enum decide_reason {
    DECIDE_WITHIN_RANGE, /* the arithmetic's own answer */
    DECIDE_PAUSED,
    DECIDE_ACTIVATED,
    DECIDE_DEACTIVATED,
    DECIDE_COOLDOWN,      /* inactive, waiting for the cooldown */
    DECIDE_TRIGGER_ERROR, /* no value is known: held */
    DECIDE_PARTIAL_ERROR, /* some value is not known and the rest ask for less: held */
    DECIDE_TOO_FEW,       /* raised to min */
    DECIDE_TOO_MANY,      /* cut to max */
    DECIDE_UP_LIMIT,      /* cut by the rate of scaling up */
    DECIDE_DOWN_LIMIT,
    DECIDE_UP_STABILIZED, /* held by the stabilisation window */
    DECIDE_DOWN_STABILIZED,
    DECIDE_IDLE, /* nothing to do and nothing active */
};

struct decide_output {
    int64_t replicas; /* wanted; equal to spec_replicas: nothing to do */
    int64_t proposal; /* what the values alone ask for; -1: not known */
    bool active, fallback;
    size_t n_unknown;
    enum decide_reason reason;
    char text[384]; /* for people */
};

/* min 0, max 100, idle and paused_replicas unset, cooldown 300 s, the HPA's tolerance. */
void decide_config_init(struct decide_config *c);
/* The API's defaults of one direction; `given` stays false. */
void decide_rules_init(struct decide_rules *r, bool up);

/* The decision. Updates windows and activity in `s`; replicas are not assumed to change until
 * decide_scaled says so. */
void decide(const struct decide_config *c, struct decide_state *s, const struct decide_input *in,
            struct decide_output *ret);

/* The count was changed from..to: remembered for the rate policies. */
void decide_scaled(const struct decide_config *c, struct decide_state *s, int64_t now, int64_t from,
                   int64_t to);

/* The count one known sample asks for, given spec, status and ready replicas. */
int64_t decide_proposal(const struct decide_config *c, const struct decide_sample *sample,
                        int64_t spec, int64_t status, int64_t ready);

/* The value a failed sample gets so that the arithmetic answers with the fallback. False when the
 * fallback is not due, not set, or cannot be computed (Value with no ready pod). */
bool decide_fallback_value(const struct decide_config *c, const struct decide_sample *sample,
                           int64_t current, int64_t ready, int64_t *ret_value);

/* Stabilisation alone: windows and limits with and without `behavior`. */
int64_t decide_limit(const struct decide_config *c, struct decide_state *s, int64_t now,
                     int64_t current, int64_t desired, enum decide_reason *ret_reason);
/* Adds a recommendation. */
void decide_record(const struct decide_config *c, struct decide_state *s, int64_t now,
                   int64_t replicas);

const char *decide_reason_name(enum decide_reason r); /* "ScaleUpLimit" …, for events and the log */
const char *decide_verdict_name(enum decide_verdict v);

#endif
