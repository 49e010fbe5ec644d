/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The simulated cloud: tokens, stock, stages, notices, faults, and the bill to the cent. */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "base/buf.h"
#include "cloud/sim/sim.h"

struct world {
    struct loop *loop;
    struct catalog *catalog;
    struct cloud_sim *sim;
    struct cloud *cloud;
    struct buf stages; /* "R" registered, "r" ready, "D" devices, "S" startup, "x" down */
    /* The last answer. */
    bool done;
    enum err_code code;
    char id[128], type[64];
    enum instance_state state;
    size_t n, n_exhausted;
    int64_t price;
    size_t effects[2]; /* machines running before and after the last effect */
};

static void node_up(void *arg, const struct instance *i, const struct launch_request *r,
                    enum sim_node_stage stage)
{
    struct world *w = arg;
    (void)i;
    assert_string_equal(r->nodepool, "pool");
    buf_char(&w->stages, "RrDS"[stage]);
}

static void node_down(void *arg, const struct instance *i)
{
    (void)i;
    buf_char(&((struct world *)arg)->stages, 'x');
}

static void open_world(struct world *w, uint64_t seed)
{
    struct err err = ERR_INIT;
    *w = (struct world){0};
    w->loop = loop_new_virtual(INT64_C(1784505600) * NS_PER_S);
    w->catalog = catalog_parse(STR("{\"types\": [{\"name\": \"small\", \"capacity\": {\"cpu\": "
                                   "\"2\", \"memory\": \"4Gi\"}, \"offerings\": ["
                                   "{\"zone\": \"a\", \"priceUsdHour\": \"0.36\"}, {\"zone\": "
                                   "\"b\", \"priceUsdHour\": \"0.36\"},"
                                   "{\"zone\": \"a\", \"capacityType\": \"spot\", "
                                   "\"priceUsdHour\": \"0.10\", \"interruptionPerMonth\": 0}]},"
                                   "{\"name\": \"large\", \"capacity\": {\"cpu\": \"8\", "
                                   "\"memory\": \"16Gi\"}, \"offerings\": ["
                                   "{\"zone\": \"a\", \"priceUsdHour\": \"1.44\"}]}]}"),
                               "t", NULL, NULL, &err);
    if (!w->catalog)
        fail_msg("%s", err.msg);
    struct cloud_sim_options o = {
        .seed = seed, .catalog = w->catalog, .host = {node_up, node_down, w}};
    w->sim = cloud_sim_new(w->loop, &o);
    w->cloud = cloud_sim_cloud(w->sim);
}

static void close_world(struct world *w)
{
    w->cloud->vt->close(w->cloud);
    catalog_unref(w->catalog);
    loop_free(w->loop);
    buf_release(&w->stages);
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    open_world(w, 1);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    close_world(*state);
    free(*state);
    return 0;
}

static void run(struct world *w, double seconds)
{
    loop_run_until(w->loop, loop_now(w->loop) + (int64_t)(seconds * (double)NS_PER_S));
}

static void finish(struct world *w, const struct cloud_error *e)
{
    assert_false(w->done);
    w->done = true;
    w->code = e ? e->code : ERR_NONE;
    w->n_exhausted = e ? e->n_exhausted : 0;
    loop_stop(w->loop);
}

static void wait_done(struct world *w)
{
    for (int i = 0; i < 100 && !w->done; i++)
        run(w, 1);
    assert_true(w->done);
    w->done = false;
}

static void on_instance(void *arg, const struct instance *i, const struct cloud_error *e)
{
    struct world *w = arg;
    if (i) {
        snprintf(w->id, sizeof(w->id), "%s", i->provider_id);
        snprintf(w->type, sizeof(w->type), "%s/%s/%s", i->instance_type, i->zone,
                 capacity_type_name(i->capacity_type));
        w->state = i->state;
        w->price = i->price_uusd_h;
    }
    finish(w, e);
}

static void on_list(void *arg, const struct instance *v, size_t n, const struct cloud_error *e)
{
    struct world *w = arg;
    (void)v;
    w->n = n;
    finish(w, e);
}

static void on_done(void *arg, const struct cloud_error *e)
{
    finish(arg, e);
}

static const struct launch_offering small_a = {"small", "a", CAPACITY_ON_DEMAND},
                                    small_b = {"small", "b", CAPACITY_ON_DEMAND},
                                    spot_a = {"small", "a", CAPACITY_SPOT},
                                    large_a = {"large", "a", CAPACITY_ON_DEMAND};

