/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Reading annotations: which keys there are, the scalars, and the YAML values one by one. The YAML
 * of triggers, behavior and the rest is in annotations_yaml.c. */
#include "scalers/annotations.h"

#include "base/crypto.h"
#include "base/num.h"
#include "scalers/annotations_internal.h"

#define ARENA_BYTES_MAX (8 * 1024 * 1024)

/* ---- Problems ---- */

void problem(struct annotations_reader *r, bool warning, struct json_pos pos, struct str value,
             const char *fmt, ...)
{
    if (r->problems.len >= ANNOTATIONS_PROBLEMS_MAX)
        return;
    struct buf text = {.cap = 1024};
    va_list args;
    va_start(args, fmt);
    char line[512];
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    buf_cstr(&text, line);
    struct annotation_problem p = {
        .warning = warning,
        .key = r->key,
        .pos = pos,
        .value = value.p ? arena_cstr(&r->out->arena, str_sub(value, 0, 80)) : NULL,
        .message = arena_cstr(&r->out->arena, buf_view(&text)),
    };
    buf_release(&text);
    if (!p.message)
        p.message = "too many problems";
    vec_push(&r->problems, p);
    r->out->n_errors += !warning;
}

void annotation_problem_print(const struct annotation_problem *p, struct buf *out)
{
    buf_cstr(out, p->key);
    if (p->pos.line)
        buf_printf(out, ":%u:%u", p->pos.line, p->pos.column);
    buf_printf(out, ": %s", p->message);
    if (p->value)
        buf_printf(out, " (\"%s\")", p->value);
}

/* ---- Scalars ---- */

static void read_count(struct annotations_reader *r, const char *text, int64_t min, int64_t *ret)
{
    int64_t v;
    struct err err = ERR_INIT;
    if (num_parse_range(str_trim(str_from(text)), min, INT32_MAX, &v, &err) < 0)
        problem(r, false, (struct json_pos){0, 0}, str_from(text),
                "must be a whole number of at least %lld", (long long)min);
    else
        *ret = v;
}

void read_seconds(struct annotations_reader *r, struct str text, struct json_pos pos, int64_t min,
                  int64_t *ret)
{
    int64_t v;
    struct err err = ERR_INIT;
    if (time_parse_seconds(str_trim(text), &v, &err) < 0 || v < min || v > 366 * NS_PER_DAY)
        problem(r, false, pos, text,
                "must be seconds or a duration such as 30s or 5m, at least %lld s, at most a year",
                (long long)(min / NS_PER_S));
    else
        *ret = v;
}

static void read_bool(struct annotations_reader *r, const char *text, bool *ret)
{
    struct err err = ERR_INIT;
    if (num_parse_bool(str_trim(str_from(text)), ret, &err) < 0)
        problem(r, false, (struct json_pos){0, 0}, str_from(text), "must be true or false");
}

/* As KEDA: a pause whose value cannot be read still pauses. */
static void read_pause(struct annotations_reader *r, const char *text, bool *ret)
{
    struct err err = ERR_INIT;
    if (num_parse_bool(str_trim(str_from(text)), ret, &err) == 0)
        return;
    *ret = true;
    problem(r, true, (struct json_pos){0, 0}, str_from(text), "is no boolean and counts as true");
}

/* Index in "a|b|c", or -1 with a problem. */
int read_choice(struct annotations_reader *r, struct str text, struct json_pos pos,
                const char *choices)
{
    struct str rest = str_from(choices), one;
    for (int i = 0; str_split(&rest, '|', &one); i++)
        if (str_eq(one, text))
            return i;
    problem(r, false, pos, text, "must be one of %s", choices);
    return -1;
}

static void scalar_choice(struct annotations_reader *r, const char *text, const char *choices,
                          int *ret)
{
    int i = read_choice(r, str_trim(str_from(text)), (struct json_pos){0, 0}, choices);
    if (i >= 0)
        *ret = i;
}

