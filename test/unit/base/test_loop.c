/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The loop: order and clocks under virtual time, descriptors, threads and signals under epoll. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/rng.h"

#define WALL_START INT64_C(1750000000000000000)

static struct loop *new_epoll(void)
{
    struct err err = ERR_INIT;
    struct loop *l = loop_new_epoll(&err);
    assert_non_null(l);
    return l;
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* Numbers in the order in which callbacks ran. */
struct trace {
    struct loop *loop;
    int v[4096];
    int64_t at[4096];
    size_t n;
};

struct mark {
    struct trace *trace;
    int id;
    struct loop_timer timer;
};

static void note(void *arg)
{
    struct mark *m = arg;
    assert_true(m->trace->n < ARRAY_LEN(m->trace->v));
    m->trace->at[m->trace->n] = loop_now(m->trace->loop);
    m->trace->v[m->trace->n++] = m->id;
}

/* ---- Timers ---- */

/* Random starts, moves and cancels against the plainest model: the live timer with the least
 * (deadline, order of starting) is next. */
static void check_timer_order(struct loop *l, int64_t spread, uint64_t seed)
{
    enum { TIMERS = 60, STEPS = 400 };
    struct trace trace = {.loop = l};
    struct mark marks[TIMERS] = {0};
    int64_t deadline[TIMERS];
    uint64_t order[TIMERS] = {0}; /* 0: not started */
    struct rng r;
    rng_init(&r, seed);
    int64_t base = loop_now(l);
    for (uint64_t step = 1; step <= STEPS; step++) {
        size_t i = (size_t)rng_below(&r, TIMERS);
        marks[i].trace = &trace;
        marks[i].id = (int)i;
        if (rng_below(&r, 4) == 0) {
            loop_timer_cancel(l, &marks[i].timer);
            order[i] = 0;
        } else {
            deadline[i] = base + rng_between(&r, 0, spread);
            loop_timer_at(l, &marks[i].timer, deadline[i], note, &marks[i]);
            order[i] = step;
        }
        assert_true(loop_timer_active(&marks[i].timer) == (order[i] != 0));
    }
    loop_run_until(l, base + spread);
    size_t fired = 0;
    for (;;) {
        size_t best = TIMERS;
        for (size_t i = 0; i < TIMERS; i++)
            if (order[i] && (best == TIMERS || deadline[i] < deadline[best] ||
                             (deadline[i] == deadline[best] && order[i] < order[best])))
                best = i;
        if (best == TIMERS)
            break;
        assert_true(fired < trace.n);
        assert_int_equal(trace.v[fired], best);
        assert_true(trace.at[fired] >= deadline[best]);
        if (loop_is_virtual(l))
            assert_true(trace.at[fired] == deadline[best]);
        assert_false(loop_timer_active(&marks[best].timer));
        order[best] = 0;
        fired++;
    }
    assert_int_equal(fired, trace.n);
    assert_true(fired > 10);
}

static void test_timer_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct loop *l = loop_new_virtual(WALL_START);
        check_timer_order(l, 40, seed);
        assert_true(loop_now(l) == 40);
        loop_free(l);
        l = new_epoll();
        check_timer_order(l, 40, seed);
        loop_free(l);
    }
}

static void test_same_instant_started_inside(void **state)
{
    (void)state;
    struct loop *l = loop_new_virtual(WALL_START);
    struct trace trace = {.loop = l};
    struct mark later = {.trace = &trace, .id = 9};
    loop_timer_at(l, &later.timer, TIME_NEVER, note, &later);
    loop_run(l); /* a timer that never fires keeps nothing going */
    assert_int_equal(trace.n, 0);
    assert_true(loop_timer_active(&later.timer));
    loop_timer_in(l, &later.timer, 5, note, &later);
    loop_run_until(l, 4);
    assert_int_equal(trace.n, 0);
    assert_true(loop_now(l) == 4);
    loop_run_until(l, 100);
    assert_int_equal(trace.n, 1);
    assert_true(trace.at[0] == 5);
    assert_true(loop_now(l) == 100);
    loop_free(l);
}

