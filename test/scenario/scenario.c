/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* scenario FILE : one scenario in virtual time. YAML in, facts asserted; README.md has the format.
 *
 * The whole controller runs over the real client against the simulated cluster and cloud. What
 * happens is recorded from outside: changes of Nodes and pods in the store, calls to the cloud,
 * Events. The facts are judged against the record when the time is over. */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/vec.h"
#include "base/worker.h"
#include "base/yml.h"
#include "cmd/sim_world.h"
#include "kube/api/node.h"
#include "kube/api/nodepool.h"
#include "kube/api/pod.h"
#include "kube/client/recorder.h"
#include "provisioner/control/control.h"
#include "scalers/workload.h"

#define SKIPPED 77

enum what { SAW_NODE, SAW_NODE_TAINTED, SAW_NODE_GONE, SAW_POD, SAW_POD_RUNNING, SAW_POD_GONE };

struct moment {
    int64_t at;
    enum what what;
    char name[256];
};

struct step {
    struct loop_timer timer;
    struct scenario *s;
    const struct json *spec;
};

struct scenario {
    struct arena arena;
    const struct json *root;
    const char *folder; /* of the case's files */
    char home[64];      /* kubeconfig and token, where the scenario has them */
    struct sim_world world;
    struct worker *worker;
    struct kube_config *config;
    struct client *client;
    struct recorder *recorder;
    struct control *control;
    struct scalers *scalers;
    struct {
        VEC(struct moment);
    } record;
    char token[64]; /* what the API server accepts; "": anything */
    unsigned failed;
};

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "scenario: %s: %s\n", what, err->msg);
    exit(1);
}

static const struct json *field(const struct json *j, const char *name)
{
    return json_get(j, name);
}

static int64_t duration(const struct json *j, int64_t otherwise)
{
    int64_t v;
    struct err err = ERR_INIT;
    if (!j)
        return otherwise;
    if (time_parse_seconds(json_text(j), &v, &err) < 0)
        die("a duration", &err);
    return v;
}

static char *text_of(struct scenario *s, const struct json *j)
{
    return j ? arena_cstr(&s->arena, json_text(j)) : NULL;
}

/* ---- The record ---- */

static void note(struct scenario *s, enum what what, const char *name)
{
    struct moment m = {.at = loop_now(s->world.loop), .what = what};
    snprintf(m.name, sizeof(m.name), "%s", name);
    vec_push(&s->record, m);
}

static bool is_disrupted(const struct node *n)
{
    for (uint32_t i = 0; n && i < n->n_taints; i++)
        if (strcmp(n->taints[i].key, TAINT_DISRUPTED) == 0)
            return true;
    return false;
}

static void changed(void *arg, struct object *before, struct object *after)
{
    struct scenario *s = arg;
    const struct object *o = after ? after : before;
    if (o->kind == &kind_node) {
        if (!before || !after)
            note(s, after ? SAW_NODE : SAW_NODE_GONE, o->meta.name);
        if (after && is_disrupted(node_of(after)) && !(before && is_disrupted(node_of(before))))
            note(s, SAW_NODE_TAINTED, o->meta.name);
    } else if (o->kind == &kind_pod) {
        if (!before || !after)
            note(s, after ? SAW_POD : SAW_POD_GONE, o->meta.name);
        if (after && pod_of(after)->phase == POD_RUNNING &&
            !(before && pod_of(before)->phase == POD_RUNNING))
            note(s, SAW_POD_RUNNING, o->meta.name);
    }
}

/* ---- Loading ---- */

static void read_file(const char *path, struct buf *ret)
{
    struct err err = ERR_INIT;
    if (file_read(path, 16u << 20, ret, &err) < 0)
        die("a file", &err);
}

/* The cases name Karpenter's node class; here the simulated one takes its place. */
static struct json *with_sim_class(struct scenario *s, const struct json *pool)
{
    CLEANUP(buf_release) struct buf patch = BUF_INIT;
    struct err err = ERR_INIT;
    buf_cstr(&patch, "{\"spec\":{\"template\":{\"spec\":{\"nodeClassRef\":{\"group\":\"weft.sh\","
                     "\"kind\":\"SimNodeClass\",\"name\":\"default\"}}}}}");
    struct json *p = json_parse(&s->arena, buf_view(&patch), &err);
    return json_merge_patch(&s->arena, pool, p);
}

