/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The scheduler: pods wait in order of priority, are bound to the best host that fits, or parked.
 *
 * A parked pod is tried again when the cluster has changed in a way that may help, after a pause
 * that doubles from 1 s to 10 s. What failed for one pod of a class fails for the others until then
 * (`epoch`), which costs nothing to find out. Nothing is preempted and nothing nominated. */

#include "kube/sim/hosts.h"
#include "kube/sim/tree.h"

struct queued {
    struct heap_node node;          /* in `active` by priority, or in `pausing` by time */
    struct queued *next, *previous; /* in `parked` */
    struct item *pod;
    enum { QUEUED_ACTIVE, QUEUED_PARKED, QUEUED_PAUSING } where;
    unsigned attempts;
    int64_t tried;
    uint64_t told; /* hash of the message that its condition has */
};

struct scheduler {
    struct sim *sim;
    struct hosts hosts;
    struct heap active, pausing;
    struct queued *parked;
    size_t n_parked;
    struct loop_timer tick, wake;
    uint64_t epoch;
    size_t next_slot; /* where the search for hosts goes on */
    double budget;    /* pods that may be bound now */
    int64_t refilled;
};

#define PAUSE_MAX (10 * NS_PER_S)
#define FLUSH_EVERY (5 * NS_PER_MIN)

/* ---- Queue ---- */

static void tick(void *arg);
static void wake(void *arg);

static void want_tick(struct scheduler *x)
{
    if (x->active.len && !loop_timer_active(&x->tick) && !x->sim->o.no_scheduler)
        loop_timer_in(x->sim->loop, &x->tick, x->sim->o.scheduler_tick, tick, x);
}

static void leave_place(struct scheduler *x, struct queued *q)
{
    heap_remove(q->where == QUEUED_PAUSING ? &x->pausing : &x->active, &q->node);
    if (q->where != QUEUED_PARKED)
        return;
    if (q->previous)
        q->previous->next = q->next;
    else
        x->parked = q->next;
    if (q->next)
        q->next->previous = q->previous;
    q->next = q->previous = NULL;
    x->n_parked--;
}

static void activate(struct scheduler *x, struct queued *q)
{
    const struct pod *p = pod_at(q->pod);
    leave_place(x, q);
    q->where = QUEUED_ACTIVE;
    heap_push(&x->active, &q->node, p ? -(int64_t)p->spec.priority : 0);
    want_tick(x);
}

static void park(struct scheduler *x, struct queued *q)
{
    leave_place(x, q);
    q->where = QUEUED_PARKED;
    q->next = x->parked;
    if (q->next)
        q->next->previous = q;
    x->parked = q;
    x->n_parked++;
}

static void drop(struct scheduler *x, struct item *it)
{
    struct queued *q = it->pod ? it->pod->queued : NULL;
    if (!q)
        return;
    leave_place(x, q);
    it->pod->queued = NULL;
    free(q);
}

static int64_t pause_of(const struct queued *q)
{
    return MIN(NS_PER_S << MIN(q->attempts, 10u), PAUSE_MAX);
}

/* The cluster changed in a way that may help someone. */
static void may_help(struct scheduler *x)
{
    x->epoch++;
    int64_t soon = sim_now(x->sim) + x->sim->o.scheduler_tick;
    if ((x->n_parked || x->pausing.len) &&
        (!loop_timer_active(&x->wake) || x->wake.node.key > soon))
        loop_timer_at(x->sim->loop, &x->wake, soon, wake, x);
}

static void unpark_all(struct scheduler *x)
{
    int64_t now = sim_now(x->sim);
    struct queued *q = x->parked, *last = NULL;
    for (; q; q = q->next)
        last = q;
    for (q = last; q;) { /* oldest first */
        struct queued *before = q->previous;
        int64_t at = q->tried + pause_of(q) / 2;
        if (at <= now) {
            activate(x, q);
        } else {
            leave_place(x, q);
            q->where = QUEUED_PAUSING;
            heap_push(&x->pausing, &q->node, at);
        }
        q = before;
    }
}

