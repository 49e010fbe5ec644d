/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What an idle controller costs: CPU and memory on a cluster of 1,000 nodes and 10,000 pods.
 *
 * The whole controller (provisioner and scalers over the real client) watches a simulated cluster
 * in which nothing changes, for an hour of virtual time. The same hour without it is measured first
 * and taken off. Node heartbeats are leases, which weft does not watch; the node status that
 * kubelets write every five minutes is played. */

#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "base/worker.h"
#include "cmd/sim_world.h"
#include "kube/client/recorder.h"
#include "provisioner/control/control.h"
#include "scalers/workload.h"

#define NODES 1000
#define PODS 10000
#define HOUR 3600.0
#define STATUS_EVERY (5 * NS_PER_MIN)

struct bench {
    struct sim_world world;
    struct worker *worker;
    struct kube_config config;
    struct loop_timer heartbeat;
    unsigned beats;
};

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double megabytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd) / (1 << 20);
}

static void apply(struct bench *b, const char *text)
{
    struct err err = ERR_INIT;
    if (!sim_apply_text(b->world.sim, text, &err)) {
        fprintf(stderr, "bench_idle: %s\n", err.msg);
        exit(1);
    }
}

static void add_node(struct bench *b, unsigned i)
{
    char name[32], id[64], text[2048];
    snprintf(name, sizeof(name), "node-%04u", i);
    snprintf(id, sizeof(id), "sim:///us-east-1a/%s", name);
    const struct label labels[] = {
        {"karpenter.sh/capacity-type", "on-demand"},
        {"karpenter.sh/initialized", "true"},
        {"karpenter.sh/nodepool", "general"},
        {"karpenter.sh/registered", "true"},
    };
    snprintf(text, sizeof(text),
             "{\"apiVersion\":\"karpenter.sh/"
             "v1\",\"kind\":\"NodeClaim\",\"metadata\":{\"name\":\"claim-%04u\","
             "\"finalizers\":[\"karpenter.sh/termination\"],\"labels\":{\"karpenter.sh/"
             "nodepool\":\"general\","
             "\"node.kubernetes.io/instance-type\":\"m5.4xlarge\",\"topology.kubernetes.io/"
             "zone\":\"us-east-1a\","
             "\"karpenter.sh/"
             "capacity-type\":\"on-demand\"}},\"spec\":{\"nodeClassRef\":{\"group\":\"weft.sh\","
             "\"kind\":\"SimNodeClass\",\"name\":\"default\"},\"requirements\":[]},\"status\":{"
             "\"providerID\":\"%s\","
             "\"nodeName\":\"%s\",\"conditions\":[{\"type\":\"Launched\",\"status\":\"True\"},{"
             "\"type\":\"Registered\","
             "\"status\":\"True\"},{\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":"
             "\"Ready\",\"status\":\"True\"}]}}",
             i, id, name);
    apply(b, text);
    snprintf(text, sizeof(text), "claim-%04u", i);
    const struct instance *made =
        cloud_sim_adopt(b->world.cloud_sim, id, "m5.4xlarge", "us-east-1a", CAPACITY_ON_DEMAND,
                        text, "general", "default");
    if (!made) {
        fprintf(stderr, "bench_idle: the catalogue has no m5.4xlarge\n");
        exit(1);
    }
    sim_node_add(b->world.sim, &(struct sim_node){.name = name,
                                                  .provider_id = id,
                                                  .instance_type = "m5.4xlarge",
                                                  .zone = "us-east-1a",
                                                  .region = "us-east-1",
                                                  .labels = labels,
                                                  .n_labels = ARRAY_LEN(labels),
                                                  .arch = "amd64",
                                                  .os = "linux",
                                                  .capacity = made->capacity,
                                                  .allocatable = made->allocatable});
}

