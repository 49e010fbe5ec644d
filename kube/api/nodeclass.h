/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Node classes: what a vendor needs to know to launch. SimNodeClass is here in full; the vendors'
 * own (EC2NodeClass, GCENodeClass) keep their spec as JSON text for the vendor to read. */
#ifndef KUBE_API_NODECLASS_H
#define KUBE_API_NODECLASS_H

#include "kube/api/kind.h"

struct nodeclass {
    struct object obj;
    const char *spec_json; /* the spec, compact JSON */
    struct conditions conditions;
    const char *invalid;
};

/* weft.sh/v1alpha1 SimNodeClass spec, decoded from spec_json. */
struct sim_nodeclass_spec {
    int64_t launch_delay;        /* ns from the launch call to a running instance; default 5s */
    int64_t registration_delay;  /* ns from running to a Node object; default 20s */
    int64_t ready_delay;         /* ns from the Node object to Ready; default 10s */
    int64_t device_delay;        /* ns from Ready to extended resources in allocatable; default 0 */
    int64_t startup_taint_delay; /* ns from Ready to removal of startup taints; default 5s */
    struct string_list zones;    /* empty: all of the catalogue */
};

extern const struct kind kind_sim_nodeclass, kind_ec2_nodeclass, kind_gce_nodeclass;
static inline struct nodeclass *nodeclass_of(struct object *o)
{
    return (struct nodeclass *)(void *)o;
}

/* Unknown fields and bad durations are ERR_INVALID with the path. */
int sim_nodeclass_decode(const struct nodeclass *c, struct arena *a, struct sim_nodeclass_spec *ret,
                         struct err *err);

#endif
