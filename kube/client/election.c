/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A Lease that one of several holds. Source: client-go's tools/leaderelection, whose record and
 * timing this follows, so that the two understand each other. */

#include "kube/client/election.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/rng.h"
#include "kube/api/misc.h"

struct election {
    struct client *client;
    struct loop *loop;
    char *namespace_, *name, *identity;
    int64_t lease_duration, renew_deadline, retry_period;
    void (*changed)(void *arg, bool leader);
    void *arg;
    struct client_op *op;
    struct loop_timer timer, fence;
    struct rng rng;
    bool leader, releasing, stopped;
    int64_t renewed; /* loop_now when the last successful renewal was sent */
    int64_t sent;    /* loop_now when the write under way was sent */
    /* The record as last seen, and since when it has not changed by our clock. */
    char *seen_holder, *seen_version;
    int64_t seen_duration, seen_at, transitions, acquired;
    void (*released)(void *arg);
    void *released_arg;
};

struct election *election_new(struct client *c, const struct election_options *o,
                              void (*changed)(void *arg, bool leader), void *arg)
{
    struct election *e = xcalloc(1, sizeof(*e));
    e->client = c;
    e->loop = client_loop(c);
    e->namespace_ = xstrdup(o->namespace_);
    e->name = xstrdup(o->name);
    e->identity = xstrdup(o->identity);
    e->lease_duration = o->lease_duration ? o->lease_duration : 15 * NS_PER_S;
    e->renew_deadline = o->renew_deadline ? o->renew_deadline : 10 * NS_PER_S;
    e->retry_period = o->retry_period ? o->retry_period : 2 * NS_PER_S;
    e->changed = changed;
    e->arg = arg;
    rng_split(&e->rng, str_hash(str_from(e->identity), 3), "election");
    return e;
}

void election_free(struct election *e)
{
    if (!e)
        return;
    client_cancel(e->op);
    loop_timer_cancel(e->loop, &e->timer);
    loop_timer_cancel(e->loop, &e->fence);
    free(e->namespace_);
    free(e->name);
    free(e->identity);
    free(e->seen_holder);
    free(e->seen_version);
    free(e);
}

bool election_is_leader(const struct election *e)
{
    return e->leader && loop_now(e->loop) - e->renewed < e->renew_deadline;
}

int64_t election_transitions(const struct election *e)
{
    return e->transitions;
}

static void set_leader(struct election *e, bool leader)
{
    if (e->leader == leader)
        return;
    e->leader = leader;
    if (!leader)
        loop_timer_cancel(e->loop, &e->fence);
    e->changed(e->arg, leader);
}

static void step(void *arg);

static void step_later(struct election *e)
{
    int64_t jitter = rng_between(&e->rng, 0, e->retry_period / 5);
    if (!e->stopped)
        loop_timer_in(e->loop, &e->timer, e->retry_period + jitter, step, e);
}

/* The deadline has passed without a renewal: whatever else happens, this process leads no longer.
 */
static void on_fence(void *arg)
{
    struct election *e = arg;
    set_leader(e, false);
}

/* Notes a record; the clock of its holder plays no part, only when we saw it change. */
static void observe(struct election *e, const struct lease *l)
{
    const char *version = l->obj.meta.resource_version ? l->obj.meta.resource_version : "";
    if (e->seen_version && strcmp(e->seen_version, version) == 0)
        return;
    free(e->seen_version);
    free(e->seen_holder);
    e->seen_version = xstrdup(version);
    e->seen_holder = xstrdup(l->holder ? l->holder : "");
    e->seen_duration = l->duration_s > 0 ? l->duration_s * NS_PER_S : e->lease_duration;
    e->seen_at = loop_now(e->loop);
    e->transitions = l->transitions;
}

static bool is_ours(const struct election *e)
{
    return e->seen_holder && strcmp(e->seen_holder, e->identity) == 0;
}

