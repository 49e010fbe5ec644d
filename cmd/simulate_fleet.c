/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The fleet, its customers and its books. */

#include <math.h>

#include "cmd/simulate.h"
#include "kube/api/pod.h"
#include "provisioner/solve/solve.h"

#define TICK (5 * NS_PER_S)
#define PRICES_EVERY (10 * NS_PER_MIN)
#define BURSTS_A_DAY 10

/* ---- The signal: a trigger type that only a simulator has ---- */

struct queue_scaler {
    struct scaler base;
    struct loop_timer timer;
    const char *metric;
    struct service *service;
    int64_t target;
};

struct queue_options {
    const char *queue;
    int64_t length;
};

static const struct option queue_table[] = {
    OPTION_STRING(struct queue_options, queue, "queue", NULL, "the simulated queue"),
    OPTION_INT(struct queue_options, length, "length", "5", 1, 1000000,
               "messages a replica is meant for"),
    OPTION_END,
};

static struct simulation *running; /* one a process: the trigger finds its queue through it */

static int queue_open(struct scaler *s, const struct json *parameters, struct err *err)
{
    struct queue_scaler *q = (struct queue_scaler *)(void *)s;
    struct queue_options o = {0};
    if (schema_defaults(queue_table, &s->arena, &o, err) < 0 ||
        schema_read_json(queue_table, parameters, &s->arena, &o, err) < 0)
        return -1;
    for (size_t i = 0; running && o.queue && i < running->n_services; i++)
        if (strcmp(running->services[i].name, o.queue) == 0)
            q->service = &running->services[i];
    if (!q->service)
        return err_set(err, ERR_INVALID, "queue: there is no such queue");
    q->target = o.length;
    q->metric = scaler_metric_name(s, str_from(o.queue));
    return 0;
}

static void queue_answer(void *arg)
{
    struct queue_scaler *q = arg;
    struct scaler_value v = {
        .metric = q->metric,
        .verdict = VERDICT_KNOWN,
        .value = scaler_milli((int64_t)q->service->queue),
        .target = scaler_milli(q->target),
    };
    scaler_answer(&q->base, &v, 1, NULL);
}

static void queue_poll(struct scaler *s)
{
    struct queue_scaler *q = (struct queue_scaler *)(void *)s;
    loop_timer_in(s->host->loop, &q->timer, 20 * NS_PER_MS, queue_answer, q);
}

static void queue_close(struct scaler *s)
{
    loop_timer_cancel(s->host->loop, &((struct queue_scaler *)(void *)s)->timer);
}

static const struct scaler_type queue_type = {
    .name = "sim-queue",
    .schema = queue_table,
    .size = sizeof(struct queue_scaler),
    .open = queue_open,
    .poll = queue_poll,
    .close = queue_close,
};

/* ---- The bound ---- */

/* The key of a memoised bound: live pods of each service under these prices. */
static struct str bound_key(const struct simulation *s, char out[256])
{
    int n = snprintf(out, 256, "%llu", (unsigned long long)s->catalog->version);
    for (size_t i = 0; i < s->n_services; i++)
        n += snprintf(out + n, 256 - (size_t)n, ",%zu", s->services[i].pods);
    return (struct str){out, (size_t)n};
}

/* What the cheapest fleet for the pods that live now costs at the least, from an empty cluster. */
static int64_t solve_bound(struct simulation *s)
{
    struct err err = ERR_INIT;
    struct world_builder *b = world_builder_new();
    for (size_t i = 0; i < s->n_pools; i++)
        world_builder_pool(b, s->pools[i], s->catalog, NULL);
    for (size_t i = 0; i < s->n_services; i++)
        if (s->services[i].workload && s->services[i].pods)
            world_builder_coming(b, s->services[i].workload, 0, (int64_t)s->services[i].pods);
    struct world *w = world_build(b, loop_wall(s->world.loop), &err);
    if (!w)
        return 0; /* an unknown bound is the weakest one: never above the truth */
    struct plan *p = solve(w, NULL);
    int64_t bound = p->bound_uusd_h;
    plan_free(p);
    world_free(w);
    return bound;
}

