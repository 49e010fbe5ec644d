/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Deciding, and the one write that follows. Each write names the version it was decided on; after a
 * conflict the scale is read again, and the decision taken again from that. */
#include "scalers/workload_internal.h"

#define CONFLICTS_MAX 5

static void perform(struct scaled *s);

/* ---- The scale subresource ---- */

/* What a Scale object says; false: it cannot be read. */
static bool read_scale(struct scaled *s, struct str body)
{
    struct arena arena = ARENA_INIT;
    arena_init(&arena, 1024 * 1024, 0);
    const struct json *root = json_parse(&arena, body, NULL);
    int64_t replicas = json_i64(json_at(root, "spec", "replicas", NULL), root ? 0 : -1);
    struct str rv = json_text(json_at(root, "metadata", "resourceVersion", NULL));
    if (root) {
        s->known_replicas = replicas;
        /* The spec has changed by our write, or is what somebody else made it: later than what we
         * hold. */
        s->known_generation = s->object->meta.generation + 1;
        snprintf(s->known_version, sizeof(s->known_version), "%.*s", STR_ARG(rv));
    }
    arena_release(&arena);
    return root != NULL;
}

static struct client_op *call_scale(struct scaled *s, int64_t replicas, const char *version,
                                    client_done *done)
{
    char api_version[128];
    kind_api_version(api_version, s->kind);
    return client_scale(s->owner->client, api_version, s->kind->plural, s->object->meta.namespace_,
                        s->object->meta.name, replicas, version, done, s);
}

static void failed(struct scaled *s, const struct err *err)
{
    snprintf(s->last_error, sizeof(s->last_error), "scaling to %lld: %.300s",
             (long long)s->write_to, err->msg);
    tell_decision(s, "failed", err_code_name(err->code));
    if (s->write_to > s->write_from)
        tell_event(s, true, "KEDAScaleTargetActivationFailed", s->last_error);
    else
        tell_event(s, true, "KEDAScaleTargetDeactivationFailed", s->last_error);
    tell_status(s);
}

static void succeeded(struct scaled *s)
{
    char text[500];
    s->last_error[0] = 0;
    s->conflicts = 0;
    decide_scaled(&s->config->decide, &s->decide, loop_wall(s->owner->loop), s->write_from,
                  s->write_to);
    tell_decision(s, "scaled", NULL);
    snprintf(text, sizeof(text), "%s", s->last.text);
    if (s->write_from == 0)
        tell_event(s, false, "KEDAScaleTargetActivated", text);
    else if (s->write_to == 0)
        tell_event(s, false, "KEDAScaleTargetDeactivated", text);
    else
        tell_event(s, false, "SuccessfulRescale", text);
    tell_status(s);
}

static void reread(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct scaled *s = arg;
    s->write = NULL;
    if (err) {
        failed(s, err);
        return;
    }
    if (read_scale(s, answer->body))
        scaled_decide(s);
}

static void written(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct scaled *s = arg;
    s->write = NULL;
    if (err && err->code == ERR_CONFLICT && s->conflicts++ < CONFLICTS_MAX) {
        tell_decision(s, "conflict", "the workload has changed; read again");
        s->write = call_scale(s, -1, NULL, reread);
        return;
    }
    if (err && err->code == ERR_UNKNOWN) { /* it may have happened: look */
        s->write = call_scale(s, -1, NULL, reread);
        return;
    }
    if (err) {
        failed(s, err);
        return;
    }
    read_scale(s, answer->body);
    s->known_replicas = s->write_to;
    succeeded(s);
}

static void perform(struct scaled *s)
{
    const char *version = s->known_replicas >= 0 && s->known_version[0]
                              ? s->known_version
                              : s->object->meta.resource_version;
    bool news = s->write_from != scaled_replicas(s) || s->write_to != s->last.replicas;
    s->write_from = scaled_replicas(s);
    s->write_to = s->last.replicas;
    if (s->owner->options.observe) {
        if (news)
            tell_decision(s, "observed", "mode observe");
        return;
    }
    s->write = call_scale(s, s->write_to, version, written);
    if (s->owner->metrics.writes)
        metric_add(metric_of(s->owner->metrics.writes, NULL, 0), 1);
}

