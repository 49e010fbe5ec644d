/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The replica decision: activation, sizing, limits, and what holds when a value is not known. */
#include "scalers/decide.h"

#include <assert.h>

#include "base/num.h"
#include "base/time.h"

#define REPLICAS_MAX INT32_MAX
#define DOWN_WINDOW (300 * NS_PER_S)
#define POLICY_PERIOD (15 * NS_PER_S)
#define MILLION 1000000

void decide_rules_init(struct decide_rules *r, bool up)
{
    *r = (struct decide_rules){.window = up ? 0 : DOWN_WINDOW, .tolerance = DECIDE_TOLERANCE};
    r->policies[r->n_policies++] = (struct decide_policy){true, 100, POLICY_PERIOD};
    if (up)
        r->policies[r->n_policies++] = (struct decide_policy){false, 4, POLICY_PERIOD};
}

void decide_config_init(struct decide_config *c)
{
    *c = (struct decide_config){
        .max = 100, .idle = -1, .paused_replicas = -1, .cooldown = 300 * NS_PER_S};
    decide_rules_init(&c->up, true);
    decide_rules_init(&c->down, false);
}

const char *decide_reason_name(enum decide_reason r)
{
    static const char *const names[] = {
        [DECIDE_WITHIN_RANGE] = "DesiredWithinRange",
        [DECIDE_PAUSED] = "ScaledObjectPaused",
        [DECIDE_ACTIVATED] = "KEDAScaleTargetActivated",
        [DECIDE_DEACTIVATED] = "KEDAScaleTargetDeactivated",
        [DECIDE_COOLDOWN] = "ScalerCooldown",
        [DECIDE_TRIGGER_ERROR] = "TriggerError",
        [DECIDE_PARTIAL_ERROR] = "PartialTriggerError",
        [DECIDE_TOO_FEW] = "TooFewReplicas",
        [DECIDE_TOO_MANY] = "TooManyReplicas",
        [DECIDE_UP_LIMIT] = "ScaleUpLimit",
        [DECIDE_DOWN_LIMIT] = "ScaleDownLimit",
        [DECIDE_UP_STABILIZED] = "ScaleUpStabilized",
        [DECIDE_DOWN_STABILIZED] = "ScaleDownStabilized",
        [DECIDE_IDLE] = "ScalerNotActive",
    };
    return names[r];
}

const char *decide_verdict_name(enum decide_verdict v)
{
    return v == VERDICT_KNOWN ? "known" : v == VERDICT_EMPTY ? "empty" : "unknown";
}

/* ---- One sample ---- */

static int64_t divide_up(__int128 a, __int128 b)
{
    __int128 q = (a + b - 1) / b;
    return q > REPLICAS_MAX ? REPLICAS_MAX : (int64_t)q;
}

/* Is usage/full within the tolerance of 1? In millionths, so that nothing is rounded. */
static bool within(const struct decide_config *c, __int128 usage, __int128 full)
{
    return usage * MILLION >= full * (MILLION - c->down.tolerance) &&
           usage * MILLION <= full * (MILLION + c->up.tolerance);
}

int64_t decide_proposal(const struct decide_config *c, const struct decide_sample *sample,
                        int64_t spec, int64_t status, int64_t ready)
{
    __int128 usage = MAX(sample->value, 0), target = MAX(sample->target, 1);
    if (sample->metric == DECIDE_AVERAGE_VALUE) {
        if (status != 0 && within(c, usage, target * status))
            return status;
        return divide_up(usage, target);
    }
    if (spec == 0)
        return divide_up(usage, target);
    if (within(c, usage, target))
        return spec;
    return divide_up(usage * ready, target);
}