static int64_t bound_now(struct simulation *s)
{
    char text[256];
    struct str key = bound_key(s, text);
    if (!s->catalog)
        return 0;
    void **slot = map_slot(&s->bounds, key);
    if (!*slot) {
        int64_t *value = xcalloc(1, sizeof(*value));
        *slot = value;
        *value = solve_bound(s);
    }
    return *(int64_t *)*slot;
}

/* Closes the stretch of time in which nothing changed, and begins another. */
static void account(struct simulation *s)
{
    int64_t now = loop_now(s->world.loop);
    s->bound_total += (__int128)s->bound_uusd_h * (now - s->bound_since);
    s->bound_since = now;
    s->bound_uusd_h = s->catalog ? bound_now(s) : 0;
    s->peak_uusd_h = MAX(s->peak_uusd_h, cloud_sim_price_now(s->world.cloud_sim));
}

static void ask_prices(void *arg);

static void priced(void *arg, struct catalog *c, const struct cloud_error *error)
{
    struct simulation *s = arg;
    if (error || !c) {
        loop_timer_in(s->world.loop, &s->prices, NS_PER_S, ask_prices, s);
        return;
    }
    catalog_unref(s->catalog);
    s->catalog = catalog_ref(c);
    account(s);
}

/* Prices move at the full hour, which is one of these moments. Until the answer is there the bound
 * counts as 0: with the prices of before, it could be above the truth. */
static void ask_prices(void *arg)
{
    struct simulation *s = arg;
    catalog_unref(s->catalog);
    s->catalog = NULL;
    account(s);
    s->world.cloud->vt->catalogue(s->world.cloud, NULL, priced, s);
    loop_timer_in(s->world.loop, &s->prices, PRICES_EVERY - loop_now(s->world.loop) % PRICES_EVERY,
                  ask_prices, s);
}

/* ---- What happens in the cluster ---- */

static struct service *service_of(struct simulation *s, const struct labels *labels)
{
    const char *app = labels_get(labels, "app");
    for (size_t i = 0; app && i < s->n_services; i++)
        if (strcmp(s->services[i].name, app) == 0)
            return &s->services[i];
    return NULL;
}

static bool lives(const struct pod *p)
{
    return p && !pod_is_terminal(p) && !pod_is_terminating(p);
}

/* A pod that is new was asked for by the raise that still owes pods; a pod that replaces a lost one
 * by its own birth. */
static void pod_born(struct simulation *s, struct service *v, const char *uid)
{
    int64_t *signal = xcalloc(1, sizeof(*signal));
    *signal = v->owed > 0 ? v->raised_by : loop_now(s->world.loop);
    v->owed -= v->owed > 0;
    free(map_put(&s->asked, str_from(uid), signal));
}

static void pod_serves(struct simulation *s, const char *uid)
{
    int64_t *signal = map_remove(&s->asked, str_from(uid));
    if (signal)
        vec_push(&s->latencies, loop_now(s->world.loop) - *signal);
    free(signal);
}

static void pod_changed(struct simulation *s, const struct pod *before, const struct pod *after)
{
    struct service *v = service_of(s, &(after ? after : before)->obj.meta.labels);
    bool lived = lives(before), now = lives(after);
    bool served = lived && pod_is_ready(before), serves = now && pod_is_ready(after);
    bool waited = lived && !before->spec.node_name, waits = now && !after->spec.node_name;
    if (!v)
        return;
    s->pending += waits;
    s->pending -= waited;
    v->ready += serves;
    v->ready -= served;
    if (now && !lived && !before)
        pod_born(s, v, after->obj.meta.uid);
    if (serves && !served)
        pod_serves(s, after->obj.meta.uid);
    if (lived == now)
        return;
    if (lived)
        free(map_remove(&s->asked, str_from(before->obj.meta.uid)));
    v->pods += now;
    v->pods -= lived;
    account(s);
}

static void deployment_changed(struct simulation *s, const struct workload *w)
{
    struct service *v = service_of(s, &w->template_.labels);
    if (!v)
        return;
    if (w->replicas > v->desired) {
        v->raised_by = v->signal_at ? v->signal_at : loop_now(s->world.loop);
        v->signal_at = 0;
        v->owed = MAX(w->replicas - (int64_t)v->pods, 0);
    } else if (w->replicas < v->desired) {
        v->owed = 0;
    }
    v->desired = w->replicas;
    object_unref(v->workload ? &v->workload->obj : NULL);
    v->workload = workload_of(object_ref((struct object *)(uintptr_t)&w->obj));
}

