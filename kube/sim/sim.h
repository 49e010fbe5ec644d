/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A Kubernetes cluster in memory: API server, scheduler, kubelets and workload controllers.
 *
 * Clients reach it through the HTTP seam, as bytes, so what runs against it is the real client.
 * Everything happens on the loop it was given; under virtual time a week takes seconds. Same seed
 * and same calls, same bytes. Tests and hosts may also reach in directly, without latency, faults
 * or effects: sim_create, sim_patch, sim_get and the rest.
 *
 * Objects are JSON trees of any kind; those in the table of kube/api are known from the start,
 * others are registered with sim_register. What is simplified is said in kube/sim/README.md. */
#ifndef KUBE_SIM_SIM_H
#define KUBE_SIM_SIM_H

#include "base/http.h"
#include "base/json.h"
#include "base/loop.h"
#include "kube/api/kind.h"
#include "kube/api/podspec.h"

struct sim;

/* Delays in ns; 0 means the default, negative means none. */
struct sim_options {
    int64_t call_latency;     /* of an API call, there and back; 4 ms, jittered by half */
    int64_t controller_delay; /* from a change to a controller's answer; 20 ms */
    int64_t pod_start;        /* from bound to Running and Ready; 2 s */
    int64_t pod_stop;         /* from deletion to gone, at most the grace period; 1 s */
    int64_t node_not_ready;   /* silence until Ready becomes Unknown; 40 s */
    int64_t pod_gc;           /* from a deleted Node to the deletion of its pods; 40 s */
    int64_t scheduler_tick;   /* 20 ms */
    double scheduler_pods_s;  /* 300 */
    uint32_t history;         /* events kept of each resource for watches; 8192 */
    bool no_scheduler, no_kubelet, no_controllers; /* for tests that play these parts */
};

/* `o` may be NULL. The loop must outlive the simulator. */
struct sim *sim_new(struct loop *l, uint64_t seed, const struct sim_options *o);
void sim_free(struct sim *s); /* every http seam must be closed before */
struct loop *sim_loop(const struct sim *s);

/* ---- The seam ---- */

/* One client's way in. `name` tells clients apart in sim_call; `watch_lag` delays each event of
 * its watches. Any scheme and host will do. http_close frees it. */
struct http *sim_http(struct sim *s, const char *name, int64_t watch_lag);
/* Changes the lag of a seam made by sim_http. */
void sim_http_lag(struct http *h, int64_t watch_lag);

/* Answers 401 to a request when `allow` says no. `authorization` is the header's value, or
 * STR_NONE. NULL: everything is allowed. */
void sim_set_auth(struct sim *s, bool (*allow)(void *arg, struct str authorization), void *arg);

/* Chances are per million of each call, or of each event for watch_drop. */
struct sim_faults {
    uint32_t watch_drop;   /* the stream ends after an event */
    uint32_t gone_410;     /* a watch or a later page is told that its version is too old */
    uint32_t conflict_409; /* a PUT or PATCH meets a conflict that is not there */
    uint32_t throttle_429; /* with Retry-After: 1 */
    uint32_t error_5xx;    /* before anything happened */
    uint32_t lost_answer;  /* it happened, the answer never comes */
    int64_t event_lag;     /* ns, on top of each client's own */
    bool api_down;         /* connections fail; streams end */
};
struct sim_faults *sim_faults(struct sim *s);
/* Forgets all watch history: whoever resumes from an older version gets 410. */
void sim_expire_history(struct sim *s);

/* A call through the seam that changes something. */
struct sim_call {
    int64_t at; /* loop_now */
    const char *client;
    const char *verb;                         /* "create" "update" "patch" "delete" */
    const char *group, *plural, *subresource; /* subresource NULL: none */
    const char *namespace_, *name;            /* NULL: none (generateName before it took effect) */
    int status;                               /* HTTP; 0 before */
};
/* Called before and after each such call takes effect: the crash points of the kill tests. A call
 * that is cancelled from `before` (its seam closed, say) has no effect; one cancelled from `after`
 * had it. NULL: off. */
void sim_on_effect(struct sim *s, void (*fn)(void *arg, const struct sim_call *call, bool after),
                   void *arg);

/* ---- Resources ---- */

struct sim_resource {
    const char *group, *version, *kind, *plural;
    bool namespaced, status, scale; /* subresources */
};
/* As a CustomResourceDefinition would. Texts are copied. A plural that exists is replaced by
 * nothing: the call is then without effect. */