/* ---- Posted calls ---- */

static void check_posts_first(struct loop *l)
{
    enum { POSTS = 500 };
    struct trace trace = {.loop = l};
    struct mark marks[POSTS + 1] = {0};
    for (int i = 0; i <= POSTS; i++)
        marks[i] = (struct mark){.trace = &trace, .id = i};
    loop_timer_in(l, &marks[POSTS].timer, 0, note, &marks[POSTS]);
    for (int i = 0; i < POSTS; i++)
        loop_post(l, note, &marks[i]);
    uint64_t before = loop_steps(l);
    loop_run_until(l, loop_now(l));
    assert_int_equal(trace.n, POSTS + 1);
    for (int i = 0; i <= POSTS; i++)
        assert_int_equal(trace.v[i], i);
    assert_true(loop_steps(l) >= before + POSTS + 1);
}

static void test_posts_before_timers(void **state)
{
    (void)state;
    struct loop *l = loop_new_virtual(WALL_START);
    check_posts_first(l);
    assert_true(loop_now(l) == 0);
    loop_free(l);
    l = new_epoll();
    check_posts_first(l);
    loop_free(l);
}

struct unposter {
    struct loop *loop;
    struct mark *victim;
};

static void unpost_victim(void *arg)
{
    struct unposter *u = arg;
    loop_unpost(u->loop, note, u->victim);
}

static void check_unpost(struct loop *l)
{
    struct trace trace = {.loop = l};
    struct mark a = {.trace = &trace, .id = 1}, b = {.trace = &trace, .id = 2},
                c = {.trace = &trace, .id = 3};
    struct unposter u = {l, &b};
    loop_post(l, note, &a);
    loop_post(l, note, &b);
    loop_unpost(l, note, &a); /* while it waits */
    loop_post(l, unpost_victim, &u);
    loop_post(l, note, &c);
    loop_post(l, note, &b); /* in the round under way when it is taken back */
    struct loop_timer end = {0};
    loop_timer_in(l, &end, 0, stop, l);
    loop_run(l);
    assert_int_equal(trace.n, 2);
    assert_int_equal(trace.v[0], 2);
    assert_int_equal(trace.v[1], 3);
}

static void test_unpost(void **state)
{
    (void)state;
    struct loop *l = loop_new_virtual(WALL_START);
    check_unpost(l);
    loop_free(l);
    l = new_epoll();
    check_unpost(l);
    loop_free(l);
}

enum { POSTERS = 4, POSTS_EACH = 5000 };

struct poster {
    struct loop *loop;
    pthread_t thread;
    int posted, seen; /* seen: the loop's thread only */
    int *left;
};

struct numbered {
    struct poster *poster;
    int n;
};

static void receive(void *arg)
{
    struct numbered *m = arg;
    assert_int_equal(m->n, m->poster->seen++);
    if (--*m->poster->left == 0)
        loop_stop(m->poster->loop);
    free(m);
}

static void *post_many(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < POSTS_EACH; i++) {
        struct numbered *m = malloc(sizeof(*m));
        *m = (struct numbered){p, i};
        loop_post(p->loop, receive, m);
    }
    return NULL;
}

/* Nothing is lost and each thread's calls keep their order. */
static void test_posts_from_threads(void **state)
{
    (void)state;
    struct loop *l = new_epoll();
    int left = POSTERS * POSTS_EACH;
    struct poster posters[POSTERS] = {0};
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.loop = l, .left = &left};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]), 0);
    }
    loop_run(l);
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(posters[i].thread, NULL);
        assert_int_equal(posters[i].seen, POSTS_EACH);
    }
    loop_free(l);
}

/* ---- Clocks ---- */