static void object_changed(void *arg, struct object *before, struct object *after)
{
    struct simulation *s = arg;
    const struct kind *k = (after ? after : before)->kind;
    if (k == &kind_pod)
        pod_changed(s, before ? pod_of(before) : NULL, after ? pod_of(after) : NULL);
    else if (k == &kind_deployment && after)
        deployment_changed(s, workload_of(after));
}

/* ---- Customers ---- */

/* Arrivals over the day: quiet at night, a hump at noon and one in the evening. */
static double daily(int64_t wall)
{
    double hour = fmod((double)(wall / NS_PER_S) / 3600.0, 24.0);
    double noon = exp(-pow((hour - 13.0) / 4.0, 2)), evening = exp(-pow((hour - 20.5) / 2.0, 2));
    return 0.05 + 1.5 * noon + 0.9 * evening;
}

static double poisson(struct rng *r, double mean)
{
    if (mean > 30)
        return MAX(0.0, floor(rng_normal(r, mean, sqrt(mean)) + 0.5));
    double limit = exp(-mean), p = rng_unit(r);
    double n = 0;
    for (; p > limit; n++)
        p *= rng_unit(r);
    return n;
}

static void serve(struct simulation *s, struct service *v, double seconds)
{
    int64_t now = loop_now(s->world.loop);
    double rate = v->per_second * daily(loop_wall(s->world.loop));
    if (v->burst > 0 && now >= v->burst_until &&
        rng_chance(&v->rng, (uint32_t)(1e6 * BURSTS_A_DAY * seconds / 86400)))
        v->burst_until = now + rng_between(&v->rng, 60, 600) * NS_PER_S;
    if (now < v->burst_until)
        rate += v->burst;
    v->queue += poisson(&v->rng, rate * seconds);
    v->queue = MAX(0.0, v->queue - floor((double)v->ready * v->served_per_second * seconds));
    double wanted = ceil(v->queue / (double)v->target);
    if (wanted > (double)v->desired && !v->signal_at && v->desired < v->max)
        v->signal_at = now;
    else if (wanted <= (double)v->desired)
        v->signal_at = 0;
}

static void tick(void *arg)
{
    struct simulation *s = arg;
    for (size_t i = 0; i < s->n_services; i++)
        if (!s->services[i].triggers)
            serve(s, &s->services[i], (double)TICK / 1e9);
    s->peak_uusd_h = MAX(s->peak_uusd_h, cloud_sim_price_now(s->world.cloud_sim));
    loop_timer_in(s->world.loop, &s->tick, TICK, tick, s);
}

/* ---- Making it ---- */

static void apply(struct simulation *s, const char *text)
{
    struct err err = ERR_INIT;
    if (!sim_apply_text(s->world.sim, text, &err)) {
        fprintf(stderr, "weft simulate: %s\n", err.msg);
        abort();
    }
}

static void add_pool(struct simulation *s, const char *text)
{
    struct err err = ERR_INIT;
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    apply(s, text);
    const struct json *j = json_parse(&a, str_from(text), &err);
    struct object *o = j ? object_from_json(&kind_nodepool, j, NULL, &err) : NULL;
    if (!o)
        abort();
    s->pools[s->n_pools++] = nodepool_of(o);
}