bool decide_fallback_value(const struct decide_config *c, const struct decide_sample *sample,
                           int64_t current, int64_t ready, int64_t *ret_value)
{
    if (!c->has_fallback || sample->verdict != VERDICT_UNKNOWN ||
        sample->failures <= c->fallback_threshold)
        return false;
    int64_t wanted = c->fallback_replicas;
    if (c->fallback_behavior == FALLBACK_CURRENT)
        wanted = current;
    else if (c->fallback_behavior == FALLBACK_CURRENT_IF_HIGHER)
        wanted = MAX(current, wanted);
    else if (c->fallback_behavior == FALLBACK_CURRENT_IF_LOWER)
        wanted = MIN(current, wanted);
    if (sample->metric == DECIDE_AVERAGE_VALUE || current == 0) {
        *ret_value = num_mul_sat(sample->target, wanted);
        return true;
    }
    if (ready <= 0)
        return false;
    *ret_value = num_mul_div(sample->target, wanted, ready);
    return true;
}

/* ---- Windows ---- */

static void remove_first(struct decide_record *v, unsigned *n)
{
    memmove(v, v + 1, (--*n) * sizeof(*v));
}

/* Appends to a monotonic queue: newer entries that are at least as extreme make older ones moot. */
static void push_record(struct decide_record *v, unsigned *n, struct decide_record r, bool highs)
{
    while (*n && (highs ? v[*n - 1].replicas <= r.replicas : v[*n - 1].replicas >= r.replicas))
        --*n;
    if (*n == DECIDE_RECORDS_MAX) { /* the oldest is the most extreme: keep its value for longer */
        v[1].replicas = v[0].replicas;
        remove_first(v, n);
    }
    v[(*n)++] = r;
}

static void expire(struct decide_record *v, unsigned *n, int64_t now, int64_t window)
{
    while (*n && now - v[0].at >= window)
        remove_first(v, n);
}

static int64_t down_window(const struct decide_config *c)
{
    return c->has_behavior ? c->down.window : DOWN_WINDOW;
}

static int64_t up_window(const struct decide_config *c)
{
    return c->has_behavior ? c->up.window : 0;
}

void decide_record(const struct decide_config *c, struct decide_state *s, int64_t now,
                   int64_t replicas)
{
    expire(s->highs, &s->n_highs, now, down_window(c));
    expire(s->lows, &s->n_lows, now, up_window(c));
    struct decide_record r = {now, replicas};
    push_record(s->highs, &s->n_highs, r, true);
    push_record(s->lows, &s->n_lows, r, false);
}

/* ---- Rates ---- */

static int64_t change_within(const struct decide_event *v, unsigned n, int64_t now, int64_t period)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        if (now - v[i].at < period)
            sum += v[i].delta;
    return sum;
}

static int64_t period_start(const struct decide_state *s, int64_t now, int64_t current,
                            int64_t period)
{
    return current - change_within(s->ups, s->n_ups, now, period) +
           change_within(s->downs, s->n_downs, now, period);
}

static int64_t up_limit(const struct decide_rules *r, const struct decide_state *s, int64_t now,
                        int64_t current)
{
    if (r->select == SELECT_DISABLED)
        return current;
    int64_t result = r->select == SELECT_MAX ? INT64_MIN : INT64_MAX;
    for (unsigned i = 0; i < r->n_policies; i++) {
        const struct decide_policy *p = &r->policies[i];
        int64_t start = period_start(s, now, current, p->period);
        int64_t limit = p->percent ? divide_up((__int128)MAX(start, 0) * (100 + p->value), 100)
                                   : start + p->value;
        result = r->select == SELECT_MAX ? MAX(result, limit) : MIN(result, limit);
    }
    return MAX(result, current);
}

static int64_t down_limit(const struct decide_rules *r, const struct decide_state *s, int64_t now,
                          int64_t current)
{
    if (r->select == SELECT_DISABLED)
        return current;
    int64_t result = r->select == SELECT_MAX ? INT64_MAX : INT64_MIN;
    for (unsigned i = 0; i < r->n_policies; i++) {
        const struct decide_policy *p = &r->policies[i];
        int64_t start = period_start(s, now, current, p->period);
        int64_t limit =
            p->percent ? (int64_t)((__int128)start * (100 - p->value) / 100) : start - p->value;
        result = r->select == SELECT_MAX ? MIN(result, limit) : MAX(result, limit);
    }
    return MIN(result, current);
}

