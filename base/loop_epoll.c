/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Real time: epoll, an eventfd for calls from other threads, a signalfd. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/loop_backend.h"

#define EVENTS_A_ROUND 64

struct signal_handler {
    int signum;
    void (*fn)(void *arg, int signum);
    void *arg;
};

struct loop_epoll {
    struct loop loop;
    int epoll, wake;
    pthread_mutex_t lock;     /* guards the next */
    struct loop_posts posted; /* from any thread */
    struct loop_fd wake_fd, signal_fd;
    sigset_t signals;
    struct {
        VEC(struct signal_handler);
    } handlers;
    /* The batch being handed out, so that a removed descriptor's later events are dropped. */
    struct epoll_event *batch;
    int batch_at, batch_n;
};

static struct loop_epoll *of(struct loop *l)
{
    return CONTAINER_OF(l, struct loop_epoll, loop);
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int64_t epoll_now(struct loop *l UNUSED)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static int64_t epoll_wall(struct loop *l UNUSED)
{
    return clock_ns(CLOCK_REALTIME);
}

static bool has_posted(struct loop_epoll *e)
{
    pthread_mutex_lock(&e->lock);
    bool any = e->posted.len > 0;
    pthread_mutex_unlock(&e->lock);
    return any;
}

static bool epoll_wait_for(struct loop *l, int64_t deadline)
{
    struct loop_epoll *e = of(l);
    struct epoll_event events[EVENTS_A_ROUND];
    int timeout = -1;
    if (has_posted(e)) {
        timeout = 0;
    } else if (deadline != TIME_NEVER) {
        int64_t left = deadline - clock_ns(CLOCK_MONOTONIC);
        timeout = (int)MAX(MIN((left + NS_PER_MS - 1) / NS_PER_MS, (int64_t)60000), (int64_t)0);
    }
    int n = epoll_wait(e->epoll, events, EVENTS_A_ROUND, timeout);
    l->now = clock_ns(CLOCK_MONOTONIC);
    e->batch = events;
    e->batch_n = n < 0 ? 0 : n;
    for (e->batch_at = 0; e->batch_at < e->batch_n && !l->stopping; e->batch_at++) {
        struct loop_fd *f = events[e->batch_at].data.ptr;
        uint32_t got = events[e->batch_at].events;
        if (!f)
            continue;
        int ready = (got & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP) ? LOOP_READ : 0) |
                    (got & (EPOLLOUT | EPOLLHUP | EPOLLERR) ? LOOP_WRITE : 0);
        ready &= f->events;
        if (ready) {
            loop_count(l);
            f->fn(f->arg, ready);
        }
    }
    e->batch = NULL;
    return true;
}

static void epoll_fd_remove(struct loop *l, struct loop_fd *f)
{
    struct loop_epoll *e = of(l);
    if (!f->active)
        return;
    epoll_ctl(e->epoll, EPOLL_CTL_DEL, f->fd, NULL);
    f->active = false;
    for (int i = e->batch ? e->batch_at + 1 : 0; e->batch && i < e->batch_n; i++)
        if (e->batch[i].data.ptr == f)
            e->batch[i].data.ptr = NULL;
}

/* Without interest a descriptor is taken out: epoll would tell of a hang-up again and again. */
static int epoll_fd_set(struct loop *l, struct loop_fd *f, int events, struct err *err)
{
    struct loop_epoll *e = of(l);
    f->events = events;
    if (!events) {
        epoll_fd_remove(l, f);
        return 0;
    }
    struct epoll_event ev = {.data.ptr = f};
    ev.events = (events & LOOP_READ ? (uint32_t)EPOLLIN | EPOLLRDHUP : 0) |
                (events & LOOP_WRITE ? (uint32_t)EPOLLOUT : 0);
    int ret = epoll_ctl(e->epoll, f->active ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, f->fd, &ev);
    if (ret < 0 && f->active && errno == ENOENT) /* closed, and the number used again */
        ret = epoll_ctl(e->epoll, EPOLL_CTL_ADD, f->fd, &ev);
    if (ret < 0)
        return err_errno(err, errno, "cannot watch descriptor %d", f->fd);
    f->active = true;
    return 0;
}

