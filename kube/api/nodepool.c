/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/nodepool.h"

#include "kube/api/decode.h"
#include "kube/api/nodeclaim.h"

/* ---- Tables ---- */

static const char *const policies[] = {"WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced", NULL};
static const char *const reasons[] = {"Underutilized", "Empty", "Drifted",
                                      NULL}; /* bit order of disruption_reason */

static const struct field fields_class_ref[] = {
    F(FIELD_TEXT, struct node_class_ref, group, "group"),
    F(FIELD_TEXT, struct node_class_ref, kind, "kind"),
    F(FIELD_TEXT, struct node_class_ref, name, "name"),
    F_END,
};

#define TEMPLATE_FIELDS                                                                            \
    F_PRESET(struct node_template, expire_after, 720 * NS_PER_HOUR),                               \
        F_PRESET(struct node_template, termination_grace, -1),                                     \
        F_STRUCT(struct node_template, class_ref, "nodeClassRef", fields_class_ref),               \
        F_LIST(struct node_template, requirements, n_requirements, "requirements",                 \
               struct selector_requirement, fields_selector_requirement),                          \
        F_LIST(struct node_template, taints, n_taints, "taints", struct taint, fields_taint),      \
        F_LIST(struct node_template, startup_taints, n_startup_taints, "startupTaints",            \
               struct taint, fields_taint),                                                        \
        F(FIELD_DURATION, struct node_template, expire_after, "expireAfter"),                      \
        F(FIELD_DURATION, struct node_template, termination_grace, "terminationGracePeriod")

static const struct field fields_template_spec[] = {TEMPLATE_FIELDS, F_END};

static const struct field fields_template_meta[] = {
    F(FIELD_LABELS, struct node_template, labels, "labels"),
    F(FIELD_LABELS, struct node_template, annotations, "annotations"),
    F_END,
};

static const struct field fields_template[] = {
    F_INLINE("metadata", fields_template_meta),
    F_INLINE("spec", fields_template_spec),
    F_END,
};

static const struct field fields_budget[] = {
    F(FIELD_TEXT, struct disruption_budget, nodes, "nodes"),
    F_BITS(struct disruption_budget, reasons, "reasons", reasons),
    F(FIELD_TEXT, struct disruption_budget, schedule, "schedule"),
    F(FIELD_DURATION, struct disruption_budget, duration, "duration"),
    F_END,
};

static const struct field fields_disruption[] = {
    F_ENUM(struct nodepool, policy, "consolidationPolicy", policies),
    F(FIELD_DURATION, struct nodepool, consolidate_after, "consolidateAfter"),
    F_LIST(struct nodepool, budgets, n_budgets, "budgets", struct disruption_budget, fields_budget),
    F_END,
};

static const struct field fields_spec[] = {
    F_STRUCT(struct nodepool, template_, "template", fields_template),
    F_INLINE("disruption", fields_disruption),
    F(FIELD_RESOURCES, struct nodepool, limits, "limits"),
    F(FIELD_INT32, struct nodepool, weight, "weight"),
    F(FIELD_INT64, struct nodepool, replicas, "replicas"),
    F_END,
};

static const struct field fields_status[] = {
    F(FIELD_RESOURCES, struct nodepool, used, "resources"),
    F(FIELD_INT64, struct nodepool, nodes, "nodes"),
    F(FIELD_INT64, struct nodepool, class_observed_generation, "nodeClassObservedGeneration"),
    F_LIST(struct nodepool, conditions.v, conditions.n, "conditions", struct condition,
           fields_condition),
    F_END,
};

static const struct field fields_nodepool[] = {
    F_PRESET(struct nodepool, replicas, -1),
    /* The template's own presets, since a pool without a template never opens that struct. */
    F_PRESET(struct nodepool, template_.expire_after, 720 * NS_PER_HOUR),
    F_PRESET(struct nodepool, template_.termination_grace, -1),
    F_DERIVED(FIELD_TEXT, struct nodepool, invalid),
    F_STRUCT(struct nodepool, obj.meta, "metadata", fields_meta),
    F_INLINE("spec", fields_spec),
    F_INLINE("status", fields_status),
    F_END,
};

static void finish_nodepool(void *object, struct arena *a UNUSED)
{
    static const struct disruption_budget standard = {.nodes = "10%", .reasons = DISRUPT_ALL};
    struct nodepool *p = object;
    if (p->n_budgets == 0) {
        p->budgets = &standard;
        p->n_budgets = 1;
    }
    for (uint32_t i = 0; i < p->n_budgets; i++) {
        struct disruption_budget *b = (struct disruption_budget *)(uintptr_t)&p->budgets[i];
        if (b != &standard && b->reasons == 0)
            b->reasons = DISRUPT_ALL;
    }
}

const struct kind kind_nodepool = {"NodePool",      "karpenter.sh", "v1",
                                   "nodepools",     false,          sizeof(struct nodepool),
                                   fields_nodepool, finish_nodepool};

static const struct field fields_claim_resources[] = {
    F(FIELD_RESOURCES, struct nodeclaim, requests, "requests"), F_END};
static const struct field fields_claim_spec[] = {
    F_PRESET(struct nodeclaim, spec.expire_after, 720 * NS_PER_HOUR),
    F_PRESET(struct nodeclaim, spec.termination_grace, -1),
    F_STRUCT(struct nodeclaim, spec.class_ref, "nodeClassRef", fields_class_ref),
    F_LIST(struct nodeclaim, spec.requirements, spec.n_requirements, "requirements",
           struct selector_requirement, fields_selector_requirement),
    F_LIST(struct nodeclaim, spec.taints, spec.n_taints, "taints", struct taint, fields_taint),
    F_LIST(struct nodeclaim, spec.startup_taints, spec.n_startup_taints, "startupTaints",
           struct taint, fields_taint),
    F(FIELD_DURATION, struct nodeclaim, spec.expire_after, "expireAfter"),
    F(FIELD_DURATION, struct nodeclaim, spec.termination_grace, "terminationGracePeriod"),
    F_INLINE("resources", fields_claim_resources),
    F_END,
};
static const struct field fields_claim_status[] = {
    F(FIELD_TEXT, struct nodeclaim, provider_id, "providerID"),
    F(FIELD_TEXT, struct nodeclaim, node_name, "nodeName"),
    F(FIELD_TEXT, struct nodeclaim, image_id, "imageID"),
    F(FIELD_RESOURCES, struct nodeclaim, capacity, "capacity"),
    F(FIELD_RESOURCES, struct nodeclaim, allocatable, "allocatable"),
    F_LIST(struct nodeclaim, conditions.v, conditions.n, "conditions", struct condition,
           fields_condition),
    F(FIELD_TIME, struct nodeclaim, last_pod_event, "lastPodEventTime"),
    F_END,
};
static const struct field fields_nodeclaim[] = {
    F_PRESET(struct nodeclaim, spec.expire_after, 720 * NS_PER_HOUR),
    F_PRESET(struct nodeclaim, spec.termination_grace, -1),
    F_STRUCT(struct nodeclaim, obj.meta, "metadata", fields_meta),
    F_INLINE("spec", fields_claim_spec),
    F_INLINE("status", fields_claim_status),
    F_END,
};
const struct kind kind_nodeclaim = {"NodeClaim",
                                    "karpenter.sh",
                                    "v1",
                                    "nodeclaims",
                                    false,
                                    sizeof(struct nodeclaim),
                                    fields_nodeclaim,
                                    NULL};