static void on_written(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct election *e = arg;
    e->op = NULL;
    if (e->releasing) {
        void (*released)(void *) = e->released;
        e->releasing = false;
        if (released)
            released(e->released_arg);
        return;
    }
    if (!err && answer->object) {
        observe(e, (const struct lease *)(void *)answer->object);
        e->renewed = e->sent;
        int64_t left = e->renewed + e->renew_deadline - loop_now(e->loop);
        if (left > 0) {
            loop_timer_in(e->loop, &e->fence, left, on_fence, e);
            set_leader(e, true);
        }
    } else if (err && (err->code == ERR_CONFLICT || err->code == ERR_EXISTS)) {
        /* Somebody wrote meanwhile; the next look tells who. */
        free(e->seen_version);
        e->seen_version = NULL;
    }
    step_later(e);
}

static void write_body(struct election *e, const struct lease *before, bool release,
                       struct buf *body)
{
    char now[40];
    int64_t wall = loop_wall(e->loop);
    bool taken = !is_ours(e);
    if (taken || !e->acquired)
        e->acquired = before && !taken && before->acquire_time ? before->acquire_time : wall;
    struct json_writer w;
    json_writer_init(&w, body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "coordination.k8s.io/v1");
    json_w_kcstr(&w, "kind", "Lease");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", e->name);
    json_w_kcstr(&w, "namespace", e->namespace_);
    if (before)
        json_w_kcstr(&w, "resourceVersion", before->obj.meta.resource_version);
    json_w_object_end(&w);
    json_w_kobject(&w, "spec");
    json_w_kcstr(&w, "holderIdentity", release ? "" : e->identity);
    json_w_ki64(&w, "leaseDurationSeconds", release ? 1 : e->lease_duration / NS_PER_S);
    json_w_kstr(&w, "acquireTime", time_format_micro(now, e->acquired));
    json_w_kstr(&w, "renewTime", time_format_micro(now, wall));
    json_w_ki64(&w, "leaseTransitions", before ? before->transitions + (taken && !release) : 0);
    json_w_object_end(&w);
    json_w_object_end(&w);
}

static void on_read(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct election *e = arg;
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    e->op = NULL;
    if (err && err->code == ERR_NOT_FOUND && !e->releasing) {
        write_body(e, NULL, false, &body);
        e->sent = loop_now(e->loop);
        e->op =
            client_create(e->client, &kind_lease, e->namespace_, buf_view(&body), on_written, e);
        return;
    }
    if (err) {
        if (e->releasing)
            on_written(e, answer, err);
        else
            step_later(e);
        return;
    }
    const struct lease *l = (const struct lease *)(void *)answer->object;
    observe(e, l);
    bool vacant = !*e->seen_holder;
    bool expired = loop_now(e->loop) - e->seen_at >= e->seen_duration;
    if (e->releasing ? !is_ours(e) : !is_ours(e) && !vacant && !expired) {
        set_leader(e, false);
        if (e->releasing)
            on_written(e, answer, NULL);
        else
            step_later(e);
        return;
    }
    write_body(e, l, e->releasing, &body);
    e->sent = loop_now(e->loop);
    e->op = client_update(e->client, &kind_lease, e->namespace_, e->name, NULL, buf_view(&body),
                          on_written, e);
}

/* Read, then write on what was read: a conflict means that somebody was quicker. */
static void step(void *arg)
{
    struct election *e = arg;
    if (!e->op)
        e->op = client_get(e->client, &kind_lease, e->namespace_, e->name, on_read, e);
}

void election_start(struct election *e)
{
    step(e);
}

void election_release(struct election *e, void (*done)(void *arg), void *arg)
{
    e->stopped = true;
    loop_timer_cancel(e->loop, &e->timer);
    client_cancel(e->op);
    e->op = NULL;
    bool held = e->leader;
    set_leader(e, false);
    e->released = done;
    e->released_arg = arg;
    if (!held) {
        if (done)
            loop_post(e->loop, done, arg);
        return;
    }
    e->releasing = true;
    step(e);
}
