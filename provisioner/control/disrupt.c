/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Voluntary removal: nodes that are empty and have been quiet for long enough, within budgets.
 *
 * In steps that each survive a restart: the claim's DisruptionReason says what is meant (and counts
 * against the budget), the taint keeps new pods away, and after a pause in which pods that were
 * already on their way arrive, a last look decides: delete the claim, or take both marks back. */
#include "provisioner/disrupt/empty.h"

#include "base/num.h"
#include "provisioner/control/body.h"
#include "provisioner/control/decision.h"
#include "provisioner/control/launch.h"
#include "provisioner/disrupt/budget.h"

#define LOOK_AFTER (100 * NS_PER_MS)
#define LOOK_EVERY (30 * NS_PER_S)
#define POD_EVENT_EVERY                                                                            \
    (10 * NS_PER_S) /* writes of lastPodEventTime, as Karpenter throttles them */

struct disruption {
    struct loop_timer timer;
    struct map busy; /* claims with an effect of ours under way */
};

struct look {
    struct control *c;
    int64_t now, next; /* when to look again */
};

struct candidate {
    struct nodeclaim *claim;
    const struct node *node;
    const struct nodepool *pool;
    struct empty_answer answer;
    bool chosen, tainted;
};

VEC_DEFINE(candidates, struct candidate);

static void look(void *arg);

void disruption_touch(struct control *c)
{
    int64_t at = loop_now(c->loop) + LOOK_AFTER;

    if (c->ready &&
        (!loop_timer_active(&c->disruption->timer) || c->disruption->timer.node.key > at))
        loop_timer_at(c->loop, &c->disruption->timer, at, look, c);
}

static void done(struct control *c, const char *name, const struct effect_answer *a)
{
    (void)a; /* whatever happened, the objects say what is to be done next */
    map_remove(&c->disruption->busy, str_from(name));
    disruption_touch(c);
}

static void busy(struct control *c, const char *name, bool started)
{
    if (started)
        map_put(&c->disruption->busy, str_from(name), c);
}

/* ---- Marks ---- */

static void write_condition(struct control *c, const struct nodeclaim *claim, bool on)
{
    struct wanted_condition want = {CONDITION_DISRUPTION_REASON,
                                    on ? CONDITION_TRUE : CONDITION_FALSE,
                                    on ? "Empty" : "NotEmpty", ""};
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;

    body_begin(&w, &body, &claim->obj.meta);
    body_metadata_end(&w);
    json_w_kobject(&w, "status");
    body_conditions(&w, &claim->conditions, &want, 1, claim->obj.meta.generation, control_now(c));
    json_w_object_end(&w);
    body_end(&w);
    busy(c, claim->obj.meta.name,
         execute_patch(c, CACHE_NODECLAIM, claim->obj.meta.name, claim->obj.meta.name, "status",
                       buf_view(&body), done));
}

static void write_taint(struct control *c, const struct candidate *x, bool on)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;

    body_disrupted(&body, x->node, on);
    busy(c, x->claim->obj.meta.name,
         execute_patch(c, CACHE_NODE, x->claim->obj.meta.name, x->node->obj.meta.name, NULL,
                       buf_view(&body), done));
}

static void write_pod_event(struct control *c, const struct candidate *x, int64_t event)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;
    char at[40];

    body_begin(&w, &body, NULL);
    body_metadata_end(&w);
    json_w_kobject(&w, "status");
    json_w_kstr(&w, "lastPodEventTime", time_format(at, event));
    json_w_object_end(&w);
    body_end(&w);
    busy(c, x->claim->obj.meta.name,
         execute_patch(c, CACHE_NODECLAIM, x->claim->obj.meta.name, x->claim->obj.meta.name,
                       "status", buf_view(&body), done));
}

/* ---- One look ---- */

static bool tainted(const struct node *n)
{
    for (uint32_t i = 0; i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, TAINT_DISRUPTED) == 0)
            return true;
    return false;
}

static bool judge(struct look *l, struct nodeclaim *claim, struct candidate *ret)
{
    struct control *c = l->c;
    const struct node *n =
        claim->provider_id ? cluster_node_of_id(c, claim->provider_id, NULL) : NULL;
    const struct node_memory *m = n ? cluster_node(c, n->obj.meta.name) : NULL;
    struct empty_view v = {.claim = claim, .node = n};

    if (!n || claim->obj.meta.deletion || n->obj.meta.deletion)
        return false;
    v.pool = pools_last_good(c, labels_get(&claim->obj.meta.labels, LABEL_NODEPOOL));
    v.pods = (const struct pod *const *)m->pods.v;
    v.n_pods = m->pods.len;
    v.last_pod_event = m->last_pod_event;
    v.nominated =
        provision_nominated(c, claim->obj.meta.name) + provision_nominated(c, n->obj.meta.name);
    *ret = (struct candidate){
        .claim = claim,
        .node = n,
        .pool = v.pool,
        .answer = empty_judge(&v, l->now),
        .chosen = condition_is(&claim->conditions, CONDITION_DISRUPTION_REASON, CONDITION_TRUE),
        .tainted = tainted(n)};
    if (ret->answer.verdict == EMPTY_QUIET)
        l->next = MIN(l->next, ret->answer.at);
    return true;
}

/* Writes that are under way count as disruption too: what they change is not in the cache yet. */
static struct budget_count count_pool(const struct control *c, const char *pool)
{
    struct budget_count n = {0};

