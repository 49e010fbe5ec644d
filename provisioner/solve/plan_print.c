/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The one printer of plans. */

#include "base/json.h"
#include "base/num.h"
#include "provisioner/solve/plan.h"

/* ---- JSON ---- */

static void price_member(struct json_writer *w, const char *key, int64_t price_uusd_h)
{
    char text[32];
    json_w_kstr(w, key, num_format_fixed(text, price_uusd_h, 6));
}

static void resources_member(struct json_writer *w, const char *key, const struct resource_list *l)
{
    json_w_kobject(w, key);
    for (uint32_t i = 0; i < l->n; i++) {
        char text[32];
        json_w_kstr(w, l->v[i].name,
                    quantity_format_for(text, str_from(l->v[i].name), l->v[i].amount));
    }
    json_w_object_end(w);
}

static void offer_members(struct json_writer *w, const struct plan_alternative *x)
{
    json_w_kcstr(w, "instanceType", x->instance_type);
    json_w_kcstr(w, "zone", x->zone);
    json_w_kcstr(w, "capacityType", x->capacity_type);
    price_member(w, "priceUsdHour", x->price_uusd_h);
}

static void launch_object(struct json_writer *w, const struct plan_launch *l)
{
    json_w_object(w);
    json_w_kcstr(w, "name", l->name);
    json_w_kcstr(w, "nodePool", l->node_pool);
    offer_members(w, &l->alternatives[0]);
    json_w_karray(w, "pods");
    for (uint32_t i = 0; i < l->n_pods; i++)
        json_w_cstr(w, l->pod_keys[i]);
    json_w_array_end(w);
    resources_member(w, "requests", &l->requests);
    resources_member(w, "allocatable", &l->allocatable);
    json_w_karray(w, "alternatives");
    for (uint32_t i = 1; i < l->n_alternatives; i++) {
        json_w_object(w);
        offer_members(w, &l->alternatives[i]);
        json_w_object_end(w);
    }
    json_w_array_end(w);
    json_w_object_end(w);
}

static void refusal_object(struct json_writer *w, const struct plan_refusal *r)
{
    json_w_object(w);
    json_w_kcstr(w, "pod", r->pod_key);
    json_w_kcstr(w, "reason", r->reason);
    json_w_karray(w, "detail");
    for (uint32_t i = 0; i < r->detail.n; i++)
        json_w_cstr(w, r->detail.v[i]);
    json_w_array_end(w);
    json_w_object_end(w);
}

static void cost_member(struct json_writer *w, const struct plan *p)
{
    char text[32];
    json_w_kobject(w, "cost");
    price_member(w, "launchUsdHour", p->launch_uusd_h);
    price_member(w, "objectiveUsdHour", p->objective_uusd_h);
    price_member(w, "lowerBoundUsdHour", p->bound_uusd_h);
    json_w_key(w, STR("gapPercent"));
    json_w_number(w, num_format_fixed(text, plan_gap(p), 2));
    json_w_object_end(w);
}

static void certificate_member(struct json_writer *w, const struct plan *p)
{
    json_w_kobject(w, "certificate");
    json_w_karray(w, "classes");
    for (uint32_t i = 0; i < p->n_classes; i++) {
        json_w_object(w);
        json_w_ki64(w, "id", p->classes[i].id);
        json_w_ki64(w, "pods", p->classes[i].pods);
        json_w_kcstr(w, "example", p->classes[i].example);
        json_w_ki64(w, "valueNanoUsdHour", p->classes[i].value_nusd_h);
        json_w_object_end(w);
    }
    json_w_array_end(w);
    json_w_object_end(w);
}

static void milliseconds(struct json_writer *w, const char *key, int64_t us)
{
    char text[32];
    json_w_key(w, str_from(key));
    json_w_number(w, num_format_fixed(text, us, 3));
}

void plan_print_json(const struct plan *p, const struct plan_print_options *o, struct buf *out)
{
    struct json_writer w;
    json_writer_init(&w, out, 2);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "weft.sh/v1alpha1");
    json_w_kcstr(&w, "kind", "Plan");
    json_w_kobject(&w, "input");
    json_w_ki64(&w, "pods", p->input.pods);
    json_w_ki64(&w, "pending", p->input.pending);
    json_w_ki64(&w, "nodes", p->input.nodes);
    json_w_ki64(&w, "nodePools", p->input.pools);
    json_w_ki64(&w, "offerings", p->input.offers);
    json_w_ki64(&w, "classes", p->input.classes);
    json_w_object_end(&w);
    json_w_karray(&w, "launch");
    for (uint32_t i = 0; i < p->n_launches; i++)
        launch_object(&w, &p->launches[i]);
    json_w_array_end(&w);
    json_w_karray(&w, "place");
    for (uint32_t i = 0; i < p->n_places; i++) {
        json_w_object(&w);
        json_w_kcstr(&w, "pod", p->places[i].pod_key);
        json_w_kcstr(&w, "node", p->places[i].node);
        json_w_object_end(&w);
    }
    json_w_array_end(&w);
    json_w_karray(&w, "unschedulable");
    for (uint32_t i = 0; i < p->n_refusals; i++)
        refusal_object(&w, &p->refusals[i]);
    json_w_array_end(&w);
    cost_member(&w, p);
    if (!o || o->certificate)
        certificate_member(&w, p);
    json_w_kobject(&w, "timing");
    milliseconds(&w, "decodeMs", p->timing.decode_us);
    milliseconds(&w, "greedyMs", p->timing.greedy_us);
    milliseconds(&w, "solveMs", p->timing.solve_us);
    json_w_object_end(&w);
    json_w_object_end(&w);
    buf_char(out, '\n');
}

