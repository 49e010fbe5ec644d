/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Credentials of requests: tokens, passwords, exec plugins. Private to kube/client. */
#ifndef KUBE_CLIENT_AUTH_H
#define KUBE_CLIENT_AUTH_H

#include "base/buf.h"
#include "base/worker.h"
#include "kube/client/config.h"

struct auth;

struct auth *auth_new(struct loop *l, struct worker *w, const struct kube_config *c);
void auth_free(struct auth *a); /* waiting callbacks are not called */

/* Whether a request can go out now; else it must wait for auth_wait. */
bool auth_is_ready(struct auth *a);
/* Calls back once the credentials are there or cannot be had. */
struct auth_waiter {
    struct auth_waiter *next;
    void (*fn)(void *arg, const struct err *err);
    void *arg;
    bool linked;
};
void auth_wait(struct auth *a, struct auth_waiter *waiter,
               void (*fn)(void *arg, const struct err *err), void *arg);
void auth_unwait(struct auth *a, struct auth_waiter *waiter);

/* The value of the Authorization header; empty: none. */
void auth_header(struct auth *a, struct buf *ret);
/* The server said 401: what is cached must be fetched again. */
void auth_refused(struct auth *a);
/* How to reach the server, with a certificate of the plugin if it gave one. */
const struct http_tls *auth_tls(const struct auth *a);

#endif
