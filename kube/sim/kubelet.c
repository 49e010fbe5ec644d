/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Kubelets, taint eviction and the collection of pods whose Node is gone.
 *
 * Pods are kept by the node they are bound to. Each pod has at most one next thing to happen to
 * it; all of them wait in one heap with one timer. */

#include "base/num.h"
#include "kube/sim/internal.h"
#include "kube/sim/tree.h"

struct kubelets {
    struct sim *sim;
    struct map nodes; /* name -> struct node_state */
    struct heap due;
    struct loop_timer timer;
};

#define DEFAULT_TOLERATION (300 * NS_PER_S) /* of not-ready and unreachable, by admission */
#define JOB_SECONDS 60

/* ---- Nodes ---- */

struct node_state *node_state_find(struct sim *s, struct str name)
{
    return map_get(&s->kubelets->nodes, name);
}

static struct node_state *node_state_get(struct sim *s, struct str name)
{
    void **slot = map_slot(&s->kubelets->nodes, name);
    if (!*slot) {
        struct node_state *n = xcalloc(1, sizeof(*n));
        n->name = xstr_dup(name);
        *slot = n;
    }
    return *slot;
}

static void node_state_free(void *p)
{
    struct node_state *n = p;
    free(n->name);
    free(n);
}

static void node_state_tidy(struct sim *s, struct node_state *n)
{
    if (n->item || n->first || n->host)
        return;
    map_remove(&s->kubelets->nodes, str_from(n->name));
    node_state_free(n);
}

static void link_pod(struct sim *s, struct pod_state *p, struct str node_name)
{
    struct node_state *n = node_state_get(s, node_name);
    p->node = n;
    p->next = n->first;
    if (p->next)
        p->next->previous = p;
    n->first = p;
}

static void unlink_pod(struct sim *s, struct pod_state *p)
{
    struct node_state *n = p->node;
    if (!n)
        return;
    if (p->previous)
        p->previous->next = p->next;
    else
        n->first = p->next;
    if (p->next)
        p->next->previous = p->previous;
    p->node = NULL;
    node_state_tidy(s, n);
}

/* ---- What happens next to a pod ---- */

static void kubelets_fire(void *arg);

static void arm(struct kubelets *k)
{
    struct heap_node *first = heap_peek(&k->due);
    if (!first)
        loop_timer_cancel(k->sim->loop, &k->timer);
    else if (!loop_timer_active(&k->timer) || k->timer.node.key > first->key)
        loop_timer_at(k->sim->loop, &k->timer, MAX(first->key, sim_now(k->sim)), kubelets_fire, k);
}

/* The earliest of several wins; a plan of the same kind that is earlier already stays. */
static void plan(struct kubelets *k, struct pod_state *p, int what, int64_t at)
{
    if (heap_has(&p->due) && (int)p->what == what && p->due.key <= at)
        return;
    heap_remove(&k->due, &p->due);
    p->what = what;
    if (what != POD_DUE_NONE)
        heap_push(&k->due, &p->due, at);
    arm(k);
}

/* When NoExecute taints end the pod's stay; TIME_NEVER if they do not. */
static int64_t stay(const struct pod *pod, const struct node *node, int64_t wall)
{
    int64_t left = TIME_NEVER;
    for (uint32_t i = 0; i < node->n_taints; i++) {
        const struct taint *t = &node->taints[i];
        if (t->effect != TAINT_NO_EXECUTE)
            continue;
        bool health = strcmp(t->key, "node.kubernetes.io/not-ready") == 0 ||
                      strcmp(t->key, "node.kubernetes.io/unreachable") == 0;
        int64_t allowed = health ? DEFAULT_TOLERATION : 0;
        for (uint32_t k = 0; k < pod->spec.n_tolerations; k++) {
            const struct toleration *o = &pod->spec.tolerations[k];
            if (toleration_tolerates(o, t)) {
                allowed = o->has_seconds ? MAX(o->seconds, 0) * NS_PER_S : TIME_NEVER;
                break;
            }
        }
        if (allowed == TIME_NEVER)
            continue;
        int64_t since = t->time_added ? t->time_added : wall;
        left = MIN(left, MAX(since + allowed - wall, 0));
    }
    return left;
}

/* Seconds of an annotation; `otherwise` when absent or not a number. */
static int64_t seconds_of(const struct pod *pod, const char *key, int64_t otherwise)
{
    const char *text = labels_get(&pod->obj.meta.annotations, key);
    int64_t v;
    return text && num_parse_range(str_from(text), 0, INT32_MAX, &v, NULL) == 0 ? v : otherwise;
}