static void fill(struct bench *b)
{
    apply(b,
          "{\"apiVersion\":\"weft.sh/"
          "v1alpha1\",\"kind\":\"SimNodeClass\",\"metadata\":{\"name\":\"default\"},\"spec\":{}}");
    apply(b,
          "{\"apiVersion\":\"karpenter.sh/"
          "v1\",\"kind\":\"NodePool\",\"metadata\":{\"name\":\"general\"},\"spec\":{\"template\":{"
          "\"spec\":{\"nodeClassRef\":{\"group\":\"weft.sh\",\"kind\":\"SimNodeClass\",\"name\":"
          "\"default\"},"
          "\"requirements\":[],\"expireAfter\":\"Never\"}},\"disruption\":{\"consolidateAfter\":"
          "\"30s\"}}}");
    for (unsigned i = 0; i < NODES; i++)
        add_node(b, i);
    for (unsigned i = 0; i < PODS; i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%05u\","
                 "\"namespace\":\"default\",\"labels\":{"
                 "\"app\":\"service-%u\",\"app.kubernetes.io/"
                 "part-of\":\"shop\",\"pod-template-hash\":\"%08x\"}},\"spec\":{\"nodeName\":"
                 "\"node-%04u\",\"containers\":[{\"name\":\"app\",\"image\":\"registry.example/"
                 "app:1\",\"resources\":{\"requests\":{"
                 "\"cpu\":\"%um\",\"memory\":\"1Gi\"}}}]}}",
                 i, i % 200, i % 200 * 7919, i % NODES, 250 + i % 4 * 250);
        apply(b, text);
    }
    sim_world_run(&b->world, 60);
}

/* Kubelets write their node's status every five minutes, spread over time. */
static void heartbeat(void *arg)
{
    struct bench *b = arg;
    char name[32], patch[128];
    snprintf(name, sizeof(name), "node-%04u", b->beats % NODES);
    snprintf(patch, sizeof(patch), "{\"metadata\":{\"annotations\":{\"beat\":\"%u\"}}}",
             b->beats++);
    sim_patch(b->world.sim, "Node", NULL, name, patch, NULL);
    loop_timer_in(b->world.loop, &b->heartbeat, STATUS_EVERY / NODES, heartbeat, b);
}

static double hour(struct bench *b)
{
    double before = cpu_seconds();
    sim_world_run(&b->world, HOUR);
    return cpu_seconds() - before;
}

static void report(const char *path, double core, double mib, double sync_s)
{
    printf("%-52s %12s %12s %8s\n", "work", "ours", "bar", "ratio");
    printf("%-52s %11.3f%% %11.1f%% %8.2f\n", "idle, 1,000 nodes, 10,000 pods: share of a core",
           core * 100, 1.0, core * 100);
    printf("%-52s %8.1f MiB %12s %8s\n", "the same: memory of the controller", mib, "-", "-");
    printf("%-52s %10.2f s %12s %8s\n", "from start to synced caches: CPU", sync_s, "-", "-");
    FILE *f = path ? fopen(path, "we") : NULL;
    if (!f)
        return;
    fprintf(f,
            "{\"benchmark\": \"idle\", \"nodes\": %d, \"pods\": %d, \"core\": %.6f, \"mebibytes\": "
            "%.1f, \"syncCpuSeconds\": %.3f}\n",
            NODES, PODS, core, mib, sync_s);
    fclose(f);
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct err err = ERR_INIT;
    sim_world_init(&b.world, NULL);
    b.worker = worker_new(b.world.loop, 1);
    b.config.server = "http://sim";
    fill(&b);
    heartbeat(&b);
    double alone = hour(&b), before_mib = megabytes(), before_cpu = cpu_seconds();

    const struct client_options client_options = {.seed = 1};
    struct client *client =
        client_new(b.world.loop, b.world.http, b.worker, &b.config, &client_options, &err);
    struct recorder *recorder = recorder_new(client, NULL);
    const struct control_options options = {.seed = 1};
    struct control *control =
        control_new(b.world.loop, b.worker, client, recorder, NULL, &b.world.cloud, 1, &options);
    struct scalers *scalers = scalers_new(client, recorder, &(struct scalers_options){.seed = 1});
    control_start(control);
    scalers_start(scalers);
    control_set_leader(control, true);
    scalers_lead(scalers, true);
    sim_world_run(&b.world, 120);
    if (!control_ready(control)) {
        fprintf(stderr, "bench_idle: the caches did not sync\n");
        return 1;
    }
    double sync_s = cpu_seconds() - before_cpu, mib = megabytes() - before_mib;
    double with = hour(&b);
    struct control_state state;
    control_state(control, &state);
    if (state.launches || state.terminations || sim_count(b.world.sim, "Node") != NODES) {
        fprintf(stderr,
                "bench_idle: the controller was not idle: %llu launches, %llu terminations, %zu "
                "nodes\n",
                (unsigned long long)state.launches, (unsigned long long)state.terminations,
                sim_count(b.world.sim, "Node"));
        return 1;
    }
    report(argc > 1 ? argv[1] : NULL, MAX(with - alone, 0.0) / HOUR, mib, sync_s);
    scalers_free(scalers);
    control_free(control);
    recorder_free(recorder);
    client_free(client);
    worker_free(b.worker);
    sim_world_release(&b.world);
    return 0;
}
