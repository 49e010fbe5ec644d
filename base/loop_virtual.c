/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Virtual time: waiting is a jump to the next deadline. */

#include <assert.h>

#include "base/arena.h"
#include "base/loop_backend.h"

struct loop_virtual {
    struct loop loop;
    int64_t time, wall_offset;
    struct loop_posts posted;
};

static struct loop_virtual *of(struct loop *l)
{
    return CONTAINER_OF(l, struct loop_virtual, loop);
}

static int64_t virtual_now(struct loop *l)
{
    return of(l)->time;
}

static int64_t virtual_wall(struct loop *l)
{
    return of(l)->time + of(l)->wall_offset;
}

static bool virtual_wait(struct loop *l, int64_t deadline)
{
    struct loop_virtual *v = of(l);
    if (v->posted.len)
        return true;
    if (deadline == TIME_NEVER)
        return false;
    if (deadline > v->time)
        v->time = deadline;
    l->now = v->time;
    return true;
}

static int virtual_fd_set(struct loop *l UNUSED, struct loop_fd *f UNUSED, int events UNUSED,
                          struct err *err)
{
    assert(false && "descriptors have no place under virtual time");
    return err_set(err, ERR_INVALID, "no descriptors under virtual time");
}

static void virtual_fd_remove(struct loop *l UNUSED, struct loop_fd *f UNUSED) {}

static void virtual_post(struct loop *l, struct loop_post_item item)
{
    vec_push(&of(l)->posted, item);
}

static void virtual_take_posted(struct loop *l, struct loop_posts *posts)
{
    struct loop_posts taken = of(l)->posted;
    of(l)->posted = *posts;
    *posts = taken;
}

static void virtual_unpost(struct loop *l, struct loop_post_item item)
{
    loop_posts_drop(&of(l)->posted, item);
}

static int virtual_signal(struct loop *l UNUSED, int signum UNUSED, void (*fn)(void *, int) UNUSED,
                          void *arg UNUSED, struct err *err UNUSED)
{
    return 0; /* signals never come */
}

static void virtual_free(struct loop *l)
{
    struct loop_virtual *v = of(l);
    vec_release(&v->posted);
    free(v);
}

static const struct loop_backend backend = {
    .is_virtual = true,
    .now = virtual_now,
    .wall = virtual_wall,
    .wait = virtual_wait,
    .fd_set = virtual_fd_set,
    .fd_remove = virtual_fd_remove,
    .post = virtual_post,
    .take_posted = virtual_take_posted,
    .unpost = virtual_unpost,
    .signal = virtual_signal,
    .free = virtual_free,
};

struct loop *loop_new_virtual(int64_t wall_start)
{
    struct loop_virtual *v = xcalloc(1, sizeof(*v));
    v->loop.backend = &backend;
    v->wall_offset = wall_start;
    return &v->loop;
}

void loop_wall_jump(struct loop *l, int64_t by)
{
    assert(l->backend == &backend);
    of(l)->wall_offset += by;
}