static void test_virtual_clock(void **state)
{
    (void)state;
    struct loop *l = loop_new_virtual(WALL_START);
    assert_true(loop_is_virtual(l));
    assert_true(loop_now(l) == 0);
    loop_run_until(l, NS_PER_DAY);
    assert_true(loop_wall(l) == WALL_START + NS_PER_DAY);
    loop_wall_jump(l, -NS_PER_HOUR);
    assert_true(loop_wall(l) == WALL_START + NS_PER_DAY - NS_PER_HOUR);
    assert_true(loop_now(l) == NS_PER_DAY);
    loop_run_until(l, 0); /* time does not run backwards */
    assert_true(loop_now(l) == NS_PER_DAY);
    loop_free(l);
}

static void test_free_with_timers(void **state)
{
    (void)state;
    struct loop *l = new_epoll();
    struct trace trace = {.loop = l};
    struct mark m = {.trace = &trace};
    loop_timer_in(l, &m.timer, NS_PER_S, note, &m);
    loop_post(l, note, &m);
    loop_free(l);
    assert_false(loop_timer_active(&m.timer));
    assert_int_equal(trace.n, 0);
}

/* ---- Descriptors ---- */

struct watched {
    struct loop *loop;
    struct loop_fd fd;
    struct watched *other; /* removed and freed when this one is called */
    int *calls;
};

static void remove_both(void *arg, int events)
{
    struct watched *w = arg;
    assert_int_equal(events, LOOP_READ);
    ++*w->calls;
    loop_fd_remove(w->loop, &w->other->fd);
    close(w->other->fd.fd);
    free(w->other);
    loop_fd_remove(w->loop, &w->fd);
    close(w->fd.fd);
    free(w);
}

/* Both are ready in the same batch; whichever is called first takes the other one with it. */
static void test_remove_inside_batch(void **state)
{
    (void)state;
    struct loop *l = new_epoll();
    int calls = 0;
    struct watched *w[2];
    for (int i = 0; i < 2; i++) {
        w[i] = calloc(1, sizeof(*w[i]));
        int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
        assert_true(fd >= 0);
        *w[i] = (struct watched){.loop = l, .calls = &calls};
        w[i]->fd = (struct loop_fd){.fd = fd, .fn = remove_both, .arg = w[i]};
    }
    w[0]->other = w[1];
    w[1]->other = w[0];
    assert_int_equal(loop_fd_set(l, &w[0]->fd, LOOP_READ, NULL), 0);
    assert_int_equal(loop_fd_set(l, &w[1]->fd, LOOP_READ, NULL), 0);
    loop_run_until(l, loop_now(l) + NS_PER_MS);
    assert_int_equal(calls, 1);
    loop_free(l);
}

struct counter {
    struct loop *loop;
    struct loop_fd fd;
    int reads, writes, posts;
};

static void count_events(void *arg, int events)
{
    struct counter *c = arg;
    c->reads += (events & LOOP_READ) != 0;
    c->writes += (events & LOOP_WRITE) != 0;
    loop_stop(c->loop);
}

static void test_interest(void **state)
{
    (void)state;
    struct loop *l = new_epoll();
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    struct counter c = {.loop = l};
    c.fd = (struct loop_fd){.fd = pair[0], .fn = count_events, .arg = &c};
    assert_int_equal(loop_fd_set(l, &c.fd, LOOP_READ | LOOP_WRITE, NULL), 0);
    loop_run(l);
    assert_int_equal(c.reads, 0);
    assert_int_equal(c.writes, 1);
    assert_int_equal(loop_fd_set(l, &c.fd, LOOP_READ, NULL), 0);
    assert_int_equal(write(pair[1], "x", 1), 1);
    loop_run(l);
    loop_run(l); /* level-triggered: told again while it is unread */
    assert_int_equal(c.reads, 2);
    assert_int_equal(c.writes, 1);
    /* A hang-up tells nothing to one who wants nothing, and wakes nobody. */
    assert_int_equal(loop_fd_set(l, &c.fd, 0, NULL), 0);
    assert_false(c.fd.active);
    close(pair[1]);
    loop_run_until(l, loop_now(l));
    assert_int_equal(c.reads + c.writes, 3);
    assert_int_equal(loop_fd_set(l, &c.fd, LOOP_READ, NULL), 0);
    loop_run(l);
    assert_int_equal(c.reads, 3);
    loop_fd_remove(l, &c.fd);
    loop_fd_remove(l, &c.fd);
    close(pair[0]);
    struct err err = ERR_INIT;
    assert_int_equal(loop_fd_set(l, &c.fd, LOOP_READ, &err), -1);
    assert_true(strlen(err.msg) > 0);
    loop_free(l);
}

