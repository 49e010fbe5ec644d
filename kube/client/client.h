/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Requests to an API server: one call, one answer.
 *
 * Every controller speaks through this; production and simulator differ only in the transport
 * below. The client adds credentials (token files and exec plugins re-read as they rotate), a
 * client-side rate limit, and retries: 429 and 5xx and failed connections, with Retry-After or
 * growing jittered pauses, for calls that may be repeated (reads, and writes whose outcome is known
 * not to have happened). 401 refreshes the credentials once. Outcomes that are not known come back
 * as ERR_UNKNOWN and are never repeated here. Async contract: base/op.h. */
#ifndef KUBE_CLIENT_CLIENT_H
#define KUBE_CLIENT_CLIENT_H

#include "base/http.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "base/worker.h"
#include "kube/api/kind.h"
#include "kube/client/config.h"

struct client;
struct client_op;

struct client_options {
    double qps;              /* 0: 200 */
    int64_t burst;           /* 0: 300 */
    int64_t timeout;         /* of one attempt, ns; 0: 30 s */
    int64_t retry_for;       /* give up retrying after, ns; 0: 60 s */
    const char *user_agent;  /* NULL: weft/VERSION */
    uint64_t seed;           /* of the jitter */
    struct metrics *metrics; /* NULL: none. weft_kube_requests_total{verb,kind,code}, … */
    /* Checked before every write goes out and before each retry; false: the write ends with
     * ERR_DENIED and is not sent. Leader election fences with it. NULL: always allowed. */
    bool (*may_write)(void *arg);
    void *may_write_arg;
};

/* The transport, config and worker must outlive the client. `worker` may be NULL without exec
 * plugins. */
struct client *client_new(struct loop *l, struct http *h, struct worker *w,
                          const struct kube_config *config, const struct client_options *o,
                          struct err *err);
void client_free(struct client *c); /* cancels everything under way */
struct loop *client_loop(const struct client *c);

struct client_answer {
    int status;            /* HTTP */
    struct object *object; /* decoded when the call had a kind and 2xx; borrowed; NULL otherwise */
    struct str body;       /* of small answers (not lists); dies on return */
    const char *reason;    /* Status.reason of errors: "AlreadyExists" …; NULL: none */
    int64_t retry_after;   /* ns; -1: not told */
};

/* err NULL: 2xx. Otherwise: CONFLICT 409 (EXISTS when the reason is AlreadyExists), NOT_FOUND 404,
 * GONE 410, THROTTLED 429 (also: eviction refused by a PDB), DENIED 401/403, INVALID 400/422,
 * RETRY 5xx or no connection after all retries, UNKNOWN when the answer was lost. */
typedef void client_done(void *arg, const struct client_answer *answer, const struct err *err);

enum patch_type {
    PATCH_MERGE,
    PATCH_APPLY /* server-side apply, force, field manager "weft" */,
    PATCH_JSON
};

struct client_op *client_get(struct client *c, const struct kind *k, const char *namespace_,
                             const char *name, client_done *done, void *arg);
struct client_op *client_create(struct client *c, const struct kind *k, const char *namespace_,
                                struct str body, client_done *done, void *arg);
/* `subresource` NULL, "status", "scale"; a scale answer has no object, read its body. */
struct client_op *client_patch(struct client *c, const struct kind *k, const char *namespace_,
                               const char *name, const char *subresource, enum patch_type type,
                               struct str body, client_done *done, void *arg);
struct client_op *client_update(struct client *c, const struct kind *k, const char *namespace_,
                                const char *name, const char *subresource, struct str body,
                                client_done *done, void *arg);
/* Preconditions: `uid` NULL: none. grace_s < 0: the object's own. */
struct client_op *client_delete(struct client *c, const struct kind *k, const char *namespace_,
                                const char *name, const char *uid, int64_t grace_s,
                                client_done *done, void *arg);
/* POST …/pods/NAME/eviction with a uid precondition. A refusal by a PDB is ERR_THROTTLED. */
struct client_op *client_evict(struct client *c, const char *namespace_, const char *pod,
                               const char *uid, int64_t grace_s, client_done *done, void *arg);
/* Anything else: a raw path ("/apis/…?x=y"). */
struct client_op *client_raw(struct client *c, const char *method, const char *path,
                             const char *content_type, struct str body, client_done *done,
                             void *arg);
void client_cancel(struct client_op *op); /* NULL is harmless */

/* The scale subresource of anything that has one, addressed by names, for kinds weft has no struct
 * of. The callback's answer body is the Scale object. `replicas` < 0 reads. `resource_version`
 * NULL: unconditional; else a 409 when the object changed since. */
struct client_op *client_scale(struct client *c, const char *api_version, const char *plural,
                               const char *namespace_, const char *name, int64_t replicas,
                               const char *resource_version, client_done *done, void *arg);

/* Which API versions and resources exist. Asked once and again every ten minutes. */
struct discovery_answer {
    bool found;
    bool has_scale;
    bool namespaced;
    char plural[128];
};
typedef void discovery_done(void *arg, const struct discovery_answer *a, const struct err *err);
/* By apiVersion and kind. Not found is an answer, not an error. */
void client_discover(struct client *c, const char *api_version, const char *kind,
                     discovery_done *done, void *arg);

#endif
