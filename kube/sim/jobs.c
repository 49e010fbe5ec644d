/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Jobs and CronJobs. */

#include "base/cron.h"
#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

/* What has ended, counted when it ends: pods may be deleted before the Job looks. */
struct job_state {
    int64_t succeeded, failed;
    uint8_t *done; /* by completion index */
    size_t n_done;
};

void job_state_free(struct job_state *j)
{
    if (j)
        free(j->done);
    free(j);
}

static struct job_state *state_of(struct item *it)
{
    if (!it->job)
        it->job = xcalloc(1, sizeof(*it->job));
    return it->job;
}

#define INDEX_KEY "batch.kubernetes.io/job-completion-index"

static int64_t index_of(const struct json *pod)
{
    struct str text = json_text(json_at(pod, "metadata", "annotations", INDEX_KEY, NULL));
    int64_t v = 0;
    for (size_t i = 0; i < text.len && i < 9; i++)
        v = v * 10 + (text.p[i] - '0');
    return text.len ? v : -1;
}

void job_pod_ended(struct item *job, const struct json *pod, bool succeeded)
{
    struct job_state *j = state_of(job);
    int64_t i = index_of(pod);
    if (!succeeded) {
        j->failed++;
        return;
    }
    if (i >= 0 && (size_t)i < j->n_done) {
        if (j->done[i])
            return;
        j->done[i] = 1;
    }
    j->succeeded++;
}

static bool job_active(struct item *it)
{
    const struct pod *p = pod_at(it);
    return p && !pod_is_terminal(p) && !pod_is_terminating(p);
}

static bool job_finished(const struct workload *w)
{
    return condition_is(&w->conditions, "Complete", CONDITION_TRUE) ||
           condition_is(&w->conditions, "Failed", CONDITION_TRUE);
}

static void create_job_pod(struct sim *s, struct item *it, int64_t index)
{
    char name[300], text[24];
    snprintf(text, sizeof(text), "%lld", (long long)index);
    if (index >= 0)
        snprintf(name, sizeof(name), "%s-%s-", it->name, text);
    else
        snprintf(name, sizeof(name), "%s-", it->name);
    struct version *v = pod_from_template(it, json_at(it->now->root, "spec", "template", NULL),
                                          str_from(name), true);
    struct arena *a = &v->arena;
    struct json *meta = tree_get(v->root, "metadata"), *labels = tree_object(a, meta, "labels");
    tree_cstr(a, labels, "batch.kubernetes.io/job-name", it->name);
    tree_cstr(a, labels, "job-name", it->name);
    tree_cstr(a, labels, "batch.kubernetes.io/controller-uid", it->uid);
    if (index >= 0) {
        tree_cstr(a, labels, INDEX_KEY, text);
        tree_cstr(a, tree_object(a, meta, "annotations"), INDEX_KEY, text);
    }
    store_create(s->pods, v, NULL);
}

/* The lowest indexes that are neither done nor running. */
static void create_indexed(struct sim *s, struct item *it, struct vec_item *pods, int64_t n)
{
    struct job_state *j = state_of(it);
    uint8_t *busy = xcalloc(j->n_done + 1, 1);
    vec_each(pods, struct item **, p) {
        int64_t i = job_active(*p) ? index_of((*p)->now->root) : -1;
        if (i >= 0 && (size_t)i < j->n_done)
            busy[i] = 1;
    }
    for (size_t i = 0; i < j->n_done && n > 0; i++) {
        if (j->done[i] || busy[i])
            continue;
        create_job_pod(s, it, (int64_t)i);
        n--;
    }
    free(busy);
}

struct job_plan {
    int64_t active, ready, want;
    bool complete, failed, indexed;
};

static void plan_job(struct sim *s, struct item *it, struct vec_item *pods, struct job_plan *ret)
{
    const struct workload *w = workload_at(it);
    struct job_state *j = state_of(it);
    int64_t parallelism = w->parallelism < 0 ? 1 : w->parallelism;
    int64_t completions = w->completions;
    (void)s;
    ret->indexed =
        str_eq_c(json_text(json_at(it->now->root, "spec", "completionMode", NULL)), "Indexed");
    if (ret->indexed && !j->done) {
        j->n_done = (size_t)MIN(MAX(completions, 0), 100000);
        j->done = xcalloc(j->n_done + 1, 1);
    }
    vec_each(pods, struct item **, p) {
        ret->active += job_active(*p);
        ret->ready += job_active(*p) && pod_is_ready(pod_at(*p));
    }
    /* Without completions it is a work queue: one success is enough once the others have ended. */
    ret->complete =
        completions >= 0 ? j->succeeded >= completions : j->succeeded > 0 && ret->active == 0;
    ret->failed = j->failed > (w->backoff_limit < 0 ? 6 : w->backoff_limit);
    int64_t left = completions >= 0 ? completions - j->succeeded
                   : j->succeeded   ? ret->active
                                    : parallelism;
    ret->want = w->suspend || ret->failed || ret->complete ? 0 : MIN(parallelism, MAX(left, 0));
}

