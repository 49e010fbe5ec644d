/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/lifecycle.h"

#include "base/num.h"

bool taint_is_ephemeral(const struct taint *t)
{
    static const struct {
        const char *key;
        enum taint_effect effect; /* ANY_EFFECT: whatever its effect */
    } known[] = {
        {"node.kubernetes.io/not-ready", TAINT_NO_SCHEDULE},
        {"node.kubernetes.io/not-ready", TAINT_NO_EXECUTE},
        {"node.kubernetes.io/unreachable", TAINT_NO_SCHEDULE},
        {"node.cloudprovider.kubernetes.io/uninitialized", TAINT_ANY_EFFECT},
        {TAINT_UNREGISTERED, TAINT_ANY_EFFECT},
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(t->key, known[i].key) == 0 &&
            (known[i].effect == TAINT_ANY_EFFECT || known[i].effect == t->effect))
            return true;
    return str_has_prefix(str_from(t->key), STR("readiness.k8s.io/"));
}

static bool label_is(const struct labels *l, const char *key, const char *value)
{
    const char *v = labels_get(l, key);

    return v && strcmp(v, value) == 0;
}

static bool owned_by(const struct node *n, const struct nodeclaim *c)
{
    for (uint32_t i = 0; i < n->obj.meta.n_owners; i++)
        if (n->obj.meta.owners[i].uid && strcmp(n->obj.meta.owners[i].uid, c->obj.meta.uid) == 0)
            return true;
    return false;
}

bool lifecycle_node_unsynced(const struct nodeclaim *c, const struct node *n)
{
    const struct meta *m = &n->obj.meta;

    for (uint32_t i = 0; i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, TAINT_UNREGISTERED) == 0)
            return true;
    return !label_is(&m->labels, LABEL_REGISTERED, "true") ||
           !meta_has_finalizer(m, FINALIZER_TERMINATION) || !owned_by(n, c);
}

static int64_t since(const struct nodeclaim *c, const char *type)
{
    const struct condition *cond = condition_find(&c->conditions, type);

    return cond && cond->last_transition ? cond->last_transition : c->obj.meta.creation;
}

static void want(struct lifecycle_step *s, const char *type, enum condition_status status,
                 const char *reason, const char *message)
{
    s->conditions[s->n_conditions++] =
        (struct wanted_condition){type, status, reason ? reason : type, message ? message : ""};
}

static void wait_until(struct lifecycle_step *s, int64_t at)
{
    s->verb = LIFECYCLE_WAIT;
    s->at = at;
}

static void give_up(struct lifecycle_step *s, const char *reason, const char *what, int64_t after)
{
    char d[40];

    s->verb = LIFECYCLE_DELETE;
    s->reason = reason;
    snprintf(s->message, sizeof(s->message), "%s within %s", what,
             time_format_duration(d, after).p);
}

/* What keeps the node from being initialised, or NULL. The texts are Karpenter's reasons. */
static const char *not_initialised(const struct nodeclaim *c, const struct node *n,
                                   struct lifecycle_step *s)
{
    if (!node_is_ready(n)) {
        snprintf(s->message, sizeof(s->message), "the node is not Ready");
        return "NodeNotReady";
    }
    for (uint32_t i = 0; i < c->spec.n_startup_taints; i++)
        for (uint32_t j = 0; j < n->n_taints; j++)
            if (strcmp(n->taints[j].key, c->spec.startup_taints[i].key) == 0 &&
                n->taints[j].effect == c->spec.startup_taints[i].effect) {
                snprintf(s->message, sizeof(s->message), "startup taint %.200s is still there",
                         n->taints[j].key);
                return "StartupTaintsExist";
            }
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (taint_is_ephemeral(&n->taints[i])) {
            snprintf(s->message, sizeof(s->message), "taint %.200s is still there",
                     n->taints[i].key);
            return "KnownEphemeralTaintsExist";
        }
    for (uint32_t i = 0; i < c->requests.n; i++)
        if (c->requests.v[i].amount > 0 &&
            resource_list_get(&n->allocatable, c->requests.v[i].name) <= 0) {
            snprintf(s->message, sizeof(s->message), "resource %.200s is requested and not there",
                     c->requests.v[i].name);
            return "ResourceNotRegistered";
        }
    return NULL;
}

static void step_launch(const struct lifecycle_view *v, const struct lifecycle_options *o,
                        int64_t now, struct lifecycle_step *s)
{
    const struct meta *m = &v->claim->obj.meta;
    int64_t deadline = num_add_sat(m->creation, o->launch_deadline);

    want(s, CONDITION_LAUNCHED, CONDITION_UNKNOWN,
         v->launch_reason ? v->launch_reason : "AwaitingLaunch", v->launch_message);
    want(s, CONDITION_REGISTERED, CONDITION_UNKNOWN, "AwaitingLaunch", NULL);
    want(s, CONDITION_INITIALIZED, CONDITION_UNKNOWN, "AwaitingLaunch", NULL);
    want(s, CONDITION_READY, CONDITION_UNKNOWN, "AwaitingLaunch", NULL);
    if (now >= deadline)
        give_up(s, "LaunchTimeout", "the cloud did not start an instance", o->launch_deadline);
    else if (!labels_has(&m->annotations, ANNOTATION_LAUNCH_TOKEN))
        s->verb = LIFECYCLE_ATTEMPT;
    else
        s->verb = LIFECYCLE_LAUNCH;
}

