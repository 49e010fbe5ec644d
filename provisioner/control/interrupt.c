/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Notices of the cloud: the machine ends soon, with or without us.
 *
 * The claim gets the notice's deadline as its termination timestamp and is deleted: its node is
 * tainted, its pods are planned for at once as pods of a deleting node, and drained before the end.
 */
#include "base/num.h"
#include "provisioner/control/body.h"
#include "provisioner/control/decision.h"
#include "provisioner/control/launch.h"

#define NOTICES_REMEMBERED 4096

struct poll {
    struct control *c;
    struct cloud *cloud;
    struct cloud_op *op;
};

struct interrupt {
    struct loop_timer timer;
    struct poll polls[CLOUDS_MAX];
    struct map seen; /* "kind provider-id" of notices that were acted on */
};

static const char *notice_reason(enum notice_kind k)
{
    static const char *const reasons[] = {
        [NOTICE_SPOT] = "SpotInterrupted",
        [NOTICE_REBALANCE] = "SpotRebalanceRecommendation",
        [NOTICE_MAINTENANCE] = "ScheduledChange",
        [NOTICE_STATE_CHANGE] = "InstanceTerminating",
        [NOTICE_HEALTH] = "InstanceUnhealthy",
    };

    return reasons[k];
}

static void deleted(struct control *c, const char *name, const struct effect_answer *a)
{
    if (a->err && a->err->code != ERR_NOT_FOUND)
        log_warn("an interrupted nodeclaim could not be deleted", LOG_CSTR("nodeclaim", name),
                 LOG_ERR(a->err));
    claims_touch(c, name);
}

/* `key`: "claim reason". */
static void stamped(struct control *c, const char *key, const struct effect_answer *a)
{
    struct str rest = str_from(key), name;
    char claim_name[256];
    struct nodeclaim *claim;

    (void)str_split(&rest, ' ', &name);
    snprintf(claim_name, sizeof(claim_name), "%.*s", STR_ARG(name));
    claim = cluster_claim(c, claim_name);
    if (a->err)
        log_warn("a notice could not be written down", LOG_CSTR("nodeclaim", claim_name),
                 LOG_ERR(a->err));
    if (claim && !claim->obj.meta.deletion)
        (void)claims_delete(c, claim, "interrupt", rest.p, "the cloud takes the instance back",
                            deleted);
}

static void act(struct control *c, struct nodeclaim *claim, const struct notice *n)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;
    char key[512], at[40];

    snprintf(key, sizeof(key), "%s %s", claim->obj.meta.name, notice_reason(n->kind));
    if (n->deadline == 0 || n->deadline >= drain_deadline(claim)) {
        struct effect_answer none = {0};

        stamped(c, key, &none);
        return;
    }
    body_begin(&w, &body, NULL);
    json_w_kobject(&w, "annotations");
    json_w_kstr(&w, ANNOTATION_TERMINATION_TIMESTAMP, time_format(at, n->deadline));
    json_w_object_end(&w);
    body_metadata_end(&w);
    body_end(&w);
    (void)execute_patch(c, CACHE_NODECLAIM, key, claim->obj.meta.name, NULL, buf_view(&body),
                        stamped);
}

static void notice(struct control *c, const struct notice *n)
{
    struct nodeclaim *claim = cluster_claim_of_id(c, n->provider_id);
    char key[400];

    snprintf(key, sizeof(key), "%d %s", (int)n->kind, n->provider_id);
    if (!claim || map_has(&c->interrupt->seen, str_from(key)))
        return;
    if (map_len(&c->interrupt->seen) >= NOTICES_REMEMBERED)
        map_clear(&c->interrupt->seen, NULL);
    map_put(&c->interrupt->seen, str_from(key), c);
    control_event(c, &claim->obj, true, notice_reason(n->kind), "notice of the cloud for %s",
                  n->provider_id);
    if (n->kind == NOTICE_REBALANCE)
        return;
    if (n->kind == NOTICE_SPOT) {
        const struct labels *l = &claim->obj.meta.labels;
        struct launch_offering o = {labels_get(l, LABEL_INSTANCE_TYPE), labels_get(l, LABEL_ZONE),
                                    CAPACITY_SPOT};

        if (o.instance_type && o.zone) {
            offers_failed(&c->offers, &o, control_now(c));
            offers_save(c);
        }
    }
    if (!claim->obj.meta.deletion)
        act(c, claim, n);
}

static void polled(void *arg, const struct notice *v, size_t n, const struct cloud_error *error)
{
    struct poll *p = arg;

    p->op = NULL;
    if (error && error->code != ERR_NONE) {
        log_warn("the cloud's notices could not be read", LOG_CSTR("cloud", p->cloud->vt->name),
                 LOG_CSTR("error", error->msg));
        return;
    }
    for (size_t i = 0; i < n && execute_allowed(p->c); i++)
        notice(p->c, &v[i]);
}

static void tick(void *arg)
{
    struct control *c = arg;

    loop_timer_in(c->loop, &c->interrupt->timer, c->o.notice_interval, tick, c);
    for (size_t i = 0; i < c->n_clouds; i++) {
        struct poll *p = &c->interrupt->polls[i];

        if (execute_allowed(c) && !p->op && c->clouds[i]->vt->poll_notices)
            p->op = c->clouds[i]->vt->poll_notices(c->clouds[i], polled, p);
    }
}

void interrupt_init(struct control *c)
{
    c->interrupt = xcalloc(1, sizeof(*c->interrupt));
    for (size_t i = 0; i < c->n_clouds; i++)
        c->interrupt->polls[i] = (struct poll){.c = c, .cloud = c->clouds[i]};
    loop_timer_in(c->loop, &c->interrupt->timer, c->o.notice_interval, tick, c);
}

void interrupt_release(struct control *c)
{
    for (size_t i = 0; i < c->n_clouds; i++)
        if (c->interrupt->polls[i].op)
            c->clouds[i]->vt->cancel(c->clouds[i], c->interrupt->polls[i].op);
    loop_timer_cancel(c->loop, &c->interrupt->timer);
    map_release(&c->interrupt->seen, NULL);
    free(c->interrupt);
}
