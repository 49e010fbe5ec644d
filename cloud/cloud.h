/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The cloud seam: at most nine functions per vendor.
 *
 * Vendors classify errors and nothing more; the memory of what was unavailable is the core's
 * (provisioner/control/offers). Tokens make launch repeatable: the same token and parameters return
 * the same instance, and a launch whose outcome is not known is repeated with the same token only.
 * Async contract: base/op.h. Prices are micro-dollars per hour. */
#ifndef CLOUD_CLOUD_H
#define CLOUD_CLOUD_H

#include "base/loop.h"
#include "cloud/catalog.h"
#include "kube/api/nodeclass.h"

struct launch_offering {
    const char *instance_type, *zone;
    enum capacity_type capacity_type;
};

struct launch_request {
    const char *nodeclaim, *nodepool, *cluster; /* names, become tags */
    const char *nodeclaim_uid;
    const char *token;
    const struct nodeclass *node_class;
    const struct launch_offering *offerings; /* ranked, cheapest first; at least one */
    uint32_t n_offerings;
    const struct label *labels; /* for the node to be born with */
    uint32_t n_labels;
    const struct taint *taints; /* incl. startup taints and karpenter.sh/unregistered */
    uint32_t n_taints;
};

enum instance_state { INSTANCE_PENDING, INSTANCE_RUNNING, INSTANCE_STOPPING, INSTANCE_TERMINATED };

struct instance {
    const char *provider_id, *instance_type, *zone, *image_id;
    enum capacity_type capacity_type;
    enum instance_state state;
    const char *nodeclaim, *nodepool, *cluster, *token; /* from tags; NULL: not ours */
    int64_t launched;                                   /* ns since 1970 */
    int64_t price_uusd_h;
    struct resource_list capacity, allocatable;
};

/* What an error was about. code says what to do; scope says how far it reaches. */
struct cloud_error {
    enum err_code code; /* CAPACITY, THROTTLED, RETRY, DENIED, INVALID (config), NOT_FOUND,
                           CONFLICT, UNKNOWN */
    bool quota;         /* CAPACITY by an account limit, not by stock */
    const struct launch_offering
        *exhausted; /* offerings that had no capacity, of those asked for */
    uint32_t n_exhausted;
    char msg[320];
};

enum notice_kind {
    NOTICE_SPOT,
    NOTICE_REBALANCE,
    NOTICE_MAINTENANCE,
    NOTICE_STATE_CHANGE,
    NOTICE_HEALTH
};
struct notice {
    enum notice_kind kind;
    const char *provider_id;
    int64_t at, deadline; /* ns since 1970; 0: not told */
};

struct cloud;
struct cloud_op;

/* error NULL: success. `exhausted` in a successful answer is told through the error's fields with
 * code ERR_NONE (some offerings were skipped on the way). Everything is borrowed. */
typedef void cloud_catalog_done(void *arg, struct catalog *c, const struct cloud_error *error);
typedef void cloud_instance_done(void *arg, const struct instance *i,
                                 const struct cloud_error *error);
typedef void cloud_list_done(void *arg, const struct instance *v, size_t n,
                             const struct cloud_error *error);
typedef void cloud_done(void *arg, const struct cloud_error *error);
typedef void cloud_drift_done(void *arg, const char *reason /* NULL: not drifted */,
                              const struct cloud_error *error);
typedef void cloud_notices_done(void *arg, const struct notice *v, size_t n,
                                const struct cloud_error *error);

struct cloud_vtable {
    const char *name;
    const char *class_group, *class_kind; /* of its node class */
    struct cloud_op *(*catalogue)(struct cloud *c, const struct nodeclass *nc,
                                  cloud_catalog_done *done, void *arg);
    struct cloud_op *(*launch)(struct cloud *c, const struct launch_request *r,
                               cloud_instance_done *done, void *arg);
    struct cloud_op *(*get)(struct cloud *c, const char *provider_id, cloud_instance_done *done,
                            void *arg);
    /* All instances tagged with `cluster`. */
    struct cloud_op *(*list)(struct cloud *c, const char *cluster, cloud_list_done *done,
                             void *arg);
    /* Success: terminating or already gone. NOT_FOUND: no such instance (any more). */
    struct cloud_op *(*terminate)(struct cloud *c, const char *provider_id, cloud_done *done,
                                  void *arg);
    struct cloud_op *(*drifted)(struct cloud *c, const struct nodeclass *nc,
                                const char *provider_id, cloud_drift_done *done, void *arg);
    struct cloud_op *(*poll_notices)(struct cloud *c, cloud_notices_done *done, void *arg);
    void (*cancel)(struct cloud *c, struct cloud_op *op);
    void (*close)(struct cloud *c);
};

struct cloud {
    const struct cloud_vtable *vt;
};

#endif
