/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The fault runner: a seed makes a cluster, a load and a quarter of an hour of trouble, then calm.
 *
 * usage: test_sim --seeds N | --seed N [--verbose]
 * One line a seed; exit 1 if any of them breaks an invariant. A failing seed replays exactly. */
#include <inttypes.h>

#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "base/rng.h"
#include "test/sim/fleet.h"
#include "test/sim/invariants.h"

#define TROUBLE (15 * NS_PER_MIN)
#define CALM (50 * NS_PER_MIN)

struct trial {
    struct fleet *f;
    struct rng rng;
    int deployments;
    bool verbose;
};

static const char *const shapes[] = {
    "\"cpu\":\"900m\",\"memory\":\"1Gi\"",
    "\"cpu\":\"3\",\"memory\":\"4Gi\"",
    "\"cpu\":\"1\",\"memory\":\"12Gi\"",
    "\"cpu\":\"2\",\"memory\":\"8Gi\",\"nvidia.com/gpu\":\"1\"",
};

static void say(struct trial *t, const char *what, const char *name)
{
    char at[40];

    if (t->verbose)
        fprintf(stderr, "%s %s %s\n", time_format(at, loop_wall(t->f->loop)).p, what, name);
}

static void set_up(struct trial *t)
{
    char name[16];

    fleet_pool(t->f, "cpu",
               "\"m5.large\",\"m5.xlarge\",\"m5.2xlarge\",\"c5.2xlarge\",\"r5.xlarge\"",
               rng_chance(&t->rng, 500000) ? "spot" : "on-demand", NULL);
    fleet_pool(
        t->f, "gpu", "\"g5.xlarge\",\"g5.2xlarge\",\"g4dn.xlarge\"", "on-demand",
        rng_chance(&t->rng, 500000)
            ? ",\"startupTaints\":[{\"key\":\"startup.test/agent\",\"effect\":\"NoSchedule\"}]"
            : NULL);
    t->deployments = 2 + (int)rng_below(&t->rng, 4);
    for (int i = 0; i < t->deployments; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        fleet_deployment(t->f, name, (int)rng_below(&t->rng, 8),
                         shapes[rng_below(&t->rng, ARRAY_LEN(shapes))]);
    }
}

static void set_faults(struct trial *t)
{
    struct sim_faults *a = sim_faults(t->f->sim);
    struct cloud_sim_faults *c = cloud_sim_faults(t->f->cloud);
    struct rng *r = &t->rng;

    a->watch_drop = (uint32_t)rng_below(r, 20000);
    a->gone_410 = (uint32_t)rng_below(r, 100000);
    a->conflict_409 = (uint32_t)rng_below(r, 50000);
    a->throttle_429 = (uint32_t)rng_below(r, 30000);
    a->error_5xx = (uint32_t)rng_below(r, 30000);
    a->lost_answer = (uint32_t)rng_below(r, 20000);
    a->event_lag = rng_chance(r, 500000) ? (int64_t)rng_below(r, 3000) * NS_PER_MS : 0;
    c->launch_error_ppm = (uint32_t)rng_below(r, 200000);
    c->launch_lost_ppm = (uint32_t)rng_below(r, 200000);
    c->throttle_ppm = (uint32_t)rng_below(r, 100000);
    c->never_register_ppm = (uint32_t)rng_below(r, 100000);
    c->late_register_ppm = (uint32_t)rng_below(r, 100000);
    c->no_device_ppm = (uint32_t)rng_below(r, 100000);
    c->terminate_error_ppm = (uint32_t)rng_below(r, 200000);
    c->describe_lag = (int64_t)rng_below(r, 8000) * NS_PER_MS;
}

static void clear_faults(struct trial *t)
{
    *sim_faults(t->f->sim) = (struct sim_faults){0};
    *cloud_sim_faults(t->f->cloud) = (struct cloud_sim_faults){0};
    cloud_sim_set_stock(t->f->cloud, NULL, NULL, -1, -1);
    t->f->kill_at = 0;
    if (!t->f->control && !loop_timer_active(&t->f->restart))
        fleet_start(t->f);
}

static void interrupt_one(struct trial *t)
{
    const struct instance *v;
    size_t n = cloud_sim_instances(t->f->cloud, &v), at;

    if (n == 0)
        return;
    at = (size_t)rng_below(&t->rng, n);
    if (v[at].state == INSTANCE_RUNNING &&
        cloud_sim_interrupt(t->f->cloud, v[at].provider_id, 120 * NS_PER_S))
        say(t, "interrupt", v[at].provider_id);
}

struct pick {
    size_t at;
    char name[128];
};

static void pick(void *arg, const struct json *o)
{
    struct pick *p = arg;

    if (p->at-- == 0)
        snprintf(p->name, sizeof(p->name), "%.*s",
                 STR_ARG(json_text(json_at(o, "metadata", "name", NULL))));
}

