/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The life of a NodeClaim as a table: what is seen and when, and the one thing to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "provisioner/control/lifecycle.h"

#define MINUTE NS_PER_MIN

/* Everything happened at 10:00 unless a row says otherwise. */
#define META                                                                                       \
    "\"metadata\":{\"name\":\"c\",\"uid\":\"u\",\"creationTimestamp\":\"2026-01-01T10:00:00Z\","   \
    "\"finalizers\":[\"karpenter.sh/termination\"]"
#define SPEC                                                                                       \
    "\"spec\":{\"expireAfter\":\"2h\",\"nodeClassRef\":{\"group\":\"g\",\"kind\":\"k\",\"name\":"  \
    "\"n\"},"                                                                                      \
    "\"startupTaints\":[{\"key\":\"agents\",\"effect\":\"NoSchedule\"}],"                          \
    "\"resources\":{\"requests\":{\"cpu\":\"1\",\"nvidia.com/gpu\":\"1\"}}}"
#define IS(type)                                                                                   \
    "{\"type\":\"" type "\",\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T10:00:00Z\"}"
#define TOKEN ",\"annotations\":{\"weft.sh/launch-token\":\"t\"}"
#define STATUS(conditions) ",\"status\":{\"providerID\":\"p\",\"conditions\":[" conditions "]}"

#define READY "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]"
#define GPU "\"allocatable\":{\"cpu\":\"3\",\"nvidia.com/gpu\":\"1\"}"
#define NODE(labels, taints, status)                                                               \
    "{\"metadata\":{\"name\":\"n\",\"labels\":{" labels                                            \
    "},\"finalizers\":[\"karpenter.sh/termination\"],"                                             \
    "\"ownerReferences\":[{\"apiVersion\":\"karpenter.sh/"                                         \
    "v1\",\"kind\":\"NodeClaim\",\"name\":\"c\",\"uid\":\"u\"}]},"                                 \
    "\"spec\":{\"providerID\":\"p\",\"taints\":[" taints "]},\"status\":{" status "}}"
#define REGISTERED "\"karpenter.sh/registered\":\"true\""
#define INITIALIZED REGISTERED ",\"karpenter.sh/initialized\":\"true\""

static const struct row {
    const char *what, *claim, *node;
    int64_t after; /* 10:00 */
    enum lifecycle_verb verb;
    const char *reason;              /* DELETE */
    const char *condition, *because; /* a wanted condition and its reason */
    int64_t at;                      /* WAIT: after 10:00; -1: not checked */
} rows[] = {
    {"no finalizer",
     "{\"metadata\":{\"name\":\"c\",\"uid\":\"u\",\"creationTimestamp\":\"2026-01-01T10:00:00Z\"}"
     "," SPEC "}",
     NULL, 0, LIFECYCLE_FINALIZER, NULL, NULL, NULL, -1},
    {"new", "{" META "}," SPEC "}", NULL, 0, LIFECYCLE_ATTEMPT, NULL, "Launched", "AwaitingLaunch",
     -1},
    {"written ahead", "{" META TOKEN "}," SPEC "}", NULL, 0, LIFECYCLE_LAUNCH, NULL, NULL, NULL,
     -1},
    {"just within the launch deadline", "{" META TOKEN "}," SPEC "}", NULL, 5 * MINUTE - 1,
     LIFECYCLE_LAUNCH, NULL, NULL, NULL, -1},
    {"never launched", "{" META TOKEN "}," SPEC "}", NULL, 5 * MINUTE, LIFECYCLE_DELETE,
     "LaunchTimeout", NULL, NULL, -1},
    {"an instance that is not stated yet", "{" META TOKEN "}," SPEC STATUS("") "}", NULL, 0,
     LIFECYCLE_WAIT, NULL, "Launched", "Launched", 0},
    {"no node", "{" META "}," SPEC STATUS(IS("Launched")) "}", NULL, MINUTE, LIFECYCLE_WAIT, NULL,
     "Registered", "NodeNotFound", 15 * MINUTE},
    {"never registered", "{" META "}," SPEC STATUS(IS("Launched")) "}", NULL, 15 * MINUTE,
     LIFECYCLE_DELETE, "RegistrationTimeout", "Registered", "NodeNotFound", -1},
    {"a bare node", "{" META "}," SPEC STATUS(IS("Launched")) "}",
     NODE("", "{\"key\":\"karpenter.sh/unregistered\",\"effect\":\"NoExecute\"}", GPU), MINUTE,
     LIFECYCLE_REGISTER, NULL, NULL, NULL, -1},
    {"the taint is left", "{" META "}," SPEC STATUS(IS("Launched")) "}",
     NODE(REGISTERED, "{\"key\":\"karpenter.sh/unregistered\",\"effect\":\"NoExecute\"}", GPU),
     MINUTE, LIFECYCLE_REGISTER, NULL, NULL, NULL, -1},
    {"synced, not stated", "{" META "}," SPEC STATUS(IS("Launched")) "}", NODE(REGISTERED, "", GPU),
     MINUTE, LIFECYCLE_WAIT, NULL, "Registered", "Registered", MINUTE},
    {"not ready", "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered")) "}",
     NODE(REGISTERED, "", GPU), MINUTE, LIFECYCLE_WAIT, NULL, "Initialized", "NodeNotReady",
     15 * MINUTE},
    {"startup taint", "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered")) "}",
     NODE(REGISTERED, "{\"key\":\"agents\",\"effect\":\"NoSchedule\"}", READY "," GPU), MINUTE,
     LIFECYCLE_WAIT, NULL, "Initialized", "StartupTaintsExist", 15 * MINUTE},
    {"ephemeral taint", "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered")) "}",
     NODE(REGISTERED, "{\"key\":\"readiness.k8s.io/net\",\"effect\":\"NoSchedule\"}",
          READY "," GPU),
     MINUTE, LIFECYCLE_WAIT, NULL, "Initialized", "KnownEphemeralTaintsExist", 15 * MINUTE},
    {"no device", "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered")) "}",
     NODE(REGISTERED, "", READY ",\"allocatable\":{\"cpu\":\"3\"}"), MINUTE, LIFECYCLE_WAIT, NULL,
     "Initialized", "ResourceNotRegistered", 15 * MINUTE},
    {"the device never came", "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered")) "}",
     NODE(REGISTERED, "", READY ",\"allocatable\":{\"cpu\":\"3\",\"nvidia.com/gpu\":\"0\"}"),
     15 * MINUTE, LIFECYCLE_DELETE, "InitializationTimeout", "Initialized", "ResourceNotRegistered",
     -1},
    {"all there", "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered")) "}",
     NODE(REGISTERED, "", READY "," GPU), MINUTE, LIFECYCLE_INITIALIZE, NULL, NULL, NULL, -1},
    {"labelled, not stated", "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered")) "}",
     NODE(INITIALIZED, "", READY "," GPU), MINUTE, LIFECYCLE_WAIT, NULL, "Ready", "Ready", -1},
    {"running",
     "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered") "," IS("Initialized")) "}",
     NODE(INITIALIZED, "", READY "," GPU), MINUTE, LIFECYCLE_WAIT, NULL, "Ready", "Ready",
     120 * MINUTE},
    {"running, not ready for a moment",
     "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered") "," IS("Initialized")) "}",
     NODE(INITIALIZED, "", GPU), 60 * MINUTE, LIFECYCLE_WAIT, NULL, "Initialized", "Initialized",
     -1},
    {"expired",
     "{" META "}," SPEC STATUS(IS("Launched") "," IS("Registered") "," IS("Initialized")) "}",
     NODE(INITIALIZED, "", READY "," GPU), 120 * MINUTE, LIFECYCLE_DELETE, "Expired", NULL, NULL,
     -1},
};