/* ---- The decision ---- */

/* Things that people should hear of once, when they begin or end. */
static void tell_turns(struct scaled *s, bool first, enum decide_reason before)
{
    bool paused = s->last.reason == DECIDE_PAUSED &&
                  (s->config->decide.paused || s->config->decide.paused_replicas >= 0);
    if (paused != s->was_paused)
        tell_event(s, false, paused ? "ScaledObjectPaused" : "ScaledObjectUnpaused",
                   paused ? "paused by annotation" : "no longer paused");
    if (s->last.fallback != s->was_fallback)
        tell_event(s, s->last.fallback,
                   s->last.fallback ? "ScaledObjectFallbackActivated"
                                    : "ScaledObjectFallbackDeactivated",
                   s->last.fallback ? "a trigger keeps failing: its fallback counts instead"
                                    : "the triggers answer again");
    s->was_paused = paused;
    s->was_fallback = s->last.fallback;
    bool refused = s->last.reason == DECIDE_TRIGGER_ERROR ||
                   s->last.reason == DECIDE_PARTIAL_ERROR || s->last.reason == DECIDE_PAUSED;
    if (refused && (first || s->last.reason != before))
        tell_decision(s, "refused", decide_reason_name(s->last.reason));
}

/* False: somebody else scales it, or that is not known yet. */
static bool allowed(struct scaled *s)
{
    char text[320];
    if (s->config->take_over)
        return true;
    enum rivals_answer answer = rivals_find(s->owner->rivals, s->object->meta.namespace_,
                                            s->kind->kind, s->object->meta.name, text);
    bool news = strcmp(text, s->rival) != 0;
    memcpy(s->rival, text, sizeof(text));
    if (answer == RIVALS_NONE)
        return true;
    if (answer == RIVALS_FOUND && news) {
        char message[480];
        snprintf(message, sizeof(message),
                 "%s targets this workload, so weft leaves it alone; set " ANNOTATION_PREFIX
                 "take-over: \"true\" to take it over",
                 text);
        tell_event(s, true, "ScaledObjectCheckFailed", message);
        tell_decision(s, "refused", text);
    }
    tell_status(s);
    return false;
}

void scaled_decide(struct scaled *s)
{
    if (s->write || s->restoring || !s->config || !s->n_runs)
        return;
    struct decide_sample samples[DECIDE_SAMPLES_MAX];
    const struct workload *w = scaled_workload(s);
    struct decide_input in = {
        .now = loop_wall(s->owner->loop),
        .spec_replicas = scaled_replicas(s),
        .status_replicas = w->status_replicas,
        .ready_replicas = w->ready_replicas,
        .samples = samples,
        .n_samples = runs_samples(s, samples),
    };
    if (!allowed(s))
        return;
    enum decide_reason before = s->last.reason;
    bool first = !s->decided;
    decide(&s->config->decide, &s->decide, &in, &s->last);
    s->decided = true;
    tell_turns(s, first, before);
    if (s->last.replicas != in.spec_replicas)
        perform(s);
    else
        s->conflicts = 0;
    tell_status(s);
}

/* ---- The end ---- */

static void restored(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct scaled *s = arg;
    (void)answer;
    s->write = NULL;
    if (err)
        failed(s, err);
    struct queue *queue = s->owner->queue;
    char *key = xstrdup(s->key);
    scaled_end(s);
    queue_add(queue, str_from(key)); /* triggers may have come back meanwhile */
    free(key);
}

void scaled_restore(struct scaled *s)
{
    if (s->restoring)
        return;
    round_stop(s);
    runs_end(s);
    client_cancel(s->write);
    s->restoring = true;
    s->write_from = scaled_replicas(s);
    s->write_to = s->original;
    s->write = call_scale(s, s->original, NULL, restored);
}
