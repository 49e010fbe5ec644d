/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* See sim_cloud.h. */

#include "cmd/sim_cloud.h"

#include "base/buf.h"
#include "base/crypto.h"
#include "base/map.h"
#include "base/num.h"
#include "cloud/sim/sim.h"
#include "kube/api/misc.h"
#include "kube/api/node.h"

#define RECORD_LABEL "weft.sh/sim-instance"

/* What one ConfigMap holds. */
struct record {
    struct arena arena;
    const char *name; /* of the ConfigMap */
    const char *provider_id, *token, *labels_json, *taints_json;
    bool seen;       /* by the read under way */
    int64_t written; /* loop_now when the API server had it; 0: not yet */
};

struct sim_cloud {
    struct cloud cloud;
    struct client *client;
    struct loop *loop;
    char *namespace_;
    bool kubelets;
    struct cloud_sim *market;
    struct cloud *inner;
    struct map records; /* provider id -> struct record */
    struct cloud_op *ops;
};

enum op_kind { OP_CATALOGUE, OP_LAUNCH, OP_GET, OP_LIST, OP_TERMINATE, OP_NOTICES };

struct cloud_op {
    struct sim_cloud *owner;
    struct cloud_op *next, *prev;
    enum op_kind kind;
    struct client_op *call;
    int64_t asked; /* loop_now when the records were asked for */
    struct cloud_op *inner;
    struct arena arena;
    struct launch_request request;
    const char *provider_id, *cluster;
    union {
        cloud_catalog_done *catalog;
        cloud_instance_done *instance;
        cloud_list_done *list;
        cloud_done *plain;
        cloud_notices_done *notices;
    } done;
    void *arg;
};

static struct sim_cloud *of(struct cloud *c)
{
    return CONTAINER_OF(c, struct sim_cloud, cloud);
}

/* "sim:///us-east-1a/i-0001" is the machine of the Node "i-0001". */
static const char *node_name(const char *provider_id)
{
    const char *slash = strrchr(provider_id, '/');
    return slash ? slash + 1 : provider_id;
}

/* ---- The Node objects ---- */

static void write_resources(struct json_writer *w, const char *key, const struct resource_list *l,
                            bool extended)
{
    json_w_kobject(w, key);
    for (uint32_t i = 0; i < l->n; i++) {
        char text[32];
        if (strchr(l->v[i].name, '/') && !extended)
            continue;
        json_w_key(w, str_from(l->v[i].name));
        json_w_str(w, quantity_format_for(text, str_from(l->v[i].name), l->v[i].amount));
    }
    json_w_object_end(w);
}

static void write_status(struct buf *body, const struct instance *i, bool extended)
{
    struct json_writer w;
    json_writer_init(&w, body, 0);
    json_w_object(&w);
    json_w_kobject(&w, "status");
    write_resources(&w, "capacity", &i->capacity, extended);
    write_resources(&w, "allocatable", &i->allocatable, extended);
    json_w_object_end(&w);
    json_w_object_end(&w);
}

static void register_node(struct sim_cloud *s, const struct instance *i, struct str labels,
                          struct str taints)
{
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kcstr(&w, "kind", "Node");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", node_name(i->provider_id));
    json_w_key(&w, STR("labels"));
    json_w_number(&w, labels); /* JSON text as it is */
    json_w_object_end(&w);
    json_w_kobject(&w, "spec");
    json_w_kcstr(&w, "providerID", i->provider_id);
    json_w_key(&w, STR("taints"));
    json_w_number(&w, taints);
    json_w_object_end(&w);
    json_w_kobject(&w, "status");
    write_resources(&w, "capacity", &i->capacity, false);
    write_resources(&w, "allocatable", &i->allocatable, false);
    json_w_object_end(&w);
    json_w_object_end(&w);
    client_create(s->client, &kind_node, NULL, buf_view(&body), NULL, NULL);
}

/* "Ready", as a kubelet would say it. */
static void ready_node(struct sim_cloud *s, const char *name)
{
    char now[40];
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    time_format(now, loop_wall(s->loop));
    buf_printf(
        &body,
        "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":"
        "\"KubeletReady\","
        "\"message\":\"simulated\",\"lastHeartbeatTime\":\"%s\",\"lastTransitionTime\":\"%s\"}]}}",
        now, now);
    client_patch(s->client, &kind_node, NULL, name, "status", PATCH_MERGE, buf_view(&body), NULL,
                 NULL);
}

