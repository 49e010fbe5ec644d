/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What a loop backend does: reads the clocks and waits. Private to base/loop*.c. */
#ifndef BASE_LOOP_BACKEND_H
#define BASE_LOOP_BACKEND_H

#include "base/loop.h"
#include "base/vec.h"

struct loop_post_item {
    void (*fn)(void *arg); /* NULL: taken back */
    void *arg;
};

VEC_DEFINE(loop_posts, struct loop_post_item);

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
    /* Exchanges what was posted for the caller's vector, which is empty. */
    void (*take_posted)(struct loop *l, struct loop_posts *posts);
    void (*unpost)(struct loop *l, struct loop_post_item item);
    int (*signal)(struct loop *l, int signum, void (*fn)(void *arg, int signum), void *arg,
                  struct err *err);
    void (*free)(struct loop *l);
};

struct loop {
    const struct loop_backend *backend;
    struct heap timers;
    struct loop_posts round; /* the posted calls of the round under way */
    int64_t now;             /* cached for the callback under way */
    uint64_t steps;
    unsigned holds;
    bool running, stopping;
};

/* One step further in the step counter; every callback of a backend calls it. */
static inline void loop_count(struct loop *l)
{
    l->steps++;
}

/* Makes every call that equals `item` one without effect; the others keep their places. */
static inline void loop_posts_drop(struct loop_posts *posts, struct loop_post_item item)
{
    for (size_t i = 0; i < posts->len; i++)
        if (posts->v[i].fn == item.fn && posts->v[i].arg == item.arg)
            posts->v[i].fn = NULL;
}

#endif
