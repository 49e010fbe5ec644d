/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft run: the controller. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/file.h"
#include "base/log.h"
#include "base/serve.h"
#include "base/worker.h"
#include "cmd/run_options.h"
#include "cmd/sim_cloud.h"
#include "cmd/table.h"
#include "kube/client/election.h"
#include "kube/client/recorder.h"
#include "provisioner/control/control.h"
#include "scalers/workload.h"

/* How long an orderly end may take: giving the Lease up is one call. */
#define STOP_WITHIN (5 * NS_PER_S)
/* A loop that has not turned for so long is not alive. */
#define STUCK_AFTER (30 * NS_PER_S)
/* Caches that the API server has told nothing for so long are not to be relied on. */
#define STALE_AFTER (3 * NS_PER_MIN)

struct run {
    struct run_options options;
    struct arena arena;
    struct loop *loop;
    struct worker *worker;
    struct http *http;
    struct metrics *metrics;
    struct kube_config *config;
    struct client *client;   /* fenced by the election */
    struct client *unfenced; /* a simulated cloud's writes */
    struct client *electing; /* the election's own, which must not wait past its deadline */
    struct catalog *catalog;
    struct cloud *cloud;
    struct recorder *recorder;
    struct election *election;
    struct control *control;
    struct scalers *scalers;
    struct serve *pages, *health;
    char identity[256];
    uint64_t seed;
    int64_t leading_since, last_turn;
    struct loop_timer turn, stop;
    int code;
};

static int64_t wall_clock(void *arg)
{
    return loop_wall(arg);
}

/* Decisions go to stdout, one object a line; log lines go to stderr. */
static void decided(void *arg UNUSED, struct str line)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    buf_str(&out, line);
    buf_char(&out, '\n');
    size_t at = 0;
    while (at < out.len) {
        ssize_t n = write(STDOUT_FILENO, out.data + at, out.len - at);
        if (n < 0 && errno != EINTR)
            return;
        at += n > 0 ? (size_t)n : 0;
    }
}

static bool may_write(void *arg)
{
    const struct run *r = arg;
    return !r->election || election_is_leader(r->election);
}

static void leadership(void *arg, bool leader)
{
    struct run *r = arg;
    log_info(leader ? "leading" : "not leading", LOG_CSTR("identity", r->identity));
    r->leading_since = leader ? loop_now(r->loop) : 0;
    control_set_leader(r->control, leader);
    scalers_lead(r->scalers, leader);
}

/* ---- Pages ---- */

static void page_metrics(void *arg, const struct serve_request *q UNUSED,
                         struct serve_response *ret)
{
    struct run *r = arg;
    ret->content_type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_print(r->metrics, &ret->body);
}

static void page_alive(void *arg, const struct serve_request *q UNUSED, struct serve_response *ret)
{
    struct run *r = arg;
    bool alive = loop_now(r->loop) - r->last_turn < STUCK_AFTER;
    ret->status = alive ? 200 : 500;
    buf_cstr(&ret->body, alive ? "ok\n" : "the loop is stuck\n");
}

static void page_ready(void *arg, const struct serve_request *q UNUSED, struct serve_response *ret)
{
    struct run *r = arg;
    bool synced = control_ready(r->control), triggers = scalers_synced(r->scalers);
    bool caches = synced && control_age(r->control) < STALE_AFTER;
    ret->status = caches && triggers ? 200 : 503;
    buf_printf(&ret->body, "caches %s\nworkloads %s\nleader %s\n",
               caches   ? "synced"
               : synced ? "stale"
                        : "not synced",
               triggers ? "synced" : "not synced", may_write(r) ? "yes" : "no");
}

static int listen_all(struct run *r, struct err *err)
{
    const char *address = r->options.bind_address;
    r->pages = serve_new(r->loop, address, (uint16_t)r->options.metrics_port, err);
    if (!r->pages)
        return err_prefix(err, "metrics-port");
    serve_route(r->pages, "/metrics", page_metrics, r);
    r->health = serve_new(r->loop, address, (uint16_t)r->options.health_port, err);
    if (!r->health)
        return err_prefix(err, "health-probe-port");
    serve_route(r->health, "/healthz", page_alive, r);
    serve_route(r->health, "/readyz", page_ready, r);
    return 0;
}

/* ---- Parts ---- */