/* A set-up agent's work: read the Node, and write its taints without those of start-up. */
struct startup {
    struct sim_cloud *owner;
    char *node, *claim;
    struct arena arena;
    const struct json *startup; /* the claim's startupTaints */
};

static void free_startup(struct startup *u)
{
    free(u->node);
    free(u->claim);
    arena_release(&u->arena);
    free(u);
}

static bool is_startup(const struct json *list, const struct taint *t)
{
    for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++)
        if (str_eq_c(json_text(json_get(list->items[i], "key")), t->key) &&
            str_eq_c(json_text(json_get(list->items[i], "effect")), taint_effect_name(t->effect)))
            return true;
    return false;
}

static void startup_node(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct startup *u = arg;
    if (err || !answer->object) {
        free_startup(u);
        return;
    }
    const struct node *n = node_of(answer->object);
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "resourceVersion", n->obj.meta.resource_version);
    json_w_object_end(&w);
    json_w_kobject(&w, "spec");
    json_w_karray(&w, "taints");
    for (uint32_t i = 0; i < n->n_taints; i++) {
        if (is_startup(u->startup, &n->taints[i]))
            continue;
        json_w_object(&w);
        json_w_kcstr(&w, "key", n->taints[i].key);
        if (n->taints[i].value)
            json_w_kcstr(&w, "value", n->taints[i].value);
        json_w_kcstr(&w, "effect", taint_effect_name(n->taints[i].effect));
        json_w_object_end(&w);
    }
    json_w_array_end(&w);
    json_w_object_end(&w);
    json_w_object_end(&w);
    client_patch(u->owner->client, &kind_node, NULL, u->node, NULL, PATCH_MERGE, buf_view(&body),
                 NULL, NULL);
    free_startup(u);
}

static void startup_claim(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct startup *u = arg;
    const struct json *claim = err ? NULL : json_parse(&u->arena, answer->body, NULL);
    u->startup = json_at(claim, "spec", "startupTaints", NULL);
    if (!u->startup || u->startup->n == 0) {
        free_startup(u);
        return;
    }
    client_get(u->owner->client, &kind_node, NULL, u->node, startup_node, u);
}

static void end_startup(struct sim_cloud *s, const struct instance *i)
{
    if (!i->nodeclaim)
        return;
    struct startup *u = xcalloc(1, sizeof(*u));
    u->owner = s;
    u->node = xstrdup(node_name(i->provider_id));
    u->claim = xstrdup(i->nodeclaim);
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    buf_cstr(&path, "/apis/karpenter.sh/v1/nodeclaims/");
    http_escape(&path, str_from(i->nodeclaim));
    client_raw(s->client, "GET", path.data, NULL, STR_NONE, startup_claim, u);
}

static void run_stage(struct sim_cloud *s, const struct instance *i, enum sim_node_stage stage)
{
    const struct record *r = map_get(&s->records, str_from(i->provider_id));
    CLEANUP(buf_release) struct buf status = BUF_INIT;
    switch (stage) {
    case SIM_NODE_REGISTERED:
        if (r)
            register_node(s, i, str_from(r->labels_json), str_from(r->taints_json));
        break;
    case SIM_NODE_READY:
        if (s->kubelets)
            ready_node(s, node_name(i->provider_id));
        break;
    case SIM_NODE_DEVICES:
        write_status(&status, i, true);
        client_patch(s->client, &kind_node, NULL, node_name(i->provider_id), "status", PATCH_MERGE,
                     buf_view(&status), NULL, NULL);
        break;
    case SIM_NODE_STARTUP_DONE:
        end_startup(s, i);
        break;
    }
}

static void node_up(void *arg, const struct instance *i,
                    const struct launch_request *request UNUSED, enum sim_node_stage stage)
{
    run_stage(arg, i, stage);
}

/* As a cloud's node controller does, the Node of a machine that is gone is removed. */
static void node_down(void *arg, const struct instance *i)
{
    struct sim_cloud *s = arg;
    client_delete(s->client, &kind_node, NULL, node_name(i->provider_id), NULL, -1, NULL, NULL);
}