static void epoll_post(struct loop *l, struct loop_post_item item)
{
    struct loop_epoll *e = of(l);
    pthread_mutex_lock(&e->lock);
    vec_push(&e->posted, item);
    pthread_mutex_unlock(&e->lock);
    uint64_t one = 1;
    ssize_t n = write(e->wake, &one, sizeof(one));
    (void)n; /* a full counter wakes as well */
}

static void epoll_take_posted(struct loop *l, struct loop_posts *posts)
{
    struct loop_epoll *e = of(l);
    pthread_mutex_lock(&e->lock);
    struct loop_posts taken = e->posted;
    e->posted = *posts;
    *posts = taken;
    pthread_mutex_unlock(&e->lock);
}

static void epoll_unpost(struct loop *l, struct loop_post_item item)
{
    struct loop_epoll *e = of(l);
    pthread_mutex_lock(&e->lock);
    loop_posts_drop(&e->posted, item);
    pthread_mutex_unlock(&e->lock);
}

static void drain_wake(void *arg, int events UNUSED)
{
    struct loop_epoll *e = arg;
    uint64_t count;
    ssize_t n = read(e->wake, &count, sizeof(count));
    (void)n;
}

static void read_signals(void *arg, int events UNUSED)
{
    struct loop_epoll *e = arg;
    struct signalfd_siginfo info;
    while (read(e->signal_fd.fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        for (size_t i = 0; i < e->handlers.len; i++)
            if (e->handlers.v[i].signum == (int)info.ssi_signo)
                e->handlers.v[i].fn(e->handlers.v[i].arg, e->handlers.v[i].signum);
}

static int epoll_signal(struct loop *l, int signum, void (*fn)(void *arg, int signum), void *arg,
                        struct err *err)
{
    struct loop_epoll *e = of(l);
    sigaddset(&e->signals, signum);
    pthread_sigmask(SIG_BLOCK, &e->signals, NULL);
    int fd = signalfd(e->signal_fd.active ? e->signal_fd.fd : -1, &e->signals,
                      SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "cannot watch signal %d", signum);
    vec_push(&e->handlers, (struct signal_handler){signum, fn, arg});
    if (e->signal_fd.active)
        return 0;
    e->signal_fd = (struct loop_fd){.fd = fd, .fn = read_signals, .arg = e};
    return loop_fd_set(l, &e->signal_fd, LOOP_READ, err);
}

static void epoll_free(struct loop *l)
{
    struct loop_epoll *e = of(l);
    if (e->signal_fd.active)
        close(e->signal_fd.fd);
    close(e->wake);
    close(e->epoll);
    pthread_mutex_destroy(&e->lock);
    vec_release(&e->handlers);
    vec_release(&e->posted);
    free(e);
}

static const struct loop_backend backend = {
    .now = epoll_now,
    .wall = epoll_wall,
    .wait = epoll_wait_for,
    .fd_set = epoll_fd_set,
    .fd_remove = epoll_fd_remove,
    .post = epoll_post,
    .take_posted = epoll_take_posted,
    .unpost = epoll_unpost,
    .signal = epoll_signal,
    .free = epoll_free,
};

struct loop *loop_new_epoll(struct err *err)
{
    signal(SIGPIPE, SIG_IGN);
    struct loop_epoll *e = xcalloc(1, sizeof(*e));
    e->loop.backend = &backend;
    pthread_mutex_init(&e->lock, NULL);
    sigemptyset(&e->signals);
    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    e->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    e->wake_fd = (struct loop_fd){.fd = e->wake, .fn = drain_wake, .arg = e};
    if (e->epoll < 0 || e->wake < 0 || loop_fd_set(&e->loop, &e->wake_fd, LOOP_READ, err) < 0) {
        err_errno(err, errno, "cannot make an event loop");
        epoll_free(&e->loop);
        return NULL;
    }
    e->loop.now = clock_ns(CLOCK_MONOTONIC);
    return &e->loop;
}
