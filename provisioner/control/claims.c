/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* NodeClaims, one effect at a time: look, ask lifecycle_step, do the one thing, look again.
 *
 * Write-ahead: an attempt (its number, its offerings, its token) is on the claim before the cloud
 * is called. The token is a hash of the cluster, the claim, the attempt and the offerings, so that
 * whoever repeats the call, now or after a restart, gets the same instance. A call whose outcome is
 * not known is repeated with the same token; a new attempt follows only on a certain failure. */
#include "base/crypto.h"
#include "provisioner/control/body.h"
#include "provisioner/control/decision.h"
#include "provisioner/control/launch.h"

void claims_touch(struct control *c, const char *name)
{
    queue_add(c->claim_queue, str_from(name));
}

struct claim_memory *claims_memory(struct control *c, const char *name)
{
    void **slot = map_slot(&c->claims, str_from(name));

    if (!*slot)
        *slot = xcalloc(1, sizeof(struct claim_memory));
    return *slot;
}

static void memory_free(void *p)
{
    struct claim_memory *m = p;

    free(m->launch_reason);
    free(m->launch_message);
    launched_free(m->launched);
    map_release(&m->evictions, free);
    free(m);
}

/* The end of one look. `again`: something was done, look at once. */
void claims_finish(struct control *c, const char *name, bool ok, bool again)
{
    queue_done(c->claim_queue, str_from(name), ok);
    if (again)
        queue_add(c->claim_queue, str_from(name));
}

static void done_again(struct control *c, const char *name, const struct effect_answer *a)
{
    bool ok = !a->err || a->err->code == ERR_CONFLICT || a->err->code == ERR_NOT_FOUND;

    if (a->err && !ok)
        log_warn("a call for a nodeclaim failed", LOG_CSTR("nodeclaim", name), LOG_ERR(a->err));
    /* A conflict or a missing object means that the cache is behind: its next event wakes us, and a
     * short pause stands in for an event that came before. */
    claims_finish(c, name, ok, !a->err);
    if (a->err && ok)
        queue_add_after(c->claim_queue, str_from(name), 200 * NS_PER_MS);
}

static void patch_claim(struct control *c, const char *name, const char *subresource,
                        struct buf *body, effect_done *done)
{
    if (!execute_patch(c, CACHE_NODECLAIM, name, name, subresource, buf_view(body),
                       done ? done : done_again))
        claims_finish(c, name, true, false);
}

/* ---- Status ---- */

static void patch_conditions(struct control *c, const struct nodeclaim *claim,
                             const struct node *node, const struct wanted_condition *want,
                             unsigned n)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;

    body_begin(&w, &body, &claim->obj.meta);
    body_metadata_end(&w);
    json_w_kobject(&w, "status");
    if (node && (!claim->node_name || strcmp(claim->node_name, node->obj.meta.name) != 0))
        json_w_kcstr(&w, "nodeName", node->obj.meta.name);
    body_conditions(&w, &claim->conditions, want, n, claim->obj.meta.generation, control_now(c));
    json_w_object_end(&w);
    body_end(&w);
    patch_claim(c, claim->obj.meta.name, "status", &body, NULL);
}

bool claims_sync_conditions(struct control *c, const struct nodeclaim *claim,
                            const struct node *node, const struct wanted_condition *want,
                            unsigned n)
{
    if (!conditions_differ(&claim->conditions, want, n))
        return false;
    patch_conditions(c, claim, node, want, n);
    return true;
}

/* ---- Deletion ---- */

bool claims_delete(struct control *c, const struct nodeclaim *claim, const char *decision,
                   const char *reason, const char *message, effect_done *done)
{
    const struct meta *m = &claim->obj.meta;
    const char *pool = labels_get(&m->labels, LABEL_NODEPOOL),
               *type = labels_get(&m->labels, LABEL_CAPACITY_TYPE);
    struct decision d = {
        .decision = decision, .reason = reason, .evidence = message, .outcome = "done"};

    if (!execute_delete(c, CACHE_NODECLAIM, m->name, NULL, m->name, m->uid, -1, done))
        return false;
    d.nodes = &m->name;
    d.n_nodes = 1;
    d.price_uusd_h = claims_price(c, claim);
    decision_log(c, &d);
    control_event(c, &claim->obj, strcmp(decision, "empty") != 0, reason,
                  "deleting the NodeClaim: %s", message);
    control_count(c->metric.claims_disrupted, reason, pool ? pool : "", type ? type : "", NULL);
    return true;
}

int64_t claims_price(const struct control *c, const struct nodeclaim *claim)
{
    struct catalog *cat = pools_catalog(c, &claim->spec.class_ref);
    const char *type = labels_get(&claim->obj.meta.labels, LABEL_INSTANCE_TYPE);
    const char *zone = labels_get(&claim->obj.meta.labels, LABEL_ZONE);
    const char *capacity = labels_get(&claim->obj.meta.labels, LABEL_CAPACITY_TYPE);
    const struct instance_type *t = cat && type ? catalog_find(cat, type) : NULL;

    for (uint32_t i = 0; t && zone && capacity && i < t->n_offerings; i++)
        if (strcmp(t->offerings[i].zone, zone) == 0 &&
            strcmp(capacity_type_name(t->offerings[i].capacity_type), capacity) == 0)
            return MAX(t->offerings[i].price_uusd_h, 0);
    return 0;
}

/* ---- One look ---- */

