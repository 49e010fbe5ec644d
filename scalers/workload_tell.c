/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What people get to see: the status annotation, events, the decision log, metrics. */
#include "base/num.h"
#include "scalers/workload_internal.h"

#define STATUS_EVERY (10 * NS_PER_S)

/* ---- Events ---- */

void tell_event(struct scaled *s, bool warning, const char *reason, const char *text)
{
    if (s->owner->recorder && !s->owner->options.observe)
        recorder_event(s->owner->recorder, s->object, warning, reason, 0, "%s", text);
}

/* ---- Status ---- */

enum scaled_state scaled_state_of(const struct scaled *s)
{
    if (s->invalid && !s->config)
        return SCALED_INVALID;
    if (s->rival[0])
        return SCALED_REFUSED;
    if (!s->decided)
        return s->invalid ? SCALED_INVALID : SCALED_STARTING;
    if (s->last.reason == DECIDE_PAUSED)
        return SCALED_PAUSED;
    if (s->last.n_unknown)
        return SCALED_ERROR;
    return s->last.active ? SCALED_ACTIVE : SCALED_IDLE;
}

static const char *state_name(enum scaled_state state)
{
    static const char *const names[] = {
        [SCALED_STARTING] = "Starting", [SCALED_ACTIVE] = "Active", [SCALED_IDLE] = "Idle",
        [SCALED_PAUSED] = "Paused",     [SCALED_ERROR] = "Error",   [SCALED_INVALID] = "Invalid",
        [SCALED_REFUSED] = "Refused"};
    return names[state];
}

static void key_time(struct json_writer *w, const char *key, int64_t t)
{
    char text[40];
    if (t)
        json_w_kstr(w, key, time_format(text, t));
}

static void key_milli(struct json_writer *w, const char *key, int64_t milli)
{
    char text[32];
    if (milli % 1000 == 0)
        snprintf(text, sizeof(text), "%lld", (long long)(milli / 1000));
    else
        num_format_fixed(text, milli, 3);
    json_w_kcstr(w, key, text);
}

static enum decide_verdict verdict_of(const struct trigger_run *r, size_t k)
{
    return r->error[0] || !r->n_values ? VERDICT_UNKNOWN : r->values[k].verdict;
}

static void print_trigger(const struct trigger_run *r, struct json_writer *w, bool material_only)
{
    size_t n = MAX(r->n_values, (size_t)1);
    for (size_t k = 0; k < n; k++) {
        json_w_object(w);
        json_w_kcstr(w, "type", r->trigger->type);
        if (r->trigger->name)
            json_w_kcstr(w, "name", r->trigger->name);
        json_w_kcstr(w, "verdict", decide_verdict_name(verdict_of(r, k)));
        if (r->n_values && !material_only) {
            const struct scaler_value *v = &r->values[k];
            json_w_kcstr(w, "metric", v->metric);
            key_milli(w, "value", v->value);
            key_milli(w, "target", v->target);
            json_w_ki64(w, "ageSeconds",
                        (loop_now(r->scaled->owner->loop) - r->answered) / NS_PER_S);
        }
        if (r->error[0] && !material_only)
            json_w_kcstr(w, "error", r->error);
        json_w_object_end(w);
    }
}

static const char *last_error(const struct scaled *s)
{
    if (s->invalid)
        return s->invalid;
    if (s->last_error[0])
        return s->last_error;
    for (size_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].error[0])
            return s->runs[i].error;
    return s->rival[0] ? s->rival : NULL;
}

/* Changes that the rate policies still count, so that a restart does not shorten a wait. */
static void print_events(const char *key, const struct decide_event *v, unsigned n,
                         struct json_writer *w)
{
    char text[40];
    if (!n)
        return;
    json_w_karray(w, key);
    for (unsigned i = 0; i < n; i++) {
        json_w_object(w);
        json_w_kstr(w, "at", time_format(text, v[i].at));
        json_w_ki64(w, "by", v[i].delta);
        json_w_object_end(w);
    }
    json_w_array_end(w);
}