static void wake(void *arg)
{
    struct scheduler *x = arg;
    struct heap_node *n;
    int64_t now = sim_now(x->sim);
    unpark_all(x);
    while ((n = heap_peek(&x->pausing)) && n->key <= now)
        activate(x, CONTAINER_OF(n, struct queued, node));
    if (n)
        loop_timer_at(x->sim->loop, &x->wake, n->key, wake, x);
}

/* ---- One pod ---- */

static void tell_unschedulable(struct sim *s, struct queued *q, const char *message)
{
    uint64_t h = str_hash(str_from(message), 3);
    if (q->told == h)
        return;
    q->told = h;
    struct version *v = version_edit(q->pod);
    tree_condition(&v->arena, v->root, "PodScheduled", "False", "Unschedulable", message,
                   sim_wall(s));
    store_commit(q->pod, v);
}

static const char *reason_text(enum verdict v)
{
    static const char *const texts[FIT_COUNT] = {
        [FIT_UNSCHEDULABLE] = "node(s) were unschedulable",
        [FIT_TAINT] = "node(s) had untolerated taint(s)",
        [FIT_LABELS] = "node(s) didn't match Pod's node affinity/selector",
        [FIT_PORTS] = "node(s) didn't have free ports for the requested pod ports",
        [FIT_VOLUME] = "node(s) had volume node affinity conflict",
        [FIT_SPREAD] = "node(s) didn't match pod topology spread constraints",
        [FIT_AFFINITY] = "node(s) didn't match pod affinity rules",
        [FIT_ANTI] = "node(s) didn't match pod anti-affinity rules",
    };
    return texts[v];
}

static void explain(struct scheduler *x, const size_t counts[FIT_COUNT], const size_t *short_of,
                    struct class *c)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    const char *sep = ": ";
    buf_printf(&out, "0/%zu nodes are available", x->hosts.n_hosts);
    for (size_t i = 1; i < FIT_COUNT; i++) {
        if (i == FIT_RESOURCE || !counts[i])
            continue;
        buf_printf(&out, "%s%zu %s", sep, counts[i], reason_text((enum verdict)i));
        sep = ", ";
    }
    for (size_t i = 0; i < x->hosts.n_resources; i++) {
        if (!short_of[i])
            continue;
        bool pods = strcmp(x->hosts.resources[i], "pods") == 0;
        buf_printf(&out, pods ? "%s%zu Too many %s" : "%s%zu Insufficient %s", sep, short_of[i],
                   x->hosts.resources[i]);
        sep = ", ";
    }
    buf_char(&out, '.');
    snprintf(c->message, sizeof(c->message), "%s", out.data);
}

/* How many fitting hosts are enough to choose from: all of 100, then a falling share. */
static size_t enough(size_t n)
{
    size_t percent = n / 125 < 45 ? 50 - n / 125 : 5;
    return n < 100 ? n : MAX(n * percent / 100, 100);
}

static struct host *choose(struct scheduler *x, struct class *c, struct item *pod)
{
    struct round r;
    size_t counts[FIT_COUNT] = {0}, short_of[RESOURCES_MAX] = {0}, found = 0,
           n = x->hosts.slots.len;
    struct host *best = NULL;
    int64_t best_score = 0;
    round_begin(&r, &x->hosts, c, pod);
    size_t limit = enough(x->hosts.n_hosts), start = n ? x->next_slot % n : 0, i;
    for (i = 0; i < n && found < limit; i++) {
        struct host *host = x->hosts.slots.v[(start + i) % n];
        if (!host)
            continue;
        enum verdict v = round_filter(&r, host);
        counts[v]++;
        if (v == FIT_RESOURCE)
            short_of[r.resource]++;
        if (v != FIT)
            continue;
        found++;
        int64_t score = round_score(&r, host);
        if (!best || score > best_score) {
            best = host;
            best_score = score;
        }
    }
    if (found >= limit && n)
        x->next_slot = (start + i) % n;
    if (!best)
        explain(x, counts, short_of, c);
    round_end(&r);
    return best;
}