static void read_scalar(struct annotations_reader *r, const char *name, const char *text)
{
    struct annotations *a = r->out;
    struct decide_config *d = &a->decide;
    struct json_pos none = {0, 0};
    int choice = -1;
    if (!strcmp(name, "min-replicas"))
        read_count(r, text, 0, &d->min);
    else if (!strcmp(name, "max-replicas"))
        read_count(r, text, 1, &d->max);
    else if (!strcmp(name, "idle-replicas"))
        read_count(r, text, 0, &d->idle);
    else if (!strcmp(name, "polling-interval"))
        read_seconds(r, str_from(text), none, NS_PER_S, &a->polling_interval);
    else if (!strcmp(name, "cooldown-period"))
        read_seconds(r, str_from(text), none, 0, &d->cooldown);
    else if (!strcmp(name, "initial-cooldown-period"))
        read_seconds(r, str_from(text), none, 0, &d->initial_cooldown);
    else if (!strcmp(name, "combine")) {
        scalar_choice(r, text, "max|min|sum|all", &choice);
        if (choice >= 0)
            d->combine = (enum decide_combine)choice;
    } else if (!strcmp(name, "class")) {
        scalar_choice(r, text, "weft|keda|none", &choice);
        if (choice >= 0)
            a->class_ = (enum annotation_class)choice;
    } else if (!strcmp(name, "compat")) {
        scalar_choice(r, text, "weft|keda", &choice);
        d->compat_keda = choice == 1;
    } else if (!strcmp(name, "take-over"))
        read_bool(r, text, &a->take_over);
    else if (!strcmp(name, "restore-original"))
        read_bool(r, text, &a->restore_original);
}

static bool read_pause_key(struct annotations_reader *r, const char *name, const char *text)
{
    struct decide_config *d = &r->out->decide;
    if (!strcmp(name, "paused"))
        read_pause(r, text, &d->paused);
    else if (!strcmp(name, "paused-replicas"))
        read_count(r, text, 0, &d->paused_replicas);
    else if (!strcmp(name, "paused-scale-in"))
        read_pause(r, text, &d->paused_in);
    else if (!strcmp(name, "paused-scale-out"))
        read_pause(r, text, &d->paused_out);
    else if (!strcmp(name, "force-activation"))
        read_bool(r, text, &d->force_activation);
    else
        return false;
    return true;
}

/* ---- Keys ---- */

static const struct annotation_doc *find_key(const char *name)
{
    size_t n;
    const struct annotation_doc *t = annotations_table(&n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(t[i].key, name))
            return &t[i];
    return NULL;
}

static void unknown_key(struct annotations_reader *r, const char *name)
{
    size_t n;
    const struct annotation_doc *t = annotations_table(&n);
    const char *best = NULL;
    unsigned least = 4;
    for (size_t i = 0; i < n; i++) {
        unsigned d = str_distance(str_from(name), str_from(t[i].key), least);
        if (d < least) {
            least = d;
            best = t[i].key;
        }
    }
    if (best)
        problem(r, false, (struct json_pos){0, 0}, STR_NONE,
                "unknown annotation; did you mean " ANNOTATION_PREFIX "%s?", best);
    else
        problem(r, false, (struct json_pos){0, 0}, STR_NONE, "unknown annotation");
}

static bool is_yaml_key(const char *name)
{
    static const char *const keys[] = {"triggers",          "spec", "behavior", "fallback",
                                       "scaling-modifiers", "auth"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (!strcmp(keys[i], name))
            return true;
    return false;
}

static void read_keys(struct annotations_reader *r, const struct labels *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        struct str key = str_from(l->v[i].key);
        if (!str_has_prefix(key, STR(ANNOTATION_PREFIX)))
            continue;
        const char *name = l->v[i].key + strlen(ANNOTATION_PREFIX);
        const struct annotation_doc *doc = find_key(name);
        r->key = arena_cstr(&r->out->arena, key);
        if (!r->key)
            return;
        if (!doc)
            unknown_key(r, name);
        else if (doc->scaling && is_yaml_key(name))
            annotations_read_yaml(r, name, str_from(l->v[i].value));
        else if (doc->scaling && !read_pause_key(r, name, l->v[i].value))
            read_scalar(r, name, l->v[i].value);
    }
}

/* KEDA's pause keys, unless ours are there. */
static void read_aliases(struct annotations_reader *r, const struct labels *l)
{
    static const char alias[] = "autoscaling.keda.sh/";
    for (uint32_t i = 0; i < l->n; i++) {
        if (!str_has_prefix(str_from(l->v[i].key), str_from(alias)))
            continue;
        const char *name = l->v[i].key + strlen(alias);
        char ours[128];
        snprintf(ours, sizeof(ours), ANNOTATION_PREFIX "%.100s", name);
        if (labels_has(l, ours))
            continue;
        r->key = arena_cstr(&r->out->arena, str_from(l->v[i].key));
        if (r->key)
            read_pause_key(r, name, l->v[i].value);
    }
}