/* ---- Records ---- */

static void free_record(void *p)
{
    struct record *r = p;
    arena_release(&r->arena);
    free(r);
}

static const char *value_of(const struct config_data *d, const char *key)
{
    const struct data_entry *e = config_data_get(d, key);
    return e ? e->value.p : NULL;
}

static struct record *add_record(struct sim_cloud *s, const char *name, const char *provider_id,
                                 const char *token, struct str labels, struct str taints)
{
    struct record *r = xcalloc(1, sizeof(*r));
    arena_init(&r->arena, 1 << 20, 1024);
    r->name = arena_cstr(&r->arena, str_from(name));
    r->provider_id = arena_cstr(&r->arena, str_from(provider_id));
    r->token = arena_cstr(&r->arena, str_from(token));
    r->labels_json = arena_cstr(&r->arena, labels);
    r->taints_json = arena_cstr(&r->arena, taints);
    struct record *before = map_put(&s->records, str_from(provider_id), r);
    if (before)
        free_record(before);
    return r;
}

/* An instance that another process launched, or this one before it was restarted. All the stages of
 * its Node are gone through again; each is harmless where it is done already. */
static void adopt(struct sim_cloud *s, const struct config_data *d)
{
    const char *id = value_of(d, "providerID");
    enum capacity_type type;
    if (!id || capacity_type_parse(str_from(value_of(d, "capacityType")), &type, NULL) < 0)
        return;
    struct record *known = map_get(&s->records, str_from(id));
    if (known) {
        known->seen = true;
        known->written = known->written ? known->written : loop_now(s->loop);
        return;
    }
    const char *labels = value_of(d, "labels"), *taints = value_of(d, "taints");
    struct record *r =
        add_record(s, d->obj.meta.name, id, value_of(d, "token"), str_from(labels ? labels : "{}"),
                   str_from(taints ? taints : "[]"));
    r->seen = true;
    const struct instance *i =
        cloud_sim_adopt(s->market, id, value_of(d, "instanceType"), value_of(d, "zone"), type,
                        value_of(d, "nodeClaim"), value_of(d, "nodePool"), value_of(d, "cluster"));
    for (int stage = SIM_NODE_REGISTERED; i && stage <= SIM_NODE_STARTUP_DONE; stage++)
        run_stage(s, i, (enum sim_node_stage)stage);
}

static void ended(void *arg UNUSED, const struct cloud_error *error UNUSED) {}

static void take_record(void *arg, struct object *o)
{
    adopt(arg, (const struct config_data *)(void *)o);
    object_unref(o);
}

/* `asked` is when the read was sent: it says nothing of records written since. */
static int take_records(struct sim_cloud *s, struct str body, int64_t asked, struct err *err)
{
    struct list_meta meta;
    struct list_decoder *d = list_decoder_new(&kind_configmap, NULL, take_record, NULL, s);
    map_each(&s->records, e)
        ((struct record *)e->value)->seen = false;
    int code =
        list_decoder_feed(d, body, err) < 0 || list_decoder_finish(d, &meta, err) < 0 ? -1 : 0;
    list_decoder_free(d);
    if (code < 0)
        return -1;
    map_each(&s->records, e) {
        struct record *r = e->value;
        if (r->seen || r->written == 0 || r->written >= asked)
            continue;
        s->inner->vt->terminate(s->inner, r->provider_id, ended, NULL);
        free_record(map_remove(&s->records, map_key(e)));
    }
    return 0;
}

static void write_labels(struct buf *out, const struct launch_request *r, const struct instance *i)
{
    struct json_writer w;
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    bool hostname = false;
    for (uint32_t k = 0; k < r->n_labels; k++) {
        json_w_kcstr(&w, r->labels[k].key, r->labels[k].value);
        hostname |= strcmp(r->labels[k].key, "kubernetes.io/hostname") == 0;
    }
    if (!hostname)
        json_w_kcstr(&w, "kubernetes.io/hostname", node_name(i->provider_id));
    json_w_object_end(&w);
}

