/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the rooms of control share: the struct, the caches with their indexes, and the effects. */
#ifndef PROVISIONER_CONTROL_INTERNAL_H
#define PROVISIONER_CONTROL_INTERNAL_H

#include "base/log.h"
#include "base/vec.h"
#include "kube/api/misc.h"
#include "kube/api/node.h"
#include "kube/api/nodeclaim.h"
#include "kube/api/nodeclass.h"
#include "kube/api/pdb.h"
#include "kube/api/pod.h"
#include "kube/api/workload.h"
#include "kube/client/informer.h"
#include "kube/client/queue.h"
#include "provisioner/control/control.h"
#include "provisioner/control/drain.h"
#include "provisioner/control/lifecycle.h"
#include "provisioner/control/offers.h"

/* ---- Caches (cluster.c) ---- */

enum cache {
    CACHE_POD,
    CACHE_NODE,
    CACHE_NODECLAIM,
    CACHE_NODEPOOL,
    CACHE_DAEMONSET,
    CACHE_DEPLOYMENT,
    CACHE_REPLICASET,
    CACHE_STATEFULSET,
    CACHE_JOB,
    CACHE_VOLUME_ATTACHMENT,
    CACHE_NAMESPACE,
    CACHE_LEASE,
    CACHE_CLASS, /* one a cloud from here on */
};
enum { CLOUDS_MAX = 4, CACHES_MAX = CACHE_CLASS + CLOUDS_MAX };

VEC_DEFINE(vec_pod, struct pod *);

/* What is remembered of a node by name, whether or not the Node exists. */
struct node_memory {
    struct vec_pod pods;    /* bound to it; each holds a reference */
    int64_t last_pod_event; /* ns since 1970 */
    int64_t marked; /* since when it is seen with the disrupted taint and DisruptionReason */
};

/* Live pods of a controlling owner, by its uid. */
struct owner_memory {
    int64_t live;    /* not finished, not ending */
    int64_t decided; /* of those: bound, or found unschedulable by the scheduler */
};

struct cluster {
    struct informer *caches[CACHES_MAX];
    size_t n_caches, n_synced;
    struct map nodes;  /* name to struct node_memory */
    struct map owners; /* uid to struct owner_memory */
    struct map
        unbound; /* namespace/name to struct pod: live, without a node, no daemon; references */
    struct map node_of_id;  /* provider id to struct id_names: the Nodes that have it */
    struct map claim_of_id; /* provider id to struct id_names: the claims that have it */
    uint64_t generation;    /* grows when something changed that can make a pod schedulable */
    char uid[65];           /* of the kube-system namespace; "" until known */
};

void cluster_init(struct control *c);
void cluster_start(struct control *c);
void cluster_release(struct control *c);
struct node_memory *cluster_node(struct control *c, const char *name);
const struct node *cluster_node_of_id(const struct control *c, const char *provider_id,
                                      bool *ret_several);
struct nodeclaim *cluster_claim(const struct control *c, const char *name);
struct nodepool *cluster_pool(const struct control *c, const char *name);
struct nodeclaim *cluster_claim_of_id(const struct control *c, const char *provider_id);
struct workload *cluster_workload_of(const struct control *c,
                                     const struct pod *p); /* the topmost owner known; NULL */
struct nodeclass *cluster_class(const struct control *c, const struct node_class_ref *ref,
                                struct cloud **ret_cloud);
struct cloud *cluster_cloud(const struct control *c, const struct node_class_ref *ref);
/* The holder of a Karpenter lease that was renewed within 60 s, or NULL. */
const char *cluster_karpenter(const struct control *c);

