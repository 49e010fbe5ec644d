/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Threads that take jobs from a queue and post their ends back to the loop. */

#include "base/worker.h"

#include <pthread.h>
#include <signal.h>

#include "base/arena.h"

struct worker_job {
    struct worker *worker;
    struct worker_job *next; /* in the queue */
    bool cancelled;          /* under the lock: not worth running */
    void (*run)(void *arg);
    void (*dispose)(void *arg);
    void (*done)(void *arg); /* NULL once cancelled; the loop's thread only */
    void *arg;
    struct loop_timer timer; /* virtual: when the result is due */
    struct worker_job *next_live, *prev_live;
};

struct worker {
    struct loop *loop;
    struct worker_job *live; /* jobs that have not ended; the loop's thread only */
    pthread_mutex_t lock;    /* guards the queue, `cancelled` and `stopping` */
    pthread_cond_t wake;
    struct worker_job *first, **last;
    bool stopping;
    pthread_t *threads;
    unsigned n_threads;
};

/* Takes the job out of the list of the living; its memory stays. */
static void bury(struct worker_job *j)
{
    struct worker *w = j->worker;
    if (j->prev_live)
        j->prev_live->next_live = j->next_live;
    else
        w->live = j->next_live;
    if (j->next_live)
        j->next_live->prev_live = j->prev_live;
    if (!loop_is_virtual(w->loop))
        loop_unhold(w->loop);
}

/* The job is gone before the callbacks, which may free the worker. */
static void finish(void *arg)
{
    struct worker_job ended = *(struct worker_job *)arg;
    bury(arg);
    free(arg);
    if (ended.done)
        ended.done(ended.arg);
    if (ended.dispose)
        ended.dispose(ended.arg);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (!w->first && !w->stopping)
            pthread_cond_wait(&w->wake, &w->lock);
        struct worker_job *j = w->stopping ? NULL : w->first;
        if (j) {
            w->first = j->next;
            if (!w->first)
                w->last = &w->first;
        }
        bool run = j && !j->cancelled;
        pthread_mutex_unlock(&w->lock);
        if (!j)
            return NULL;
        if (run)
            j->run(j->arg);
        loop_post(w->loop, finish, j);
    }
}

/* Signals are the loop's: its signalfd only sees those that every thread blocks. */
static void start_threads(struct worker *w, unsigned threads)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    w->threads = xcalloc(threads, sizeof(*w->threads));
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&w->threads[w->n_threads], NULL, thread_main, w) == 0)
            w->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (w->n_threads == 0) {
        fprintf(stderr, "weft: cannot start a thread\n");
        abort();
    }
}

struct worker *worker_new(struct loop *l, unsigned threads)
{
    struct worker *w = xcalloc(1, sizeof(*w));
    w->loop = l;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    if (!loop_is_virtual(l))
        start_threads(w, MAX(threads, 1u));
    return w;
}

static void run_virtual(void *arg)
{
    struct worker_job *j = arg;
    if (j->done)
        j->run(j->arg);
    finish(j);
}

struct worker_job *worker_start(struct worker *w, int64_t virtual_cost, void (*run)(void *arg),
                                void (*dispose)(void *arg), void (*done)(void *arg), void *arg)
{
    struct worker_job *j = xcalloc(1, sizeof(*j));
    *j = (struct worker_job){.worker = w,
                             .run = run,
                             .dispose = dispose,
                             .done = done,
                             .arg = arg,
                             .next_live = w->live};
    if (w->live)
        w->live->prev_live = j;
    w->live = j;
    if (loop_is_virtual(w->loop)) {
        loop_timer_in(w->loop, &j->timer, virtual_cost, run_virtual, j);
        return j;
    }
    loop_hold(w->loop);
    pthread_mutex_lock(&w->lock);
    *w->last = j;
    w->last = &j->next;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return j;
}

void worker_cancel(struct worker_job *j)
{
    if (!j)
        return;
    j->done = NULL;
    pthread_mutex_lock(&j->worker->lock);
    j->cancelled = true;
    pthread_mutex_unlock(&j->worker->lock);
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    /* What is left was never begun, or has ended and waits in the loop to be told. */
    while (w->live) {
        struct worker_job *j = w->live;
        bury(j);
        loop_timer_cancel(w->loop, &j->timer);
        loop_unpost(w->loop, finish, j);
        if (j->dispose)
            j->dispose(j->arg);
        free(j);
    }
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w->threads);
    free(w);
}