static void add_event(struct decide_event *v, unsigned *n, int64_t now, int64_t delta,
                      const struct decide_rules *r)
{
    int64_t longest = 0;
    for (unsigned i = 0; i < r->n_policies; i++)
        longest = MAX(longest, r->policies[i].period);
    unsigned keep = 0;
    for (unsigned i = 0; i < *n; i++)
        if (now - v[i].at < longest)
            v[keep++] = v[i];
    *n = keep;
    if (*n == DECIDE_EVENTS_MAX) { /* counted for longer than needed, never for less */
        v[1].delta += v[0].delta;
        memmove(v, v + 1, (--*n) * sizeof(*v));
    }
    v[(*n)++] = (struct decide_event){now, delta};
}

void decide_scaled(const struct decide_config *c, struct decide_state *s, int64_t now, int64_t from,
                   int64_t to)
{
    if (!c->has_behavior || from == to)
        return;
    if (to > from)
        add_event(s->ups, &s->n_ups, now, to - from, &c->up);
    else
        add_event(s->downs, &s->n_downs, now, from - to, &c->down);
}

/* ---- Sizing between one and many ---- */

static int64_t limit_plain(const struct decide_config *c, int64_t current, int64_t desired,
                           enum decide_reason *ret)
{
    int64_t rate = MAX(2 * current, 4);
    if (desired < c->min) {
        *ret = DECIDE_TOO_FEW;
        return c->min;
    }
    if (desired > MIN(c->max, rate)) {
        *ret = rate < c->max ? DECIDE_UP_LIMIT : DECIDE_TOO_MANY;
        return MIN(c->max, rate);
    }
    return desired;
}

static int64_t limit_behavior(const struct decide_config *c, const struct decide_state *s,
                              int64_t now, int64_t current, int64_t desired,
                              enum decide_reason *ret)
{
    if (desired > current) {
        int64_t rate = up_limit(&c->up, s, now, current), most = MIN(rate, c->max);
        if (desired > most) {
            *ret = rate < c->max ? DECIDE_UP_LIMIT : DECIDE_TOO_MANY;
            return most;
        }
    } else if (desired < current) {
        int64_t rate = down_limit(&c->down, s, now, current), least = MAX(rate, c->min);
        if (desired < least) {
            *ret = rate > c->min ? DECIDE_DOWN_LIMIT : DECIDE_TOO_FEW;
            return least;
        }
    }
    return desired;
}

int64_t decide_limit(const struct decide_config *c, struct decide_state *s, int64_t now,
                     int64_t current, int64_t desired, enum decide_reason *ret_reason)
{
    if (!s->n_highs && !s->n_lows)
        decide_record(c, s, now,
                      current); /* as the HPA: what it finds is the first recommendation */
    decide_record(c, s, now, desired);
    int64_t highest = s->highs[0].replicas, lowest = s->lows[0].replicas;
    /* The newest record is `desired` itself, so both hold it whatever the window. */
    int64_t out = c->has_behavior ? MIN(MAX(current, lowest), highest) : highest;
    enum decide_reason reason = DECIDE_WITHIN_RANGE;
    if (out > desired)
        reason = DECIDE_DOWN_STABILIZED;
    else if (out < desired)
        reason = DECIDE_UP_STABILIZED;
    out = c->has_behavior ? limit_behavior(c, s, now, current, out, &reason)
                          : limit_plain(c, current, out, &reason);
    *ret_reason = reason;
    return out;
}

/* ---- Several samples ---- */

/* What the samples say together. */
struct verdicts {
    size_t n_known, n_unknown, n_active, n_fallback;
    int64_t proposal; /* -1: nothing is known */
    const char *active_name, *unknown_name;
};

static void add_proposal(enum decide_combine combine, int64_t p, int64_t *total)
{
    if (*total < 0)
        *total = p;
    else if (combine == COMBINE_SUM)
        *total = MIN(num_add_sat(*total, p), REPLICAS_MAX);
    else if (combine == COMBINE_MIN)
        *total = MIN(*total, p);
    else
        *total = MAX(*total, p);
}