static void do_register(struct control *c, const struct nodeclaim *claim, const struct node *node)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    bool tainted = false;

    for (uint32_t i = 0; i < node->n_taints; i++)
        tainted |= strcmp(node->taints[i].key, TAINT_UNREGISTERED) == 0;
    if (!tainted && !labels_has(&node->obj.meta.labels, LABEL_REGISTERED))
        control_event(
            c, &node->obj, true, "UnregisteredTaintMissing",
            "the node booted without the taint %s: pods may have come before it was registered",
            TAINT_UNREGISTERED);
    body_register(&body, claim, node);
    if (!execute_patch(c, CACHE_NODE, claim->obj.meta.name, node->obj.meta.name, NULL,
                       buf_view(&body), done_again))
        claims_finish(c, claim->obj.meta.name, true, false);
}

static void do_initialize(struct control *c, const struct nodeclaim *claim, const struct node *node)
{
    static const char body[] = "{\"metadata\":{\"labels\":{\"" LABEL_INITIALIZED "\":\"true\"}}}";

    if (!execute_patch(c, CACHE_NODE, claim->obj.meta.name, node->obj.meta.name, NULL,
                       str_from(body), done_again))
        claims_finish(c, claim->obj.meta.name, true, false);
}

static void do_finalizer(struct control *c, const struct nodeclaim *claim)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;

    body_finalizer(&body, &claim->obj.meta, true);
    patch_claim(c, claim->obj.meta.name, NULL, &body, NULL);
}

static void perform(struct control *c, struct nodeclaim *claim, struct claim_memory *m,
                    const struct node *node, const struct lifecycle_step *s)
{
    const char *name = claim->obj.meta.name;

    /* Conditions come first, but a first launch does not wait for its own announcement. */
    if ((s->verb == LIFECYCLE_WAIT || s->verb == LIFECYCLE_DELETE || m->launch_reason) &&
        claims_sync_conditions(c, claim, node, s->conditions, s->n_conditions))
        return;
    switch (s->verb) {
    case LIFECYCLE_FINALIZER:
        do_finalizer(c, claim);
        return;
    case LIFECYCLE_ATTEMPT:
        launch_attempt(c, claim, m);
        return;
    case LIFECYCLE_LAUNCH:
        launch_call(c, claim, m);
        return;
    case LIFECYCLE_REGISTER:
        do_register(c, claim, node);
        return;
    case LIFECYCLE_INITIALIZE:
        do_initialize(c, claim, node);
        return;
    case LIFECYCLE_DELETE: {
        bool voluntary = strcmp(s->reason, "Expired") == 0;

        if ((voluntary && !breaker_take(c, labels_get(&claim->obj.meta.labels, LABEL_NODEPOOL))) ||
            !claims_delete(c, claim, voluntary ? "expire" : "replace", s->reason, s->message,
                           done_again)) {
            claims_finish(c, name, true, false);
            queue_add_after(c->claim_queue, str_from(name), 30 * NS_PER_S);
        }
        return;
    }
    case LIFECYCLE_WAIT:
        claims_finish(c, name, true, false);
        if (s->at != TIME_NEVER)
            queue_add_after(c->claim_queue, str_from(name),
                            MAX(s->at - control_now(c), 0) + NS_PER_MS);
        return;
    }
}

static void process(void *arg, struct str key)
{
    struct control *c = arg;
    char name[256];
    struct lifecycle_options o = {c->o.launch_deadline, c->o.registration_deadline,
                                  c->o.initialization_deadline};
    struct lifecycle_view v = {0};
    struct lifecycle_step s;
    struct claim_memory *m;
    struct nodeclaim *claim;

    snprintf(name, sizeof(name), "%.*s", STR_ARG(key));
    claim = cluster_claim(c, name);
    if (!execute_allowed(c) || !claim) {
        queue_done(c->claim_queue, key, true);
        return;
    }
    m = claims_memory(c, name);
    object_ref(&claim->obj);
    if (claim->obj.meta.deletion) {
        drains_process(c, claim, m);
    } else {
        v.claim = claim;
        v.launch_reason = m->launch_reason;
        v.launch_message = m->launch_message;
        v.node =
            claim->provider_id ? cluster_node_of_id(c, claim->provider_id, &v.several_nodes) : NULL;
        if (v.node && v.node->obj.meta.deletion) {
            if (!claims_delete(c, claim, "replace", "NodeDeleted", "its Node was deleted",
                               done_again))
                claims_finish(c, name, true, false);
            object_unref(&claim->obj);
            return;
        }
        lifecycle_step(&v, &o, control_now(c), &s);
        if (s.verb == LIFECYCLE_LAUNCH && m->launch_failed)
            s.verb = LIFECYCLE_ATTEMPT;
        perform(c, claim, m, v.node, &s);
    }
    object_unref(&claim->obj);
}

static void claim_changed(void *arg, struct object *before, struct object *after)
{
    struct control *c = arg;
    const char *name = (after ? after : before)->meta.name;

    if (after) {
        claims_touch(c, name);
        return;
    }
    struct claim_memory *m = map_remove(&c->claims, str_from(name));

    queue_forget(c->claim_queue, str_from(name));
    if (m)
        memory_free(m);
    provision_claim_gone(c, name);
}

void claims_init(struct control *c)
{
    c->claim_queue = queue_new(c->loop, c->o.seed ^ 1, 64, process, c);
    informer_on_change(c->cluster.caches[CACHE_NODECLAIM], claim_changed, c);
}

void claims_release(struct control *c)
{
    queue_free(c->claim_queue);
    map_release(&c->claims, memory_free);
}
