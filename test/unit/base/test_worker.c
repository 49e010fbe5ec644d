/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The worker: who is called, on which thread and how often, with and without cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>

#include "base/worker.h"

struct job {
    struct loop *loop;
    struct worker *worker;
    pthread_t loop_thread, run_thread;
    sem_t begun, go; /* used when `waits` */
    bool waits, frees_worker;
    int runs, dones, disposals;
    int64_t ran_at, done_at;
    int *left; /* the loop stops when it comes to 0 */
};

static void run(void *arg)
{
    struct job *j = arg;
    if (j->waits) {
        sem_post(&j->begun);
        sem_wait(&j->go);
    }
    j->run_thread = pthread_self();
    j->runs++;
    if (loop_is_virtual(j->loop))
        j->ran_at = loop_now(j->loop);
}

static void done(void *arg)
{
    struct job *j = arg;
    assert_true(pthread_equal(pthread_self(), j->loop_thread));
    assert_int_equal(j->runs, 1);
    assert_int_equal(j->disposals, 0);
    j->dones++;
    j->done_at = loop_now(j->loop);
    if (j->frees_worker)
        worker_free(j->worker);
}

static void dispose(void *arg)
{
    struct job *j = arg;
    assert_true(pthread_equal(pthread_self(), j->loop_thread));
    j->disposals++;
    if (j->left && --*j->left == 0)
        loop_stop(j->loop);
}

static void job_init(struct job *j, struct loop *l, struct worker *w, int *left)
{
    *j = (struct job){.loop = l, .worker = w, .left = left, .loop_thread = pthread_self()};
    sem_init(&j->begun, 0, 0);
    sem_init(&j->go, 0, 0);
}

static void test_many_jobs(void **state)
{
    (void)state;
    enum { JOBS = 500 };
    struct loop *l = loop_new_epoll(NULL);
    struct worker *w = worker_new(l, 4);
    static struct job jobs[JOBS];
    int left = JOBS;
    for (int i = 0; i < JOBS; i++) {
        job_init(&jobs[i], l, w, &left);
        assert_non_null(worker_start(w, 0, run, dispose, done, &jobs[i]));
        assert_int_equal(jobs[i].dones, 0); /* never before start has returned */
    }
    loop_run(l);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].dones, 1);
        assert_int_equal(jobs[i].disposals, 1);
        assert_false(pthread_equal(jobs[i].run_thread, jobs[i].loop_thread));
    }
    worker_free(w);
    loop_free(l);
}

/* One thread, held by the first job: the second is cancelled in the queue, the first while it runs.
 */
static void test_cancel(void **state)
{
    (void)state;
    struct loop *l = loop_new_epoll(NULL);
    struct worker *w = worker_new(l, 1);
    int left = 3;
    struct job running, queued, kept;
    job_init(&running, l, w, &left);
    job_init(&queued, l, w, &left);
    job_init(&kept, l, w, &left);
    running.waits = true;
    struct worker_job *first = worker_start(w, 0, run, dispose, done, &running);
    struct worker_job *second = worker_start(w, 0, run, dispose, done, &queued);
    worker_start(w, 0, run, dispose, done, &kept);
    sem_wait(&running.begun);
    worker_cancel(second);
    worker_cancel(first);
    assert_int_equal(running.disposals, 0); /* its argument is in use */
    sem_post(&running.go);
    loop_run(l);
    assert_int_equal(running.runs, 1);
    assert_int_equal(queued.runs, 0);
    assert_int_equal(kept.runs, 1);
    assert_int_equal(running.dones + queued.dones, 0);
    assert_int_equal(kept.dones, 1);
    assert_int_equal(running.disposals, 1);
    assert_int_equal(queued.disposals, 1);
    assert_int_equal(kept.disposals, 1);
    worker_free(w);
    loop_free(l);
}

/* Freed with a job that has ended but was not told, one under way and one not begun; the loop goes
 * on afterwards. */
static void test_free_under_way(void **state)
{
    (void)state;
    struct loop *l = loop_new_epoll(NULL);
    struct worker *w = worker_new(l, 1);
    struct job ended, running, queued;
    job_init(&ended, l, w, NULL);
    job_init(&running, l, w, NULL);
    job_init(&queued, l, w, NULL);
    running.waits = true;
    worker_start(w, 0, run, dispose, done, &ended);
    worker_start(w, 0, run, dispose, done, &running);
    worker_start(w, 0, run, dispose, done, &queued);
    sem_wait(&running.begun); /* so the first has ended */
    sem_post(&running.go);
    worker_free(w);
    loop_run_until(l, loop_now(l));
    assert_int_equal(ended.runs, 1);
    assert_int_equal(running.runs, 1);
    assert_int_equal(ended.dones + running.dones + queued.dones, 0);
    assert_int_equal(ended.disposals, 1);
    assert_int_equal(running.disposals, 1);
    assert_int_equal(queued.disposals, 1);
    loop_free(l);
}

static void test_free_inside_done(void **state)
{
    (void)state;
    struct loop *l = loop_new_epoll(NULL);
    struct worker *w = worker_new(l, 2);
    enum { JOBS = 8 };
    struct job jobs[JOBS];
    int left = JOBS;
    for (int i = 0; i < JOBS; i++) {
        job_init(&jobs[i], l, w, &left);
        worker_start(w, 0, run, dispose, done, &jobs[i]);
    }
    for (int i = 0; i < JOBS; i++)
        jobs[i].frees_worker = true;
    loop_run(l);
    int dones = 0;
    for (int i = 0; i < JOBS; i++) {
        dones += jobs[i].dones;
        assert_int_equal(jobs[i].disposals, 1);
    }
    assert_int_equal(dones, 1);
    loop_free(l);
}

/* Under virtual time: the caller's thread, at the cost given, in order; a cancelled one never. */
static void test_virtual(void **state)
{
    (void)state;
    struct loop *l = loop_new_virtual(0);
    struct worker *w = worker_new(l, 4);
    struct job slow, fast, cancelled;
    job_init(&slow, l, w, NULL);
    job_init(&fast, l, w, NULL);
    job_init(&cancelled, l, w, NULL);
    worker_start(w, 300, run, dispose, done, &slow);
    worker_start(w, 100, run, dispose, done, &fast);
    worker_cancel(worker_start(w, 200, run, dispose, done, &cancelled));
    assert_int_equal(slow.runs + fast.runs, 0);
    loop_run(l);
    assert_true(fast.done_at == 100);
    assert_true(slow.done_at == 300);
    assert_true(pthread_equal(slow.run_thread, slow.loop_thread));
    assert_int_equal(cancelled.runs + cancelled.dones, 0);
    assert_int_equal(slow.disposals + fast.disposals + cancelled.disposals, 3);
    struct job left_over;
    job_init(&left_over, l, w, NULL);
    worker_start(w, 50, run, dispose, done, &left_over);
    worker_free(w);
    loop_run(l);
    assert_int_equal(left_over.runs + left_over.dones, 0);
    assert_int_equal(left_over.disposals, 1);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_jobs),      cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_free_under_way), cmocka_unit_test(test_free_inside_done),
        cmocka_unit_test(test_virtual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
