/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the parts of the simulator share: the struct behind sim.h and how changes reach each part.
 */
#ifndef KUBE_SIM_INTERNAL_H
#define KUBE_SIM_INTERNAL_H

#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/workload.h"
#include "kube/sim/store.h"

struct seam;        /* apiserver.c */
struct scheduler;   /* scheduler.c */
struct kubelets;    /* kubelet.c */
struct controllers; /* controllers.c */

struct sim_hook {
    sim_change *fn;
    sim_object_change *typed;
    void *arg;
};
VEC_DEFINE(vec_hook, struct sim_hook);
VEC_DEFINE(vec_resource, struct resource *);

struct sim {
    struct loop *loop;
    uint64_t seed;
    struct sim_options o;
    struct rng ids, latency, chance, starts;
    uint64_t number, born; /* last resourceVersion; last item */
    struct vec_resource resources;
    struct resource *pods, *nodes, *pdbs, *namespaces, *daemonsets;
    struct map uids;     /* -> struct item */
    struct map families; /* owner's uid -> struct family */
    struct decode_cache *cache;
    struct sim_faults faults;
    struct sim_counters counters;
    struct seam *seams;
    struct scheduler *scheduler;
    struct kubelets *kubelets;
    struct controllers *control;
    bool (*allow)(void *arg, struct str authorization);
    void *allow_arg;
    void (*effect)(void *arg, const struct sim_call *call, bool after);
    void *effect_arg;
    struct vec_hook hooks;
};

static inline int64_t sim_now(const struct sim *s)
{
    return loop_now(s->loop);
}
static inline int64_t sim_wall(const struct sim *s)
{
    return loop_wall(s->loop);
}

/* An item changed. before NULL: added; after NULL: gone. Nobody may write from here. */
void sim_changed(struct sim *s, struct item *it, struct version *before, struct version *after);

/* Each part hears of every change. */
void controllers_changed(struct sim *s, struct item *it, struct version *before,
                         struct version *after);
void kubelets_changed(struct sim *s, struct item *it, struct version *before,
                      struct version *after);
void kubelets_went_down(struct sim *s, struct node_state *n); /* its pods are served no more */
void kubelets_forget(struct sim *s, struct item *it);         /* last of all, when an item went */
void scheduler_changed(struct sim *s, struct item *it, struct version *before,
                       struct version *after);
/* watch.c: there is something new for the watchers of the resource. */
void watch_wake(struct resource *r);

struct scheduler *scheduler_new(struct sim *s);
void scheduler_free(struct scheduler *x);
bool scheduler_idle(const struct scheduler *x);
struct kubelets *kubelets_new(struct sim *s);
void kubelets_free(struct kubelets *x);
bool kubelets_idle(const struct kubelets *x);
struct controllers *controllers_new(struct sim *s);
void controllers_free(struct controllers *x);
bool controllers_idle(const struct controllers *x);
/* The item's controller shall look at it soon / at `when` (loop_now). */
void controllers_dirty(struct sim *s, struct item *it);
void controllers_at(struct sim *s, struct item *it, int64_t when);

/* What the kinds' controllers are; each looks at one item and moves it one step. */
void replicaset_reconcile(struct sim *s, struct item *it);
void deployment_reconcile(struct sim *s, struct item *it);
void statefulset_reconcile(struct sim *s, struct item *it);
void daemonset_reconcile(struct sim *s, struct item *it);
void daemons_on_node(struct sim *s, struct item *node); /* all daemon sets, one node */
void job_reconcile(struct sim *s, struct item *it);
void cronjob_reconcile(struct sim *s, struct item *it);
void job_pod_ended(struct item *job, const struct json *pod, bool succeeded);
void job_state_free(struct job_state *j);
void budget_reconcile(struct sim *s, struct item *it);
void budget_changed(struct sim *s, struct item *it);
/* True when what it covers, or how healthy that is, changed. */
bool budget_pod_changed(struct item *budget, struct item *pod, struct version *before,
                        struct version *after);
void budget_state_free(struct budget_state *b);

/* Parts the controllers share; control.c */
struct version *child_new(struct item *owner, const char *api_version, const char *kind,
                          struct str name, bool generate);
/* A pod of the template (metadata.labels, metadata.annotations, spec). */
struct version *pod_from_template(struct item *owner, const struct json *template_, struct str name,
                                  bool generate);
static inline struct workload *workload_at(struct item *it)
{
    struct object *o = item_typed(it);
    return o ? workload_of(o) : NULL;
}
static inline struct pod *pod_at(struct item *it)
{
    struct object *o = item_typed(it);
    return o ? pod_of(o) : NULL;
}
/* Children that are pods, in creation order; references, to be let go with items_release. */
void children_of(struct item *owner, const struct resource *r, struct vec_item *ret);
void items_release(struct vec_item *v);

/* True when the pod may be on the node: requirements, taints and unschedulable aside. fit.c */
bool fit_node_labels(const struct pod_spec *p, const struct labels *node, const char *node_name);
bool fit_taints(const struct pod_spec *p, const struct taint *taints, uint32_t n);
bool fit_term(const struct node_selector_term *t, const struct labels *node, const char *node_name);

/* Pods of a node, by the Node's name, whether or not the Node exists. */
struct node_state {
    char *name;
    struct item *item; /* the Node; NULL: none now */
    struct pod_state *first;
    bool down; /* its machine is gone */
    int64_t down_at;
    struct host *host; /* the scheduler's view; scheduler.c */
    int64_t gone_at;   /* when the Node was deleted; 0: never */
};
struct node_state *node_state_find(struct sim *s,
                                   struct str name); /* NULL: neither Node nor pods */
/* Keeps taints and the Ready condition in step with the machine; called by the controllers. */
void node_reconcile(struct sim *s, struct item *it);

/* What is known of a pod besides its object. */
struct pod_state {
    struct item *item;
    struct node_state *node;           /* bound to; NULL: not bound */
    struct pod_state *next, *previous; /* on the node */
    struct heap_node due;              /* kubelet's next action */
    enum {
        POD_DUE_NONE,
        POD_DUE_START,
        POD_DUE_FINISH,
        POD_DUE_STOP,
        POD_DUE_EVICT,
        POD_DUE_GC
    } what;
    struct queued *queued; /* in the scheduler's hands; NULL: not */
    struct class *class_;  /* equivalence class; NULL once it has ended */
    bool counted, leaving; /* on its host's account; being deleted there */
};

#endif