#define cluster_each(c, which, type, it)                                                           \
    for (size_t it##_at_ = 0, it##_once_ = 1; it##_once_; it##_once_ = 0)                          \
        for (struct type * it;                                                                     \
             (it = (struct type *)(void *)informer_next((c)->cluster.caches[which], &it##_at_));)

/* ---- Effects (execute.c) ---- */

struct effect_answer {
    const struct err *err;              /* NULL: it happened */
    const struct client_answer *answer; /* of API calls; may be NULL */
    const struct instance *instance;    /* of launch and get */
    const struct instance *instances;   /* of list */
    size_t n_instances;
    const struct cloud_error *cloud_error; /* NULL: none; of a launch also skipped offerings */
};
/* `key` is what the caller named the effect by: a claim, a pod, a pool. */
typedef void effect_done(struct control *c, const char *key, const struct effect_answer *a);

struct effect;

/* True when effects are allowed: leader, acting, synced, no live Karpenter. */
bool execute_allowed(const struct control *c);
/* Each starts one call and later tells `done`. Not allowed: false, and nothing happens. Bodies are
 * JSON. Objects that come back are put into their cache first. */
bool execute_create(struct control *c, enum cache which, const char *key, struct str body,
                    effect_done *done);
bool execute_patch(struct control *c, enum cache which, const char *key, const char *name,
                   const char *subresource, struct str body, effect_done *done);
/* Server-side apply of a namespaced object of the core group that no cache holds. */
bool execute_apply(struct control *c, const struct kind *k, const char *key, const char *namespace_,
                   const char *name, struct str body, effect_done *done);
bool execute_delete(struct control *c, enum cache which, const char *key, const char *namespace_,
                    const char *name, const char *uid, int64_t grace_s, effect_done *done);
bool execute_evict(struct control *c, const char *key, const struct pod *p, effect_done *done);
bool execute_launch(struct control *c, struct cloud *cloud, const char *key,
                    const struct launch_request *r, effect_done *done);
bool execute_terminate(struct control *c, struct cloud *cloud, const char *key,
                       const char *provider_id, effect_done *done);
/* Reads need no permission to act, only a running control. */
void execute_read(struct control *c, enum cache which, const char *key, const char *name,
                  effect_done *done);
void execute_get(struct control *c, struct cloud *cloud, const char *key, const char *provider_id,
                 effect_done *done);
void execute_list(struct control *c, struct cloud *cloud, const char *key, effect_done *done);
void execute_cancel_all(struct control *c);

/* ---- Claims (claims.c) ---- */

struct claim_memory {
    bool busy;           /* an effect of this claim is under way */
    bool launch_failed;  /* the last launch call is known not to have happened */
    bool launch_unknown; /* its outcome is not known: list before a new attempt */
    bool terminate_accepted;
    bool expected;   /* a plan of ours made it; pods wait for it */
    unsigned absent; /* consecutive sightings of no instance */
    int64_t absent_last, asked_last, terminate_last;
    int64_t drain_started;
    int64_t created; /* when this process made it, for metrics; 0: another did */
    char *launch_reason, *launch_message;
    struct launched *launched; /* the instance, until the claim's status has it */
    struct map evictions;      /* pod uid to struct eviction */
};

void claims_init(struct control *c);
void claims_release(struct control *c);
void claims_touch(struct control *c, const char *name);
struct claim_memory *claims_memory(struct control *c, const char *name);
/* A launch answer that names offerings without capacity goes into the memory of offers. */
void claims_remember_exhausted(struct control *c, const struct cloud_error *e);
/* Deletes the claim, saying why: event, decision log, metric. True: the call was started. */
bool claims_delete(struct control *c, const struct nodeclaim *claim, const char *decision,
                   const char *reason, const char *message, effect_done *done);

/* ---- The rest of the rooms ---- */

void drains_process(struct control *c, struct nodeclaim *claim, struct claim_memory *m);
void claims_finish(struct control *c, const char *name, bool ok, bool again);

void provision_init(struct control *c);
void provision_release(struct control *c);
void provision_poke(struct control *c); /* something may have made a plan worth making */
void provision_claim_gone(struct control *c, const char *claim);
/* Ranked offerings for a claim that carries none (made by hand). Returns how many. */
size_t provision_offerings_of(struct control *c, const struct nodeclaim *claim, struct arena *a,
                              struct launch_offering *ret, size_t max);
size_t provision_nominated(const struct control *c, const char *claim_or_node);

/* The memory of unavailable offerings, in a ConfigMap (memory.c). */
void offers_load(struct control *c);
void offers_save(struct control *c);

/* Announced pods of workloads that weft scales (coming.c). */
void coming_release(struct control *c);
void coming_changed(struct control *c, const struct workload *before, const struct workload *after);
bool coming_scaled(const struct workload *w); /* weft scales it, and may provision ahead */
/* How many pods of the workload exist and live. */
int64_t coming_live(const struct control *c, const struct workload *w);
struct coming_pods {
    struct workload *workload;
    int64_t first, count;
    bool wanting; /* more than the last plan knew of */
};
/* The announcements that are open now; forgets the others. Returns true while there are more. */
bool coming_next(struct control *c, size_t *cursor, struct coming_pods *ret);
/* Whether the place that an announced pod was planned for may still be its. */
bool coming_wants(struct control *c, const char *key);
void coming_planned(struct control *c); /* a plan has all that is open now */

void pools_init(struct control *c);
void pools_release(struct control *c);
void pools_touch(struct control *c, const char *name);
void pools_touch_all(struct control *c);
/* The last valid version; NULL: there was none. Borrowed. */
const struct nodepool *pools_last_good(const struct control *c, const char *name);
/* Every pool has been looked at, and no first catalogue is awaited. */
bool pools_settled(const struct control *c);
const char *pools_blocked(const struct control *c, const char *name); /* NULL: it may launch */
struct catalog *pools_catalog(const struct control *c, const struct node_class_ref *ref);

void disruption_init(struct control *c);
void disruption_release(struct control *c);
void disruption_touch(struct control *c);

void interrupt_init(struct control *c);
void interrupt_release(struct control *c);

void gc_init(struct control *c);
void gc_release(struct control *c);
/* True: one more deletion is within the mass-deletion rule; counts it. */
bool breaker_take(struct control *c, const char *pool);

/* ---- The struct ---- */

struct control_metrics {
    struct metric_family *claims_created, *claims_terminated, *claims_disrupted, *evictions,
        *unschedulable, *decisions, *pool_usage, *pool_limit, *cloud_errors, *launch_failures,
        *state_synced, *state_nodes, *pools_not_ready, *breaker;
};

struct control {
    struct loop *loop;
    struct worker *worker;
    struct client *client;
    struct recorder *recorder;
    struct metrics *metrics;
    struct control_metrics metric;
    struct cloud *clouds[CLOUDS_MAX];
    size_t n_clouds;
    struct control_options o; /* defaults filled in */
    char *cluster_name, *namespace_;
    bool started, leader, ready;
    uint64_t decisions; /* made so far, part of their ids */

    struct cluster cluster;
    struct effect *effects; /* under way */
    size_t n_effects;
    uint64_t launches, terminations, evictions;

    struct queue *claim_queue, *pool_queue;
    struct map claims; /* name to struct claim_memory */
    struct offers offers;
    int64_t pause_ends; /* of the next offering, when last looked */

    struct client_op *offers_load; /* under way */
    struct loop_timer tick, offers_timer;
    bool blocked; /* by a live Karpenter, when last looked */
    struct provision *provision;
    struct map coming; /* workload uid to struct coming */
    struct pools *pools;
    struct disruption *disruption;
    struct interrupt *interrupt;
    struct gc *gc;
};

void control_synced(struct control *c);
void control_event(struct control *c, const struct object *about, bool warning, const char *reason,
                   const char *fmt, ...) PRINTF_LIKE(5, 6);
/* FailedScheduling on a pod, at most once in five minutes while the text stays. */
void control_say_unschedulable(struct control *c, const struct pod *p, const char *why);
void control_count(struct metric_family *f, ...)
    __attribute__((sentinel)); /* +1 to the series of these label values */

static inline int64_t control_now(const struct control *c)
{
    return loop_wall(c->loop);
}

#endif