static void write_taints(struct buf *out, const struct launch_request *r)
{
    struct json_writer w;
    json_writer_init(&w, out, 0);
    json_w_array(&w);
    for (uint32_t k = 0; k < r->n_taints; k++) {
        json_w_object(&w);
        json_w_kcstr(&w, "key", r->taints[k].key);
        if (r->taints[k].value)
            json_w_kcstr(&w, "value", r->taints[k].value);
        json_w_kcstr(&w, "effect", taint_effect_name(r->taints[k].effect));
        json_w_object_end(&w);
    }
    json_w_array_end(&w);
}

static void write_record(struct sim_cloud *s, const struct instance *i, const struct record *r,
                         struct buf *body)
{
    struct json_writer w;
    json_writer_init(&w, body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kcstr(&w, "kind", "ConfigMap");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", r->name);
    json_w_kcstr(&w, "namespace", s->namespace_);
    json_w_kobject(&w, "labels");
    json_w_kcstr(&w, RECORD_LABEL, "true");
    json_w_object_end(&w);
    json_w_object_end(&w);
    json_w_kobject(&w, "data");
    json_w_kcstr(&w, "providerID", i->provider_id);
    json_w_kcstr(&w, "instanceType", i->instance_type);
    json_w_kcstr(&w, "zone", i->zone);
    json_w_kcstr(&w, "capacityType", capacity_type_name(i->capacity_type));
    json_w_kcstr(&w, "nodeClaim", i->nodeclaim ? i->nodeclaim : "");
    json_w_kcstr(&w, "nodePool", i->nodepool ? i->nodepool : "");
    json_w_kcstr(&w, "cluster", i->cluster ? i->cluster : "");
    json_w_kcstr(&w, "token", r->token);
    json_w_kcstr(&w, "labels", r->labels_json);
    json_w_kcstr(&w, "taints", r->taints_json);
    json_w_object_end(&w);
    json_w_object_end(&w);
}

/* ---- Operations ---- */

static void free_op(struct cloud_op *op)
{
    struct sim_cloud *s = op->owner;
    client_cancel(op->call);
    if (op->inner)
        s->inner->vt->cancel(s->inner, op->inner);
    if (op->prev)
        op->prev->next = op->next;
    else
        s->ops = op->next;
    if (op->next)
        op->next->prev = op->prev;
    if (op->request.node_class)
        object_unref((struct object *)(uintptr_t)&op->request.node_class->obj);
    arena_release(&op->arena);
    free(op);
}

/* Tells the caller, then frees: the answer's texts may live in the operation. */
static void tell(struct cloud_op *op, const struct instance *v, size_t n,
                 const struct cloud_error *error)
{
    struct cloud_op copy = *op;
    op->arena = (struct arena)ARENA_INIT;
    free_op(op);
    switch (copy.kind) {
    case OP_LAUNCH:
    case OP_GET:
        copy.done.instance(copy.arg, error && error->code != ERR_NONE ? NULL : v, error);
        break;
    case OP_LIST:
        copy.done.list(copy.arg, v, n, error);
        break;
    case OP_TERMINATE:
        copy.done.plain(copy.arg, error);
        break;
    case OP_CATALOGUE:
        copy.done.catalog(copy.arg, NULL, error);
        break;
    case OP_NOTICES:
        copy.done.notices(copy.arg, NULL, 0, error);
        break;
    }
    arena_release(&copy.arena);
}

static void fail(struct cloud_op *op, const struct err *err)
{
    struct cloud_error e = {.code = err->code};
    snprintf(e.msg, sizeof(e.msg), "simulated cloud: %.280s", err->msg);
    tell(op, NULL, 0, &e);
}

static const struct instance *instance_of(struct sim_cloud *s, const char *provider_id)
{
    const struct instance *v;
    size_t n = cloud_sim_instances(s->market, &v);
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].provider_id, provider_id) == 0)
            return &v[i];
    return NULL;
}

static struct cloud_op *read_records(struct cloud_op *op);

/* Takes an instance back that the records do not have. */
static void take_back(struct sim_cloud *s, const char *provider_id)
{
    struct record *r = map_remove(&s->records, str_from(provider_id));
    s->inner->vt->terminate(s->inner, provider_id, ended, NULL);
    if (r)
        free_record(r);
}

/* The record is the instance. One of this token that is there already (another process wrote it, or
 * this one did and lost the answer) wins; what may have been written is left for the next read. */