static void bind(struct sim *s, struct item *it, struct host *host)
{
    char *name = xstrdup(host->node->name);
    volumes_bind(s, it, host_node(host));
    struct version *v = version_edit(it);
    tree_cstr(&v->arena, tree_object(&v->arena, v->root, "spec"), "nodeName", name);
    tree_condition(&v->arena, v->root, "PodScheduled", "True", NULL, NULL, sim_wall(s));
    s->counters.pods_bound++;
    store_commit(it, v);
    free(name);
}

/* True when an attempt was spent on it. */
static bool schedule(struct scheduler *x, struct queued *q)
{
    struct sim *s = x->sim;
    struct item *it = item_ref(q->pod);
    struct class *c = it->pod->class_;
    bool known = c->failed == x->epoch && !c->volumes;
    struct host *host = known ? NULL : choose(x, c, it);
    s->counters.scheduling_attempts += !known;
    if (host) {
        drop(x, it);
        bind(s, it, host);
    } else {
        c->failed = x->epoch;
        q->attempts++;
        q->tried = sim_now(s);
        park(x, q);
        tell_unschedulable(s, q, c->message);
    }
    item_unref(it);
    return !known;
}

static void refill(struct scheduler *x)
{
    int64_t now = sim_now(x->sim);
    double rate = x->sim->o.scheduler_pods_s, most = MAX(rate / 10, 1);
    x->budget = MIN(x->budget + rate * (double)(now - x->refilled) / (double)NS_PER_S, most);
    x->refilled = now;
}

static void tick(void *arg)
{
    struct scheduler *x = arg;
    struct heap_node *n;
    refill(x);
    while (x->budget >= 1 && (n = heap_peek(&x->active)))
        if (schedule(x, CONTAINER_OF(n, struct queued, node)))
            x->budget -= 1;
    want_tick(x);
    if (x->n_parked && !loop_timer_active(&x->wake))
        loop_timer_in(x->sim->loop, &x->wake, FLUSH_EVERY, wake, x);
}

/* ---- Changes ---- */

static bool schedulable(const struct pod *p)
{
    const char *name = p->spec.scheduler_name;
    return !p->spec.node_name && !pod_is_terminal(p) && !pod_is_terminating(p) &&
           p->spec.scheduling_gates.n == 0 &&
           (!name || !*name || strcmp(name, "default-scheduler") == 0);
}

static void uncount(struct scheduler *x, struct pod_state *p)
{
    if (!p->counted)
        return;
    if (p->node && p->node->host)
        host_count(p->node->host, p->class_, -1, p->leaving);
    p->counted = p->leaving = false;
    may_help(x);
}

static void count(struct scheduler *x, struct pod_state *p, const struct pod *pod)
{
    if (!p->node || !p->node->host || p->counted) {
        if (p->counted && !p->leaving && pod_is_terminating(pod) && p->node->host) {
            p->leaving = true;
            host_leaving(p->node->host, p->class_);
        }
        return;
    }
    p->counted = true;
    p->leaving = pod_is_terminating(pod);
    host_count(p->node->host, p->class_, 1, p->leaving);
    if (x->hosts.n_picky)
        may_help(x);
}

/* Spec or labels changed (a gate went, a label came): the class may be another. */
static bool reclass(struct sim *s, struct item *it, struct version *before, struct version *after)
{
    (void)s;
    if (!before)
        return true;
    const struct json *a = json_get(before->root, "spec"), *b = json_get(after->root, "spec");
    const struct json *la = json_at(before->root, "metadata", "labels", NULL),
                      *lb = json_at(after->root, "metadata", "labels", NULL);
    bool bound = it->pod->counted || json_get(b, "nodeName");
    bool labels = (la || lb) && (!la || !lb || !json_equal(la, lb));
    return labels || (!bound && (!a || !b || !json_equal(a, b)));
}

static void set_class(struct scheduler *x, struct item *it)
{
    struct pod_state *p = it->pod;
    struct class *c = class_of(&x->hosts, it);
    uncount(x, p);
    class_unref(&x->hosts, p->class_);
    p->class_ = c;
}