void sim_register(struct sim *s, const struct sim_resource *r);

/* ---- Direct access ---- */

/* Borrowed trees live until the object changes next, or goes. `kind` is the kind's name ("Pod");
 * namespace_ NULL for cluster scope, and means "default" for namespaced kinds. */
const struct json *sim_create(struct sim *s, const struct json *object, struct err *err);
/* Creates, or merges (as server-side apply does, status too). */
const struct json *sim_apply(struct sim *s, const struct json *object, struct err *err);
/* sim_apply of JSON text. */
const struct json *sim_apply_text(struct sim *s, const char *text, struct err *err);
/* RFC 7396, all fields. */
const struct json *sim_patch(struct sim *s, const char *kind, const char *namespace_,
                             const char *name, const char *patch, struct err *err);
/* grace_s < 0: the object's own. */
int sim_delete(struct sim *s, const char *kind, const char *namespace_, const char *name,
               int64_t grace_s, struct err *err);
const struct json *sim_get(struct sim *s, const char *kind, const char *namespace_,
                           const char *name);
/* Decoded, for kinds of the table; borrowed as above. */
struct object *sim_object(struct sim *s, const struct kind *k, const char *namespace_,
                          const char *name);
size_t sim_count(struct sim *s, const char *kind);
/* In key order, as the list was when it began; `fn` may change objects. */
void sim_each(struct sim *s, const char *kind, void (*fn)(void *arg, const struct json *object),
              void *arg);
void sim_each_object(struct sim *s, const struct kind *k,
                     void (*fn)(void *arg, struct object *object), void *arg);

/* Every change of every object, at once and without lag. `before` NULL: added; `after` NULL: gone.
 */
typedef void sim_change(void *arg, const char *kind, const struct json *before,
                        const struct json *after);
void sim_on_change(struct sim *s, sim_change *fn, void *arg);
/* The same, decoded, for kinds of the table only: cheap to count with. */
typedef void sim_object_change(void *arg, struct object *before, struct object *after);
void sim_on_object_change(struct sim *s, sim_object_change *fn, void *arg);

/* ---- Nodes, for whoever plays the cloud ---- */

struct sim_node {
    const char *name, *provider_id, *instance_type, *zone, *region;
    const struct label *labels; /* besides hostname, arch, os, instance type, zone and region */
    uint32_t n_labels;
    const char *arch, *os;
    const struct taint *taints; /* node.kubernetes.io/not-ready is added and removed by itself */
    uint32_t n_taints;
    struct resource_list capacity, allocatable;
};
/* A kubelet registers: the Node appears, not Ready, without extended resources (names with a
 * slash). Registering a Node that exists changes nothing. */
void sim_node_register(struct sim *s, const struct sim_node *n);
void sim_node_ready(struct sim *s, const char *name);
/* Extended resources appear. */
void sim_node_devices(struct sim *s, const char *name, const struct resource_list *capacity,
                      const struct resource_list *allocatable);
/* Removes a taint, as the agent that set it up would. effect TAINT_ANY_EFFECT: all effects. */
void sim_node_remove_taint(struct sim *s, const char *name, const char *key,
                           enum taint_effect effect);
/* The machine is gone or silent: its pods stop being served and nothing on it finishes. After
 * node_not_ready the Node turns Unknown; pods are evicted from it by taint, and deleted for good
 * when the Node is deleted. */
void sim_node_down(struct sim *s, const char *name);
/* All four in one, for hosts that just want a node. */
void sim_node_add(struct sim *s, const struct sim_node *n);

/* ---- Observation ---- */

struct sim_counters {
    uint64_t requests, writes, events_sent, bytes_sent, watches, faults;
    uint64_t objects_created, objects_changed, objects_deleted;
    uint64_t pods_bound, pods_started, evictions, evictions_refused, scheduling_attempts;
};
const struct sim_counters *sim_counters(const struct sim *s);
/* Of all objects, their versions and the clock: two runs of one seed agree on it. */
uint64_t sim_digest(struct sim *s);
/* The text of the last resourceVersion handed out. */
uint64_t sim_version(const struct sim *s);
/* True when no controller, kubelet or scheduler has anything left to do now or later, apart from
 * pods that no node can take, schedules, and running Jobs. */
bool sim_idle(const struct sim *s);

#endif
