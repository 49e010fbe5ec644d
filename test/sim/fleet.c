/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "test/sim/fleet.h"

#include "base/log.h"
#include "base/worker.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "test/sim/invariants.h"

/* ---- Lives ---- */

static void decided(void *arg, struct str line)
{
    struct fleet *f = arg;

    f->decisions++;
    if (f->print)
        fprintf(stderr, "%.*s\n", STR_ARG(line));
}

void fleet_start(struct fleet *f)
{
    struct client_options o = {.seed = f->seed + ++f->lives};
    struct err err = ERR_INIT;

    if (!f->world.http)
        f->world.http = sim_world_http(&f->world, "weft", 0);
    f->client = client_new(f->loop, f->world.http, f->worker, &f->config, &o, &err);
    if (!f->client) {
        fprintf(stderr, "no client: %s\n", err.msg);
        abort();
    }
    f->recorder = recorder_new(f->client, &(struct recorder_options){0});
    f->control = control_new(f->loop, f->worker, f->client, f->recorder, NULL, &f->world.cloud, 1,
                             &f->options);
    control_start(f->control);
    control_set_leader(f->control, true);
}

void fleet_kill(struct fleet *f)
{
    if (!f->control)
        return;
    control_free(f->control);
    recorder_free(f->recorder);
    client_free(f->client);
    http_close(f->world.http);
    f->world.http = NULL;
    f->control = NULL;
}

static void restarted(void *arg)
{
    fleet_start(arg);
}

static void effect(struct fleet *f)
{
    f->effects++;
    if (f->kill_at && f->effects == f->kill_at && f->control) {
        fleet_kill(f);
        loop_timer_in(f->loop, &f->restart, f->restart_after, restarted, f);
    }
}

static void api_effect(void *arg, const struct sim_call *call, bool after)
{
    struct fleet *f = arg;

    if (strcmp(call->client, "weft") != 0 || strcmp(call->plural, "events") == 0)
        return;
    invariants_api_call(f->invariants, call, after);
    effect(f);
}

static void cloud_effect(void *arg, const struct cloud_sim_call *call, bool after)
{
    struct fleet *f = arg;

    invariants_cloud_call(f->invariants, call, after);
    if (call->what == SIM_CALL_LAUNCH || call->what == SIM_CALL_TERMINATE)
        effect(f);
}

struct fleet *fleet_new(uint64_t seed, const struct control_options *extra,
                        const struct sim_options *so)
{
    struct fleet *f = xcalloc(1, sizeof(*f));
    struct sim_world_options wo = {.seed = seed, .sim = so};

    f->seed = seed;
    sim_world_init(&f->world, &wo);
    f->loop = f->world.loop;
    f->sim = f->world.sim;
    f->cloud = f->world.cloud_sim;
    f->worker = worker_new(f->loop, 1);
    f->config.server = "http://cluster.local";
    f->config.namespace_ = "weft-system";
    f->config.source = "test";
    if (extra)
        f->options = *extra;
    f->options.seed = seed;
    f->options.decision = decided;
    f->options.decision_arg = f;
    f->restart_after = 2 * NS_PER_S;
    f->invariants = invariants_new(f);
    sim_on_effect(f->sim, api_effect, f);
    cloud_sim_on_effect(f->cloud, cloud_effect, f);
    fleet_apply(
        f,
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"kube-system\"}}");
    return f;
}

void fleet_free(struct fleet *f)
{
    fleet_kill(f);
    loop_timer_cancel(f->loop, &f->restart);
    worker_free(f->worker);
    sim_world_release(&f->world);
    invariants_free(f->invariants);
    free(f);
}

void fleet_run(struct fleet *f, int64_t ns)
{
    loop_run_until(f->loop, loop_now(f->loop) + ns);
}

void fleet_apply(struct fleet *f, const char *json)
{
    struct err err = ERR_INIT;

    if (!sim_apply_text(f->sim, json, &err)) {
        fprintf(stderr, "%s\n%s\n", err.msg, json);
        abort();
    }
}

/* ---- Counting ---- */

struct count {
    const char *app;
    size_t all, running;
};

static void count_pod(void *arg, struct object *o)
{
    struct count *n = arg;
    const char *app = labels_get(&o->meta.labels, "app");

    if (n->app && (!app || strcmp(app, n->app) != 0))
        return;
    n->all += !pod_is_terminal(pod_of(o));
    n->running += pod_of(o)->phase == POD_RUNNING && !o->meta.deletion && pod_is_ready(pod_of(o));
}

size_t fleet_running(struct fleet *f, const char *app)
{
    struct count n = {app, 0, 0};

    sim_each_object(f->sim, &kind_pod, count_pod, &n);
    return n.running;
}

size_t fleet_pods(struct fleet *f, const char *app)
{
    struct count n = {app, 0, 0};

    sim_each_object(f->sim, &kind_pod, count_pod, &n);
    return n.all;
}

size_t fleet_nodes(struct fleet *f)
{
    return sim_count(f->sim, "Node");
}

size_t fleet_launched(struct fleet *f)
{
    const struct instance *v;

    return cloud_sim_instances(f->cloud, &v);
}

/* ---- Objects ---- */

void fleet_pool(struct fleet *f, const char *name, const char *types, const char *capacity_type,
                const char *more)
{
    CLEANUP(buf_release) struct buf b = BUF_INIT;

    fleet_apply(
        f, "{\"apiVersion\":\"weft.sh/"
           "v1alpha1\",\"kind\":\"SimNodeClass\",\"metadata\":{\"name\":\"sim\"},\"spec\":{}}");
    buf_printf(
        &b,
        "{\"apiVersion\":\"karpenter.sh/"
        "v1\",\"kind\":\"NodePool\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
        "\"template\":{\"spec\":{\"nodeClassRef\":{\"group\":\"weft.sh\",\"kind\":\"SimNodeClass\","
        "\"name\":\"sim\"},"
        "\"requirements\":[{\"key\":\"node.kubernetes.io/"
        "instance-type\",\"operator\":\"In\",\"values\":[%s]},"
        "{\"key\":\"karpenter.sh/capacity-type\",\"operator\":\"In\",\"values\":[\"%s\"]}]%s}},"
        "\"disruption\":{\"consolidationPolicy\":\"WhenEmpty\",\"consolidateAfter\":\"30s\","
        "\"budgets\":[{\"nodes\":\"50%%\"}]}}}",
        name, types, capacity_type, more ? more : "");
    fleet_apply(f, b.data);
}

void fleet_deployment(struct fleet *f, const char *name, int replicas, const char *requests)
{
    CLEANUP(buf_release) struct buf b = BUF_INIT;

    buf_printf(&b,
               "{\"apiVersion\":\"apps/"
               "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
               "\"default\"},\"spec\":{"
               "\"replicas\":%d,\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},\"template\":{"
               "\"metadata\":{\"labels\":{\"app\":\"%s\"}},"
               "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{"
               "\"requests\":{%s}}}]}}}}",
               name, replicas, name, name, requests);
    fleet_apply(f, b.data);
}

void fleet_scale(struct fleet *f, const char *name, int replicas)
{
    char patch[64];

    snprintf(patch, sizeof(patch), "{\"spec\":{\"replicas\":%d}}", replicas);
    (void)sim_patch(f->sim, "Deployment", "default", name, patch, NULL);
}