static void pod_gone(struct scheduler *x, struct item *it)
{
    drop(x, it);
    uncount(x, it->pod);
    class_unref(&x->hosts, it->pod->class_);
    it->pod->class_ = NULL;
}

static void enqueue(struct scheduler *x, struct item *it)
{
    struct queued *q = xcalloc(1, sizeof(*q));
    q->pod = it;
    q->where = QUEUED_ACTIVE;
    it->pod->queued = q;
    activate(x, q);
}

static void pod_changed(struct scheduler *x, struct item *it, struct version *before,
                        struct version *after)
{
    const struct pod *p = pod_at(it);
    if (!p || pod_is_terminal(p)) {
        pod_gone(x, it);
        return;
    }
    if (!it->pod->class_ || reclass(x->sim, it, before, after))
        set_class(x, it);
    if (!it->pod->class_)
        return;
    count(x, it->pod, p);
    if (!schedulable(p))
        drop(x, it);
    else if (!it->pod->queued)
        enqueue(x, it);
}

/* Heartbeats do not help anyone; what follows may. */
static bool node_helps(struct sim *s, struct item *it, struct version *before,
                       struct version *after)
{
    struct object *a = before ? version_typed(s, it->res, before) : NULL,
                  *b = version_typed(s, it->res, after);
    if (!a || !b)
        return true;
    const struct node *x = node_of(a), *y = node_of(b);
    if (x->unschedulable != y->unschedulable || x->n_taints != y->n_taints ||
        !labels_equal(&a->meta.labels, &b->meta.labels) || x->allocatable.n != y->allocatable.n)
        return true;
    for (uint32_t i = 0; i < x->allocatable.n; i++)
        if (x->allocatable.v[i].amount != y->allocatable.v[i].amount ||
            strcmp(x->allocatable.v[i].name, y->allocatable.v[i].name) != 0)
            return true;
    for (uint32_t i = 0; i < x->n_taints; i++)
        if (strcmp(x->taints[i].key, y->taints[i].key) != 0 ||
            x->taints[i].effect != y->taints[i].effect)
            return true;
    return false;
}

static void node_changed(struct scheduler *x, struct item *it, struct version *before,
                         struct version *after)
{
    if (after && !node_helps(x->sim, it, before, after))
        return;
    bool had = it->node->host != NULL;
    hosts_node(&x->hosts, it);
    for (struct pod_state *p = it->node->first; p; p = p->next) {
        if (!it->node->host)
            p->counted = p->leaving = false;
        else if (!had && p->class_ && pod_at(p->item))
            count(x, p, pod_at(p->item));
    }
    may_help(x);
}

void scheduler_changed(struct sim *s, struct item *it, struct version *before,
                       struct version *after)
{
    struct scheduler *x = s->scheduler;
    if (it->res == s->nodes) {
        node_changed(x, it, before, after);
    } else if (it->res == s->pods) {
        if (after)
            pod_changed(x, it, before, after);
        else if (it->pod)
            pod_gone(x, it);
    } else if (strncmp(it->res->plural, "persistentvolume", 16) == 0 ||
               strcmp(it->res->plural, "storageclasses") == 0) {
        may_help(x);
    }
}

/* ---- Life ---- */

struct scheduler *scheduler_new(struct sim *s)
{
    struct scheduler *x = xcalloc(1, sizeof(*x));
    x->sim = s;
    x->epoch = 1;
    hosts_init(&x->hosts, s);
    return x;
}

void scheduler_free(struct scheduler *x)
{
    struct sim *s = x->sim;
    loop_timer_cancel(s->loop, &x->tick);
    loop_timer_cancel(s->loop, &x->wake);
    map_each(&s->pods->objects, e)
        drop(x, e->value);
    hosts_release(&x->hosts);
    heap_release(&x->active);
    heap_release(&x->pausing);
    free(x);
}

bool scheduler_idle(const struct scheduler *x)
{
    return x->active.len == 0 && x->pausing.len == 0;
}
