/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Where a trigger's parameters come from: its metadata, its authentication, the environment of the
 * workload's container, in that order.
 *
 * An authenticationRef is looked up in weft.sh/auth of the workload, then as a
 * TriggerAuthentication of KEDA where those exist, then as a Secret of that name whose keys are the
 * parameters. Always in the workload's own namespace. Secrets and ConfigMaps are watched one by
 * one, only those that somebody refers to; when one changes, the owner of every lease on it is told
 * and resolves again. A missing Secret, key or variable is an error that names it, never an empty
 * text. */
#ifndef SCALERS_AUTH_H
#define SCALERS_AUTH_H

#include "base/vec.h"
#include "kube/api/workload.h"
#include "kube/client/client.h"
#include "scalers/annotations.h"

struct auth_store;
struct auth_entry;

/* What one trigger was resolved from; keeps it watched. Zero-initialise. */
struct auth_lease {
    VEC(struct auth_entry *);
};

struct auth_store *auth_store_new(struct client *c);
void auth_store_free(struct auth_store *s); /* no leases remain */
void auth_lease_release(struct auth_store *s, struct auth_lease *l);

/* Called from the loop when something that `l` holds has changed or was read for the first time. */
typedef void auth_changed(void *arg);
void auth_lease_watch(struct auth_lease *l, auth_changed *fn, void *arg);
void auth_lease_unwatch(struct auth_lease *l, void *arg);

struct auth_request {
    const char *namespace_;
    const struct trigger *trigger;
    const struct option *schema;
    const struct json *auth; /* weft.sh/auth; NULL: none */
    const struct pod_spec *pod;
    const char *env_container; /* NULL: the first */
};

enum auth_outcome {
    AUTH_READY,
    AUTH_WAITING, /* something is not read yet: a change will be told */
    AUTH_FAILED,  /* err says what is missing; a change will be told */
};

/* On READY *ret is an object of texts in the arena, only of parameters the schema knows. The lease
 * is replaced by what was looked at, whatever the outcome. */
enum auth_outcome auth_resolve(struct auth_store *s, const struct auth_request *r,
                               struct auth_lease *l, struct arena *a, struct json **ret,
                               struct err *err);

#endif