static int open_catalog(struct run *r, struct err *err)
{
    if (!r->options.catalog)
        return 0;
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    if (file_read(r->options.catalog, 256u << 20, &text, err) < 0)
        return -1;
    r->catalog = catalog_parse(buf_view(&text), r->options.catalog, NULL, NULL, err);
    return r->catalog ? 0 : -1;
}

static int open_clients(struct run *r, struct err *err)
{
    struct client_options o = {
        .qps = r->options.kube_qps,
        .burst = r->options.kube_burst,
        .seed = r->seed,
        .metrics = r->metrics,
    };
    r->unfenced = client_new(r->loop, r->http, r->worker, r->config, &o, err);
    struct client_options short_calls = o;
    short_calls.timeout = short_calls.retry_for = r->options.renew_deadline / 2;
    r->electing = client_new(r->loop, r->http, r->worker, r->config, &short_calls, err);
    o.may_write = may_write;
    o.may_write_arg = r;
    r->client = client_new(r->loop, r->http, r->worker, r->config, &o, err);
    return r->client && r->unfenced && r->electing ? 0 : -1;
}

static int open_cloud(struct run *r, struct err *err)
{
    const struct sim_cloud_options o = {
        .namespace_ = r->options.namespace_,
        .catalog = r->catalog,
        .seed = r->options.sim_seed ? (uint64_t)r->options.sim_seed : r->seed,
        .speed = r->options.sim_speed,
        .kubelets = r->options.sim_kubelets,
        .exhausted = r->options.sim_exhausted,
    };
    r->cloud = sim_cloud_new(r->unfenced, &o, err);
    return r->cloud ? 0 : -1;
}

static void open_controllers(struct run *r)
{
    bool observe = strcmp(r->options.mode, "observe") == 0;
    r->recorder = recorder_new(r->client, &(struct recorder_options){.instance = r->identity});
    const struct control_options control = {
        .cluster_name = r->options.cluster_name,
        .namespace_ = r->options.namespace_,
        .observe = observe,
        .take_over = r->options.take_over,
        .batch_idle = r->options.batch_idle,
        .batch_max = r->options.batch_max,
        .launch_deadline = r->options.launch_deadline,
        .registration_deadline = r->options.registration_deadline,
        .initialization_deadline = r->options.initialization_deadline,
        .seed = r->seed,
        .decision = decided,
    };
    r->control =
        control_new(r->loop, r->worker, r->client, r->recorder, r->metrics, &r->cloud, 1, &control);
    const struct scalers_options scalers = {
        .observe = observe,
        .http = r->http,
        .worker = r->worker,
        .metrics = r->metrics,
        .seed = r->seed,
        .decision = decided,
    };
    r->scalers = scalers_new(r->client, r->recorder, &scalers);
}

static void set_identity(struct run *r)
{
    char host[128] = "weft", suffix[9];
    uint8_t bytes[4];
    const char *pod = env_get("POD_NAME");
    if (r->options.identity || pod) {
        snprintf(r->identity, sizeof(r->identity), "%s",
                 r->options.identity ? r->options.identity : pod);
        return;
    }
    gethostname(host, sizeof(host) - 1);
    crypto_random(bytes, sizeof(bytes));
    crypto_hex(bytes, sizeof(bytes), suffix);
    snprintf(r->identity, sizeof(r->identity), "%s_%s", host, suffix);
}

static void set_log(struct run *r)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    enum log_level least = LOG_INFO;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (strcmp(levels[i], r->options.log_level) == 0)
            least = (enum log_level)i;
    bool text = strcmp(r->options.log_format, "text") == 0 ||
                (strcmp(r->options.log_format, "auto") == 0 && cmd_is_terminal(STDERR_FILENO));
    log_setup(least, text, STDERR_FILENO, wall_clock, r->loop);
}

/* ---- Life ---- */

static void turned(void *arg)
{
    struct run *r = arg;
    r->last_turn = loop_now(r->loop);
    loop_timer_in(r->loop, &r->turn, NS_PER_S, turned, r);
}

static void end_loop(void *arg)
{
    struct run *r = arg;
    loop_stop(r->loop);
}

static void on_signal(void *arg, int signum)
{
    struct run *r = arg;
    if (loop_timer_active(&r->stop)) { /* asked twice */
        loop_stop(r->loop);
        return;
    }
    log_info("stopping", LOG_I64("signal", signum));
    loop_timer_in(r->loop, &r->stop, STOP_WITHIN, end_loop, r);
    if (r->election)
        election_release(r->election, end_loop, r);
    else
        loop_stop(r->loop);
}