static unsigned load_events(const struct json *list, int64_t now, struct decide_event *v)
{
    unsigned n = 0;
    for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n && n < DECIDE_EVENTS_MAX;
         i++) {
        int64_t at, by = json_i64(json_get(list->items[i], "by"), 0);
        if (by <= 0 || by > INT32_MAX ||
            time_parse_rfc3339(json_text(json_get(list->items[i], "at")), &at, NULL) < 0)
            continue;
        v[n++] = (struct decide_event){MIN(at, now), by};
    }
    return n;
}

/* `material_only`: what makes a write of the annotation worth it. */
void scaled_print(const struct scaled *s, struct buf *out, bool material_only)
{
    struct json_writer w;
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "state", state_name(scaled_state_of(s)));
    json_w_ki64(&w, "desired", s->decided ? s->last.replicas : scaled_replicas(s));
    json_w_kbool(&w, "active", s->decided && s->last.active);
    if (s->decided)
        json_w_kcstr(&w, "reason", decide_reason_name(s->last.reason));
    json_w_karray(&w, "triggers");
    for (size_t i = 0; i < s->n_runs; i++)
        print_trigger(&s->runs[i], &w, material_only);
    json_w_array_end(&w);
    if (!material_only || s->invalid) /* counters and pauses inside other errors are not news */
        if (last_error(s))
            json_w_kcstr(&w, "lastError", last_error(s));
    json_w_kcstr(&w, "observedHash", s->hash);
    if (!material_only) {
        key_time(&w, "since", s->decide.since);
        key_time(&w, "lastActive", s->decide.last_active);
        json_w_ki64(&w, "original", s->original);
        print_events("scaledUp", s->decide.ups, s->decide.n_ups, &w);
        print_events("scaledDown", s->decide.downs, s->decide.n_downs, &w);
    }
    json_w_object_end(&w);
}

static void status_written(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct scaled *s = arg;
    s->status_write = NULL;
    if (!err && answer->object)
        informer_wrote(s->owner->informers[s->kind == &kind_deployment ? 0 : 1], answer->object);
    if (err) { /* the next change, or the next tick, writes it */
        free(s->status_material);
        s->status_material = NULL;
    }
}

static void status_due(void *arg)
{
    tell_status(arg);
}

void tell_status(struct scaled *s)
{
    struct loop *loop = s->owner->loop;
    if (s->owner->options.observe || s->restoring || s->write || s->status_write ||
        scaled_state_of(s) ==
            SCALED_STARTING) /* a write now would only make the first decision's conflict */
        return;
    struct buf material = BUF_INIT, status = BUF_INIT, body = BUF_INIT;
    scaled_print(s, &material, true);
    int64_t wait = s->status_at ? s->status_at + STATUS_EVERY - loop_now(loop) : 0;
    if (s->status_material && !strcmp(s->status_material, material.data)) {
        buf_release(&material);
        return;
    }
    if (wait > 0) {
        loop_timer_in(loop, &s->status_timer, wait, status_due, s);
        buf_release(&material);
        return;
    }
    free(s->status_material);
    s->status_material = buf_detach(&material);
    s->status_at = loop_now(loop);
    scaled_print(s, &status, false);
    struct json_writer w;
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_kobject(&w, "metadata");
    json_w_kobject(&w, "annotations");
    json_w_kstr(&w, ANNOTATION_STATUS, buf_view(&status));
    json_w_object_end(&w);
    json_w_object_end(&w);
    json_w_object_end(&w);
    s->status_write =
        client_patch(s->owner->client, s->kind, s->object->meta.namespace_, s->object->meta.name,
                     NULL, PATCH_MERGE, buf_view(&body), status_written, s);
    buf_release(&status);
    buf_release(&body);
}

