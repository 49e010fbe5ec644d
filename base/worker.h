/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Threads for what would block the loop: the solver on an immutable world, credential plugins,
 * blocking library calls. Results come back on the loop (base/op.h).
 *
 * Under a virtual loop the job runs on the caller's thread, from a posted callback, and takes the
 * virtual time `cost` that worker_start was given: deterministic. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include "base/loop.h"

struct worker;
struct worker_job;

struct worker *worker_new(struct loop *l, unsigned threads);
/* Waits for running jobs and drops those not begun; `done` is not called, `dispose` is. */
void worker_free(struct worker *w);

/* `run` is called on a thread with nothing shared but `arg`; `done` on the loop. After cancel a job
 * that has not begun is not run, but one that has may still be running: `arg` must outlive it, so
 * it is freed by `dispose` (may be NULL), which is called exactly once, on the loop, when nobody
 * uses `arg` any more. */
struct worker_job *worker_start(struct worker *w, int64_t virtual_cost, void (*run)(void *arg),
                                void (*dispose)(void *arg), void (*done)(void *arg), void *arg);
void worker_cancel(struct worker_job *j);

#endif