static void delete_one(struct trial *t, const char *kind)
{
    size_t n = sim_count(t->f->sim, kind);
    struct pick p = {.at = n ? (size_t)rng_below(&t->rng, n) : 0};

    if (n == 0)
        return;
    sim_each(t->f->sim, kind, pick, &p);
    say(t, "delete", p.name);
    (void)sim_delete(t->f->sim, kind, NULL, p.name, -1, NULL);
}

static void trouble(struct trial *t)
{
    static const char *const types[] = {"m5.large", "m5.xlarge", "g5.xlarge", "g4dn.xlarge"};
    const char *type = types[rng_below(&t->rng, ARRAY_LEN(types))];
    char name[16];

    switch (rng_below(&t->rng, 8)) {
    case 0:
    case 1:
    case 2:
        snprintf(name, sizeof(name), "d%d", (int)rng_below(&t->rng, (uint64_t)t->deployments));
        say(t, "scale", name);
        fleet_scale(t->f, name, (int)rng_below(&t->rng, 12));
        return;
    case 3:
        say(t, "kill within the next effects", "");
        t->f->kill_at = t->f->effects + 1 + rng_below(&t->rng, 40);
        t->f->restart_after = (int64_t)rng_below(&t->rng, 30000) * NS_PER_MS;
        return;
    case 4:
        interrupt_one(t);
        return;
    case 5:
        say(t, "stock", type);
        cloud_sim_set_stock(t->f->cloud, type, NULL, -1, (int64_t)rng_below(&t->rng, 3));
        return;
    case 6:
        delete_one(t, rng_chance(&t->rng, 500000) ? "Node" : "NodeClaim");
        return;
    default:
        sim_expire_history(t->f->sim);
    }
}

static void dump(void *arg, const struct json *o)
{
    CLEANUP(buf_release) struct buf b = BUF_INIT;

    (void)arg;
    json_print(&b, o, 0);
    fprintf(stderr, "%s\n", b.data);
}

static void settle_counts(struct trial *t)
{
    char name[16];

    for (int i = 0; i < t->deployments; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        fleet_scale(t->f, name, (int)rng_below(&t->rng, 8));
    }
}

static bool run_seed(uint64_t seed, bool verbose)
{
    struct trial t = {.verbose = verbose};
    const char *breach;
    int64_t end;

    rng_split(&t.rng, seed, "trial");
    t.f = fleet_new(seed, NULL, NULL);
    t.f->print = verbose;
    fleet_start(t.f);
    set_up(&t);
    fleet_run(t.f, (int64_t)rng_below(&t.rng, 120) * NS_PER_S);
    set_faults(&t);
    end = loop_now(t.f->loop) + TROUBLE;
    while (loop_now(t.f->loop) < end && !invariants_breach(t.f->invariants)) {
        trouble(&t);
        fleet_run(t.f, (int64_t)rng_below(&t.rng, 60000) * NS_PER_MS);
    }
    clear_faults(&t);
    settle_counts(&t);
    fleet_run(t.f, CALM);
    invariants_calm(t.f->invariants);
    breach = invariants_breach(t.f->invariants);
    printf("seed %" PRIu64 " %s launched %zu running %zu pods %zu evictions %zu effects %" PRIu64
           " digest %016" PRIx64 "%s%s\n",
           seed, breach ? "FAILED" : "ok", fleet_launched(t.f), cloud_sim_running(t.f->cloud),
           fleet_running(t.f, NULL), invariants_evictions(t.f->invariants), t.f->effects,
           sim_digest(t.f->sim), breach ? " " : "", breach ? breach : "");
    fflush(stdout);
    if (breach && verbose) {
        sim_each(t.f->sim, "NodeClaim", dump, NULL);
        sim_each(t.f->sim, "Node", dump, NULL);
        sim_each(t.f->sim, "Pod", dump, NULL);
    }
    fleet_free(t.f);
    return !breach;
}

int main(int argc, char **argv)
{
    int64_t seeds = 20, seed = -1, failed = 0;
    const char *commit = "?";
    bool verbose = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0 &&
                 num_parse_range(str_from(argv[i + 1]), 1, INT32_MAX, &seeds, NULL) == 0)
            i++;
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0 &&
                 num_parse_range(str_from(argv[i + 1]), 0, INT64_MAX, &seed, NULL) == 0)
            i++;
        else if (i + 1 < argc && strcmp(argv[i], "--commit") == 0)
            commit = argv[++i];
        else {
            fprintf(stderr, "usage: test_sim --seeds N | --seed N [--verbose] [--commit ID]\n");
            return 2;
        }
    }
    if (!verbose)
        log_setup(LOG_ERROR, false, STDERR_FILENO, NULL, NULL);
    if (seed >= 0)
        return run_seed((uint64_t)seed, verbose) ? 0 : 1;
    for (int64_t i = 1; i <= seeds; i++) {
        if (run_seed((uint64_t)i, verbose))
            continue;
        failed++;
        printf("replay with: make sim SEED=%lld, at commit %s\n", (long long)i, commit);
    }
    printf("%lld of %lld seeds failed\n", (long long)failed, (long long)seeds);
    return failed ? 1 : 0;
}