static enum err_code launch(struct world *w, const char *token, const struct launch_offering *v,
                            uint32_t n)
{
    struct launch_request r = {.nodeclaim = "claim",
                               .nodepool = "pool",
                               .cluster = "c",
                               .nodeclaim_uid = "u",
                               .token = token,
                               .offerings = v,
                               .n_offerings = n};
    w->cloud->vt->launch(w->cloud, &r, on_instance, w);
    wait_done(w);
    return w->code;
}

static size_t list(struct world *w)
{
    w->cloud->vt->list(w->cloud, "c", on_list, w);
    wait_done(w);
    return w->n;
}

static enum err_code terminate(struct world *w, const char *id)
{
    w->cloud->vt->terminate(w->cloud, id, on_done, w);
    wait_done(w);
    return w->code;
}

static enum err_code get(struct world *w, const char *id)
{
    w->cloud->vt->get(w->cloud, id, on_instance, w);
    wait_done(w);
    return w->code;
}

static void test_token_is_one_instance(void **state)
{
    struct world *w = *state;
    char first[128];
    assert_int_equal(launch(w, "t1", &small_a, 1), ERR_NONE);
    snprintf(first, sizeof(first), "%s", w->id);
    assert_int_equal(launch(w, "t1", &small_a, 1), ERR_NONE);
    assert_string_equal(w->id, first);
    assert_int_equal(cloud_sim_running(w->sim), 1);
    assert_int_equal(launch(w, "t1", &small_b, 1), ERR_CONFLICT);
    assert_int_equal(launch(w, "t2", &small_a, 1), ERR_NONE);
    assert_string_not_equal(w->id, first);
    assert_int_equal(list(w), 2);
}

static void test_stock_runs_out_by_offering(void **state)
{
    struct world *w = *state;
    const struct launch_offering ranked[] = {small_a, small_b, large_a};
    cloud_sim_set_stock(w->sim, "small", "a", CAPACITY_ON_DEMAND, 1);
    cloud_sim_set_stock(w->sim, "small", "b", -1, 0);
    assert_int_equal(launch(w, "1", ranked, 3), ERR_NONE);
    assert_string_equal(w->type, "small/a/on-demand");
    assert_int_equal(w->n_exhausted, 0);
    char id[128];
    snprintf(id, sizeof(id), "%s", w->id);
    assert_int_equal(launch(w, "2", ranked, 3), ERR_NONE);
    assert_string_equal(w->type, "large/a/on-demand");
    assert_int_equal(w->n_exhausted, 2);
    assert_int_equal(launch(w, "3", ranked, 2), ERR_CAPACITY);
    assert_int_equal(w->n_exhausted, 2);
    assert_int_equal(terminate(w, id), ERR_NONE);
    run(w, 10);
    assert_int_equal(launch(w, "4", ranked, 1), ERR_NONE); /* it came back */
}

static void test_stages(void **state)
{
    struct world *w = *state;
    assert_int_equal(launch(w, "t", &small_a, 1), ERR_NONE);
    assert_int_equal(w->state, INSTANCE_PENDING);
    run(w, 5);
    assert_int_equal(get(w, w->id), ERR_NONE);
    assert_int_equal(w->state, INSTANCE_RUNNING);
    assert_int_equal(w->stages.len, 0);
    run(w, 20);
    assert_string_equal(w->stages.data, "R");
    run(w, 20);
    assert_string_equal(w->stages.data, "RrDS");
    assert_int_equal(terminate(w, w->id), ERR_NONE);
    assert_int_equal(get(w, w->id), ERR_NONE);
    assert_int_equal(w->state, INSTANCE_STOPPING);
    assert_int_equal(terminate(w, w->id), ERR_NONE); /* already on its way */
    run(w, 10);
    assert_string_equal(w->stages.data, "RrDSx");
    assert_int_equal(terminate(w, w->id), ERR_NOT_FOUND);
    assert_int_equal(get(w, w->id), ERR_NOT_FOUND);
    assert_int_equal(list(w), 0);
}