/* A descriptor closed before it was taken out, whose number then names something else. */
static void test_number_used_again(void **state)
{
    (void)state;
    struct loop *l = new_epoll();
    struct counter c = {.loop = l};
    c.fd = (struct loop_fd){
        .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .fn = count_events, .arg = &c};
    assert_int_equal(loop_fd_set(l, &c.fd, LOOP_READ, NULL), 0);
    close(c.fd.fd);
    int again = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_int_equal(again, c.fd.fd);
    assert_int_equal(loop_fd_set(l, &c.fd, LOOP_READ, NULL), 0);
    loop_run(l);
    assert_int_equal(c.reads, 1);
    loop_fd_remove(l, &c.fd);
    close(again);
    loop_free(l);
}

static void post_again(void *arg)
{
    struct counter *c = arg;
    assert_true(++c->posts < 1000);
    loop_post(c->loop, post_again, c);
}

static void start_again(void *arg)
{
    struct counter *c = arg;
    assert_true(++c->posts < 1000);
    static struct loop_timer timer;
    loop_timer_in(c->loop, &timer, 0, start_again, c);
}

/* A call that posts itself for ever does not keep descriptors from their turn, nor does a timer. */
static void test_no_starving(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct loop *l = new_epoll();
        struct counter c = {.loop = l};
        c.fd = (struct loop_fd){
            .fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC), .fn = count_events, .arg = &c};
        assert_int_equal(loop_fd_set(l, &c.fd, LOOP_READ, NULL), 0);
        loop_post(l, i ? start_again : post_again, &c);
        loop_run(l);
        assert_int_equal(c.reads, 1);
        close(c.fd.fd);
        loop_free(l);
    }
}

/* ---- Signals ---- */

struct heard {
    struct loop *loop;
    int signum, times;
};

static void hear(void *arg, int signum)
{
    struct heard *h = arg;
    h->signum = signum;
    h->times++;
    loop_stop(h->loop);
}

static void test_signals(void **state)
{
    (void)state;
    struct loop *l = new_epoll();
    struct heard one = {.loop = l}, two = {.loop = l};
    assert_int_equal(loop_signal(l, SIGUSR1, hear, &one, NULL), 0);
    assert_int_equal(loop_signal(l, SIGUSR2, hear, &two, NULL), 0);
    kill(getpid(), SIGUSR2);
    loop_run(l);
    assert_int_equal(two.signum, SIGUSR2);
    assert_int_equal(one.times, 0);
    kill(getpid(), SIGUSR1);
    loop_run(l);
    assert_int_equal(one.signum, SIGUSR1);
    assert_int_equal(one.times + two.times, 2);
    /* Writing to nobody is an error, not the end of the process. */
    int pair[2];
    assert_int_equal(pipe(pair), 0);
    close(pair[0]);
    assert_int_equal(write(pair[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(pair[1]);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timer_order),
        cmocka_unit_test(test_same_instant_started_inside),
        cmocka_unit_test(test_posts_before_timers),
        cmocka_unit_test(test_unpost),
        cmocka_unit_test(test_posts_from_threads),
        cmocka_unit_test(test_virtual_clock),
        cmocka_unit_test(test_free_with_timers),
        cmocka_unit_test(test_remove_inside_batch),
        cmocka_unit_test(test_interest),
        cmocka_unit_test(test_number_used_again),
        cmocka_unit_test(test_no_starving),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