    cluster_each(c, CACHE_NODECLAIM, nodeclaim, claim)
    {
        const char *of = labels_get(&claim->obj.meta.labels, LABEL_NODEPOOL);
        const struct node *node;

        if (!of || strcmp(of, pool) != 0 ||
            !condition_is(&claim->conditions, CONDITION_INITIALIZED, CONDITION_TRUE) ||
            condition_is(&claim->conditions, CONDITION_INSTANCE_TERMINATING, CONDITION_TRUE))
            continue;
        node = claim->provider_id ? cluster_node_of_id(c, claim->provider_id, NULL) : NULL;
        n.nodes++;
        n.disrupting +=
            claim->obj.meta.deletion || !node || !node_is_ready(node) ||
            map_has(&c->disruption->busy, str_from(claim->obj.meta.name)) ||
            condition_is(&claim->conditions, CONDITION_DISRUPTION_REASON, CONDITION_TRUE);
    }
    return n;
}

static void remove_node(struct control *c, const struct candidate *x)
{
    const char *capacity = labels_get(&x->claim->obj.meta.labels, LABEL_CAPACITY_TYPE);
    char evidence[160], at[40];
    struct decision d = {.decision = "empty",
                         .reason = "Empty",
                         .outcome = "done",
                         .evidence = evidence,
                         .nodes = &x->node->obj.meta.name,
                         .n_nodes = 1,
                         .node_pool = x->pool->obj.meta.name};

    snprintf(evidence, sizeof(evidence), "no pod but daemons since %s",
             time_format(at, x->answer.since).p);
    d.price_uusd_h = d.saving_uusd_h = claims_price(c, x->claim);
    if (!execute_delete(c, CACHE_NODECLAIM, x->claim->obj.meta.name, NULL, x->claim->obj.meta.name,
                        x->claim->obj.meta.uid, -1, done))
        return;
    busy(c, x->claim->obj.meta.name, true);
    decision_log(c, &d);
    control_event(c, &x->node->obj, false, "DisruptionTerminating", "removing the node: Empty");
    control_count(c->metric.claims_disrupted, "empty", x->pool->obj.meta.name,
                  capacity ? capacity : "", NULL);
}

/* A node that was chosen before: on with it, or back. */
static void continue_chosen(struct look *l, struct candidate *x)
{
    struct node_memory *m = cluster_node(l->c, x->node->obj.meta.name);

    if (x->answer.verdict != EMPTY_REMOVABLE) {
        m->marked = 0;
        if (x->tainted)
            write_taint(l->c, x, false);
        else
            write_condition(l->c, x->claim, false);
        control_event(l->c, &x->node->obj, false, "DisruptionBlocked", "not removed after all: %s",
                      empty_verdict_text(x->answer.verdict));
        return;
    }
    if (!x->tainted) {
        m->marked = 0;
        write_taint(l->c, x, true);
        return;
    }
    if (m->marked == 0)
        m->marked = l->now;
    if (l->now < m->marked + l->c->o.empty_settle)
        l->next = MIN(l->next, m->marked + l->c->o.empty_settle);
    else
        remove_node(l->c, x);
}

static int by_age(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->answer.since != y->answer.since)
        return x->answer.since < y->answer.since ? -1 : 1;
    return strcmp(x->claim->obj.meta.name, y->claim->obj.meta.name);
}

static bool within_budget(struct look *l, const struct candidate *x)
{
    struct budget_count n = count_pool(l->c, x->pool->obj.meta.name);

    return budget_allowed(x->pool, DISRUPT_EMPTY, &n, l->now) > 0;
}

static void choose(struct look *l, struct candidates *v)
{
    if (v->len > 0)
        qsort(v->v, v->len, sizeof(*v->v), by_age);
    vec_each(v, struct candidate *, x) {
        if (within_budget(l, x)) {
            write_condition(l->c, x->claim, true);
        } else {
            control_event(l->c, &x->node->obj, false, "DisruptionBlocked",
                          "empty, and the budget of NodePool %s allows no more removals now",
                          x->pool->obj.meta.name);
        }
    }
}

static void pod_event(struct look *l, const struct candidate *x)
{
    int64_t event = cluster_node(l->c, x->node->obj.meta.name)->last_pod_event;

    if (event <= x->claim->last_pod_event + NS_PER_S)
        return;
    /* The end of the last pod is what the quiet period hangs on; the rest is thinned out. */
    if (event - x->claim->last_pod_event >= POD_EVENT_EVERY || x->answer.verdict == EMPTY_QUIET)
        write_pod_event(l->c, x, event);
}

static void look(void *arg)
{
    struct control *c = arg;
    struct look l = {c, control_now(c), control_now(c) + LOOK_EVERY};
    struct candidates removable = {0};

    if (!execute_allowed(c))
        return;
    cluster_each(c, CACHE_NODECLAIM, nodeclaim, claim)
    {
        struct candidate x;

        if (map_has(&c->disruption->busy, str_from(claim->obj.meta.name)) || !judge(&l, claim, &x))
            continue;
        if (x.chosen)
            continue_chosen(&l, &x);
        else if (x.answer.verdict == EMPTY_REMOVABLE)
            vec_push(&removable, x);
        else
            pod_event(&l, &x);
    }
    choose(&l, &removable);
    vec_release(&removable);
    if (!loop_timer_active(&c->disruption->timer))
        loop_timer_in(c->loop, &c->disruption->timer, MAX(l.next - l.now, LOOK_AFTER), look, c);
}

void disruption_init(struct control *c)
{
    c->disruption = xcalloc(1, sizeof(*c->disruption));
}

void disruption_release(struct control *c)
{
    loop_timer_cancel(c->loop, &c->disruption->timer);
    map_release(&c->disruption->busy, NULL);
    free(c->disruption);
}