static void job_status(struct sim *s, struct item *it, const struct job_plan *plan)
{
    struct version *v = version_edit(it);
    struct arena *a = &v->arena;
    struct json *status = tree_object(a, v->root, "status");
    int64_t active = plan->complete || plan->failed ? 0 : MAX(plan->active, plan->want);
    tree_i64(a, status, "active", plan->want < plan->active ? plan->want : active);
    tree_i64(a, status, "ready", plan->ready);
    tree_i64(a, status, "succeeded", it->job->succeeded);
    tree_i64(a, status, "failed", it->job->failed);
    if (!tree_get(status, "startTime") && !workload_at(it)->suspend)
        tree_time(a, status, "startTime", sim_wall(s));
    if (plan->complete) {
        tree_condition(a, v->root, "Complete", "True", NULL, NULL, sim_wall(s));
        tree_time(a, status, "completionTime", sim_wall(s));
    } else if (plan->failed) {
        tree_condition(a, v->root, "Failed", "True", "BackoffLimitExceeded",
                       "Job has reached the specified backoff limit", sim_wall(s));
    }
    store_commit(it, v);
}

static void expire_job(struct sim *s, struct item *it)
{
    const struct json *ttl = json_at(it->now->root, "spec", "ttlSecondsAfterFinished", NULL);
    int64_t end = 0;
    if (!ttl)
        return;
    time_parse_rfc3339(json_text(json_at(it->now->root, "status", "completionTime", NULL)), &end,
                       NULL);
    int64_t left = end + json_i64(ttl, 0) * NS_PER_S - sim_wall(s);
    if (left <= 0)
        store_delete(it, -1);
    else
        controllers_at(s, it, sim_now(s) + left);
}

void job_reconcile(struct sim *s, struct item *it)
{
    struct workload *w = workload_at(it);
    struct vec_item pods;
    struct job_plan plan = {0};
    if (!w || item_deleting(it))
        return;
    if (job_finished(w)) {
        expire_job(s, it);
        return;
    }
    children_of(it, s->pods, &pods);
    plan_job(s, it, &pods, &plan);
    int64_t more = plan.want - plan.active;
    if (more > 0 && plan.indexed)
        create_indexed(s, it, &pods, more);
    for (int64_t i = 0; i < more && !plan.indexed; i++)
        create_job_pod(s, it, -1);
    for (size_t i = pods.len; i > 0 && more < 0; i--) {
        if (job_active(pods.v[i - 1])) {
            store_delete(pods.v[i - 1], -1);
            more++;
        }
    }
    items_release(&pods);
    job_status(s, it, &plan);
}

/* ---- CronJob ---- */

static void create_job(struct sim *s, struct item *it, int64_t at)
{
    char name[300];
    snprintf(name, sizeof(name), "%s-%lld", it->name, (long long)(at / NS_PER_MIN));
    const struct json *template_ = json_at(it->now->root, "spec", "jobTemplate", NULL);
    struct version *v = child_new(it, "batch/v1", "Job", str_from(name), false);
    struct json *meta = tree_get(v->root, "metadata");
    const struct json *labels = json_at(template_, "metadata", "labels", NULL),
                      *spec = json_get(template_, "spec");
    if (labels)
        tree_set(&v->arena, meta, "labels", json_copy(&v->arena, labels));
    if (spec)
        tree_set(&v->arena, v->root, "spec", json_copy(&v->arena, spec));
    store_create(store_resource(s, STR("batch"), STR("jobs")), v, NULL);
}

/* Finished jobs beyond the history limits go, oldest first. Returns how many are running. */
static size_t tend_jobs(struct item *it, struct vec_item *jobs, bool replace)
{
    const struct json *spec = json_get(it->now->root, "spec");
    int64_t keep = json_i64(json_get(spec, "successfulJobsHistoryLimit"), 3), running = 0;
    for (size_t i = jobs->len; i > 0; i--) {
        struct item *job = jobs->v[i - 1];
        const struct workload *w = workload_at(job);
        bool finished = w && job_finished(w);
        if (!finished && !replace)
            running++;
        else if (!finished || --keep < 0)
            store_delete(job, -1);
    }
    return (size_t)running;
}

static void fire_cron(struct sim *s, struct item *it, int64_t at)
{
    struct vec_item jobs;
    struct str policy = json_text(json_at(it->now->root, "spec", "concurrencyPolicy", NULL));
    children_of(it, store_resource(s, STR("batch"), STR("jobs")), &jobs);
    size_t running = tend_jobs(it, &jobs, str_eq_c(policy, "Replace"));
    items_release(&jobs);
    if (running && str_eq_c(policy, "Forbid"))
        return;
    create_job(s, it, at);
    struct version *v = version_edit(it);
    tree_time(&v->arena, tree_object(&v->arena, v->root, "status"), "lastScheduleTime", at);
    store_commit(it, v);
}

void cronjob_reconcile(struct sim *s, struct item *it)
{
    struct workload *w = workload_at(it);
    struct cron cron;
    if (!w || item_deleting(it) || w->suspend || !w->schedule ||
        cron_parse(str_from(w->schedule), &cron, NULL) < 0)
        return;
    struct zone *zone = NULL;
    struct str zone_name = json_text(json_at(it->now->root, "spec", "timeZone", NULL));
    if (zone_name.len && !(zone = zone_load(zone_name, NULL, NULL)))
        return;
    int64_t last = 0;
    struct str text = json_text(json_at(it->now->root, "status", "lastScheduleTime", NULL));
    if (!text.len)
        text = json_text(json_at(it->now->root, "metadata", "creationTimestamp", NULL));
    time_parse_rfc3339(text, &last, NULL);
    int64_t due = cron_prev(&cron, zone, sim_wall(s));
    if (due > last)
        fire_cron(s, it, due);
    int64_t next = cron_next(&cron, zone, sim_wall(s));
    zone_free(zone);
    if (next != TIME_NEVER && !it->gone)
        controllers_at(s, it, sim_now(s) + next - sim_wall(s));
}
