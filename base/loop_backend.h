/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What a loop backend does: reads the clocks and waits. Private to base/loop*.c. */
#ifndef BASE_LOOP_BACKEND_H
#define BASE_LOOP_BACKEND_H

#include "base/loop.h"

struct loop_post_item {
    void (*fn)(void *arg);
    void *arg;
};

struct loop_backend {
    bool is_virtual;
    int64_t (*now)(struct loop *l);
    int64_t (*wall)(struct loop *l);
    /* Waits until something is ready or `deadline` (TIME_NEVER: none) and calls descriptor
     * callbacks. Returns false when nothing can ever become ready. */
    bool (*wait)(struct loop *l, int64_t deadline);
    int (*fd_set)(struct loop *l, struct loop_fd *f, int events, struct err *err);
    void (*fd_remove)(struct loop *l, struct loop_fd *f);
    void (*post)(struct loop *l, struct loop_post_item item); /* from any thread */
    /* Takes what was posted: fills the caller's array and returns how many. */
    size_t (*take_posted)(struct loop *l, struct loop_post_item *out, size_t n);
    int (*signal)(struct loop *l, int signum, void (*fn)(void *arg, int signum), void *arg,
                  struct err *err);
    void (*free)(struct loop *l);
};

struct loop {
    const struct loop_backend *backend;
    struct heap timers;
    int64_t now; /* cached for the callback under way */
    uint64_t steps;
    unsigned holds;
    bool stopping;
};

/* One step further in the step counter; every callback of a backend calls it. */
static inline void loop_count(struct loop *l)
{
    l->steps++;
}

#endif
