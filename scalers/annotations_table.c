/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Every weft.sh/ annotation that has a meaning: one array for the parser and for the reference. */
#include "scalers/annotations.h"

static const struct annotation_doc table[] = {
    {"triggers",
     "YAML or JSON list of KEDA triggers, one trigger, or a map with the key `triggers`", "",
     "What to scale by. Each item: `type`, `metadata`, and optionally `name`, `metricType` "
     "(AverageValue or Value), "
     "`useCachedMetrics`, `authenticationRef`. Removing it ends the management; replicas stay.",
     true},
    {"spec", "YAML of a whole ScaledObject `spec`", "",
     "Instead of `triggers` and the keys below, except the pause keys. `scaleTargetRef` must name "
     "this workload or be absent.",
     true},
    {"min-replicas", "whole number", "0",
     "Least count while any trigger is active, and the resting count when it is above 0.", true},
    {"max-replicas", "whole number", "100", "Greatest count.", true},
    {"idle-replicas", "whole number below min-replicas", "unset",
     "Resting count while no trigger is active.", true},
    {"polling-interval", "seconds, or 30s, 5m", "10s (30s with `spec`)",
     "How often each trigger is asked.", true},
    {"cooldown-period", "seconds, or 30s, 5m", "300s",
     "How long no trigger may be active before the count falls to idle or zero.", true},
    {"initial-cooldown-period", "seconds, or 30s, 5m", "0s",
     "Grace after weft began to manage the workload, while no trigger was ever active.", true},
    {"behavior", "YAML of autoscaling/v2 `behavior`", "as the HorizontalPodAutoscaler",
     "`scaleUp` and `scaleDown` with `policies`, `selectPolicy`, `stabilizationWindowSeconds`, "
     "`tolerance`.",
     true},
    {"fallback", "YAML `{failureThreshold, replicas, behavior}`", "unset: hold",
     "What to do when a trigger failed more than `failureThreshold` times in a row. `behavior`: "
     "static, currentReplicas, "
     "currentReplicasIfHigher, currentReplicasIfLower.",
     true},
    {"scaling-modifiers", "YAML `{formula, target, activationTarget, metricType}`", "unset",
     "One value computed from several triggers.", true},
    {"combine", "max, min, sum or all", "max",
     "How several triggers make one count. min and all are active only when every trigger is; all "
     "then takes the greatest.",
     true},
    {"auth", "YAML map: name to a TriggerAuthentication spec", "unset",
     "Where `authenticationRef` finds its parameters without a custom resource: `secretTargetRef`, "
     "`configMapTargetRef`, `env`.",
     true},
    {"paused", "true or false", "false",
     "Keeps the count as it is. A value that is no boolean counts as true.", true},
    {"paused-replicas", "whole number", "unset", "Sets this count and keeps it.", true},
    {"paused-scale-in", "true or false", "false", "Never lowers the count.", true},
    {"paused-scale-out", "true or false", "false", "Never raises the count.", true},
    {"force-activation", "true or false", "false", "Counts as active whatever the triggers say.",
     true},
    {"class", "weft, keda or none", "weft",
     "Who scales this workload. Anything but weft leaves it alone.", true},
    {"take-over", "true or false", "false",
     "Manage the workload although a HorizontalPodAutoscaler or ScaledObject targets it.", true},
    {"restore-original", "true or false", "false",
     "When the triggers are removed, set the count found at the beginning.", true},
    {"compat", "weft or keda", "weft",
     "keda: answer exactly as KEDA with a HorizontalPodAutoscaler, also where weft would do "
     "better.",
     true},
    {"status", "JSON, written by weft", "",
     "State, desired count, each trigger's value and verdict, the last error.", false},
    {"pre-provision", "true or false", "true",
     "false: nodes are not launched before the pods of a new count exist.", false},
    {"interruption-cost", "US dollars, or a duration of the node's price", "10m",
     "Work lost when a Spot node is taken away.", false},
    {"allow-mass-deletion", "a time, RFC 3339", "unset",
     "On a NodePool: until then more nodes than the safety limit may go.", false},
};

const struct annotation_doc *annotations_table(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(table);
    return table;
}

static void cell(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            buf_char(out, '\\');
        buf_char(out, *text);
    }
}

void annotations_docs(struct buf *out)
{
    buf_cstr(out, "| annotation | value | default | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        buf_printf(out, "| `" ANNOTATION_PREFIX "%s` | ", table[i].key);
        cell(out, table[i].value);
        buf_cstr(out, " | ");
        cell(out, table[i].standard);
        buf_cstr(out, " | ");
        cell(out, table[i].help);
        buf_cstr(out, " |\n");
    }
}
