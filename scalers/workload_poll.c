/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Rounds: all triggers of a workload are asked together, and when the last has answered the
 * decision is taken. Between rounds further apart than the HPA's sync period the decision is taken
 * again on the same values, since windows and rates move with time. */
#include <assert.h>

#include "base/crypto.h"
#include "scalers/workload_internal.h"

#define DECIDE_EVERY (15 * NS_PER_S)

/* ---- Opening ---- */

static void clear_error(struct trigger_run *r)
{
    r->error[0] = 0;
}

static void set_error(struct trigger_run *r, const char *text)
{
    snprintf(r->error, sizeof(r->error), "%.319s", text);
}

static void dependency_changed(void *arg)
{
    struct trigger_run *r = arg;
    r->resolve = true;
    if (!r->scaler && !r->polling) /* it waits for this: ask now */
        round_start(r->scaled, true);
}

static void print_fingerprint(const struct json *parameters, char out[65])
{
    struct buf text = BUF_INIT;
    json_print(&text, parameters, 0);
    crypto_sha256_hex(buf_view(&text), 64, out);
    if (text.data)
        explicit_bzero(text.data, text.len);
    buf_release(&text);
}

static void open_scaler(struct trigger_run *r, const struct json *parameters, struct err *err)
{
    char print[65];
    print_fingerprint(parameters, print);
    if (r->scaler && !strcmp(print, r->fingerprint))
        return;
    struct scaler *fresh = scaler_open(&r->scaled->owner->host, r->type, r->index, parameters, err);
    /* Rotated into something unusable: the old credential would be wrong too. */
    scaler_close(r->scaler);
    r->scaler = fresh;
    r->n_values = 0;
    memcpy(r->fingerprint, print, sizeof(print));
}

/* Resolves and opens. -1 with err: it cannot run as configured; 0 otherwise, also while waiting. */
static int open_run(struct trigger_run *r, const struct annotations *config, struct err *err)
{
    struct scaled *s = r->scaled;
    r->type = scaler_type_find(r->trigger->type);
    if (!r->type) {
        snprintf(r->error, sizeof(r->error), "there is no trigger type %.80s", r->trigger->type);
        return 0;
    }
    struct auth_request request = {
        .namespace_ = s->object->meta.namespace_,
        .trigger = r->trigger,
        .schema = r->type->schema,
        .auth = config->auth,
        .pod = &scaled_workload(s)->template_.spec,
        .env_container = config->env_container,
    };
    struct arena arena = ARENA_INIT;
    arena_init(&arena, 4 * ANNOTATION_BYTES_MAX, 0);
    struct json *parameters = NULL;
    struct err why = ERR_INIT;
    r->resolve = false;
    auth_lease_unwatch(&r->lease, r);
    enum auth_outcome outcome =
        auth_resolve(s->owner->auth, &request, &r->lease, &arena, &parameters, &why);
    auth_lease_watch(&r->lease, dependency_changed, r);
    if (outcome == AUTH_READY)
        open_scaler(r, parameters, &why);
    arena_release(&arena);
    if (outcome == AUTH_WAITING) {
        set_error(r, "waiting for its authentication to be read");
        return 0;
    }
    if (!why.code) {
        clear_error(r);
        return 0;
    }
    if (outcome == AUTH_FAILED) {
        scaler_close(r->scaler);
        r->scaler = NULL;
    }
    set_error(r, why.msg);
    if (err)
        *err = why;
    return -1;
}

static void close_run(struct trigger_run *r)
{
    scaler_close(r->scaler);
    r->scaler = NULL;
    auth_lease_unwatch(&r->lease, r);
    auth_lease_release(r->scaled->owner->auth, &r->lease);
}

static void end_runs(struct trigger_run *runs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close_run(&runs[i]);
    free(runs);
}

void runs_end(struct scaled *s)
{
    end_runs(s->runs, s->n_runs);
    s->runs = NULL;
    s->n_runs = 0;
}

/* A trigger that stays the same goes on counting its failures. */
static void inherit(struct trigger_run *fresh, const struct trigger_run *old)
{
    if (!fresh->scaler || !old->scaler || fresh->type != old->type ||
        strcmp(fresh->fingerprint, old->fingerprint) != 0)
        return;
    fresh->failures = old->failures;
    fresh->told_failure = old->told_failure;
}

int runs_replace(struct scaled *s, struct annotations *config, bool keep_old, struct err *err)
{
    struct trigger_run *runs = xcalloc(config->n_triggers, sizeof(*runs));
    int result = 0;
    for (size_t i = 0; i < config->n_triggers; i++) {
        runs[i] = (struct trigger_run){
            .scaled = s, .trigger = &config->triggers[i], .index = (unsigned)i};
        struct err why = ERR_INIT;
        if (open_run(&runs[i], config, &why) < 0 && why.code == ERR_INVALID && !result) {
            result = -1;
            err_set(err, ERR_INVALID, "trigger %zu (%s): %s", i, config->triggers[i].type, why.msg);
        }
    }
    if (result < 0 && keep_old) {
        end_runs(runs, config->n_triggers);
        return -1;
    }
    round_stop(s);
    for (size_t i = 0; i < config->n_triggers && i < s->n_runs; i++)
        inherit(&runs[i], &s->runs[i]);
    end_runs(s->runs, s->n_runs);
    annotations_free(s->config);
    s->config = config;
    s->runs = runs;
    s->n_runs = config->n_triggers;
    return 0;
}