static void add_service(struct simulation *s, const struct service *v)
{
    struct service *to = &s->services[s->n_services++];
    *to = *v;
    rng_split(&to->rng, s->seed, v->name);
    CLEANUP(buf_release) struct buf text = BUF_INIT, triggers = BUF_INIT;
    if (v->triggers)
        buf_cstr(&triggers, v->triggers);
    else
        buf_printf(&triggers, "[{type: sim-queue, metadata: {queue: %s, length: %lld}}]", v->name,
                   (long long)v->target);
    struct json_writer w;
    json_writer_init(&w, &text, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "apps/v1");
    json_w_kcstr(&w, "kind", "Deployment");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", v->name);
    json_w_kcstr(&w, "namespace", "default");
    json_w_kobject(&w, "annotations");
    char number[24];
    snprintf(number, sizeof(number), "%lld", (long long)v->min);
    json_w_kcstr(&w, "weft.sh/min-replicas", number);
    snprintf(number, sizeof(number), "%lld", (long long)v->max);
    json_w_kcstr(&w, "weft.sh/max-replicas", number);
    json_w_kcstr(&w, "weft.sh/polling-interval", "10");
    json_w_kcstr(&w, "weft.sh/cooldown-period", "300");
    json_w_kstr(&w, "weft.sh/triggers", buf_view(&triggers));
    json_w_object_end(&w);
    json_w_object_end(&w);
    json_w_kobject(&w, "spec");
    json_w_ki64(&w, "replicas", v->min);
    CLEANUP(buf_release) struct buf selector = BUF_INIT, template_ = BUF_INIT;
    buf_printf(&selector, "{\"matchLabels\":{\"app\":\"%s\"}}", v->name);
    buf_printf(&template_, "{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":%s}", v->name,
               v->pod_spec);
    json_w_key(&w, STR("selector"));
    json_w_number(&w, buf_view(&selector)); /* JSON text as it is */
    json_w_key(&w, STR("template"));
    json_w_number(&w, buf_view(&template_));
    json_w_object_end(&w);
    json_w_object_end(&w);
    apply(s, text.data);
}

#define GPU_TOLERATION "\"tolerations\":[{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"}]"

void simulation_inference_fleet(struct simulation *s)
{
    apply(s, "{\"apiVersion\":\"weft.sh/"
             "v1alpha1\",\"kind\":\"SimNodeClass\",\"metadata\":{\"name\":\"default\"},\"spec\":"
             "{\"launchDelay\":\"8s\",\"registrationDelay\":\"25s\",\"readyDelay\":\"10s\","
             "\"deviceDelay\":\"20s\"}}");
    add_pool(
        s, "{\"apiVersion\":\"karpenter.sh/"
           "v1\",\"kind\":\"NodePool\",\"metadata\":{\"name\":\"gpu\"},\"spec\":{\"template\":{"
           "\"spec\":{"
           "\"nodeClassRef\":{\"group\":\"weft.sh\",\"kind\":\"SimNodeClass\",\"name\":\"default\"}"
           ",\"requirements\":["
           "{\"key\":\"karpenter.k8s.aws/"
           "instance-gpu-name\",\"operator\":\"In\",\"values\":[\"t4\",\"l4\",\"a10g\",\"l40s\"]},"
           "{\"key\":\"kubernetes.io/arch\",\"operator\":\"In\",\"values\":[\"amd64\"]},"
           "{\"key\":\"karpenter.sh/"
           "capacity-type\",\"operator\":\"In\",\"values\":[\"spot\",\"on-demand\"]}],"
           "\"taints\":[{\"key\":\"nvidia.com/"
           "gpu\",\"value\":\"present\",\"effect\":\"NoSchedule\"}]}},"
           "\"disruption\":{\"consolidationPolicy\":\"WhenEmpty\",\"consolidateAfter\":\"2m\","
           "\"budgets\":[{\"nodes\":\"100%\"}]}}}");
    add_pool(s, "{\"apiVersion\":\"karpenter.sh/"
                "v1\",\"kind\":\"NodePool\",\"metadata\":{\"name\":\"cpu\"},\"spec\":{\"template\":"
                "{\"spec\":{"
                "\"nodeClassRef\":{\"group\":\"weft.sh\",\"kind\":\"SimNodeClass\",\"name\":"
                "\"default\"},\"requirements\":["
                "{\"key\":\"karpenter.k8s.aws/instance-gpu-name\",\"operator\":\"DoesNotExist\"},"
                "{\"key\":\"kubernetes.io/arch\",\"operator\":\"In\",\"values\":[\"amd64\"]}]}},"
                "\"disruption\":{\"consolidationPolicy\":\"WhenEmpty\",\"consolidateAfter\":\"2m\","
                "\"budgets\":[{\"nodes\":\"100%\"}]}}}");
    /* Rates are of whole requests: a request of data/azure-llm-2023 reads 1,155 tokens and writes
     * 211 on average, which a replica of the chat model does twice a second. */
    add_service(s,
                &(struct service){
                    .name = "chat",
                    .per_second = 16,
                    .served_per_second = 2,
                    .burst = 24,
                    .target = 20,
                    .max = 40,
                    .pod_spec =
                        "{\"containers\":[{\"name\":\"model\",\"resources\":{\"requests\":{\"cpu\":"
                        "\"2\",\"memory\":"
                        "\"12Gi\"},\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]," GPU_TOLERATION "}"});
    add_service(s,
                &(struct service){
                    .name = "documents",
                    .per_second = 3,
                    .served_per_second = 0.6,
                    .burst = 6,
                    .target = 10,
                    .max = 20,
                    .pod_spec =
                        "{\"containers\":[{\"name\":\"model\",\"resources\":{\"requests\":{\"cpu\":"
                        "\"4\",\"memory\":"
                        "\"24Gi\"},\"limits\":{\"nvidia.com/gpu\":\"1\"}}}],\"nodeSelector\":{"
                        "\"karpenter.k8s.aws/instance-gpu-name\":\"a10g\"}," GPU_TOLERATION "}"});
    add_service(s,
                &(struct service){
                    .name = "evaluation",
                    .per_second = 0.02,
                    .served_per_second = 0.05,
                    .burst = 0.6,
                    .target = 30,
                    .max = 6,
                    .pod_spec =
                        "{\"containers\":[{\"name\":\"model\",\"resources\":{\"requests\":{\"cpu\":"
                        "\"8\",\"memory\":"
                        "\"40Gi\"},\"limits\":{\"nvidia.com/gpu\":\"4\"}}}]," GPU_TOLERATION "}"});
    add_service(s, &(struct service){.name = "gateway",
                                     .per_second = 200,
                                     .served_per_second = 40,
                                     .target = 300,
                                     .min = 2,
                                     .max = 30,
                                     .pod_spec =
                                         "{\"containers\":[{\"name\":\"api\",\"resources\":{"
                                         "\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}}}]}"});
}

