/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Keys that need a look: each waits at most once, and failed ones come back after a growing pause.
 *
 * queue_add during the key's own processing runs it once more afterwards. One key is processed by
 * one callback at a time; the callback says when it is done (queue_done), so it may start calls. */
#ifndef KUBE_CLIENT_QUEUE_H
#define KUBE_CLIENT_QUEUE_H

#include "base/loop.h"
#include "base/str.h"

struct queue;

struct queue *queue_new(struct loop *l, uint64_t seed, unsigned parallel,
                        void (*process)(void *arg, struct str key), void *arg);
void queue_free(struct queue *q);
void queue_add(struct queue *q, struct str key);
void queue_add_after(struct queue *q, struct str key,
                     int64_t delay); /* the earlier of several wins */
/* ok: forgets the failures. Not ok: again after 1 s, 2 s, … 2 min with jitter. */
void queue_done(struct queue *q, struct str key, bool ok);
void queue_forget(struct queue *q, struct str key); /* the object is gone */
size_t queue_len(const struct queue *q);            /* ready or in work */
/* Stops handing out keys (not leader); keys are kept. */
void queue_pause(struct queue *q, bool paused);

#endif