void runs_resolve_all(struct scaled *s)
{
    for (size_t i = 0; i < s->n_runs; i++)
        s->runs[i].resolve = true;
}

/* ---- Rounds ---- */

static void round_end(struct scaled *s)
{
    scaled_decide(s);
}

static void answered(void *arg, const struct scaler_value *values, size_t n, const struct err *err)
{
    struct trigger_run *r = arg;
    struct scaled *s = r->scaled;
    r->polling = false;
    if (err) {
        r->failures++;
        set_error(r, err->msg);
    } else {
        r->failures = 0;
        clear_error(r);
        r->answered = loop_now(s->owner->loop);
        r->n_values = MIN(n, (size_t)SCALER_METRICS_MAX);
        memcpy(r->values, values, r->n_values * sizeof(*values));
    }
    tell_polled(r);
    assert(s->polling > 0);
    if (--s->polling == 0)
        round_end(s);
}

static void schedule(struct scaled *s);

static void poll_round(void *arg)
{
    struct scaled *s = arg;
    schedule(s);
    if (s->polling || !s->config)
        return;
    int64_t now = loop_now(s->owner->loop);
    bool due = !s->last_round || now - s->last_round >= s->config->polling_interval - NS_PER_MS ||
               !s->decided;
    if (!due) { /* a decision tick between two rounds */
        scaled_decide(s);
        return;
    }
    s->last_round = now;
    s->polling = 1; /* ours, so that the round cannot end before all have been asked */
    for (size_t i = 0; i < s->n_runs; i++) {
        struct trigger_run *r = &s->runs[i];
        if ((r->resolve || !r->scaler) && r->type)
            open_run(r, s->config, NULL);
        if (!r->scaler) {
            r->failures++;
            tell_polled(r);
            continue;
        }
        r->polling = true;
        r->asked = now;
        s->polling++;
        scaler_poll(r->scaler, answered, r);
    }
    if (--s->polling == 0)
        round_end(s);
}

/* The interval, or an equal part of it that is no longer than the HPA's sync period. */
static int64_t tick_of(const struct scaled *s)
{
    int64_t interval = s->config->polling_interval;
    return interval / ((interval + DECIDE_EVERY - 1) / DECIDE_EVERY);
}

/* The next tick: every workload has its own phase within the interval. */
static void schedule(struct scaled *s)
{
    int64_t interval = tick_of(s), now = loop_now(s->owner->loop);
    int64_t phase =
        (int64_t)(str_hash(str_from(s->key), s->owner->options.seed) % (uint64_t)interval);
    int64_t passed = (now - phase) % interval;
    if (passed < 0)
        passed += interval;
    loop_timer_in(s->owner->loop, &s->round, interval - passed, poll_round, s);
}

static void poll_now(void *arg)
{
    struct scaled *s = arg;
    s->last_round = 0;
    poll_round(s);
}

void round_start(struct scaled *s, bool at_once)
{
    schedule(s);
    if (at_once)
        loop_timer_in(s->owner->loop, &s->refresh, 0, poll_now, s);
}

void round_stop(struct scaled *s)
{
    loop_timer_cancel(s->owner->loop, &s->round);
    loop_timer_cancel(s->owner->loop, &s->refresh);
    s->polling = 0;
    for (size_t i = 0; i < s->n_runs; i++)
        s->runs[i].polling = false;
}

/* ---- Samples ---- */

static bool fresh(const struct trigger_run *r, int64_t now)
{
    return r->n_values && !r->error[0] &&
           now - r->answered <= 2 * r->scaled->config->polling_interval + SCALER_TIMEOUT;
}

size_t runs_samples(const struct scaled *s, struct decide_sample *out)
{
    size_t n = 0;
    int64_t now = loop_now(s->owner->loop);
    for (size_t i = 0; i < s->n_runs; i++) {
        const struct trigger_run *r = &s->runs[i];
        const char *name = r->trigger->name ? r->trigger->name : r->trigger->type;
        size_t values = MAX(r->n_values, (size_t)1);
        for (size_t k = 0; k < values && n < DECIDE_SAMPLES_MAX; k++) {
            const struct scaler_value *v = &r->values[k];
            struct decide_sample sample = {
                .name = name, .metric = r->trigger->metric, .failures = r->failures};
            if (r->n_values) /* a failed trigger keeps its target: fallback needs it */
                sample = (struct decide_sample){v->metric, r->trigger->metric, v->verdict, v->value,
                                                v->target, v->activation,      r->failures};
            if (!fresh(r, now))
                sample.verdict = VERDICT_UNKNOWN;
            if (sample.target <= 0)
                sample.target = 1000; /* never answered: any target gives the fallback's count */
            out[n++] = sample;
        }
    }
    return n;
}