static void record_written(void *arg, const struct client_answer *answer UNUSED,
                           const struct err *err)
{
    struct cloud_op *op = arg;
    struct sim_cloud *s = op->owner;
    op->call = NULL;
    if (err && err->code == ERR_EXISTS) {
        read_records(op);
        return;
    }
    if (err) {
        if (err->code != ERR_UNKNOWN)
            take_back(s, op->provider_id);
        fail(op, err);
        return;
    }
    struct record *written = map_get(&s->records, str_from(op->provider_id));
    if (written)
        written->written = loop_now(s->loop);
    tell(op, instance_of(s, op->provider_id), 1, NULL);
}

/* Records are named by the token, so that the API server refuses a second one of the same launch
 * whoever asks. */
static void record_name(const char *token, const char *provider_id, char ret[64])
{
    char digest[33];
    crypto_sha256_hex(str_from(*token ? token : provider_id), 32, digest);
    snprintf(ret, 64, "sim-%s", digest);
}

static void launched(void *arg, const struct instance *i, const struct cloud_error *error)
{
    struct cloud_op *op = arg;
    struct sim_cloud *s = op->owner;
    op->inner = NULL;
    if (!i) {
        tell(op, NULL, 0, error);
        return;
    }
    CLEANUP(buf_release) struct buf labels = BUF_INIT, taints = BUF_INIT, body = BUF_INIT;
    write_labels(&labels, &op->request, i);
    write_taints(&taints, &op->request);
    char name[64];
    const char *token = op->request.token ? op->request.token : "";
    record_name(token, i->provider_id, name);
    struct record *r =
        add_record(s, name, i->provider_id, token, buf_view(&labels), buf_view(&taints));
    op->provider_id = arena_cstr(&op->arena, str_from(i->provider_id));
    write_record(s, i, r, &body);
    op->call = client_create(s->client, &kind_configmap, s->namespace_, buf_view(&body),
                             record_written, op);
}

static void start_launch(struct cloud_op *op)
{
    struct sim_cloud *s = op->owner;
    map_each(&s->records, e) {
        const struct record *r = e->value;
        if (r->written == 0 || !op->request.token || !*op->request.token ||
            strcmp(r->token, op->request.token) != 0)
            continue;
        if (op->provider_id && strcmp(op->provider_id, r->provider_id) != 0)
            take_back(s, op->provider_id);
        tell(op, instance_of(s, r->provider_id), 1, NULL);
        return;
    }
    op->inner = s->inner->vt->launch(s->inner, &op->request, launched, op);
}

static void got(void *arg, const struct instance *i, const struct cloud_error *error)
{
    struct cloud_op *op = arg;
    op->inner = NULL;
    tell(op, i, 1, error);
}

static void listed(void *arg, const struct instance *v, size_t n, const struct cloud_error *error)
{
    struct cloud_op *op = arg;
    op->inner = NULL;
    tell(op, v, n, error);
}

static void record_deleted(void *arg, const struct client_answer *answer UNUSED,
                           const struct err *err)
{
    struct cloud_op *op = arg;
    op->call = NULL;
    if (err && err->code != ERR_NOT_FOUND)
        fail(op, err);
    else
        tell(op, NULL, 0, NULL);
}

static void terminated(void *arg, const struct cloud_error *error)
{
    struct cloud_op *op = arg;
    struct sim_cloud *s = op->owner;
    op->inner = NULL;
    if (error) {
        tell(op, NULL, 0, error);
        return;
    }
    struct record *r = map_remove(&s->records, str_from(op->provider_id));
    if (!r) {
        tell(op, NULL, 0, NULL);
        return;
    }
    op->call = client_delete(s->client, &kind_configmap, s->namespace_, r->name, NULL, -1,
                             record_deleted, op);
    free_record(r);
}

/* The records have been read: now the market can answer. */
static void records_read(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct cloud_op *op = arg;
    struct sim_cloud *s = op->owner;
    struct err why = ERR_INIT;
    op->call = NULL;
    if (!err && take_records(s, answer->body, op->asked, &why) < 0)
        err = &why;
    if (err) {
        fail(op, err);
        return;
    }
    switch (op->kind) {
    case OP_LAUNCH:
        start_launch(op);
        break;
    case OP_GET:
        op->inner = s->inner->vt->get(s->inner, op->provider_id, got, op);
        break;
    case OP_LIST:
        op->inner = s->inner->vt->list(s->inner, op->cluster, listed, op);
        break;
    default:
        op->inner = s->inner->vt->terminate(s->inner, op->provider_id, terminated, op);
        break;
    }
}

