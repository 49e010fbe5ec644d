/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A new NodeClaim: the first record of a launch, written before anything is bought.
 *
 * Its name is ours and not the server's (generateName): a hash of what it is for and when, so that
 * a creation whose answer was lost is found under a known name. */
#include <ctype.h>

#include "base/crypto.h"
#include "provisioner/control/body.h"
#include "provisioner/control/launch.h"
#include "provisioner/control/provision.h"

static void claim_name(char ret[64], const struct control *c, const struct pass *p,
                       const struct plan_launch *l)
{
    CLEANUP(buf_release) struct buf b = BUF_INIT;
    char hash[11];

    for (unsigned salt = 0;; salt++) {
        buf_clear(&b);
        buf_printf(&b, "%s\n%lld\n%u\n%s/%s/%s", c->cluster.uid, (long long)control_now(c), salt,
                   l->alternatives[0].instance_type, l->alternatives[0].zone,
                   l->alternatives[0].capacity_type);
        for (uint32_t i = 0; i < l->n_pods; i++) {
            const struct world_pod *pod = &p->world->pods[l->pods[i]];

            buf_printf(&b, "\n%s %s", pod->key,
                       pod->pod ? pod->pod->obj.meta.uid : pod->workload->obj.meta.uid);
        }
        crypto_sha256_hex(buf_view(&b), 10, hash);
        snprintf(ret, 64, "%.50s-%s", l->node_pool, hash);
        if (!cluster_claim(c, ret))
            return;
    }
}

/* ---- Body ---- */

static void labels(struct json_writer *w, const struct nodepool *pool, const struct plan_launch *l)
{
    const struct node_template *t = &pool->template_;
    char key[256];
    int n = snprintf(key, sizeof(key), "%s/%s", t->class_ref.group, t->class_ref.kind);

    for (int i = 0; i < n && i < (int)sizeof(key) - 1; i++)
        key[i] = (char)tolower((unsigned char)key[i]);
    json_w_kobject(w, "labels");
    for (uint32_t i = 0; i < t->labels.n; i++)
        if (!labels_has(&l->labels, t->labels.v[i].key) &&
            strcmp(t->labels.v[i].key, LABEL_NODEPOOL) != 0)
            json_w_kcstr(w, t->labels.v[i].key, t->labels.v[i].value);
    for (uint32_t i = 0; i < l->labels.n; i++)
        if (strcmp(l->labels.v[i].key, LABEL_NODEPOOL) != 0)
            json_w_kcstr(w, l->labels.v[i].key, l->labels.v[i].value);
    json_w_kcstr(w, LABEL_NODEPOOL, pool->obj.meta.name);
    json_w_kcstr(w, key, t->class_ref.name);
    json_w_object_end(w);
}

static bool our_annotation(const char *key)
{
    static const char *const ours[] = {ANNOTATION_NODEPOOL_HASH,
                                       ANNOTATION_NODEPOOL_HASH_VERSION,
                                       ANNOTATION_ALTERNATIVES,
                                       ANNOTATION_LAUNCH_OFFERING,
                                       ANNOTATION_LAUNCH_ATTEMPT,
                                       ANNOTATION_LAUNCH_TOKEN,
                                       ANNOTATION_PODS};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strcmp(key, ours[i]) == 0)
            return true;
    return false;
}

static void annotations(struct json_writer *w, const struct nodepool *pool,
                        const struct plan_launch *l)
{
    const struct labels *t = &pool->template_.annotations;
    CLEANUP(buf_release) struct buf list = BUF_INIT, first = BUF_INIT;
    char hash[17], count[16];

    for (uint32_t i = 0; i < l->n_alternatives && i < LAUNCH_OFFERINGS_MAX; i++)
        buf_printf(&list, "%s%s/%s/%s", i ? "," : "", l->alternatives[i].instance_type,
                   l->alternatives[i].zone, l->alternatives[i].capacity_type);
    buf_printf(&first, "%s/%s/%s", l->alternatives[0].instance_type, l->alternatives[0].zone,
               l->alternatives[0].capacity_type);
    nodepool_hash(pool, hash);
    snprintf(count, sizeof(count), "%u", l->n_pods);
    json_w_kobject(w, "annotations");
    for (uint32_t i = 0; i < t->n; i++)
        if (!our_annotation(t->v[i].key))
            json_w_kcstr(w, t->v[i].key, t->v[i].value);
    json_w_kcstr(w, ANNOTATION_NODEPOOL_HASH, hash);
    json_w_kcstr(w, ANNOTATION_NODEPOOL_HASH_VERSION, NODEPOOL_HASH_VERSION);
    json_w_kcstr(w, ANNOTATION_LAUNCH_OFFERING, first.data);
    json_w_kcstr(w, ANNOTATION_ALTERNATIVES, list.data);
    json_w_kcstr(w, ANNOTATION_PODS, count);
    json_w_object_end(w);
}

static void metadata(struct json_writer *w, const char *name, const struct nodepool *pool,
                     const struct plan_launch *l)
{
    char version[128];

    json_w_kobject(w, "metadata");
    json_w_kcstr(w, "name", name);
    labels(w, pool, l);
    annotations(w, pool, l);
    json_w_karray(w, "finalizers");
    json_w_cstr(w, FINALIZER_TERMINATION);
    json_w_array_end(w);
    json_w_karray(w, "ownerReferences");
    json_w_object(w);
    json_w_kstr(w, "apiVersion", kind_api_version(version, &kind_nodepool));
    json_w_kcstr(w, "kind", kind_nodepool.kind);
    json_w_kcstr(w, "name", pool->obj.meta.name);
    json_w_kcstr(w, "uid", pool->obj.meta.uid);
    json_w_kbool(w, "controller", true);
    json_w_kbool(w, "blockOwnerDeletion", true);
    json_w_object_end(w);
    json_w_array_end(w);
    json_w_object_end(w);
}