/* A Node that is there from the start: its machine, its claim and its labels. */
static void add_node(struct scenario *s, const struct json *j)
{
    struct err err = ERR_INIT;
    struct object *o = object_from_json(&kind_node, j, NULL, &err);
    if (!o)
        die("a Node", &err);
    const struct node *n = node_of(o);
    const struct labels *l = &o->meta.labels;
    const char *type = labels_get(l, LABEL_INSTANCE_TYPE), *zone = labels_get(l, LABEL_ZONE),
               *pool = labels_get(l, LABEL_NODEPOOL);
    enum capacity_type capacity = CAPACITY_ON_DEMAND;
    capacity_type_parse(str_from(labels_get(l, LABEL_CAPACITY_TYPE)), &capacity, NULL);
    CLEANUP(buf_release) struct buf claim = BUF_INIT;
    buf_printf(
        &claim,
        "{\"apiVersion\":\"karpenter.sh/"
        "v1\",\"kind\":\"NodeClaim\",\"metadata\":{\"name\":\"claim-%s\",\"finalizers\":[\"%s\"],"
        "\"labels\":{\"%s\":\"%s\",\"%s\":\"%s\",\"%s\":\"%s\",\"%s\":\"%s\"}},\"spec\":{"
        "\"nodeClassRef\":{\"group\":\"weft.sh\","
        "\"kind\":\"SimNodeClass\",\"name\":\"default\"},\"requirements\":[]},\"status\":{"
        "\"providerID\":\"%s\",\"nodeName\":\"%s\","
        "\"conditions\":[{\"type\":\"Launched\",\"status\":\"True\"},{\"type\":\"Registered\","
        "\"status\":\"True\"},"
        "{\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"}]}"
        "}",
        o->meta.name, FINALIZER_TERMINATION, LABEL_NODEPOOL, pool, LABEL_INSTANCE_TYPE, type,
        LABEL_ZONE, zone, LABEL_CAPACITY_TYPE, capacity_type_name(capacity), n->provider_id,
        o->meta.name);
    if (!sim_apply_text(s->world.sim, claim.data, &err))
        die("a NodeClaim", &err);
    char name[300];
    snprintf(name, sizeof(name), "claim-%s", o->meta.name);
    if (!cloud_sim_adopt(s->world.cloud_sim, n->provider_id, type, zone, capacity, name, pool,
                         "default")) {
        fprintf(stderr, "scenario: the catalogue has no %s in %s\n", type, zone);
        exit(1);
    }
    sim_node_add(s->world.sim, &(struct sim_node){.name = o->meta.name,
                                                  .provider_id = n->provider_id,
                                                  .instance_type = type,
                                                  .zone = zone,
                                                  .region = "us-east-1",
                                                  .labels = l->v,
                                                  .n_labels = l->n,
                                                  .arch = "amd64",
                                                  .os = "linux",
                                                  .capacity = n->capacity,
                                                  .allocatable = n->allocatable});
    object_unref(o);
}

static void apply(struct scenario *s, const struct json *j)
{
    struct err err = ERR_INIT;
    struct str kind = json_text(field(j, "kind"));
    if (str_eq_c(kind, "EC2NodeClass"))
        return;
    if (str_eq_c(kind, "Node")) {
        add_node(s, j);
        return;
    }
    if (str_eq_c(kind, "NodePool") &&
        !str_eq_c(json_text(json_at(j, "spec", "template", "spec", "nodeClassRef", "kind", NULL)),
                  "SimNodeClass"))
        j = with_sim_class(s, j);
    if (!sim_apply(s->world.sim, j, &err))
        die("apply", &err);
}

static void apply_file(struct scenario *s, const char *name)
{
    char path[2048];
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    struct yml_documents d = {0};
    struct err err = ERR_INIT;
    snprintf(path, sizeof(path), "%s/%s", s->folder, name);
    read_file(path, &text);
    if (yml_parse(&s->arena, buf_view(&text), NULL, &d, &err) < 0)
        die(path, &err);
    for (size_t i = 0; i < d.n; i++)
        apply(s, d.v[i]);
}

/* A list of file names and objects. */
static void apply_all(struct scenario *s, const struct json *list)
{
    for (size_t i = 0; list && i < list->n; i++) {
        if (list->items[i]->type == JSON_OBJECT)
            apply(s, list->items[i]);
        else
            apply_file(s, text_of(s, list->items[i]));
    }
}

/* ---- Steps ---- */

static void write_home(struct scenario *s, const char *name, struct str text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", s->home, name);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(text.p, 1, text.len, f) != text.len || fclose(f) != 0)
        exit(1);
}

