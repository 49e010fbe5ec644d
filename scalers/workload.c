/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Which workloads are managed, and with which configuration. */
#include "scalers/workload.h"

#include <assert.h>

#include "scalers/workload_internal.h"

#define PARALLEL 64
#define AT_ONCE_MAX 256

/* ---- One workload ---- */

const struct workload *scaled_workload(const struct scaled *s)
{
    return workload_of(s->object);
}

int64_t scaled_replicas(const struct scaled *s)
{
    return s->known_replicas >= 0 ? s->known_replicas : scaled_workload(s)->replicas;
}

void scaled_end(struct scaled *s)
{
    round_stop(s);
    runs_end(s);
    client_cancel(s->write);
    client_cancel(s->status_write);
    loop_timer_cancel(s->owner->loop, &s->status_timer);
    loop_timer_cancel(s->owner->loop, &s->refresh);
    map_remove(&s->owner->scaled, str_from(s->key));
    if (s->owner->metrics.workloads)
        metric_set(s->owner->metrics.workloads, (double)map_len(&s->owner->scaled));
    annotations_free(s->config);
    object_unref(s->object);
    free(s->status_material);
    free(s->invalid);
    free(s->key);
    free(s);
}

static struct scaled *scaled_begin(struct scalers *owner, struct str key, struct object *o)
{
    struct scaled *s = xcalloc(1, sizeof(*s));
    s->owner = owner;
    s->key = xstr_dup(key);
    s->object = object_ref(o);
    s->kind = o->kind;
    s->known_replicas = s->original = s->write_from = s->write_to = -1;
    map_put(&owner->scaled, key, s);
    if (owner->metrics.workloads)
        metric_set(owner->metrics.workloads, (double)map_len(&owner->scaled));
    tell_status_load(s);
    if (s->original < 0)
        s->original = scaled_workload(s)->replicas;
    return s;
}

/* Why the annotations are not in force, as one text; each fault is an event of its own too. */
static void reject(struct scaled *s, const char *text)
{
    free(s->invalid);
    s->invalid = xstrdup(text);
    if (s->owner->metrics.object_errors) {
        struct str labels[] = {str_from(s->object->meta.namespace_),
                               str_from(s->object->meta.name)};
        metric_add(metric_of(s->owner->metrics.object_errors, labels, 2), 1);
    }
}

static void report_problems(struct scaled *s, const struct annotations *a)
{
    bool rejected = false;
    for (size_t i = 0; i < a->n_problems; i++) {
        const struct annotation_problem *p = &a->problems[i];
        struct buf text = BUF_INIT;
        annotation_problem_print(p, &text);
        tell_event(s, true, p->warning ? "KEDAScalerInfo" : "ScaledObjectCheckFailed", text.data);
        if (!p->warning && !rejected) {
            reject(s, text.data);
            rejected = true;
        }
        buf_release(&text);
    }
}

/* The annotations have changed: use them, or keep what there was and say why. */
static void configure(struct scaled *s, bool at_once)
{
    const struct meta *m = &s->object->meta;
    struct annotations *a = annotations_parse(&m->annotations, m->name, scaler_schema);
    memcpy(s->hash, a->hash, sizeof(s->hash));
    free(s->invalid);
    s->invalid = NULL;
    report_problems(s, a);
    struct err err = ERR_INIT;
    if (a->n_errors) {
        annotations_free(a);
    } else if (runs_replace(s, a, s->config != NULL, &err) < 0) {
        char text[600];
        snprintf(text, sizeof(text), "%s: %s",
                 labels_has(&m->annotations, ANNOTATION_PREFIX "spec") ? ANNOTATION_PREFIX "spec"
                                                                       : ANNOTATION_PREFIX
                     "triggers",
                 err.msg);
        reject(s, text);
        tell_event(s, true, "ScaledObjectCheckFailed", text);
        annotations_free(a);
    } else {
        tell_event(s, false, "ScaledObjectReady", "the triggers are in force");
    }
    if (s->config)
        round_start(s, at_once);
    tell_status(s);
}

/* Our own write is what counts until the informer shows a later version of the spec. */
static void catch_up(struct scaled *s)
{
    if (s->known_replicas >= 0 && s->object->meta.generation >= s->known_generation)
        s->known_replicas = -1;
}

static void refresh(struct scaled *s, struct object *o, bool at_once)
{
    bool first = !s->hash[0];
    struct object *before = s->object;
    s->object = object_ref(o);
    object_unref(before);
    catch_up(s);
    char hash[17];
    annotations_hash(&o->meta.annotations, hash);
    if (first || strcmp(hash, s->hash) != 0)
        configure(s, at_once);
    else if (s->config && o->meta.generation != s->generation)
        runs_resolve_all(s);
    s->generation = o->meta.generation;
}

/* Triggers are gone from a workload that had some. */
static void stop_managing(struct scaled *s)
{
    bool restore = s->config && s->config->restore_original && s->original >= 0 &&
                   !s->owner->options.observe && scaled_replicas(s) != s->original;
    tell_event(s, false, "KEDAScalersStopped", "the triggers were removed");
    if (restore)
        scaled_restore(s);
    else
        scaled_end(s);
}

static struct object *find_object(const struct scalers *s, struct str key)
{
    struct str kind = STR_NONE, namespace_ = STR_NONE, name = STR_NONE, rest = key;
    str_split(&rest, '/', &kind);
    str_split(&rest, '/', &namespace_);
    str_split(&rest, '/', &name);
    const struct informer *i = s->informers[str_eq_c(kind, kind_deployment.kind) ? 0 : 1];
    char namespace_text[256], name_text[256];
    snprintf(namespace_text, sizeof(namespace_text), "%.*s", STR_ARG(namespace_));
    snprintf(name_text, sizeof(name_text), "%.*s", STR_ARG(name));
    return informer_get(i, namespace_text, name_text);
}