static int start(struct run *r, struct err *err)
{
    r->loop = loop_new_epoll(err);
    if (!r->loop)
        return -1;
    set_log(r);
    set_identity(r);
    crypto_random(&r->seed, sizeof(r->seed));
    r->worker = worker_new(r->loop, 2);
    r->metrics = metrics_new();
    r->http = http_curl_new(r->loop, err);
    if (!r->http || open_clients(r, err) < 0 || open_catalog(r, err) < 0 || listen_all(r, err) < 0)
        return -1;
    if (loop_signal(r->loop, SIGTERM, on_signal, r, err) < 0 ||
        loop_signal(r->loop, SIGINT, on_signal, r, err) < 0)
        return -1;
    if (open_cloud(r, err) < 0)
        return -1;
    open_controllers(r);
    control_start(r->control);
    scalers_start(r->scalers);
    turned(r);
    log_info("started", LOG_CSTR("version", WEFT_VERSION), LOG_CSTR("mode", r->options.mode),
             LOG_CSTR("cluster", r->config->source), LOG_CSTR("identity", r->identity));
    if (!r->options.leader_elect) {
        leadership(r, true);
        return 0;
    }
    const struct election_options o = {
        .namespace_ = r->options.namespace_,
        .name = "weft",
        .identity = r->identity,
        .lease_duration = r->options.lease_duration,
        .renew_deadline = r->options.renew_deadline,
        .retry_period = r->options.retry_period,
    };
    r->election = election_new(r->electing, &o, leadership, r);
    election_start(r->election);
    return 0;
}

static void stop(struct run *r)
{
    scalers_free(r->scalers);
    if (r->control)
        control_free(r->control);
    if (r->cloud)
        r->cloud->vt->close(r->cloud);
    recorder_free(r->recorder);
    election_free(r->election);
    client_free(r->client);
    client_free(r->unfenced);
    client_free(r->electing);
    serve_free(r->pages);
    serve_free(r->health);
    http_close(r->http);
    worker_free(r->worker);
    metrics_free(r->metrics);
    catalog_unref(r->catalog);
    kube_config_free(r->config);
    loop_free(r->loop);
    arena_release(&r->arena);
}

static int check(struct run *r, struct err *err)
{
    const struct run_options *o = &r->options;
    if (o->renew_deadline >= o->lease_duration)
        return err_set(
            err, ERR_INVALID,
            "leader-elect-renew-deadline must be shorter than leader-elect-lease-duration");
    if (o->retry_period >= o->renew_deadline)
        return err_set(
            err, ERR_INVALID,
            "leader-elect-retry-period must be shorter than leader-elect-renew-deadline");
    if (o->batch_idle > o->batch_max)
        return err_set(err, ERR_INVALID,
                       "batch-idle-duration must not be longer than batch-max-duration");
    r->config = kube_config_load(o->kubeconfig, o->context, err);
    return r->config ? 0 : -1;
}

static int run_run(int argc, char **argv)
{
    struct run r = {0};
    struct schema_args args = {0};
    struct err err = ERR_INIT;
    int code = cmd_options(&command_run, argc, argv, &r.arena, &r.options, &args);
    if (code < 0 && args.n > 0)
        code = cmd_fail(&command_run, EXIT_USAGE, "'%s' is not understood (see: weft run --help)",
                        args.v[0]);
    if (code < 0 && check(&r, &err) < 0)
        code = cmd_fail(&command_run, EXIT_USAGE, "%s", err.msg);
    if (code < 0 && start(&r, &err) < 0)
        code = cmd_fail(&command_run, cmd_exit_code(&err), "%s", err.msg);
    if (code < 0) {
        loop_run(r.loop);
        code = EXIT_DONE;
    }
    stop(&r);
    return code;
}

const struct command command_run = {
    .name = "run",
    .arguments = "[options]",
    .summary = "the controller: scales workloads, buys and removes nodes",
    .about = "Every option can also stand in a YAML file (--config FILE, or WEFT_CONFIG) and in "
             "the environment\n"
             "(WEFT_ and the name in upper case). Decisions are written to stdout, one JSON object "
             "a line, log\n"
             "lines to stderr.",
    .options = run_table,
    .run = run_run,
};
