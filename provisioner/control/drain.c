/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/drain.h"

#include "base/num.h"

static const struct taint disrupted = {.key = TAINT_DISRUPTED, .effect = TAINT_NO_SCHEDULE};

static bool is_disrupted(const struct node *n)
{
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, TAINT_DISRUPTED) == 0 &&
            n->taints[i].effect == TAINT_NO_SCHEDULE)
            return true;
    return false;
}

bool drain_moves_pod(const struct pod *p)
{
    if (pod_is_terminal(p) || pod_is_mirror(p))
        return false;
    for (uint32_t i = 0; i < p->spec.n_tolerations; i++)
        if (toleration_tolerates(&p->spec.tolerations[i], &disrupted))
            return false;
    return true;
}

bool drain_protects_pod(const struct pod *p, int64_t now)
{
    const char *v = labels_get(&p->obj.meta.annotations, ANNOTATION_DO_NOT_DISRUPT);
    int64_t grace;

    if (!v || strcmp(v, "true") == 0)
        return v != NULL;
    return time_parse_duration(str_from(v), &grace, NULL) == 0 && grace > 0 &&
           now < num_add_sat(p->start_time ? p->start_time : p->obj.meta.creation, grace);
}

unsigned drain_tier(const struct pod *p)
{
    const char *class = p->spec.priority_class;
    bool critical = class && (strcmp(class, "system-cluster-critical") == 0 ||
                              strcmp(class, "system-node-critical") == 0);

    return (critical ? 2u : 0u) + (pod_is_daemon(p) ? 1u : 0u);
}

int64_t drain_deadline(const struct nodeclaim *c)
{
    const char *text = labels_get(&c->obj.meta.annotations, ANNOTATION_TERMINATION_TIMESTAMP);
    int64_t t;

    if (!text || time_parse_rfc3339(str_from(text), &t, NULL) < 0)
        return TIME_NEVER;
    return t;
}

static bool stuck(const struct pod *p, int64_t now)
{
    return pod_is_terminating(p) && now > num_add_sat(p->obj.meta.deletion, DRAIN_STUCK);
}

static void want(struct drain_step *s, const char *type, enum condition_status status,
                 const char *reason, const char *message)
{
    s->conditions[s->n_conditions++] =
        (struct wanted_condition){type, status, reason ? reason : type, message ? message : ""};
}

static void add_pod(struct drain_step *s, const struct pod *p, int64_t grace_s)
{
    if (s->n_pods < DRAIN_PODS_MAX)
        s->pods[s->n_pods++] = (struct drain_pod){p, grace_s};
}

/* Pods whose own grace period no longer fits before the deadline, in any tier, go now and for sure.
 */
static void force_late_pods(const struct drain_view *v, int64_t deadline, int64_t now,
                            struct drain_step *s)
{
    for (size_t i = 0; i < v->n_pods && deadline != TIME_NEVER; i++) {
        const struct pod *p = v->pods[i];
        int64_t left = (deadline - now) / NS_PER_S,
                ends = num_add_sat(now, num_mul_sat(p->spec.grace_s, NS_PER_S));

        if (!drain_moves_pod(p) || stuck(p, now))
            continue;
        if (!pod_is_terminating(p)) {
            if (ends >= deadline)
                add_pod(s, p, MIN(MAX(left, 1), MAX(p->spec.grace_s, 1)));
            else
                s->at = MIN(s->at, deadline - num_mul_sat(p->spec.grace_s, NS_PER_S));
        } else if (p->obj.meta.deletion > deadline) {
            add_pod(s, p, MAX(left, 1));
        }
    }
}

/* False while pods remain that have to leave. */
static bool drained(const struct drain_view *v, int64_t deadline, int64_t now, struct drain_step *s)
{
    unsigned tier = 4;
    size_t left = 0, forced;

    for (size_t i = 0; i < v->n_pods; i++)
        if (drain_moves_pod(v->pods[i]) && !stuck(v->pods[i], now)) {
            tier = MIN(tier, drain_tier(v->pods[i]));
            left++;
        }
    if (left == 0)
        return true;
    force_late_pods(v, deadline, now, s);
    forced = s->n_pods;
    for (size_t i = 0; i < v->n_pods; i++) {
        const struct pod *p = v->pods[i];
        bool taken = false;

        if (!drain_moves_pod(p) || stuck(p, now))
            continue;
        if (pod_is_terminating(p))
            s->at = MIN(s->at, num_add_sat(p->obj.meta.deletion, DRAIN_STUCK + NS_PER_S));
        for (size_t j = 0; j < forced; j++)
            taken |= s->pods[j].pod == p;
        if (taken || drain_tier(p) != tier || pod_is_terminating(p))
            continue;
        if (drain_protects_pod(p, now))
            s->at = MIN(s->at, now + 10 * NS_PER_S);
        else
            add_pod(s, p, -1);
    }
    snprintf(s->message, sizeof(s->message), "%zu pods have still to leave", left);
    return false;
}