/* The claims that the controller let go because the cloud announced to take their machines. */
static void interrupted(struct simulation *s, struct str line)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    const struct json *nodes = json_at(json_parse(&a, line, NULL), "inputs", "nodes", NULL);
    for (size_t i = 0; nodes && nodes->type == JSON_ARRAY && i < nodes->n; i++)
        map_put(&s->reclaimed, json_text(nodes->items[i]), s);
}

static void decided(void *arg, struct str line)
{
    struct simulation *s = arg;
    if (str_find(line, STR("\"decision\":\"interrupt\""), 0) < line.len)
        interrupted(s, line);
    s->decisions++;
    if (s->decision)
        s->decision(s->decision_arg, line);
}

void simulation_init(struct simulation *s, uint64_t seed, uint32_t fault_ppm,
                     struct catalog *catalog)
{
    const struct sim_world_options o = {.seed = seed, .catalog = catalog};
    *s = (struct simulation){.seed = seed};
    running = s;
    scaler_type_extra(&queue_type);
    sim_world_init(&s->world, &o);
    s->worker = worker_new(s->world.loop, 1);
    s->config.server = "http://sim";
    struct cloud_sim_faults *cloud = cloud_sim_faults(s->world.cloud_sim);
    struct sim_faults *api = sim_faults(s->world.sim);
    cloud->launch_error_ppm = cloud->throttle_ppm = cloud->never_register_ppm = fault_ppm;
    api->watch_drop = api->conflict_409 = api->throttle_429 = api->error_5xx = fault_ppm / 10;
    sim_on_object_change(s->world.sim, object_changed, s);
}