static int64_t finish_in(const struct pod *pod, int64_t wall)
{
    const struct owner_ref *owner = meta_controller(&pod->obj.meta);
    bool job = owner && owner->kind && strcmp(owner->kind, "Job") == 0;
    int64_t seconds = seconds_of(pod, "sim.weft.sh/run-seconds", job ? JOB_SECONDS : -1);
    if (seconds < 0)
        return TIME_NEVER;
    return MAX(pod->start_time + seconds * NS_PER_S - wall, 0);
}

static int64_t start_in(struct sim *s)
{
    int64_t d = s->o.pod_start;
    return d < 4 ? d : rng_between(&s->starts, d - d / 4, d + d / 4);
}

static int64_t stop_in(struct sim *s, const struct pod *pod)
{
    int64_t seconds = seconds_of(pod, "sim.weft.sh/stop-seconds", -1);
    int64_t stop = seconds < 0 ? s->o.pod_stop : seconds * NS_PER_S;
    return MIN(stop, pod->obj.meta.deletion_grace_s * NS_PER_S);
}

static void consider_served(struct kubelets *k, struct pod_state *p, const struct pod *pod,
                            const struct node *node)
{
    struct sim *s = k->sim;
    int64_t now = sim_now(s), leave = stay(pod, node, sim_wall(s));
    bool up = !p->node->down;
    if (pod_is_terminating(pod)) {
        if (up)
            plan(k, p, POD_DUE_STOP, now + stop_in(s, pod));
        else
            plan(k, p, POD_DUE_NONE, 0);
        return;
    }
    if (pod_is_terminal(pod)) {
        plan(k, p, POD_DUE_NONE, 0);
        return;
    }
    int64_t finish = up && pod->phase == POD_RUNNING ? finish_in(pod, sim_wall(s)) : TIME_NEVER;
    if (leave != TIME_NEVER && leave < finish)
        plan(k, p, POD_DUE_EVICT, now + leave);
    else if (finish != TIME_NEVER)
        plan(k, p, POD_DUE_FINISH, now + finish);
    else if (up && pod->phase == POD_PENDING && node_is_ready(node)) {
        if (p->what != POD_DUE_START || !heap_has(&p->due))
            plan(k, p, POD_DUE_START, now + start_in(s));
    } else
        plan(k, p, POD_DUE_NONE, 0);
}

static void consider(struct kubelets *k, struct pod_state *p)
{
    struct object *o = item_typed(p->item);
    if (!p->node || !o || k->sim->o.no_kubelet)
        return;
    struct object *node = p->node->item ? item_typed(p->node->item) : NULL;
    if (node)
        consider_served(k, p, pod_of(o), node_of(node));
    else
        plan(k, p, POD_DUE_GC, MAX(p->node->gone_at + k->sim->o.pod_gc, sim_now(k->sim)));
}

/* ---- Doing it ---- */

static void add_container_statuses(struct version *v, const struct pod *pod, const char *started)
{
    struct json *list =
        tree_array(&v->arena, tree_object(&v->arena, v->root, "status"), "containerStatuses");
    list->n = 0;
    for (uint32_t i = 0; i < pod->spec.n_containers; i++) {
        struct json *c = tree_add_object(&v->arena, list);
        tree_cstr(&v->arena, c, "name", pod->spec.containers[i].name);
        tree_bool(&v->arena, c, "ready", true);
        tree_i64(&v->arena, c, "restartCount", 0);
        struct json *running =
            tree_object(&v->arena, tree_object(&v->arena, c, "state"), "running");
        tree_cstr(&v->arena, running, "startedAt", started);
    }
}

static void start_pod(struct sim *s, struct item *it)
{
    struct version *v = version_edit(it);
    const struct pod *pod = pod_of(item_typed(it));
    struct json *status = tree_object(&v->arena, v->root, "status");
    char now[40];
    time_format(now, sim_wall(s));
    tree_cstr(&v->arena, status, "phase", "Running");
    tree_cstr(&v->arena, status, "startTime", now);
    tree_condition(&v->arena, v->root, "Initialized", "True", NULL, NULL, sim_wall(s));
    tree_condition(&v->arena, v->root, "ContainersReady", "True", NULL, NULL, sim_wall(s));
    tree_condition(&v->arena, v->root, "Ready", "True", NULL, NULL, sim_wall(s));
    tree_condition(&v->arena, v->root, "PodScheduled", "True", NULL, NULL, sim_wall(s));
    add_container_statuses(v, pod, now);
    s->counters.pods_started++;
    store_commit(it, v);
}

static void finish_pod(struct sim *s, struct item *it)
{
    struct version *v = version_edit(it);
    tree_cstr(&v->arena, tree_object(&v->arena, v->root, "status"), "phase", "Succeeded");
    tree_condition(&v->arena, v->root, "ContainersReady", "False", "PodCompleted", NULL,
                   sim_wall(s));
    tree_condition(&v->arena, v->root, "Ready", "False", "PodCompleted", NULL, sim_wall(s));
    store_commit(it, v);
}

