/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/client/queue.h"

#include "base/arena.h"
#include "base/backoff.h"
#include "base/map.h"

#define RETRY_FIRST NS_PER_S
#define RETRY_MOST (2 * NS_PER_MIN)

struct queue_key {
    struct queue *queue;
    struct str name; /* the map's own copy */
    bool ready, working, again, forgotten;
    struct backoff backoff;
    struct loop_timer timer;
    struct queue_key *next; /* in the ready list */
};

struct queue {
    struct loop *loop;
    struct rng rng;
    unsigned parallel, n_working;
    bool paused;
    void (*process)(void *arg, struct str key);
    void *arg;
    struct map keys;
    struct queue_key *first, **last;
    size_t n_ready;
    struct loop_timer pump;
};

struct queue *queue_new(struct loop *l, uint64_t seed, unsigned parallel,
                        void (*process)(void *arg, struct str key), void *arg)
{
    struct queue *q = xcalloc(1, sizeof(*q));
    q->loop = l;
    q->parallel = parallel ? parallel : 1;
    q->process = process;
    q->arg = arg;
    q->last = &q->first;
    rng_split(&q->rng, seed, "kube/client/queue");
    return q;
}

void queue_free(struct queue *q)
{
    if (!q)
        return;
    map_each(&q->keys, e) {
        struct queue_key *k = e->value;
        loop_timer_cancel(q->loop, &k->timer);
        free((void *)(uintptr_t)k->name.p);
        free(k);
    }
    map_release(&q->keys, NULL);
    loop_timer_cancel(q->loop, &q->pump);
    free(q);
}

static struct queue_key *key_of(struct queue *q, struct str name)
{
    void **slot = map_slot(&q->keys, name);
    if (!*slot) {
        struct queue_key *k = xcalloc(1, sizeof(*k));
        k->queue = q;
        k->name = (struct str){xstr_dup(name), name.len};
        k->backoff = (struct backoff){.base = RETRY_FIRST, .cap = RETRY_MOST};
        *slot = k;
    }
    return *slot;
}

static void drop(struct queue *q, struct queue_key *k)
{
    loop_timer_cancel(q->loop, &k->timer);
    map_remove(&q->keys, k->name);
    free((void *)(uintptr_t)k->name.p);
    free(k);
}

static void pump(void *arg)
{
    struct queue *q = arg;
    while (q->first && !q->paused && q->n_working < q->parallel) {
        struct queue_key *k = q->first;
        q->first = k->next;
        if (!q->first)
            q->last = &q->first;
        q->n_ready--;
        k->ready = false;
        if (k->forgotten) {
            drop(q, k);
            continue;
        }
        k->working = true;
        q->n_working++;
        q->process(q->arg, k->name);
    }
}

static void pump_soon(struct queue *q)
{
    if (!loop_timer_active(&q->pump))
        loop_timer_in(q->loop, &q->pump, 0, pump, q);
}

static void make_ready(void *arg)
{
    struct queue_key *k = arg;
    struct queue *q = k->queue;
    loop_timer_cancel(q->loop, &k->timer);
    if (k->working) {
        k->again = true;
        return;
    }
    if (!k->ready) {
        k->ready = true;
        k->next = NULL;
        *q->last = k;
        q->last = &k->next;
        q->n_ready++;
    }
    pump_soon(q);
}

void queue_add(struct queue *q, struct str name)
{
    struct queue_key *k = key_of(q, name);
    k->forgotten = false;
    make_ready(k);
}

void queue_add_after(struct queue *q, struct str name, int64_t delay)
{
    if (delay <= 0) {
        queue_add(q, name);
        return;
    }
    struct queue_key *k = key_of(q, name);
    k->forgotten = false;
    int64_t at = loop_now(q->loop) + delay;
    if (k->ready || k->again || (loop_timer_active(&k->timer) && k->timer.node.key <= at))
        return;
    loop_timer_at(q->loop, &k->timer, at, make_ready, k);
}

void queue_done(struct queue *q, struct str name, bool ok)
{
    struct queue_key *k = map_get(&q->keys, name);
    if (!k || !k->working)
        return;
    k->working = false;
    q->n_working--;
    if (ok)
        backoff_reset(&k->backoff);
    if (k->forgotten) {
        drop(q, k);
    } else if (k->again) {
        k->again = false;
        make_ready(k);
    } else if (!ok) {
        int64_t at = loop_now(q->loop) + backoff_next(&k->backoff, &q->rng);
        if (!loop_timer_active(&k->timer) || k->timer.node.key > at)
            loop_timer_at(q->loop, &k->timer, at, make_ready, k);
    }
    pump_soon(q);
}

void queue_forget(struct queue *q, struct str name)
{
    struct queue_key *k = map_get(&q->keys, name);
    if (!k)
        return;
    loop_timer_cancel(q->loop, &k->timer);
    k->again = false;
    k->forgotten = true;
    if (!k->working && !k->ready)
        drop(q, k);
}

size_t queue_len(const struct queue *q)
{
    return q->n_ready + q->n_working;
}

void queue_pause(struct queue *q, bool paused)
{
    q->paused = paused;
    if (!paused)
        pump_soon(q);
}