void tell_status_load(struct scaled *s)
{
    struct arena arena = ARENA_INIT;
    arena_init(&arena, ANNOTATION_BYTES_MAX * 4, 0);
    const char *text = labels_get(&s->object->meta.annotations, ANNOTATION_STATUS);
    const struct json *root = text ? json_parse(&arena, str_from(text), NULL) : NULL;
    struct str since = json_text(json_get(root, "since")),
               last = json_text(json_get(root, "lastActive"));
    int64_t now = loop_wall(s->owner->loop);
    if (since.len && time_parse_rfc3339(since, &s->decide.since, NULL) < 0)
        s->decide.since = 0;
    if (last.len && time_parse_rfc3339(last, &s->decide.last_active, NULL) < 0)
        s->decide.last_active = 0;
    /* It was active when last seen: the cooldown starts now, not when that was written. */
    if (json_bool(json_get(root, "active"), false))
        s->decide.last_active = now;
    s->decide.last_active = MIN(s->decide.last_active, now);
    s->original = json_i64(json_get(root, "original"), -1);
    s->decide.n_ups = load_events(json_get(root, "scaledUp"), now, s->decide.ups);
    s->decide.n_downs = load_events(json_get(root, "scaledDown"), now, s->decide.downs);
    arena_release(&arena);
}

/* ---- The decision log ---- */

static void print_inputs(const struct scaled *s, int64_t replicas, struct json_writer *w)
{
    const struct workload *o = scaled_workload(s);
    json_w_kobject(w, "inputs");
    json_w_ki64(w, "replicas", replicas);
    json_w_ki64(w, "pods", o->status_replicas);
    json_w_ki64(w, "readyPods", o->ready_replicas);
    json_w_ki64(w, "proposal", s->decided ? s->last.proposal : -1);
    json_w_karray(w, "triggers");
    for (size_t i = 0; i < s->n_runs; i++)
        print_trigger(&s->runs[i], w, false);
    json_w_array_end(w);
    json_w_object_end(w);
}

void tell_decision(struct scaled *s, const char *result, const char *blocked_by)
{
    if (s->owner->metrics.decisions) {
        struct str label = str_from(result);
        metric_add(metric_of(s->owner->metrics.decisions, &label, 1), 1);
    }
    if (!s->owner->options.decision)
        return;
    struct buf line = BUF_INIT;
    struct json_writer w;
    char time[40];
    bool wrote =
        !strcmp(result, "scaled") || !strcmp(result, "failed") || !strcmp(result, "conflict");
    int64_t from = wrote ? s->write_from : scaled_replicas(s);
    json_writer_init(&w, &line, 0);
    json_w_object(&w);
    json_w_kstr(&w, "ts", time_format_micro(time, loop_wall(s->owner->loop)));
    json_w_kcstr(&w, "decision", "scale");
    json_w_kcstr(&w, "id", s->key);
    json_w_kcstr(&w, "reason", s->decided ? s->last.text : blocked_by);
    print_inputs(s, from, &w);
    json_w_kobject(&w, "outcome");
    json_w_kcstr(&w, "result", result);
    json_w_ki64(&w, "from", from);
    json_w_ki64(&w, "to", wrote ? s->write_to : s->decided ? s->last.replicas : from);
    json_w_object_end(&w);
    json_w_kcstr(&w, "savingUsdHour", "0.000000");
    json_w_ki64(&w, "paybackSeconds", 0);
    json_w_karray(&w, "blockedBy");
    if (blocked_by)
        json_w_cstr(&w, blocked_by);
    json_w_array_end(&w);
    json_w_kcstr(&w, "evidence", last_error(s) ? last_error(s) : "");
    json_w_object_end(&w);
    s->owner->options.decision(s->owner->options.decision_arg, buf_view(&line));
    buf_release(&line);
}

/* ---- Metrics ---- */