/* ---- The whole ---- */

/* What contradicts what, once everything is read. */
static void check_together(struct annotations_reader *r, const struct labels *l)
{
    struct annotations *a = r->out;
    const struct decide_config *d = &a->decide;
    bool spec = labels_has(l, ANNOTATION_PREFIX "spec");
    const char *source = spec ? ANNOTATION_PREFIX "spec" : ANNOTATION_PREFIX "triggers";
    struct json_pos none = {0, 0};
    if (spec) {
        static const char *const exclusive[] = {"triggers",
                                                "min-replicas",
                                                "max-replicas",
                                                "idle-replicas",
                                                "polling-interval",
                                                "cooldown-period",
                                                "initial-cooldown-period",
                                                "behavior",
                                                "fallback",
                                                "scaling-modifiers"};
        for (size_t i = 0; i < ARRAY_LEN(exclusive); i++) {
            char key[64];
            snprintf(key, sizeof(key), ANNOTATION_PREFIX "%s", exclusive[i]);
            if (!labels_has(l, key))
                continue;
            r->key = arena_cstr(&a->arena, str_from(key));
            problem(r, false, none, STR_NONE,
                    "cannot stand beside " ANNOTATION_PREFIX "spec, which holds it");
        }
    }
    r->key = spec                                              ? source
             : labels_has(l, ANNOTATION_PREFIX "min-replicas") ? ANNOTATION_PREFIX "min-replicas"
                                                               : source;
    if (d->min > d->max)
        problem(r, false, none, STR_NONE, "the least count %lld is above the greatest %lld",
                (long long)d->min, (long long)d->max);
    r->key = spec ? source : ANNOTATION_PREFIX "idle-replicas";
    if (d->idle >= 0 && d->idle >= d->min)
        problem(r, false, none, STR_NONE, "the idle count %lld must be below the least count %lld",
                (long long)d->idle, (long long)d->min);
    r->key = source;
    if (a->scaling_formula)
        problem(r, false, none, str_from(a->scaling_formula),
                "this version evaluates no formula of scaling modifiers; " ANNOTATION_PREFIX
                "combine joins triggers");
}

void annotations_hash(const struct labels *l, char ret[17])
{
    struct buf all = BUF_INIT;
    for (uint32_t i = 0; i < l->n; i++) {
        struct str key = str_from(l->v[i].key);
        if (!str_has_prefix(key, STR(ANNOTATION_PREFIX)) &&
            !str_has_prefix(key, STR("autoscaling.keda.sh/")))
            continue;
        if (str_eq_c(key, ANNOTATION_STATUS))
            continue;
        buf_printf(&all, "%zu:%s%zu:", key.len, l->v[i].key, strlen(l->v[i].value));
        buf_cstr(&all, l->v[i].value);
    }
    crypto_sha256_hex(buf_view(&all), 16, ret);
    buf_release(&all);
}

bool annotations_present(const struct labels *l)
{
    return labels_has(l, ANNOTATION_PREFIX "triggers") || labels_has(l, ANNOTATION_PREFIX "spec");
}

struct annotations *annotations_parse(const struct labels *l, const char *workload_name,
                                      annotations_schema *schema)
{
    struct annotations *a = xcalloc(1, sizeof(*a));
    arena_init(&a->arena, ARENA_BYTES_MAX, 1024);
    decide_config_init(&a->decide);
    bool spec = labels_has(l, ANNOTATION_PREFIX "spec");
    a->polling_interval = (spec ? 30 : 10) * NS_PER_S;
    struct annotations_reader r = {.out = a, .schema = schema, .workload_name = workload_name};
    read_keys(&r, l);
    read_aliases(&r, l);
    check_together(&r, l);
    a->n_problems = r.problems.len;
    a->problems = r.problems.v;
    /* Empty triggers are absent triggers; unreadable ones are there, and wrong. */
    a->managed = annotations_present(l) && (a->n_triggers || a->n_errors) &&
                 a->class_ == ANNOTATION_CLASS_WEFT;
    annotations_hash(l, a->hash);
    return a;
}

void annotations_free(struct annotations *a)
{
    if (!a)
        return;
    arena_release(&a->arena);
    free(a->problems);
    free(a);
}