static void in_requirement(struct json_writer *w, const char *key, const struct plan_launch *l,
                           size_t offset)
{
    json_w_object(w);
    json_w_kcstr(w, "key", key);
    json_w_kcstr(w, "operator", "In");
    json_w_karray(w, "values");
    for (uint32_t i = 0; i < l->n_alternatives && i < LAUNCH_OFFERINGS_MAX; i++) {
        const char *v =
            *(const char *const *)(const void *)((const char *)&l->alternatives[i] + offset);
        bool had = false;

        for (uint32_t j = 0; j < i && !had; j++)
            had = strcmp(*(const char *const *)(const void *)((const char *)&l->alternatives[j] +
                                                              offset),
                         v) == 0;
        if (!had)
            json_w_cstr(w, v);
    }
    json_w_array_end(w);
    json_w_object_end(w);
}

static bool chosen_key(const char *key)
{
    return strcmp(key, LABEL_INSTANCE_TYPE) == 0 || strcmp(key, LABEL_ZONE) == 0 ||
           strcmp(key, LABEL_CAPACITY_TYPE) == 0;
}

static void requirements(struct json_writer *w, const struct nodepool *pool,
                         const struct plan_launch *l)
{
    const struct node_template *t = &pool->template_;

    json_w_karray(w, "requirements");
    in_requirement(w, LABEL_INSTANCE_TYPE, l, offsetof(struct plan_alternative, instance_type));
    in_requirement(w, LABEL_ZONE, l, offsetof(struct plan_alternative, zone));
    in_requirement(w, LABEL_CAPACITY_TYPE, l, offsetof(struct plan_alternative, capacity_type));
    for (uint32_t i = 0; i < t->n_requirements; i++) {
        const struct selector_requirement *r = &t->requirements[i];

        if (chosen_key(r->key))
            continue;
        json_w_object(w);
        json_w_kcstr(w, "key", r->key);
        json_w_kcstr(w, "operator", selector_op_name(r->op));
        if (r->values.n > 0) {
            json_w_karray(w, "values");
            for (uint32_t j = 0; j < r->values.n; j++)
                json_w_cstr(w, r->values.v[j]);
            json_w_array_end(w);
        }
        if (r->min_values > 0)
            json_w_ki64(w, "minValues", r->min_values);
        json_w_object_end(w);
    }
    json_w_array_end(w);
}

static void taints(struct json_writer *w, const char *key, const struct taint *v, uint32_t n)
{
    if (n == 0)
        return;
    json_w_karray(w, key);
    for (uint32_t i = 0; i < n; i++)
        body_taint(w, &v[i]);
    json_w_array_end(w);
}

static void spec(struct json_writer *w, const struct nodepool *pool, const struct plan_launch *l)
{
    const struct node_template *t = &pool->template_;
    char d[40];

    json_w_kobject(w, "spec");
    json_w_kobject(w, "nodeClassRef");
    json_w_kcstr(w, "group", t->class_ref.group);
    json_w_kcstr(w, "kind", t->class_ref.kind);
    json_w_kcstr(w, "name", t->class_ref.name);
    json_w_object_end(w);
    requirements(w, pool, l);
    json_w_kobject(w, "resources");
    body_resources(w, "requests", &l->requests);
    json_w_object_end(w);
    taints(w, "taints", t->taints, t->n_taints);
    taints(w, "startupTaints", t->startup_taints, t->n_startup_taints);
    json_w_key(w, STR("expireAfter"));
    if (t->expire_after == TIME_NEVER)
        json_w_cstr(w, "Never");
    else
        json_w_str(w, time_format_duration(d, t->expire_after));
    if (t->termination_grace >= 0)
        json_w_kstr(w, "terminationGracePeriod", time_format_duration(d, t->termination_grace));
    json_w_object_end(w);
}

/* ---- Creation ---- */

static void created(struct control *c, const char *name, const struct effect_answer *a)
{
    c->provision->creating--;
    /* The claim may be there although the answer is lost or says that it exists: its pods stay
     * promised, and the promise ends by itself when no claim appears. */
    if (a->err && a->err->code != ERR_EXISTS && a->err->code != ERR_UNKNOWN) {
        log_warn("a nodeclaim could not be created", LOG_CSTR("nodeclaim", name), LOG_ERR(a->err));
        map_each(&c->provision->nominations, it) {
            const struct nomination *n = it->value;

            if (n->claim && strcmp(n->target, name) == 0)
                refuse(c, it->key, c->cluster.generation, a->err->msg);
        }
        c->cluster.generation++;
    }
    if (!a->err)
        claims_touch(c, name);
    provision_poke(c);
}

bool claim_create(struct control *c, const struct pass *p, const struct plan_launch *l)
{
    const struct nodepool *pool = p->world->pools[l->pool].pool;
    CLEANUP(buf_release) struct buf body = BUF_INIT;
    char name[64], version[128];
    struct json_writer w;

    claim_name(name, c, p, l);
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_kstr(&w, "apiVersion", kind_api_version(version, &kind_nodeclaim));
    json_w_kcstr(&w, "kind", kind_nodeclaim.kind);
    metadata(&w, name, pool, l);
    spec(&w, pool, l);
    json_w_object_end(&w);
    if (!execute_create(c, CACHE_NODECLAIM, name, buf_view(&body), created))
        return false;
    c->provision->creating++;
    for (uint32_t i = 0; i < l->n_pods; i++)
        promise_make(c, p->world->pods[l->pods[i]].key, name, true);
    control_count(c->metric.claims_created, "provisioned", l->node_pool, NULL);
    return true;
}