/* Attachments of pods that were never asked to leave do not count: they would wait for ever. */
static size_t attachments_to_wait_for(const struct drain_view *v)
{
    size_t stay = 0, n = 0;

    for (size_t i = 0; i < v->n_pods; i++) {
        const struct pod *p = v->pods[i];

        if (drain_moves_pod(p) || pod_is_terminal(p))
            continue;
        for (uint32_t j = 0; j < p->spec.n_volumes; j++)
            stay += p->spec.volumes[j].pvc || p->spec.volumes[j].ephemeral;
    }
    for (size_t i = 0; i < v->n_attachments; i++)
        n += v->attachments[i]->obj.meta.deletion == 0 || v->attachments[i]->attached;
    return n > stay ? n - stay : 0;
}

/* True when the instance may be terminated. */
static bool node_is_free(const struct drain_view *v, int64_t deadline, int64_t now,
                         struct drain_step *s)
{
    size_t volumes;

    if (!drained(v, deadline, now, s)) {
        want(s, CONDITION_DRAINED, CONDITION_UNKNOWN, "Draining", s->message);
        s->verb = s->n_pods > 0 ? DRAIN_EVICT : DRAIN_WAIT;
        return false;
    }
    if (now < v->drain_started + DRAIN_LEAST) {
        s->at = MIN(s->at, v->drain_started + DRAIN_LEAST);
        return false;
    }
    want(s, CONDITION_DRAINED, CONDITION_TRUE, NULL, NULL);
    volumes = attachments_to_wait_for(v);
    if (volumes > 0 && now < deadline) {
        snprintf(s->message, sizeof(s->message), "%zu volumes are still attached", volumes);
        want(s, CONDITION_VOLUMES_DETACHED, CONDITION_UNKNOWN, "AwaitingVolumeDetachment",
             s->message);
        s->at = MIN(s->at, deadline);
        return false;
    }
    if (volumes > 0)
        want(s, CONDITION_VOLUMES_DETACHED, CONDITION_FALSE, "TerminationGracePeriodElapsed", NULL);
    else
        want(s, CONDITION_VOLUMES_DETACHED, CONDITION_TRUE, NULL, NULL);
    return true;
}

static void step_node(const struct drain_view *v, int64_t now, struct drain_step *s)
{
    const struct node *n = v->node;
    int64_t deadline = drain_deadline(v->claim);

    /* The machine is gone and nobody serves its pods: there is nothing left to be gentle with. */
    if (v->instance == INSTANCE_GONE && !node_is_ready(n)) {
        s->verb = meta_has_finalizer(&n->obj.meta, FINALIZER_TERMINATION) ? DRAIN_RELEASE_NODE
                  : n->obj.meta.deletion == 0                             ? DRAIN_DELETE_NODE
                                                                          : DRAIN_WAIT;
        if (s->verb == DRAIN_RELEASE_NODE && n->obj.meta.deletion == 0)
            s->verb = DRAIN_DELETE_NODE;
    } else if (!is_disrupted(n) || !labels_has(&n->obj.meta.labels, LABEL_EXCLUDE_BALANCERS)) {
        s->verb = DRAIN_TAINT;
    } else if (n->obj.meta.deletion == 0) {
        s->verb = DRAIN_DELETE_NODE;
    } else if (v->drain_started == 0 || !node_is_free(v, deadline, now, s)) {
        if (v->drain_started == 0)
            s->at = now;
    } else if (v->instance == INSTANCE_LIVES) {
        s->verb = DRAIN_TERMINATE;
    } else if (meta_has_finalizer(&n->obj.meta, FINALIZER_TERMINATION)) {
        s->verb = DRAIN_RELEASE_NODE;
    }
}

void drain_step(const struct drain_view *v, int64_t now, struct drain_step *ret)
{
    const struct nodeclaim *c = v->claim;

    memset(ret, 0, sizeof(*ret));
    ret->verb = DRAIN_WAIT;
    ret->at = TIME_NEVER;
    if (!meta_has_finalizer(&c->obj.meta, FINALIZER_TERMINATION))
        return;
    if (c->spec.termination_grace >= 0 && drain_deadline(c) == TIME_NEVER) {
        ret->verb = DRAIN_STAMP;
        ret->deadline = num_add_sat(c->obj.meta.deletion, c->spec.termination_grace);
    } else if (v->instance == INSTANCE_UNRESOLVED) {
        ret->verb = DRAIN_RESOLVE;
    } else if (v->node) {
        step_node(v, now, ret);
    } else if (v->instance == INSTANCE_LIVES) {
        ret->verb = DRAIN_TERMINATE;
    } else {
        ret->verb = DRAIN_RELEASE_CLAIM;
    }
}