static struct cloud_op *new_op(struct cloud *c, enum op_kind kind, void *arg)
{
    struct sim_cloud *s = of(c);
    struct cloud_op *op = xcalloc(1, sizeof(*op));
    *op = (struct cloud_op){.owner = s, .next = s->ops, .kind = kind, .arg = arg};
    if (s->ops)
        s->ops->prev = op;
    s->ops = op;
    return op;
}

static struct cloud_op *read_records(struct cloud_op *op)
{
    struct sim_cloud *s = op->owner;
    CLEANUP(buf_release) struct buf path = BUF_INIT;
    buf_printf(&path,
               "/api/v1/namespaces/%s/configmaps?labelSelector=weft.sh%%2Fsim-instance%%3Dtrue",
               s->namespace_);
    op->asked = loop_now(s->loop);
    op->call = client_raw(s->client, "GET", path.data, NULL, STR_NONE, records_read, op);
    return op;
}

static void copy_request(struct cloud_op *op, const struct launch_request *r)
{
    struct arena *a = &op->arena;
    op->request = *r;
    op->request.nodeclaim = arena_cstr(a, str_from(r->nodeclaim));
    op->request.nodepool = arena_cstr(a, str_from(r->nodepool));
    op->request.cluster = arena_cstr(a, str_from(r->cluster));
    op->request.nodeclaim_uid = arena_cstr(a, str_from(r->nodeclaim_uid));
    op->request.token = arena_cstr(a, str_from(r->token));
    if (r->node_class)
        op->request.node_class =
            nodeclass_of(object_ref((struct object *)(uintptr_t)&r->node_class->obj));
    struct launch_offering *o = ARENA_NEW_ARRAY(a, struct launch_offering, r->n_offerings);
    for (uint32_t i = 0; i < r->n_offerings; i++)
        o[i] = (struct launch_offering){arena_cstr(a, str_from(r->offerings[i].instance_type)),
                                        arena_cstr(a, str_from(r->offerings[i].zone)),
                                        r->offerings[i].capacity_type};
    struct label *l = ARENA_NEW_ARRAY(a, struct label, r->n_labels);
    for (uint32_t i = 0; i < r->n_labels; i++)
        l[i] = (struct label){arena_cstr(a, str_from(r->labels[i].key)),
                              arena_cstr(a, str_from(r->labels[i].value))};
    struct taint *t = ARENA_NEW_ARRAY(a, struct taint, r->n_taints);
    for (uint32_t i = 0; i < r->n_taints; i++) {
        t[i] = r->taints[i];
        t[i].key = arena_cstr(a, str_from(r->taints[i].key));
        t[i].value = r->taints[i].value ? arena_cstr(a, str_from(r->taints[i].value)) : NULL;
    }
    op->request.offerings = o;
    op->request.labels = l;
    op->request.taints = t;
}

static struct cloud_op *sim_launch(struct cloud *c, const struct launch_request *r,
                                   cloud_instance_done *done, void *arg)
{
    struct cloud_op *op = new_op(c, OP_LAUNCH, arg);
    op->done.instance = done;
    copy_request(op, r);
    return read_records(op);
}

static struct cloud_op *sim_get_instance(struct cloud *c, const char *provider_id,
                                         cloud_instance_done *done, void *arg)
{
    struct cloud_op *op = new_op(c, OP_GET, arg);
    op->done.instance = done;
    op->provider_id = arena_cstr(&op->arena, str_from(provider_id));
    return read_records(op);
}

static struct cloud_op *sim_list(struct cloud *c, const char *cluster, cloud_list_done *done,
                                 void *arg)
{
    struct cloud_op *op = new_op(c, OP_LIST, arg);
    op->done.list = done;
    op->cluster = arena_cstr(&op->arena, str_from(cluster));
    return read_records(op);
}

static struct cloud_op *sim_terminate(struct cloud *c, const char *provider_id, cloud_done *done,
                                      void *arg)
{
    struct cloud_op *op = new_op(c, OP_TERMINATE, arg);
    op->done.plain = done;
    op->provider_id = arena_cstr(&op->arena, str_from(provider_id));
    return read_records(op);
}