/* ---- Text ---- */

/* "cpu 98 %, memory 61 %": what is asked for of what there is. */
static void add_fill(struct buf *b, const struct plan_launch *l)
{
    bool first = true;
    for (uint32_t i = 0; i < l->requests.n; i++) {
        const char *name = l->requests.v[i].name;
        int64_t of = resource_list_get(&l->allocatable, name);
        if (of <= 0 || strcmp(name, "pods") == 0)
            continue;
        const char *last = strrchr(name, '/');
        buf_printf(b, "%s%s %lld%%", first ? "" : " ", last ? last + 1 : name,
                   (long long)num_mul_div(l->requests.v[i].amount, 100, of));
        first = false;
    }
}

static bool same_row(const struct plan_launch *x, const struct plan_launch *y)
{
    return strcmp(x->node_pool, y->node_pool) == 0 &&
           x->alternatives[0].offer == y->alternatives[0].offer;
}

static void launch_rows(const struct plan *p, struct buf *out)
{
    buf_printf(out, "%5s  %-18s %-18s %-12s %-10s %10s %6s  %s\n", "NODES", "NODEPOOL", "TYPE",
               "ZONE", "CAPACITY", "$/H EACH", "PODS", "FULLEST");
    for (uint32_t i = 0; i < p->n_launches;) {
        uint32_t end = i, pods = 0;
        for (; end < p->n_launches && same_row(&p->launches[i], &p->launches[end]); end++)
            pods += p->launches[end].n_pods;
        const struct plan_launch *l = &p->launches[i];
        const struct plan_alternative *x = &l->alternatives[0];
        char price[32];
        CLEANUP(buf_release) struct buf fill = BUF_INIT;
        num_format_fixed(price, x->price_uusd_h, 6);
        add_fill(&fill, l);
        buf_printf(out, "%5u  %-18.18s %-18.18s %-12.12s %-10.10s %10.10s %6u  %s\n", end - i,
                   l->node_pool, x->instance_type, x->zone, x->capacity_type, price, pods,
                   fill.data ? fill.data : "");
        i = end;
    }
}

static void refusal_rows(const struct plan *p, struct buf *out)
{
    for (uint32_t i = 0; i < p->n_refusals;) {
        const struct plan_refusal *r = &p->refusals[i];
        uint32_t end = i + 1;
        while (end < p->n_refusals && p->refusals[end].detail.v == r->detail.v &&
               strcmp(p->refusals[end].reason, r->reason) == 0)
            end++;
        buf_printf(out, "\nnot placed: %s", r->pod_key);
        if (end - i > 1)
            buf_printf(out, " and %u more like it", end - i - 1);
        buf_printf(out, "\n  %s\n", r->reason);
        for (uint32_t k = 0; k < r->detail.n; k++)
            buf_printf(out, "    %s\n", r->detail.v[k]);
        i = end;
    }
}

void plan_print_text(const struct plan *p, const struct plan_print_options *o, struct buf *out)
{
    bool colour = o && o->colour;
    char cost[32], bound[32];
    num_format_fixed(cost, p->launch_uusd_h, 6);
    num_format_fixed(bound, p->bound_uusd_h, 6);
    if (p->n_launches)
        launch_rows(p, out);
    if (p->n_places)
        buf_printf(out, "%s%u pods fit on nodes that are there or on their way\n",
                   p->n_launches ? "\n" : "", p->n_places);
    refusal_rows(p, out);
    buf_printf(out, "%s%slaunch %u nodes, %s $/h%s",
               p->n_launches || p->n_places || p->n_refusals ? "\n" : "", colour ? "\033[1m" : "",
               p->n_launches, cost, colour ? "\033[0m" : "");
    if (p->bound_uusd_h > 0) {
        char gap[32];
        num_format_fixed(gap, plan_gap(p), 2);
        buf_printf(out, "; no plan costs less than %s $/h (gap %s %%)", bound, gap);
    }
    buf_printf(out, "\n%u pending pods in %u classes, %u offerings, %u nodes", p->input.pending,
               p->input.classes, p->input.offers, p->input.nodes);
    if (p->n_launches && p->binding)
        buf_printf(out, "; %s", p->binding);
    buf_char(out, '\n');
}