static void step_register(const struct lifecycle_view *v, const struct lifecycle_options *o,
                          int64_t now, struct lifecycle_step *s)
{
    int64_t deadline = num_add_sat(since(v->claim, CONDITION_LAUNCHED), o->registration_deadline);

    if (v->node && !v->several_nodes) {
        s->verb = LIFECYCLE_REGISTER;
        return;
    }
    if (v->several_nodes)
        want(s, CONDITION_REGISTERED, CONDITION_FALSE, "MultipleNodesFound",
             "several Nodes have this provider id");
    else
        want(s, CONDITION_REGISTERED, CONDITION_UNKNOWN, "NodeNotFound",
             "no Node has this provider id yet");
    want(s, CONDITION_INITIALIZED, CONDITION_UNKNOWN, "AwaitingRegistration", NULL);
    want(s, CONDITION_READY, CONDITION_UNKNOWN, "AwaitingRegistration", NULL);
    if (now >= deadline)
        give_up(s, "RegistrationTimeout", "no Node registered", o->registration_deadline);
    else
        wait_until(s, deadline);
}

static void step_initialize(const struct lifecycle_view *v, const struct lifecycle_options *o,
                            int64_t now, struct lifecycle_step *s)
{
    int64_t deadline =
        num_add_sat(since(v->claim, CONDITION_REGISTERED), o->initialization_deadline);
    const char *reason = "NodeNotFound";

    want(s, CONDITION_REGISTERED, CONDITION_TRUE, NULL, NULL);
    if (!v->node)
        snprintf(s->message, sizeof(s->message), "the Node is gone");
    else
        reason = not_initialised(v->claim, v->node, s);
    if (!reason) {
        if (!label_is(&v->node->obj.meta.labels, LABEL_INITIALIZED, "true")) {
            s->verb = LIFECYCLE_INITIALIZE;
            return;
        }
        want(s, CONDITION_INITIALIZED, CONDITION_TRUE, NULL, NULL);
        want(s, CONDITION_READY, CONDITION_TRUE, NULL, NULL);
        wait_until(s, TIME_NEVER);
        return;
    }
    want(s, CONDITION_INITIALIZED, CONDITION_UNKNOWN, reason, s->message);
    want(s, CONDITION_READY, CONDITION_UNKNOWN, reason, s->message);
    if (now < deadline) {
        wait_until(s, deadline);
        return;
    }
    char why[sizeof(s->message)], d[40];
    snprintf(why, sizeof(why), "%s", s->message);
    snprintf(s->message, sizeof(s->message), "not initialised within %s: %.150s",
             time_format_duration(d, o->initialization_deadline).p, why);
    s->verb = LIFECYCLE_DELETE;
    s->reason = "InitializationTimeout";
}

void lifecycle_step(const struct lifecycle_view *v, const struct lifecycle_options *o, int64_t now,
                    struct lifecycle_step *ret)
{
    const struct nodeclaim *c = v->claim;
    int64_t expiry = num_add_sat(c->obj.meta.creation, c->spec.expire_after);

    memset(ret, 0, sizeof(*ret));
    ret->at = TIME_NEVER;
    if (!meta_has_finalizer(&c->obj.meta, FINALIZER_TERMINATION)) {
        ret->verb = LIFECYCLE_FINALIZER;
        return;
    }
    if (c->spec.expire_after > 0 && now >= expiry) {
        give_up(ret, "Expired", "lived its expireAfter: replaced", c->spec.expire_after);
        return;
    }
    if (!c->provider_id || !c->provider_id[0]) {
        step_launch(v, o, now, ret);
        return;
    }
    want(ret, CONDITION_LAUNCHED, CONDITION_TRUE, NULL, NULL);
    if (!condition_is(&c->conditions, CONDITION_LAUNCHED, CONDITION_TRUE))
        wait_until(ret, now); /* foreign claims: state what is so, then look again */
    else if (!condition_is(&c->conditions, CONDITION_REGISTERED, CONDITION_TRUE) &&
             !(v->node && !v->several_nodes && !lifecycle_node_unsynced(c, v->node)))
        step_register(v, o, now, ret);
    else if (!condition_is(&c->conditions, CONDITION_REGISTERED, CONDITION_TRUE)) {
        want(ret, CONDITION_REGISTERED, CONDITION_TRUE, NULL, NULL);
        wait_until(ret, now);
    } else if (!condition_is(&c->conditions, CONDITION_INITIALIZED, CONDITION_TRUE))
        step_initialize(v, o, now, ret);
    else {
        want(ret, CONDITION_REGISTERED, CONDITION_TRUE, NULL, NULL);
        want(ret, CONDITION_INITIALIZED, CONDITION_TRUE, NULL, NULL);
        want(ret, CONDITION_READY, CONDITION_TRUE, NULL, NULL);
    }
    if (ret->verb == LIFECYCLE_WAIT && c->spec.expire_after > 0)
        ret->at = MIN(ret->at, expiry);
}