static void exhaust(struct scenario *s, const struct json *e)
{
    enum capacity_type type = CAPACITY_ON_DEMAND;
    const char *capacity = text_of(s, field(e, "capacityType"));
    if (capacity)
        capacity_type_parse(str_from(capacity), &type, NULL);
    cloud_sim_set_stock(s->world.cloud_sim, text_of(s, field(e, "type")),
                        text_of(s, field(e, "zone")), capacity ? (int)type : -1,
                        json_i64(field(e, "left"), 0));
}

static void run_step(void *arg)
{
    struct step *step = arg;
    struct scenario *s = step->s;
    const struct json *token = field(step->spec, "token"), *accept = field(step->spec, "accept"),
                      *down = field(step->spec, "apiDown");
    const struct json *patch = field(step->spec, "patch"), *delete = field(step->spec, "delete"),
                      *stock = field(step->spec, "stock");
    struct err err = ERR_INIT;
    apply_all(s, field(step->spec, "apply"));
    if (token)
        write_home(s, "token", json_text(token));
    if (accept)
        snprintf(s->token, sizeof(s->token), "Bearer %.*s", STR_ARG(json_text(accept)));
    if (down)
        sim_faults(s->world.sim)->api_down = json_bool(down, false);
    if (stock)
        exhaust(s, stock);
    if (patch) {
        CLEANUP(buf_release) struct buf body = BUF_INIT;
        json_print(&body, field(patch, "with"), 0);
        if (!sim_patch(s->world.sim, text_of(s, field(patch, "kind")),
                       text_of(s, field(patch, "namespace")), text_of(s, field(patch, "name")),
                       body.data, &err))
            die("patch", &err);
    }
    if (delete &&sim_delete(s->world.sim, text_of(s, field(delete, "kind")),
                            text_of(s, field(delete, "namespace")),
                            text_of(s, field(delete, "name")), -1, &err) < 0)
        die("delete", &err);
}

static void plan_steps(struct scenario *s)
{
    const struct json *steps = field(s->root, "steps");
    for (size_t i = 0; steps && i < steps->n; i++) {
        struct step *step = ARENA_NEW(&s->arena, struct step);
        step->s = s;
        step->spec = steps->items[i];
        loop_timer_at(s->world.loop, &step->timer, duration(field(step->spec, "at"), 0), run_step,
                      step);
    }
}

/* ---- Facts ---- */

struct window {
    int64_t from, to;
};

static struct window window_of(const struct json *fact, const char *name)
{
    const struct json *w = field(fact, name);
    if (!w || w->type != JSON_ARRAY || w->n != 2)
        return (struct window){0, TIME_NEVER};
    return (struct window){duration(w->items[0], 0), duration(w->items[1], 0)};
}

static size_t count(const struct scenario *s, enum what what, const char *prefix, struct window w)
{
    size_t n = 0;
    for (size_t i = 0; i < s->record.len; i++) {
        const struct moment *m = &s->record.v[i];
        n += m->what == what && m->at >= w.from && m->at <= w.to &&
             str_has_prefix(str_from(m->name), str_from(prefix));
    }
    return n;
}

static size_t launches(struct scenario *s, const struct json *fact, struct window w)
{
    const struct cloud_sim_call *v;
    size_t n = cloud_sim_calls(s->world.cloud_sim, &v), found = 0;
    const char *type = text_of(s, field(fact, "type")),
               *capacity = text_of(s, field(fact, "capacityType"));
    for (size_t i = 0; i < n; i++)
        found += v[i].what == SIM_CALL_LAUNCH && v[i].result == ERR_NONE && v[i].at >= w.from &&
                 v[i].at <= w.to &&
                 (!type || (v[i].instance_type && strcmp(v[i].instance_type, type) == 0)) &&
                 (!capacity || strcmp(capacity_type_name(v[i].capacity_type), capacity) == 0);
    return found;
}

struct search {
    const char *on, *text;
    size_t found;
};

static void match_event(void *arg, const struct json *e)
{
    struct search *x = arg;
    struct str name = json_text(json_at(e, "involvedObject", "name", NULL)),
               message = json_text(field(e, "message"));
    x->found += str_has_prefix(name, str_from(x->on)) &&
                str_find(message, str_from(x->text), 0) != SIZE_MAX;
}

static bool check_count(const struct json *want, size_t seen)
{
    return (size_t)json_i64(want, -1) == seen;
}

static int64_t price_of(struct scenario *s, const char *type, const char *capacity)
{
    const struct instance_type *t = catalog_find(s->world.catalog, type);
    for (uint32_t i = 0; t && i < t->n_offerings; i++)
        if (strcmp(capacity_type_name(t->offerings[i].capacity_type), capacity) == 0)
            return t->offerings[i].price_uusd_h;
    return -1;
}

