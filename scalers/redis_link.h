/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* One connection to one Redis server with one credential, shared by every trigger that uses both.
 *
 * Calls of one turn of the loop leave in one write, ordered by database with a SELECT between, so a
 * hundred keys cost one round trip. A connection that fails fails every call on it with the reason,
 * and is tried again after a growing pause; until then calls fail at once with that same reason. */
#ifndef SCALERS_REDIS_LINK_H
#define SCALERS_REDIS_LINK_H

#include "scalers/resp.h"
#include "scalers/scaler.h"
#include "scalers/stream.h"

#define REDIS_CALL_REPLIES_MAX 4

struct redis_server {
    struct str host;
    uint16_t port;
    bool tls;
    struct stream_tls tls_options;
    struct str username, password; /* empty: none */
};

struct redis_link;

/* A reference to the link of that server and credential. NULL: TLS material that cannot be read. */
struct redis_link *redis_link_get(struct scaler_host *h, const struct redis_server *server,
                                  struct err *err);
void redis_link_put(struct redis_link *l); /* NULL is harmless; no calls of the caller remain */

/* Commands that go out together, in order, in one database. Zero-initialise; embed. */
struct redis_call {
    int64_t database;
    struct buf commands; /* resp_command; filled before redis_call_start, which empties it */
    unsigned n_replies;  /* one a command */
    /* Replies are borrowed. err: no replies came. */
    void (*done)(void *arg, struct resp_reply *const *replies, const struct err *err);
    void *arg;
    /* private */
    struct resp_reply *replies[REDIS_CALL_REPLIES_MAX];
    unsigned n_have;
    int64_t deadline;
    bool active;
};

/* Ends within SCALER_TIMEOUT. The callback runs from the loop, never before this returns. */
void redis_call_start(struct redis_link *l, struct redis_call *c);
void redis_call_cancel(struct redis_link *l, struct redis_call *c); /* harmless when not active */

/* Sets `err` from an error reply: what the server says, if it looks like a Redis error. */
int redis_reply_error(const struct resp_reply *reply, struct err *err);

/* For tests and metrics: connections made and writes so far. */
struct redis_counts {
    size_t links, connects, writes, calls;
};
struct redis_counts redis_counts(struct scaler_host *h);

#endif