static const struct lifecycle_options options = {5 * MINUTE, 15 * MINUTE, 15 * MINUTE};

static void run_row(const struct row *r)
{
    struct err err = ERR_INIT;
    struct object *claim = object_decode(&kind_nodeclaim, str_from(r->claim), NULL, &err);
    struct object *node = r->node ? object_decode(&kind_node, str_from(r->node), NULL, &err) : NULL;
    struct lifecycle_view v = {0};
    struct lifecycle_step s;
    int64_t ten;
    bool found = !r->condition;

    if (!claim || (r->node && !node))
        fail_msg("%s: %s", r->what, err.msg);
    v.claim = nodeclaim_of(claim);
    v.node = node ? node_of(node) : NULL;
    ten = claim->meta.creation;
    lifecycle_step(&v, &options, ten + r->after, &s);
    if (s.verb != r->verb)
        fail_msg("%s: verb %d, expected %d", r->what, (int)s.verb, (int)r->verb);
    if (r->reason && strcmp(s.reason, r->reason) != 0)
        fail_msg("%s: reason %s, expected %s", r->what, s.reason, r->reason);
    if (r->at >= 0 && s.at != ten + r->at)
        fail_msg("%s: at %lld ns, expected %lld", r->what, (long long)(s.at - ten),
                 (long long)r->at);
    for (unsigned i = 0; i < s.n_conditions && r->condition; i++)
        if (strcmp(s.conditions[i].type, r->condition) == 0) {
            if (strcmp(s.conditions[i].reason, r->because) != 0)
                fail_msg("%s: %s because %s, expected %s", r->what, r->condition,
                         s.conditions[i].reason, r->because);
            found = true;
        }
    if (!found)
        fail_msg("%s: no condition %s", r->what, r->condition);
    object_unref(claim);
    object_unref(node);
}

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        run_row(&rows[i]);
}

static void two_nodes_of_one_machine(void **state)
{
    struct object *claim = object_decode(
        &kind_nodeclaim, str_from("{" META "}," SPEC STATUS(IS("Launched")) "}"), NULL, NULL);
    struct object *node = object_decode(&kind_node, str_from(NODE("", "", "")), NULL, NULL);
    struct lifecycle_view v = {nodeclaim_of(claim), node_of(node), true, NULL, NULL};
    struct lifecycle_step s;

    (void)state;
    lifecycle_step(&v, &options, claim->meta.creation, &s);
    assert_int_equal(s.verb, LIFECYCLE_WAIT);
    assert_string_equal(s.conditions[1].reason, "MultipleNodesFound");
    assert_int_equal(s.conditions[1].status, CONDITION_FALSE);
    object_unref(claim);
    object_unref(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row),
                                       cmocka_unit_test(two_nodes_of_one_machine)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