void tell_metrics_init(struct scalers *s)
{
    static const char labels[] = "namespace,scaledObject,scaler,triggerIndex,metric,type";
    static const double buckets[] = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
    struct metrics *m = s->options.metrics;
    s->metrics.value = metrics_family(m, METRIC_GAUGE, "keda_scaler_metrics_value",
                                      "Value of a trigger at its last poll.", labels, NULL, 0);
    s->metrics.active =
        metrics_family(m, METRIC_GAUGE, "keda_scaler_active",
                       "1 while a trigger's value is above its activation value.", labels, NULL, 0);
    s->metrics.latency =
        metrics_family(m, METRIC_HISTOGRAM, "keda_scaler_metrics_latency_seconds",
                       "How long a trigger took to answer.", "type", buckets, ARRAY_LEN(buckets));
    s->metrics.errors = metrics_family(m, METRIC_COUNTER, "keda_scaler_detail_errors_total",
                                       "Polls of a trigger that failed.", labels, NULL, 0);
    s->metrics.object_errors =
        metrics_family(m, METRIC_COUNTER, "keda_scaled_object_errors_total",
                       "Configurations that could not be used.", "namespace,scaledObject", NULL, 0);
    s->metrics.paused =
        metrics_family(m, METRIC_GAUGE, "keda_scaled_object_paused", "1 while scaling is paused.",
                       "namespace,scaledObject", NULL, 0);
    s->metrics.decisions =
        metrics_family(m, METRIC_COUNTER, "weft_scaler_decisions_total",
                       "Scale decisions by result: scaled, observed, refused, conflict, failed.",
                       "result", NULL, 0);
    s->metrics.writes = metrics_family(m, METRIC_COUNTER, "weft_scaler_writes_total",
                                       "Writes to scale subresources.", "", NULL, 0);
    s->metrics.polls = metrics_family(m, METRIC_COUNTER, "weft_scaler_polls_total",
                                      "Polls by trigger type and result.", "type,result", NULL, 0);
    s->metrics.workloads = metric_of(metrics_family(m, METRIC_GAUGE, "weft_scaler_workloads",
                                                    "Workloads managed now.", "", NULL, 0),
                                     NULL, 0);
}

static void tell_failure(struct trigger_run *r)
{
    bool failed = r->error[0] && r->failures > 0;
    if (failed == r->told_failure)
        return;
    r->told_failure = failed;
    char text[480];
    if (failed)
        snprintf(text, sizeof(text), "trigger %u (%.60s): %.320s", r->index, r->trigger->type,
                 r->error);
    else
        snprintf(text, sizeof(text), "trigger %u (%.60s) answers again", r->index,
                 r->trigger->type);
    tell_event(r->scaled, failed, failed ? "KEDAScalerFailed" : "KEDAScalersStarted", text);
}

void tell_polled(struct trigger_run *r)
{
    const struct scalers *s = r->scaled->owner;
    tell_failure(r);
    if (!s->options.metrics)
        return;
    const struct meta *m = &r->scaled->object->meta;
    char index[16];
    snprintf(index, sizeof(index), "%u", r->index);
    struct str labels[] = {str_from(m->namespace_), str_from(m->name), str_from(r->trigger->type),
                           str_from(index),         STR(""),           STR("scaledobject")};
    struct str result[] = {str_from(r->trigger->type), r->error[0] ? STR("error") : STR("ok")};
    metric_add(metric_of(s->metrics.polls, result, 2), 1);
    if (r->error[0]) {
        if (r->n_values)
            labels[4] = str_from(r->values[0].metric);
        metric_add(metric_of(s->metrics.errors, labels, 6), 1);
        return;
    }
    metric_observe(metric_of(s->metrics.latency, result, 1),
                   (double)(loop_now(s->loop) - r->asked) / (double)NS_PER_S);
    for (size_t k = 0; k < r->n_values; k++) {
        const struct scaler_value *v = &r->values[k];
        labels[4] = str_from(v->metric);
        metric_set(metric_of(s->metrics.value, labels, 6), (double)v->value / 1000);
        metric_set(metric_of(s->metrics.active, labels, 6), v->value > v->activation);
    }
}