static void evict_pod(struct sim *s, struct item *it)
{
    struct version *v = version_edit(it);
    tree_condition(&v->arena, v->root, "DisruptionTarget", "True", "DeletionByTaintManager",
                   "Taint manager: deleting due to NoExecute taint", sim_wall(s));
    store_commit(it, v);
    store_delete(it, -1);
}

static void act(struct sim *s, struct pod_state *p)
{
    struct item *it = item_ref(p->item);
    int what = p->what;
    p->what = POD_DUE_NONE;
    switch (what) {
    case POD_DUE_START:
        start_pod(s, it);
        break;
    case POD_DUE_FINISH:
        finish_pod(s, it);
        break;
    case POD_DUE_EVICT:
        evict_pod(s, it);
        break;
    case POD_DUE_STOP:
    case POD_DUE_GC:
        store_delete(it, 0);
        break;
    default:
        break;
    }
    item_unref(it);
}

static void kubelets_fire(void *arg)
{
    struct kubelets *k = arg;
    struct heap_node *first;
    while ((first = heap_peek(&k->due)) && first->key <= sim_now(k->sim)) {
        heap_pop(&k->due);
        act(k->sim, CONTAINER_OF(first, struct pod_state, due));
    }
    arm(k);
}

/* ---- Changes ---- */

static void pod_changed(struct kubelets *k, struct item *it)
{
    struct sim *s = k->sim;
    if (!it->pod) {
        it->pod = xcalloc(1, sizeof(*it->pod));
        it->pod->item = it;
    }
    if (!it->pod->node) {
        struct str node = json_text(json_at(it->now->root, "spec", "nodeName", NULL));
        if (!node.len)
            return;
        link_pod(s, it->pod, node);
    }
    consider(k, it->pod);
}

static bool same_for_pods(const struct node *a, const struct node *b)
{
    if (node_is_ready(a) != node_is_ready(b) || a->n_taints != b->n_taints)
        return false;
    for (uint32_t i = 0; i < a->n_taints; i++)
        if (strcmp(a->taints[i].key, b->taints[i].key) != 0 ||
            a->taints[i].effect != b->taints[i].effect)
            return false;
    return true;
}

static void consider_all(struct kubelets *k, struct node_state *n)
{
    for (struct pod_state *p = n->first; p; p = p->next)
        consider(k, p);
}

static void node_changed(struct kubelets *k, struct item *it, struct version *before,
                         struct version *after)
{
    struct sim *s = k->sim;
    struct node_state *n = it->node;
    if (!n) {
        n = it->node = node_state_get(s, str_from(it->name));
        n->item = it;
        n->gone_at = 0;
        n->down = false;
    }
    if (!after) {
        n->item = NULL;
        n->gone_at = sim_now(s);
        consider_all(k, n);
        return;
    }
    struct object *was = before ? version_typed(s, it->res, before) : NULL;
    struct object *is = version_typed(s, it->res, after);
    if (!was || !is || !same_for_pods(node_of(was), node_of(is)))
        consider_all(k, n);
}

void kubelets_changed(struct sim *s, struct item *it, struct version *before, struct version *after)
{
    struct kubelets *k = s->kubelets;
    if (it->res == s->nodes)
        node_changed(k, it, before, after);
    else if (it->res == s->pods && after)
        pod_changed(k, it);
}

void kubelets_went_down(struct sim *s, struct node_state *n)
{
    consider_all(s->kubelets, n);
}

void kubelets_forget(struct sim *s, struct item *it)
{
    struct kubelets *k = s->kubelets;
    if (it->pod) {
        heap_remove(&k->due, &it->pod->due);
        unlink_pod(s, it->pod);
        free(it->pod);
        it->pod = NULL;
        arm(k);
    }
    if (it->node) {
        node_state_tidy(s, it->node);
        it->node = NULL;
    }
}

struct kubelets *kubelets_new(struct sim *s)
{
    struct kubelets *k = xcalloc(1, sizeof(*k));
    k->sim = s;
    return k;
}

void kubelets_free(struct kubelets *k)
{
    struct sim *s = k->sim;
    loop_timer_cancel(s->loop, &k->timer);
    heap_release(&k->due); /* it touches its nodes */
    map_each(&s->pods->objects, e) {
        struct item *it = e->value;
        free(it->pod);
        it->pod = NULL;
    }
    map_release(&k->nodes, node_state_free);
    free(k);
}

bool kubelets_idle(const struct kubelets *k)
{
    for (size_t i = 0; i < k->due.len; i++)
        if (CONTAINER_OF(k->due.v[i], struct pod_state, due)->what != POD_DUE_FINISH)
            return false;
    return true;
}