static void test_bill_to_the_cent(void **state)
{
    struct world *w = *state;
    assert_int_equal(launch(w, "t", &small_a, 1), ERR_NONE);
    const struct instance *v;
    assert_int_equal(cloud_sim_instances(w->sim, &v), 1);
    /* 0.36 $/h is 100 micro-dollars a second; a minute is charged at once. */
    assert_int_equal(cloud_sim_bill(w->sim), 6000);
    assert_int_equal(cloud_sim_price_now(w->sim), 360000);
    run(w, 60);
    assert_int_equal(cloud_sim_bill(w->sim), 6100); /* 60.15 s: the 61st second has begun */
    run(w, 3600 - 61);
    int64_t before = cloud_sim_bill(w->sim);
    assert_int_equal(before, 360000);
    assert_int_equal(terminate(w, w->id), ERR_NONE);
    run(w, 1000);
    assert_int_equal(cloud_sim_bill(w->sim), before); /* 3599.2 s */
    assert_int_equal(cloud_sim_running(w->sim), 0);
    assert_int_equal(cloud_sim_price_now(w->sim), 0);
    assert_int_equal(launch(w, "u", &large_a, 1), ERR_NONE);
    assert_int_equal(terminate(w, w->id), ERR_NONE);
    run(w, 1000);
    assert_int_equal(cloud_sim_bill(w->sim), before + 24000); /* 60 s of 1.44 $/h */
}

static void test_price_changes_split_the_bill(void **state)
{
    struct world *w = *state;
    cloud_sim_set_price(w->sim, "small", "a", CAPACITY_SPOT, 100000);
    assert_int_equal(launch(w, "t", &spot_a, 1), ERR_NONE);
    const struct cloud_sim_call *calls;
    size_t n = cloud_sim_calls(w->sim, &calls);
    int64_t began = calls[n - 1].at;
    loop_run_until(w->loop, began + 1800 * NS_PER_S);
    cloud_sim_set_price(w->sim, "small", "a", CAPACITY_SPOT, 200000);
    loop_run_until(w->loop, began + 3600 * NS_PER_S);
    assert_int_equal(cloud_sim_bill(w->sim), 150000);
    assert_int_equal(cloud_sim_price_now(w->sim), 200000);
}

static void on_catalog(void *arg, struct catalog *c, const struct cloud_error *e)
{
    struct world *w = arg;
    const struct instance_type *t = catalog_find(c, "small");
    w->price = t->offerings[2].price_uusd_h;
    w->n = c->version;
    finish(w, e);
}

static void test_spot_prices_walk(void **state)
{
    struct world *w = *state;
    int64_t last = 0, moves = 0;
    for (int i = 0; i < 48; i++) {
        w->cloud->vt->catalogue(w->cloud, NULL, on_catalog, w);
        wait_done(w);
        assert_true(w->price >= 50000 && w->price <= 200000);
        moves += w->price != last;
        last = w->price;
        run(w, 3600);
    }
    assert_true(moves > 40);
}

struct told {
    struct world *w;
    enum notice_kind kind[8];
    size_t n;
};

static void on_notices(void *arg, const struct notice *v, size_t n, const struct cloud_error *e)
{
    struct told *t = arg;
    t->n = n;
    for (size_t i = 0; i < n && i < ARRAY_LEN(t->kind); i++)
        t->kind[i] = v[i].kind;
    finish(t->w, e);
}

static size_t poll_notices(struct told *t)
{
    t->w->cloud->vt->poll_notices(t->w->cloud, on_notices, t);
    wait_done(t->w);
    return t->n;
}

static void test_interruption(void **state)
{
    struct world *w = *state;
    struct told told = {.w = w};
    assert_int_equal(launch(w, "t", &spot_a, 1), ERR_NONE);
    run(w, 60);
    assert_true(cloud_sim_interrupt(w->sim, w->id, 120 * NS_PER_S));
    assert_int_equal(poll_notices(&told), 1);
    assert_int_equal(told.kind[0], NOTICE_SPOT);
    assert_int_equal(poll_notices(&told), 0);
    run(w, 118);
    assert_int_equal(cloud_sim_running(w->sim), 1);
    run(w, 5);
    assert_int_equal(cloud_sim_running(w->sim), 0);
    assert_int_equal(w->stages.data[w->stages.len - 1], 'x');
    assert_int_equal(poll_notices(&told), 1);
    assert_int_equal(told.kind[0], NOTICE_STATE_CHANGE);
    assert_false(cloud_sim_interrupt(w->sim, w->id, 0));
}

