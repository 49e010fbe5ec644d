/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The part of the loop that both backends share: the order of timers and of posted calls. */

#include "base/loop.h"

#include <assert.h>

#include "base/loop_backend.h"
#include "base/num.h"

void loop_free(struct loop *l)
{
    if (!l)
        return;
    heap_release(&l->timers);
    vec_release(&l->round);
    l->backend->free(l);
}

bool loop_is_virtual(const struct loop *l)
{
    return l->backend->is_virtual;
}

int64_t loop_now(const struct loop *l)
{
    return l->now;
}

int64_t loop_wall(const struct loop *l)
{
    return l->backend->wall((struct loop *)(uintptr_t)l);
}

void loop_timer_at(struct loop *l, struct loop_timer *t, int64_t deadline, void (*fn)(void *),
                   void *arg)
{
    heap_remove(&l->timers, &t->node);
    t->fn = fn;
    t->arg = arg;
    heap_push(&l->timers, &t->node, deadline);
}

void loop_timer_in(struct loop *l, struct loop_timer *t, int64_t delay, void (*fn)(void *),
                   void *arg)
{
    loop_timer_at(l, t, num_add_sat(l->now, delay), fn, arg);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
    heap_remove(&l->timers, &t->node);
}

int loop_fd_set(struct loop *l, struct loop_fd *f, int events, struct err *err)
{
    return l->backend->fd_set(l, f, events, err);
}

void loop_fd_remove(struct loop *l, struct loop_fd *f)
{
    l->backend->fd_remove(l, f);
}

void loop_post(struct loop *l, void (*fn)(void *), void *arg)
{
    l->backend->post(l, (struct loop_post_item){fn, arg});
}

void loop_unpost(struct loop *l, void (*fn)(void *), void *arg)
{
    const struct loop_post_item item = {fn, arg};
    loop_posts_drop(&l->round, item);
    l->backend->unpost(l, item);
}

void loop_hold(struct loop *l)
{
    l->holds++;
}

void loop_unhold(struct loop *l)
{
    assert(l->holds > 0);
    l->holds--;
}

int loop_signal(struct loop *l, int signum, void (*fn)(void *arg, int signum), void *arg,
                struct err *err)
{
    return l->backend->signal(l, signum, fn, arg, err);
}

void loop_stop(struct loop *l)
{
    l->stopping = true;
}

uint64_t loop_steps(const struct loop *l)
{
    return l->steps;
}

/* Calls what was posted before this round; what those calls post waits for the next. */
static bool run_posted(struct loop *l)
{
    vec_clear(&l->round);
    l->backend->take_posted(l, &l->round);
    for (size_t i = 0; i < l->round.len; i++) {
        struct loop_post_item item = l->round.v[i];
        if (!item.fn)
            continue;
        loop_count(l);
        item.fn(item.arg);
    }
    return l->round.len > 0;
}

/* Fires the timers that are due. Those that the callbacks start for now wait for the next round, so
 * that posted calls and descriptors are not starved. */
static bool run_timers(struct loop *l)
{
    uint64_t end = l->timers.next_seq;
    bool any = false;
    for (;;) {
        struct heap_node *n = heap_peek(&l->timers);
        if (!n || n->key > l->now || n->seq >= end)
            return any;
        heap_pop(&l->timers);
        struct loop_timer *t = CONTAINER_OF(n, struct loop_timer, node);
        loop_count(l);
        any = true;
        t->fn(t->arg);
        if (l->stopping)
            return true;
    }
}

/* One round, waiting no later than `limit`. False: nothing is left to happen by then. */
static bool run_round(struct loop *l, int64_t limit)
{
    l->now = l->backend->now(l);
    bool any = run_posted(l);
    if (l->stopping)
        return true;
    any |= run_timers(l);
    if (l->stopping)
        return true;
    if (any) {
        l->backend->wait(l, l->now); /* descriptors get their turn in every round */
        return true;
    }
    const struct heap_node *next = heap_peek(&l->timers);
    return l->backend->wait(l, next ? MIN(next->key, limit) : limit);
}

void loop_run(struct loop *l)
{
    loop_run_until(l, TIME_NEVER);
}

void loop_run_until(struct loop *l, int64_t deadline)
{
    assert(!l->running);
    l->running = true;
    l->stopping = false;
    while (!l->stopping && run_round(l, deadline))
        if (l->now >= deadline &&
            (!heap_peek(&l->timers) || heap_peek(&l->timers)->key > deadline) && !run_posted(l))
            break;
    l->running = false;
}