/* One predicate a fact; every key that is there must hold. */
static bool holds(struct scenario *s, const struct json *f, char seen[256])
{
    struct window w = window_of(f, "between"), all = {0, TIME_NEVER};
    const char *node = text_of(s, field(f, "node")), *pod = text_of(s, field(f, "pod"));
    const struct json *launched = field(f, "launches"), *cost = field(f, "costAtMost"),
                      *event = field(f, "event");
    const struct json *calm = field(f, "untouchedBetween");
    if (node && calm) {
        struct window c = window_of(f, "untouchedBetween");
        size_t n = count(s, SAW_NODE_TAINTED, node, c) + count(s, SAW_NODE_GONE, node, c);
        snprintf(seen, 256, "%zu taints or removals", n);
        return n == 0;
    }
    if (node && field(f, "between")) {
        size_t inside = count(s, SAW_NODE_GONE, node, w), ever = count(s, SAW_NODE_GONE, node, all);
        snprintf(seen, 256, "removed %zu times, %zu of them in time", ever, inside);
        return inside == 1 && ever == 1;
    }
    if (node && field(f, "seen")) {
        size_t n = count(s, SAW_NODE, node, all);
        snprintf(seen, 256, "%zu nodes", n);
        return check_count(field(f, "seen"), n);
    }
    if (pod && field(f, "runs")) {
        size_t n = count(s, SAW_POD_RUNNING, pod, w);
        snprintf(seen, 256, "%zu began to run in time, %zu ever", n,
                 count(s, SAW_POD_RUNNING, pod, all));
        return check_count(field(f, "runs"), n);
    }
    if (launched) {
        size_t n = launches(s, f, w);
        snprintf(seen, 256, "%zu launches", n);
        return check_count(launched, n);
    }
    if (cost) {
        int64_t most =
            json_i64(field(cost, "count"), 1) *
            price_of(s, text_of(s, field(cost, "type")), text_of(s, field(cost, "capacityType")));
        int64_t now = cloud_sim_price_now(s->world.cloud_sim);
        snprintf(seen, 256, "%lld of %lld micro-dollars an hour", (long long)now, (long long)most);
        return now <= most && most > 0;
    }
    if (event) {
        struct search x = {text_of(s, field(event, "on")), text_of(s, field(event, "says")), 0};
        sim_each(s->world.sim, "Event", match_event, &x);
        snprintf(seen, 256, "%zu such events", x.found);
        return x.found > 0;
    }
    if (field(f, "ready")) {
        bool ready = control_ready(s->control) && control_age(s->control) < 3 * NS_PER_MIN;
        snprintf(seen, 256, "ready %d", ready);
        return ready == json_bool(field(f, "ready"), true);
    }
    snprintf(seen, 256, "a fact that is not understood");
    return false;
}

static void print_record(const struct scenario *s)
{
    static const char *const names[] = {"node seen", "node tainted", "node gone",
                                        "pod seen",  "pod running",  "pod gone"};
    for (size_t i = 0; i < s->record.len; i++)
        printf("    %8.1f s  %-12s %s\n", (double)s->record.v[i].at / 1e9,
               names[s->record.v[i].what], s->record.v[i].name);
}

static void judge(struct scenario *s)
{
    const struct json *facts = field(s->root, "facts");
    for (size_t i = 0; facts && i < facts->n; i++) {
        char seen[256] = "";
        const struct json *f = facts->items[i];
        bool good = holds(s, f, seen);
        struct str name = json_text(field(f, "fact"));
        printf("  %s %.*s (%s)\n", good ? "holds " : "BROKEN", STR_ARG(name), seen);
        s->failed += !good;
    }
    if (s->failed)
        print_record(s);
}

/* ---- Life ---- */

static bool allow(void *arg, struct str authorization)
{
    const struct scenario *s = arg;
    return !*s->token || str_eq_c(authorization, s->token);
}

