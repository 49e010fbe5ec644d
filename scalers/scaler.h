/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A scaler asks one source one question: how much work is there?
 *
 * A trigger type is one entry of the array in registry.c: a name, the option table of its
 * parameters, and open, poll, close. Parameters come resolved (scalers/auth.h): metadata,
 * authentication and environment are one object by then, so a scaler only reads its table.
 * docs/extending/new-scaler.md is the checklist.
 *
 * Async contract (base/op.h) with one poll at a time: `poll` starts, the callback runs exactly once
 * from the loop, never before poll has returned, and within the deadline; `close` is immediate and
 * silent, also during a poll. A scaler never retries on its own: the next poll does. */
#ifndef SCALERS_SCALER_H
#define SCALERS_SCALER_H

#include "base/err.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/schema.h"
#include "base/worker.h"
#include "scalers/decide.h"

#define SCALER_TIMEOUT (3 * NS_PER_S) /* of a poll, where the trigger does not say */
#define SCALER_METRICS_MAX 8          /* of one trigger */

/* What all scalers share: the loop, the transport, and rooms of their own (connection pools) that
 * live as long as the host. Zero-initialise, set the first members, scaler_host_release at the end.
 */
struct scaler_host {
    struct loop *loop;
    struct http *http;       /* NULL: no HTTP triggers */
    struct worker *worker;   /* for name resolution; NULL: numeric addresses only */
    struct metrics *metrics; /* NULL: none */
    uint64_t seed;
    struct map rooms; /* of struct scaler_room */
};

/* The room of that name: made with `size` zeroed bytes on first use, ended with `release`. */
void *scaler_host_room(struct scaler_host *h, const char *name, size_t size,
                       void (*release)(void *room));
void scaler_host_release(struct scaler_host *h); /* all scalers are closed by then */

/* The answer of one metric. */
struct scaler_value {
    const char *metric;                /* "s0-redis-jobs"; lives as long as the scaler */
    enum decide_verdict verdict;       /* KNOWN or EMPTY; failure is the callback's err */
    int64_t value, target, activation; /* milli-units */
};

/* err NULL: `n` values (1..SCALER_METRICS_MAX). err set: the source gave no answer; the message
 * names it and holds no secret. */
typedef void scaler_done(void *arg, const struct scaler_value *values, size_t n,
                         const struct err *err);

struct scaler {
    const struct scaler_type *type;
    struct scaler_host *host;
    struct arena arena; /* lives as long as the scaler */
    unsigned index;     /* of the trigger in its list */
    scaler_done *done;  /* of the poll under way; NULL: none */
    void *done_arg;
};

struct scaler_type {
    const char *name;
    const struct option *schema;
    size_t size; /* of its struct, which starts with struct scaler */
    /* Checks parameters and takes its connection; does no I/O that waits. ERR_INVALID names the
     * parameter. On failure the generic part is freed by the caller. */
    int (*open)(struct scaler *s, const struct json *parameters, struct err *err);
    void (*poll)(struct scaler *s);
    void (*close)(struct scaler *s);
};

/* NULL: there is no such type. */
const struct scaler_type *scaler_type_find(const char *name);
const struct scaler_type *const *scaler_types(size_t *ret_n);
/* One more type for this process, found after those of the array; NULL takes it away. For the
 * simulator, whose queues no network reaches. */
void scaler_type_extra(const struct scaler_type *type);
/* For annotations_parse. */
const struct option *scaler_schema(const char *type);

/* Opens a trigger with resolved parameters (scalers/auth.h). `index` is its place in the list. */
struct scaler *scaler_open(struct scaler_host *h, const struct scaler_type *type, unsigned index,
                           const struct json *parameters, struct err *err);
/* Asserts that none is under way. */
void scaler_poll(struct scaler *s, scaler_done *done, void *arg);
void scaler_close(struct scaler *s); /* NULL is harmless */

/* For scalers: end the poll under way. */
void scaler_answer(struct scaler *s, const struct scaler_value *values, size_t n,
                   const struct err *err);
/* "s<index>-" and `base` with / . : % ( ) as '-', in the scaler's arena. */
const char *scaler_metric_name(struct scaler *s, struct str base);
/* A whole number as milli-units, saturating. */
static inline int64_t scaler_milli(int64_t whole)
{
    return whole > INT64_MAX / 1000 ? INT64_MAX : whole * 1000;
}

/* One Markdown section a type, from its table. */
void scaler_docs(struct buf *out);

#endif
