/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/decision.h"

#include "base/crypto.h"
#include "base/json.h"
#include "base/num.h"

#define DECISION_PODS_MAX 64 /* named in a line; the count is always whole */

static void texts(struct json_writer *w, const char *key, const char *const *v, size_t n,
                  size_t max)
{
    json_w_karray(w, key);
    for (size_t i = 0; i < MIN(n, max); i++)
        json_w_cstr(w, v[i]);
    json_w_array_end(w);
}

static void money(struct json_writer *w, const char *key, int64_t v)
{
    char text[32];

    json_w_kstr(w, key, num_format_fixed(text, v, 6));
}

static void inputs(struct json_writer *w, const struct decision *d)
{
    json_w_kobject(w, "inputs");
    texts(w, "nodes", d->nodes, d->n_nodes, SIZE_MAX);
    texts(w, "pods", d->pods, d->n_pods, DECISION_PODS_MAX);
    json_w_ki64(w, "podCount", (int64_t)d->n_pods);
    if (d->node_pool)
        json_w_kcstr(w, "nodePool", d->node_pool);
    if (d->instance_type)
        json_w_kcstr(w, "instanceType", d->instance_type);
    if (d->zone)
        json_w_kcstr(w, "zone", d->zone);
    if (d->capacity_type)
        json_w_kcstr(w, "capacityType", d->capacity_type);
    if (d->price_uusd_h > 0)
        money(w, "priceUsdHour", d->price_uusd_h);
    if (d->lower_bound_uusd_h > 0)
        money(w, "lowerBoundUsdHour", d->lower_bound_uusd_h);
    json_w_object_end(w);
}

void decision_log(struct control *c, const struct decision *d)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    CLEANUP(buf_release) struct buf id = BUF_INIT;
    char at[40], hex[17];
    struct json_writer w;
    struct str when = time_format_micro(at, control_now(c));

    control_count(c->metric.decisions, d->decision, d->outcome ? d->outcome : "", NULL);
    if (!c->o.decision)
        return;
    buf_printf(&id, "%s %.*s %llu %s", c->cluster.uid, STR_ARG(when),
               (unsigned long long)++c->decisions, d->decision);
    crypto_sha256_hex(buf_view(&id), 16, hex);
    json_writer_init(&w, &out, 0);
    json_w_object(&w);
    json_w_kstr(&w, "ts", when);
    json_w_kcstr(&w, "decision", d->decision);
    json_w_kcstr(&w, "id", hex);
    json_w_kcstr(&w, "reason", d->reason);
    inputs(&w, d);
    json_w_kcstr(&w, "outcome", c->o.observe ? "observed" : d->outcome);
    money(&w, "savingUsdHour", d->saving_uusd_h);
    json_w_ki64(&w, "paybackSeconds", d->payback_s);
    json_w_kcstr(&w, "blockedBy", d->blocked_by);
    json_w_kcstr(&w, "evidence", d->evidence);
    json_w_object_end(&w);
    c->o.decision(c->o.decision_arg, buf_view(&out));
}
