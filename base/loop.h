/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The event loop: timers, descriptors and the two clocks, real or virtual.
 *
 * One thread owns it. The order of timers is (deadline, then the order of starting) in both
 * backends, and it is the same code; the backend only reads the clock and waits. Under virtual time
 * waiting is a jump to the next deadline, so a simulated week takes seconds and the code that
 * ran is the code that ships.
 *
 * Times are int64_t nanoseconds. loop_now is monotonic, for deadlines; loop_wall is since 1970, for
 * what is written down. Under virtual time wall = now + a start instant. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/heap.h"
#include "base/time.h"

struct loop;

/* Embed; zero-initialise. */
struct loop_timer {
    struct heap_node node;
    void (*fn)(void *arg);
    void *arg;
};

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

struct loop_fd {
    int fd;
    int events; /* LOOP_READ | LOOP_WRITE */
    void (*fn)(void *arg, int events);
    void *arg;
    bool active;
};

struct loop *loop_new_epoll(struct err *err);
/* Starts at monotonic 0 and the given wall instant. Descriptors are refused (assert). */
struct loop *loop_new_virtual(int64_t wall_start);
void loop_free(struct loop *l);
bool loop_is_virtual(const struct loop *l);

int64_t loop_now(const struct loop *l);  /* monotonic ns; constant within one callback */
int64_t loop_wall(const struct loop *l); /* ns since 1970 */
/* Virtual only: a jump of the wall clock (clock skew faults). */
void loop_wall_jump(struct loop *l, int64_t by);

/* Fires once at or after `deadline` (loop_now scale). Starting a started timer moves it. */
void loop_timer_at(struct loop *l, struct loop_timer *t, int64_t deadline, void (*fn)(void *),
                   void *arg);
void loop_timer_in(struct loop *l, struct loop_timer *t, int64_t delay, void (*fn)(void *),
                   void *arg);
void loop_timer_cancel(struct loop *l, struct loop_timer *t);
static inline bool loop_timer_active(const struct loop_timer *t)
{
    return heap_has(&t->node);
}

/* Registers or changes interest; level-triggered; no events is loop_fd_remove. The struct must live
 * until loop_fd_remove, which any callback may call, also for a descriptor that is ready too. */
int loop_fd_set(struct loop *l, struct loop_fd *f, int events, struct err *err);
void loop_fd_remove(struct loop *l, struct loop_fd *f);

/* Calls fn(arg) from the loop as soon as possible. Safe from any thread (epoll backend). */
void loop_post(struct loop *l, void (*fn)(void *), void *arg);
/* Takes back every such call that has not run yet: for an owner that frees `arg`. */
void loop_unpost(struct loop *l, void (*fn)(void *), void *arg);

/* Tells the loop that work outside it (a worker's job) will call loop_post, so that it waits even
 * with no timer. Under virtual time such work runs at once, see base/worker.h. */
void loop_hold(struct loop *l);
void loop_unhold(struct loop *l);

/* Until loop_stop, or (virtual) until nothing is left to happen. Not from inside a callback. */
void loop_run(struct loop *l);
/* Until loop_now would pass `deadline`; then now == deadline under virtual time. */
void loop_run_until(struct loop *l, int64_t deadline);
void loop_stop(struct loop *l);
/* Number of callbacks run so far; the simulator's step counter. */
uint64_t loop_steps(const struct loop *l);

/* SIGTERM, SIGINT and the like as a callback on the loop (epoll only). */
int loop_signal(struct loop *l, int signum, void (*fn)(void *arg, int signum), void *arg,
                struct err *err);

#endif