static void catalogued(void *arg, struct catalog *catalog, const struct cloud_error *error)
{
    struct cloud_op *op = arg;
    cloud_catalog_done *done = op->done.catalog;
    void *of_caller = op->arg;
    op->inner = NULL;
    free_op(op);
    done(of_caller, catalog, error);
}

static struct cloud_op *sim_catalogue(struct cloud *c, const struct nodeclass *nc,
                                      cloud_catalog_done *done, void *arg)
{
    struct cloud_op *op = new_op(c, OP_CATALOGUE, arg);
    op->done.catalog = done;
    op->inner = op->owner->inner->vt->catalogue(op->owner->inner, nc, catalogued, op);
    return op;
}

static void noticed(void *arg, const struct notice *v, size_t n, const struct cloud_error *error)
{
    struct cloud_op *op = arg;
    cloud_notices_done *done = op->done.notices;
    void *of_caller = op->arg;
    op->inner = NULL;
    free_op(op);
    done(of_caller, v, n, error);
}

static struct cloud_op *sim_notices(struct cloud *c, cloud_notices_done *done, void *arg)
{
    struct cloud_op *op = new_op(c, OP_NOTICES, arg);
    op->done.notices = done;
    op->inner = op->owner->inner->vt->poll_notices(op->owner->inner, noticed, op);
    return op;
}

static void sim_cancel(struct cloud *c UNUSED, struct cloud_op *op)
{
    free_op(op);
}

static void sim_close(struct cloud *c)
{
    struct sim_cloud *s = of(c);
    while (s->ops)
        free_op(s->ops);
    s->inner->vt->close(s->inner);
    map_release(&s->records, free_record);
    free(s->namespace_);
    free(s);
}

static const struct cloud_vtable vtable = {
    .name = "sim",
    .class_group = "weft.sh",
    .class_kind = "SimNodeClass",
    .catalogue = sim_catalogue,
    .launch = sim_launch,
    .get = sim_get_instance,
    .list = sim_list,
    .terminate = sim_terminate,
    .drifted = NULL,
    .poll_notices = sim_notices,
    .cancel = sim_cancel,
    .close = sim_close,
};

/* "g5.xlarge/us-east-1a/spot", each part may be "*". */
static int exhaust(struct cloud_sim *market, const char *text, struct err *err)
{
    char parts[3][64] = {"", "", ""};
    struct str rest = str_from(text), part;
    size_t n = 0;
    for (; str_split(&rest, '/', &part); n++)
        if (n < ARRAY_LEN(parts))
            snprintf(parts[n], sizeof(parts[n]), "%.*s", STR_ARG(part));
    enum capacity_type type = CAPACITY_ON_DEMAND;
    bool any = strcmp(parts[2], "*") == 0;
    if (n != 3 || (!any && capacity_type_parse(str_from(parts[2]), &type, NULL) < 0))
        return err_set(err, ERR_INVALID, "sim-exhausted: '%.80s' is not TYPE/ZONE/CAPACITY-TYPE",
                       text);
    cloud_sim_set_stock(market, strcmp(parts[0], "*") == 0 ? NULL : parts[0],
                        strcmp(parts[1], "*") == 0 ? NULL : parts[1], any ? -1 : (int)type, 0);
    return 0;
}

struct cloud *sim_cloud_new(struct client *client, const struct sim_cloud_options *o,
                            struct err *err)
{
    struct sim_cloud *s = xcalloc(1, sizeof(*s));
    s->cloud.vt = &vtable;
    s->client = client;
    s->loop = client_loop(client);
    s->namespace_ = xstrdup(o->namespace_);
    s->kubelets = o->kubelets;
    const struct cloud_sim_options options = {
        .seed = o->seed,
        .catalog = o->catalog,
        .speed = o->speed,
        .host = {node_up, node_down, s},
    };
    s->market = cloud_sim_new(s->loop, &options);
    s->inner = cloud_sim_cloud(s->market);
    for (size_t i = 0; o->exhausted && o->exhausted[i]; i++) {
        if (exhaust(s->market, o->exhausted[i], err) < 0) {
            sim_close(&s->cloud);
            return NULL;
        }
    }
    return &s->cloud;
}