static void open_config(struct scenario *s)
{
    struct err err = ERR_INIT;
    const char *name = text_of(s, field(s->root, "kubeconfig"));
    if (!name) {
        s->config = kube_config_parse(STR("{current-context: c, clusters: [{name: k, cluster: "
                                          "{server: 'http://sim'}}], contexts: [{name: c, "
                                          "context: {cluster: k}}]}"),
                                      "inline", NULL, &err);
    } else {
        char path[2048];
        CLEANUP(buf_release) struct buf text = BUF_INIT;
        snprintf(s->home, sizeof(s->home), "/tmp/weft-scenario-XXXXXX");
        if (!mkdtemp(s->home))
            exit(1);
        snprintf(path, sizeof(path), "%s/%s", s->folder, name);
        read_file(path, &text);
        write_home(s, "config", buf_view(&text));
        write_home(s, "ca.crt", STR("not read: the transport is simulated\n"));
        write_home(s, "token", json_text(field(s->root, "token")));
        snprintf(s->token, sizeof(s->token), "Bearer %.*s",
                 STR_ARG(json_text(field(s->root, "token"))));
        snprintf(path, sizeof(path), "%s/config", s->home);
        s->config = kube_config_load(path, NULL, &err);
    }
    if (!s->config)
        die("kubeconfig", &err);
    sim_set_auth(s->world.sim, allow, s);
}

static void start(struct scenario *s)
{
    struct err err = ERR_INIT;
    const struct client_options options = {.seed = 1};
    s->client = client_new(s->world.loop, s->world.http, s->worker, s->config, &options, &err);
    if (!s->client)
        die("client", &err);
    s->recorder = recorder_new(s->client, NULL);
    s->control = control_new(s->world.loop, s->worker, s->client, s->recorder, NULL,
                             &s->world.cloud, 1, &(struct control_options){.seed = 1});
    s->scalers = scalers_new(s->client, s->recorder, &(struct scalers_options){.seed = 1});
    control_start(s->control);
    scalers_start(s->scalers);
    control_set_leader(s->control, true);
    scalers_lead(s->scalers, true);
}

static void stop(struct scenario *s)
{
    scalers_free(s->scalers);
    control_free(s->control);
    recorder_free(s->recorder);
    client_free(s->client);
    worker_free(s->worker);
    sim_world_release(&s->world);
    kube_config_free(s->config);
    vec_release(&s->record);
    if (*s->home) {
        static const char *const files[] = {"config", "ca.crt", "token"};
        char path[128];
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
            snprintf(path, sizeof(path), "%s/%s", s->home, files[i]);
            unlink(path);
        }
        rmdir(s->home);
    }
    arena_release(&s->arena);
}

static void drop_line(void *arg, struct str line)
{
    (void)arg;
    (void)line;
}

static void load(struct scenario *s, const char *path)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    struct json *root = NULL;
    struct err err = ERR_INIT;
    read_file(path, &text);
    if (yml_parse_one(&s->arena, buf_view(&text), NULL, &root, &err) < 0 || !root)
        die(path, &err);
    s->root = root;
    const char *name = text_of(s, field(root, "case")), *cases = env_get("WEFT_CASES");
    if (!name)
        return;
    s->folder = arena_printf(&s->arena, "%s/%s", cases ? cases : "../shared/cases", name).p;
    struct stat st;
    if (stat(s->folder, &st) < 0) {
        printf("SKIPPED: there is no %s\n", s->folder);
        exit(SKIPPED);
    }
}

int main(int argc, char **argv)
{
    static struct scenario s;
    struct sim_world_options options = {.seed = 1};
    struct err err = ERR_INIT;
    if (argc != 2) {
        fprintf(stderr, "usage: scenario FILE\n");
        return 2;
    }
    log_capture(drop_line, NULL);
    load(&s, argv[1]);
    const struct json *at = field(s.root, "start");
    if (at && time_parse_rfc3339(json_text(at), &options.wall_start, &err) < 0)
        die("start", &err);
    sim_world_init(&s.world, &options);
    s.worker = worker_new(s.world.loop, 1);
    sim_on_object_change(s.world.sim, changed, &s);
    CLEANUP(buf_release) struct buf class = BUF_INIT, spec = BUF_INIT;
    if (field(s.root, "nodes"))
        json_print(&spec, field(s.root, "nodes"), 0);
    buf_printf(
        &class,
        "{\"apiVersion\":\"weft.sh/"
        "v1alpha1\",\"kind\":\"SimNodeClass\",\"metadata\":{\"name\":\"default\"},\"spec\":%s}",
        spec.len ? spec.data : "{}");
    if (!sim_apply_text(s.world.sim, class.data, &err))
        die("node class", &err);
    apply_all(&s, field(s.root, "apply"));
    open_config(&s);
    start(&s);
    plan_steps(&s);
    loop_run_until(s.world.loop, duration(field(s.root, "until"), NS_PER_HOUR));
    printf("%s\n", argv[1]);
    judge(&s);
    unsigned failed = s.failed;
    stop(&s);
    return failed ? 1 : 0;
}