static struct verdicts judge(const struct decide_config *c, const struct decide_input *in)
{
    struct verdicts v = {.proposal = -1};
    for (size_t i = 0; i < in->n_samples; i++) {
        struct decide_sample sample = in->samples[i];
        bool fallback =
            decide_fallback_value(c, &sample, in->spec_replicas, in->ready_replicas, &sample.value);
        if (sample.verdict != VERDICT_KNOWN && !fallback) {
            v.n_unknown++;
            v.unknown_name = v.unknown_name ? v.unknown_name : sample.name;
            continue;
        }
        v.n_known++;
        v.n_fallback += fallback;
        if (fallback || sample.value > sample.activation) {
            v.n_active++;
            v.active_name = v.active_name ? v.active_name : sample.name;
        }
        int64_t p =
            decide_proposal(c, &sample, in->spec_replicas, in->status_replicas, in->ready_replicas);
        /* Pods that are not ready yet must not turn "more than the target" into fewer pods. */
        if (!c->compat_keda && !fallback && sample.metric == DECIDE_VALUE &&
            sample.value > sample.target)
            p = MAX(p, in->spec_replicas);
        add_proposal(c->combine, p, &v.proposal);
    }
    return v;
}

static bool is_active(const struct decide_config *c, const struct verdicts *v, size_t n)
{
    if (c->force_activation)
        return true;
    return c->combine == COMBINE_MAX || c->combine == COMBINE_SUM ? v->n_active > 0
                                                                  : v->n_active == n;
}

/* ---- The decision ---- */

static void say(struct decide_output *out, int64_t replicas, enum decide_reason reason)
{
    out->replicas = replicas;
    out->reason = reason;
}

static int64_t floor_of(const struct decide_config *c)
{
    return MAX(c->min, 1);
}

static void from_zero(const struct decide_config *c, struct decide_state *s,
                      const struct decide_input *in, const struct verdicts *v,
                      struct decide_output *out)
{
    int64_t least = MIN(floor_of(c), c->max);
    /* A person who wrote how fast to scale up gets exactly that: one first, then the policies. */
    bool jump = !c->compat_keda && !c->up.given;
    /* The least of several values is only known when all are. */
    if (v->n_unknown && (c->combine == COMBINE_MIN || c->combine == COMBINE_ALL))
        jump = false;
    int64_t wanted = jump ? MIN(MAX(v->proposal, least), c->max) : least;
    if (jump)
        decide_record(c, s, in->now, wanted);
    say(out, wanted, DECIDE_ACTIVATED);
}

/* Unknown values and what the rest asks for: may the count follow the proposal? */
static bool may_follow(const struct decide_config *c, const struct decide_input *in,
                       const struct verdicts *v)
{
    if (!v->n_unknown)
        return true;
    if (c->combine == COMBINE_MIN || c->combine == COMBINE_ALL)
        return false;
    return v->n_known > 0 && v->proposal >= in->spec_replicas;
}

static void size_up_or_down(const struct decide_config *c, struct decide_state *s,
                            const struct decide_input *in, const struct verdicts *v,
                            struct decide_output *out)
{
    struct decide_config bounded = *c;
    bounded.min = floor_of(c);
    int64_t current = in->spec_replicas;
    if (current > c->max)
        say(out, c->max, DECIDE_TOO_MANY);
    else if (current < bounded.min)
        say(out, bounded.min, DECIDE_TOO_FEW);
    else if (!may_follow(c, in, v))
        say(out, current, v->n_known ? DECIDE_PARTIAL_ERROR : DECIDE_TRIGGER_ERROR);
    else {
        enum decide_reason reason;
        int64_t wanted = decide_limit(&bounded, s, in->now, current, v->proposal, &reason);
        if (v->n_unknown && wanted < current) { /* a window may still lower it; the law says hold */
            wanted = current;
            reason = DECIDE_PARTIAL_ERROR;
        }
        say(out, wanted, reason);
    }
}