static bool wants_management(const struct object *o)
{
    if (o->meta.deletion || !annotations_present(&o->meta.annotations))
        return false;
    const char *class_ = labels_get(&o->meta.annotations, ANNOTATION_PREFIX "class");
    if (class_ && (!strcmp(class_, "keda") || !strcmp(class_, "none")))
        return false;
    const char *spec = labels_get(&o->meta.annotations, ANNOTATION_PREFIX "spec");
    const char *triggers = labels_get(&o->meta.annotations, ANNOTATION_PREFIX "triggers");
    return str_trim(str_from(spec)).len || str_trim(str_from(triggers)).len;
}

static void process(void *arg, struct str key)
{
    struct scalers *s = arg;
    struct scaled *w = map_get(&s->scaled, key);
    struct object *o = find_object(s, key);
    if (s->running && o && wants_management(o)) {
        if (!w)
            w = scaled_begin(s, key, o);
        /* The many that a new leader finds wait for their phase, so that nobody is asked by all at
         * once. */
        refresh(w, o,
                map_len(&s->scaled) <= AT_ONCE_MAX ||
                    loop_now(s->loop) - s->running_since > NS_PER_S);
    } else if (w && s->running && o && !o->meta.deletion) {
        struct object *before = w->object;
        w->object = object_ref(o);
        object_unref(before);
        stop_managing(w);
    } else if (w)
        scaled_end(w);
    queue_done(s->queue, key, true);
}

/* ---- The controller ---- */

static void key_of(const struct object *o, char out[600])
{
    snprintf(out, 600, "%s/%.253s/%.253s", o->kind->kind, o->meta.namespace_, o->meta.name);
}

static void object_changed(void *arg, struct object *before, struct object *after)
{
    struct scalers *s = arg;
    const struct object *o = after ? after : before;
    char key[600];
    key_of(o, key);
    if (s->running && (map_has(&s->scaled, str_from(key)) || (after && wants_management(after))))
        queue_add(s->queue, str_from(key));
}

static void rivals_changed(void *arg, const char *namespace_)
{
    struct scalers *s = arg;
    map_each(&s->scaled, e) {
        struct scaled *w = e->value;
        if (!strcmp(w->object->meta.namespace_, namespace_) && w->config && !w->polling)
            scaled_decide(w);
    }
}

static void run(struct scalers *s)
{
    if (s->running || !s->leading || !scalers_synced(s))
        return;
    s->running = true;
    s->running_since = loop_now(s->loop);
    for (size_t i = 0; i < ARRAY_LEN(s->informers); i++) {
        size_t cursor = 0;
        struct object *o;
        while ((o = informer_next(s->informers[i], &cursor)))
            object_changed(s, NULL, o);
    }
}

static void synced(void *arg)
{
    run(arg);
}

static void stop(struct scalers *s)
{
    s->running = false;
    struct map_entry *e;
    while ((e = map_at(&s->scaled, 0)))
        scaled_end(e->value);
    rivals_forget(s->rivals);
}

void scalers_lead(struct scalers *s, bool leading)
{
    s->leading = leading;
    if (leading)
        run(s);
    else if (s->running)
        stop(s);
}

bool scalers_synced(const struct scalers *s)
{
    return informer_synced(s->informers[0]) && informer_synced(s->informers[1]);
}

size_t scalers_count(const struct scalers *s)
{
    return map_len(&s->scaled);
}

bool scalers_describe(const struct scalers *s, const char *kind, const char *namespace_,
                      const char *name, struct buf *out)
{
    char key[600];
    snprintf(key, sizeof(key), "%s/%.253s/%.253s", kind, namespace_, name);
    const struct scaled *w = map_get(&s->scaled, str_from(key));
    if (w)
        scaled_print(w, out, false);
    return w != NULL;
}

struct scalers *scalers_new(struct client *c, struct recorder *recorder,
                            const struct scalers_options *o)
{
    static const struct kind *const kinds[] = {&kind_deployment, &kind_statefulset};
    struct scalers *s = xcalloc(1, sizeof(*s));
    s->client = c;
    s->loop = client_loop(c);
    s->recorder = recorder;
    s->options = *o;
    struct informer *shared[] = {o->deployments, o->statefulsets};
    struct informer_options options = {.namespace_ = o->namespace_};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        s->owns[i] = !shared[i];
        s->informers[i] = shared[i] ? shared[i] : informer_new(c, kinds[i], &options);
        informer_on_change(s->informers[i], object_changed, s);
        informer_on_sync(s->informers[i], synced, s);
    }
    s->queue = queue_new(s->loop, o->seed, PARALLEL, process, s);
    s->auth = auth_store_new(c);
    s->rivals = rivals_new(c, rivals_changed, s);
    s->host = (struct scaler_host){.loop = s->loop,
                                   .http = o->http,
                                   .worker = o->worker,
                                   .metrics = o->metrics,
                                   .seed = o->seed};
    if (o->metrics)
        tell_metrics_init(s);
    return s;
}

void scalers_start(struct scalers *s)
{
    for (size_t i = 0; i < ARRAY_LEN(s->informers); i++)
        if (s->owns[i])
            informer_start(s->informers[i]);
}

void scalers_free(struct scalers *s)
{
    if (!s)
        return;
    stop(s);
    map_release(&s->scaled, NULL);
    rivals_free(s->rivals);
    auth_store_free(s->auth);
    queue_free(s->queue);
    for (size_t i = 0; i < ARRAY_LEN(s->informers); i++)
        if (s->owns[i])
            informer_free(s->informers[i]);
    scaler_host_release(&s->host);
    free(s);
}