void simulation_start(struct simulation *s)
{
    struct err err = ERR_INIT;
    const struct client_options client = {.seed = s->seed};
    const struct control_options control = {
        .seed = s->seed, .decision = decided, .decision_arg = s};
    const struct scalers_options scalers = {
        .seed = s->seed, .decision = decided, .decision_arg = s};
    s->client = client_new(s->world.loop, s->world.http, s->worker, &s->config, &client, &err);
    s->recorder = recorder_new(s->client, NULL);
    s->control = control_new(s->world.loop, s->worker, s->client, s->recorder, NULL,
                             &s->world.cloud, 1, &control);
    s->scalers = scalers_new(s->client, s->recorder, &scalers);
    control_start(s->control);
    scalers_start(s->scalers);
    control_set_leader(s->control, true);
    scalers_lead(s->scalers, true);
    s->bound_since = loop_now(s->world.loop);
    ask_prices(s);
    tick(s);
}

void simulation_run(struct simulation *s, double seconds)
{
    sim_world_run(&s->world, seconds);
    account(s);
    struct sample x = {
        .at = loop_now(s->world.loop),
        .pending = s->pending,
        .nodes = sim_count(s->world.sim, "Node"),
        .price_uusd_h = cloud_sim_price_now(s->world.cloud_sim),
        .bound_uusd_h = s->bound_uusd_h,
    };
    for (size_t i = 0; i < s->n_services; i++) {
        x.queue += s->services[i].queue;
        x.desired += (size_t)s->services[i].desired;
        x.ready += s->services[i].ready;
    }
    vec_push(&s->samples, x);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Machines that the cloud took: with a notice, or without having been told to end. */
static void count_ended(const struct simulation *s, struct bill *ret)
{
    const struct cloud_sim_call *calls;
    const struct instance *v;
    struct map told = MAP_INIT;
    size_t n_calls = cloud_sim_calls(s->world.cloud_sim, &calls),
           n = cloud_sim_instances(s->world.cloud_sim, &v);
    for (size_t i = 0; i < n_calls; i++)
        if (calls[i].what == SIM_CALL_TERMINATE && calls[i].provider_id)
            map_put(&told, str_from(calls[i].provider_id), &told);
    for (size_t i = 0; i < n; i++) {
        if (v[i].state != INSTANCE_TERMINATED && v[i].state != INSTANCE_STOPPING)
            continue;
        ret->ended++;
        ret->interruptions += !map_has(&told, str_from(v[i].provider_id)) ||
                              (v[i].nodeclaim && map_has(&s->reclaimed, str_from(v[i].nodeclaim)));
    }
    map_release(&told, NULL);
    ret->launches = n;
}

void simulation_bill(struct simulation *s, struct bill *ret)
{
    struct control_state state;
    double hours = (double)loop_now(s->world.loop) / (double)NS_PER_HOUR;
    control_state(s->control, &state);
    account(s);
    *ret = (struct bill){
        .hours = hours,
        .spent_uusd = cloud_sim_bill(s->world.cloud_sim),
        .bound_uusd = s->n_services ? (int64_t)(s->bound_total / NS_PER_HOUR) : -1,
        .always_on_uusd = (int64_t)((double)s->peak_uusd_h * hours),
        .signal_p50 = -1,
        .signal_p99 = -1,
        .pods_started = s->latencies.len,
        .evictions = state.evictions,
    };
    count_ended(s, ret);
    if (s->latencies.len) {
        qsort(s->latencies.v, s->latencies.len, sizeof(*s->latencies.v), by_value);
        ret->signal_p50 = s->latencies.v[s->latencies.len / 2];
        ret->signal_p99 = s->latencies.v[s->latencies.len * 99 / 100];
    }
}

void simulation_release(struct simulation *s)
{
    scalers_free(s->scalers);
    if (s->control)
        control_free(s->control);
    recorder_free(s->recorder);
    client_free(s->client);
    loop_timer_cancel(s->world.loop, &s->tick);
    loop_timer_cancel(s->world.loop, &s->prices);
    worker_free(s->worker);
    catalog_unref(s->catalog);
    for (size_t i = 0; i < s->n_services; i++)
        object_unref(s->services[i].workload ? &s->services[i].workload->obj : NULL);
    for (size_t i = 0; i < s->n_pools; i++)
        object_unref(&s->pools[i]->obj);
    map_release(&s->bounds, free);
    map_release(&s->asked, free);
    map_release(&s->reclaimed, NULL);
    vec_release(&s->latencies);
    vec_release(&s->samples);
    scaler_type_extra(NULL);
    running = NULL;
    sim_world_release(&s->world);
}