static void test_faults(void **state)
{
    struct world *w = *state;
    struct cloud_sim_faults *f = cloud_sim_faults(w->sim);
    f->launch_error_ppm = 1000000;
    assert_int_equal(launch(w, "a", &small_a, 1), ERR_RETRY);
    assert_int_equal(cloud_sim_running(w->sim), 0);
    *f = (struct cloud_sim_faults){.launch_lost_ppm = 1000000};
    assert_int_equal(launch(w, "b", &small_a, 1), ERR_UNKNOWN);
    assert_int_equal(cloud_sim_running(w->sim), 1);
    *f = (struct cloud_sim_faults){.throttle_ppm = 1000000};
    assert_int_equal(launch(w, "b", &small_a, 1), ERR_THROTTLED);
    *f = (struct cloud_sim_faults){0};
    assert_int_equal(launch(w, "b", &small_a, 1), ERR_NONE); /* the lost one */
    assert_int_equal(cloud_sim_running(w->sim), 1);
    f->terminate_error_ppm = 1000000;
    assert_int_equal(terminate(w, w->id), ERR_RETRY);
    *f = (struct cloud_sim_faults){.describe_lag = 30 * NS_PER_S};
    assert_int_equal(launch(w, "c", &small_a, 1), ERR_NONE);
    assert_int_equal(get(w, w->id), ERR_NOT_FOUND);
    assert_int_equal(list(w), 1);
    run(w, 30);
    assert_int_equal(list(w), 2);
    *f = (struct cloud_sim_faults){.never_register_ppm = 1000000};
    assert_int_equal(launch(w, "d", &small_a, 1), ERR_NONE);
    run(w, 600);
    assert_int_equal(w->stages.len, 8); /* b's and c's four, none of d */
}

static void seen_call(void *arg, const struct cloud_sim_call *c, bool after)
{
    struct world *w = arg;
    assert_int_equal(c->what, SIM_CALL_LAUNCH);
    w->effects[after] = cloud_sim_running(w->sim);
}

static void test_cancel_is_silent(void **state)
{
    struct world *w = *state;
    struct launch_request r = {.nodeclaim = "claim",
                               .nodepool = "pool",
                               .cluster = "c",
                               .token = "t",
                               .offerings = &small_a,
                               .n_offerings = 1};
    struct cloud_op *op = w->cloud->vt->launch(w->cloud, &r, on_instance, w);
    run(w, 0.2); /* it took effect, the answer is under way */
    assert_int_equal(cloud_sim_running(w->sim), 1);
    w->cloud->vt->cancel(w->cloud, op);
    run(w, 10);
    assert_false(w->done);
    op = w->cloud->vt->launch(w->cloud, &r, on_instance, w);
    w->cloud->vt->cancel(w->cloud, op);
    run(w, 10);
    assert_int_equal(cloud_sim_running(w->sim), 1);
    cloud_sim_on_effect(w->sim, seen_call, w);
    assert_int_equal(launch(w, "t3", &small_a, 1), ERR_NONE);
    assert_int_equal(w->effects[0], 1);
    assert_int_equal(w->effects[1], 2);
    const struct cloud_sim_call *calls;
    size_t n = cloud_sim_calls(w->sim, &calls);
    assert_int_equal(n, 2);
    assert_string_equal(calls[1].provider_id, w->id);
    assert_string_equal(calls[1].nodeclaim, "claim");
}

static uint64_t week(uint64_t seed)
{
    struct world w;
    uint64_t h = 0;
    open_world(&w, seed);
    cloud_sim_faults(w.sim)->late_register_ppm = 300000;
    for (int i = 0; i < 50; i++) {
        char token[16];
        snprintf(token, sizeof(token), "t%d", i);
        launch(&w, token, i % 2 ? &spot_a : &small_a, 1);
        run(&w, 3000);
        h = str_hash(str_from(w.id), h ^ (uint64_t)cloud_sim_bill(w.sim));
        if (i % 3 == 0)
            terminate(&w, w.id);
    }
    h = str_hash(buf_view(&w.stages), h);
    close_world(&w);
    return h;
}

static void test_same_seed_same_world(void **state)
{
    (void)state;
    assert_true(week(7) == week(7));
    assert_true(week(7) != week(8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_token_is_one_instance, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stock_runs_out_by_offering, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bill_to_the_cent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_price_changes_split_the_bill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_spot_prices_walk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interruption, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_is_silent, setup, teardown),
        cmocka_unit_test(test_same_seed_same_world),
    };
    return cmocka_run_group_tests_name("cloud_sim", tests, NULL, NULL);
}
