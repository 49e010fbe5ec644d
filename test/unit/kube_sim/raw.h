/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A raw HTTP client for the simulator's tests: one call at a time, and watch streams that collect.
 */
#ifndef TEST_UNIT_KUBE_SIM_RAW_H
#define TEST_UNIT_KUBE_SIM_RAW_H

#include "base/buf.h"
#include "base/time.h"
#include "kube/sim/sim.h"

struct raw {
    struct loop *loop;
    struct sim *sim;
    struct http *http;
    /* The last answer. */
    int status;
    int64_t retry_after; /* ns; -1: none */
    struct buf body;
    struct arena arena; /* of `json` */
    struct json *json;  /* the body, if it is JSON */
    enum err_code error;
    bool done;
};

void raw_open(struct raw *r, uint64_t seed, const struct sim_options *o);
void raw_close(struct raw *r);
/* Runs the loop until the answer is there; returns the status, 0 without one. PATCH is a merge
 * patch unless the type is given with raw_send. */
int raw_call(struct raw *r, const char *method, const char *path, const char *body);
int raw_send(struct raw *r, const char *method, const char *path, const char *type,
             const char *body);
/* A text of the last answer, at a path of keys. */
struct str raw_text(const struct raw *r, const char *a, const char *b, const char *c);
void raw_run(struct raw *r, double seconds);

/* A watch: what came so far is `text`; `ended` once the stream is over. */
struct raw_watch {
    struct buf text;
    int status;
    bool ended;
    struct http_op *op;
};
void raw_watch(struct raw *r, struct http *h, const char *path, struct raw_watch *w);
size_t raw_watch_count(const struct raw_watch *w, const char *needle);

void raw_pod(struct raw *r, const char *name, const char *extra_spec); /* 100m, direct */
void raw_node(struct raw *r, const char *name, const char *zone, int64_t cpu_milli);

#endif