static bool cooled(const struct decide_config *c, const struct decide_state *s, int64_t now)
{
    if (s->last_active)
        return num_add_sat(s->last_active, c->cooldown) < now;
    return num_add_sat(s->since, c->initial_cooldown) < now;
}

static void inactive(const struct decide_config *c, struct decide_state *s,
                     const struct decide_input *in, const struct verdicts *v,
                     struct decide_output *out)
{
    int64_t current = in->spec_replicas;
    int64_t rest = c->idle >= 0 ? c->idle : c->min;
    if (v->n_unknown) {
        if (current < c->min && c->idle < 0 && !c->compat_keda)
            say(out, c->min, DECIDE_TOO_FEW);
        else if (current > c->max)
            say(out, c->max, DECIDE_TOO_MANY);
        else
            say(out, current, v->n_known ? DECIDE_PARTIAL_ERROR : DECIDE_TRIGGER_ERROR);
        return;
    }
    if (current < rest) {
        say(out, rest, DECIDE_TOO_FEW);
        return;
    }
    if (current == rest && (c->idle >= 0 || current == 0)) {
        say(out, current, DECIDE_IDLE);
        return;
    }
    if (c->idle < 0 && c->min > 0) {
        size_up_or_down(c, s, in, v, out);
        return;
    }
    if (cooled(c, s, in->now)) {
        say(out, rest, DECIDE_DEACTIVATED);
        return;
    }
    size_up_or_down(c, s, in, v, out);
    if (out->replicas == current)
        out->reason = DECIDE_COOLDOWN;
}

static void pause_directions(const struct decide_config *c, const struct decide_input *in,
                             struct decide_output *out)
{
    if ((c->paused_in && out->replicas < in->spec_replicas) ||
        (c->paused_out && out->replicas > in->spec_replicas))
        say(out, in->spec_replicas, DECIDE_PAUSED);
}

static void explain(const struct decide_input *in, const struct verdicts *v,
                    struct decide_output *out)
{
    char unknown[160] = "";
    if (v->n_unknown)
        snprintf(unknown, sizeof(unknown), "; %zu of %zu values unknown, first %.80s", v->n_unknown,
                 in->n_samples, v->unknown_name ? v->unknown_name : "?");
    if (out->replicas == in->spec_replicas)
        snprintf(out->text, sizeof(out->text), "%s: keeps %lld replicas%s",
                 decide_reason_name(out->reason), (long long)in->spec_replicas, unknown);
    else
        snprintf(out->text, sizeof(out->text), "%s: %lld to %lld replicas%s%.80s%s",
                 decide_reason_name(out->reason), (long long)in->spec_replicas,
                 (long long)out->replicas, v->active_name ? ", active: " : "",
                 v->active_name ? v->active_name : "", unknown);
}

void decide(const struct decide_config *c, struct decide_state *s, const struct decide_input *in,
            struct decide_output *ret)
{
    assert(in->n_samples >= 1 && in->n_samples <= DECIDE_SAMPLES_MAX);
    *ret = (struct decide_output){.replicas = in->spec_replicas};
    struct verdicts v = judge(c, in);
    ret->proposal = v.proposal;
    ret->fallback = v.n_fallback > 0;
    ret->n_unknown = v.n_unknown;
    ret->active = is_active(c, &v, in->n_samples);
    if (!s->since)
        s->since = in->now;
    if (ret->active)
        s->last_active = in->now;

    if (c->paused_replicas >= 0)
        say(ret, c->paused_replicas, DECIDE_PAUSED);
    else if (c->paused)
        say(ret, in->spec_replicas, DECIDE_PAUSED);
    else if (!ret->active)
        inactive(c, s, in, &v, ret);
    else if (in->spec_replicas == 0 || (c->idle >= 0 && in->spec_replicas < c->min))
        from_zero(c, s, in, &v, ret);
    else
        size_up_or_down(c, s, in, &v, ret);
    if (ret->reason != DECIDE_PAUSED)
        pause_directions(c, in, ret);
    explain(in, &v, ret);
}
