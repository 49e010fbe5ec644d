/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The YAML inside annotations: triggers, behavior, fallback, modifiers, auth, a whole spec. */
#include "base/num.h"
#include "base/yml.h"
#include "scalers/annotations_internal.h"

/* ---- Helpers ---- */

/* The text of a scalar as it was written; STR_NONE for maps and lists. */
static struct str scalar_text(const struct json *j)
{
    if (j->type == JSON_BOOL)
        return j->text.p && j->text.len ? j->text : j->boolean ? STR("true") : STR("false");
    return json_text(j);
}

static bool is_absent(const struct json *j)
{
    return !j || j->type == JSON_NULL;
}

/* Every member must be one of `known` ("a|b|c"). */
static void check_members(struct annotations_reader *r, const struct json *j, const char *what,
                          const char *known)
{
    for (size_t i = 0; i < j->n; i++) {
        const struct json_member *m = &j->members[i];
        struct str rest = str_from(known), one, best = STR_NONE;
        unsigned least = 4;
        bool found = false;
        while (!found && str_split(&rest, '|', &one)) {
            found = str_eq(one, m->key);
            unsigned d = str_distance(one, m->key, least);
            if (d < least) {
                least = d;
                best = one;
            }
        }
        if (found)
            continue;
        if (best.p)
            problem(r, false, m->pos, m->key, "unknown key in %s; did you mean %.*s?", what,
                    STR_ARG(best));
        else
            problem(r, false, m->pos, m->key, "unknown key in %s; known are %s", what, known);
    }
}

static bool expect(struct annotations_reader *r, const struct json *j, enum json_type type,
                   const char *what)
{
    if (j->type == type)
        return true;
    problem(r, false, j->pos, scalar_text(j), "%s must be %s, not %s", what,
            type == JSON_OBJECT ? "a map" : "a list", json_type_name(j->type));
    return false;
}

/* A whole number member; absent leaves *ret alone. */
static void member_count(struct annotations_reader *r, const struct json *j, const char *key,
                         int64_t min, int64_t max, int64_t *ret)
{
    const struct json *v = json_get(j, key);
    if (is_absent(v))
        return;
    int64_t n;
    struct err err = ERR_INIT;
    if (num_parse_range(scalar_text(v), min, max, &n, &err) < 0)
        problem(r, false, v->pos, scalar_text(v), "%s must be a whole number of %lld to %lld", key,
                (long long)min, (long long)max);
    else
        *ret = n;
}

static void member_seconds(struct annotations_reader *r, const struct json *j, const char *key,
                           int64_t min, int64_t *ret)
{
    const struct json *v = json_get(j, key);
    if (!is_absent(v))
        read_seconds(r, scalar_text(v), v->pos, min, ret);
}

static int member_choice(struct annotations_reader *r, const struct json *j, const char *key,
                         const char *choices)
{
    const struct json *v = json_get(j, key);
    return is_absent(v) ? -1 : read_choice(r, scalar_text(v), v->pos, choices);
}

/* Text member in the arena, or NULL. */
static const char *member_text(struct annotations_reader *r, const struct json *j, const char *key)
{
    const struct json *v = json_get(j, key);
    if (is_absent(v))
        return NULL;
    struct str text = scalar_text(v);
    if (!text.p) {
        problem(r, false, v->pos, STR_NONE, "%s must be text", key);
        return NULL;
    }
    return text.len ? arena_cstr(&r->out->arena, text) : NULL;
}

static void member_bool(struct annotations_reader *r, const struct json *j, const char *key,
                        bool *ret)
{
    const struct json *v = json_get(j, key);
    struct err err = ERR_INIT;
    if (!is_absent(v) && num_parse_bool(scalar_text(v), ret, &err) < 0)
        problem(r, false, v->pos, scalar_text(v), "%s must be true or false", key);
}

/* ---- Triggers ---- */

static bool ends_with_nocase(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq_nocase(str_sub(s, s.len - suffix.len, s.len), suffix);
}

/* A parameter whose value would be a secret in the open. */
static bool holds_secret(struct str key, struct str value)
{
    static const struct str suffixes[] = {
        STR_INIT("password"),     STR_INIT("passphrase"), STR_INIT("secret"),
        STR_INIT("token"),        STR_INIT("apiKey"),     STR_INIT("secretAccessKey"),
        STR_INIT("secretKey"),    STR_INIT("privateKey"), STR_INIT("keyPassword"),
        STR_INIT("clientSecret"), STR_INIT("accountKey"), STR_INIT("passwd"),
    };
    if (ends_with_nocase(key, STR("FromEnv")))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (ends_with_nocase(key, suffixes[i]))
            return true;
    if (str_find(value, STR("-----BEGIN "), 0) != SIZE_MAX &&
        str_find(value, STR("PRIVATE KEY"), 0) != SIZE_MAX)
        return true;
    /* scheme://user:password@host */
    size_t scheme = str_find(value, STR("://"), 0);
    if (scheme == SIZE_MAX)
        return false;
    size_t slash = str_find_char(value, '/', scheme + 3);
    struct str authority = str_sub(value, scheme + 3, MIN(slash, value.len));
    size_t at = str_find_char(authority, '@', 0), colon = str_find_char(authority, ':', 0);
    return at != SIZE_MAX && colon < at && at > colon + 1;
}

static bool known_parameter(const struct option *table, struct str key)
{
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++) {
        struct str name = str_from(o->name);
        if (str_eq(name, key))
            return true;
        if (str_has_suffix(key, STR("FromEnv")) &&
            str_eq(name, str_sub(key, 0, key.len - strlen("FromEnv"))))
            return true;
    }
    return false;
}

static const struct json *read_metadata(struct annotations_reader *r, const struct json *j,
                                        const struct option *table)
{
    struct arena *arena = &r->out->arena;
    struct json *out = json_new_object(arena);
    if (is_absent(j) || !expect(r, j, JSON_OBJECT, "metadata"))
        return out;
    for (size_t i = 0; i < j->n; i++) {
        const struct json_member *m = &j->members[i];
        if (is_absent(m->value))
            continue;
        struct str text = scalar_text(m->value);
        if (!text.p) {
            problem(r, false, m->value->pos, m->key, "a value of metadata must be a scalar, not %s",
                    json_type_name(m->value->type));
            continue;
        }
        if (text.len && holds_secret(m->key, text)) {
            problem(r, false, m->pos, m->key,
                    "holds a secret in the open; name it through authenticationRef or %.*sFromEnv",
                    STR_ARG(m->key));
            continue;
        }
        if (table && !known_parameter(table, m->key)) {
            const char *near = schema_nearest(table, m->key);
            problem(r, true, m->pos, m->key,
                    near ? "unknown parameter; did you mean %s?" : "unknown parameter%s",
                    near ? near : "");
        }
        struct json *value = json_new_string(arena, text);
        if (value && out) {
            value->pos = m->value->pos;
            json_object_set(arena, out, m->key, value);
        }
    }
    return out;
}

/* Each value against its option, so that a lint sees what opening the trigger would. */
static void check_values(struct annotations_reader *r, const struct option *table,
                         const struct trigger *t)
{
    struct arena *arena = &r->out->arena;
    size_t bytes = 0;
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++)
        bytes = MAX(bytes, o->offset + 16);
    void *scratch = arena_alloc(arena, bytes);
    for (const struct option *o = table; scratch && o->kind != OPTION_KIND_END; o++) {
        const struct json *v = json_get(t->metadata, o->name);
        char env[128];
        snprintf(env, sizeof(env), "%.100sFromEnv", o->name);
        struct str text = str_trim(json_text(v));
        struct err err = ERR_INIT;
        if (text.len && schema_set(o, text, arena, scratch, &err) < 0)
            problem(r, false, v->pos, text, "%s: %s", o->name, err.msg);
        else if (!text.len && o->required && !json_get(t->metadata, env) && !t->auth_name)
            problem(r, false, t->pos, STR_NONE, "a %s trigger needs %s", t->type, o->name);
    }
}

static void read_auth_ref(struct annotations_reader *r, const struct json *j, struct trigger *t)
{
    if (is_absent(j) || !expect(r, j, JSON_OBJECT, "authenticationRef"))
        return;
    check_members(r, j, "authenticationRef", "name|kind");
    t->auth_name = member_text(r, j, "name");
    t->auth_kind = member_text(r, j, "kind");
    if (!t->auth_name)
        problem(r, false, j->pos, STR_NONE, "authenticationRef needs a name");
    const struct json *kind = json_get(j, "kind");
    if (t->auth_kind)
        read_choice(r, str_from(t->auth_kind), kind->pos,
                    "TriggerAuthentication|ClusterTriggerAuthentication|Secret");
}

static void read_trigger(struct annotations_reader *r, const struct json *j, struct trigger *t)
{
    *t = (struct trigger){.pos = j->pos};
    if (!expect(r, j, JSON_OBJECT, "a trigger"))
        return;
    check_members(r, j, "a trigger",
                  "type|metadata|name|metricType|useCachedMetrics|authenticationRef");
    t->type = member_text(r, j, "type");
    t->name = member_text(r, j, "name");
    const struct option *table = NULL;
    if (!t->type)
        problem(r, false, j->pos, STR_NONE, "a trigger needs a type");
    else if (r->schema && !(table = r->schema(t->type)))
        problem(r, true, json_get(j, "type")->pos, str_from(t->type),
                "no such trigger type; the other triggers run");
    int metric = member_choice(r, j, "metricType", "AverageValue|Value|Utilization");
    t->metric = metric == 1 ? DECIDE_VALUE : DECIDE_AVERAGE_VALUE;
    t->utilization = metric == 2;
    if (t->utilization && t->type && strcmp(t->type, "cpu") != 0 && strcmp(t->type, "memory") != 0)
        problem(r, false, json_get(j, "metricType")->pos, STR("Utilization"),
                "is only for cpu and memory triggers");
    member_bool(r, j, "useCachedMetrics", &t->use_cached_metrics);
    read_auth_ref(r, json_get(j, "authenticationRef"), t);
    t->metadata = read_metadata(r, json_get(j, "metadata"), table);
    if (table)
        check_values(r, table, t);
}

static void check_names(struct annotations_reader *r)
{
    struct annotations *a = r->out;
    for (size_t i = 0; i < a->n_triggers; i++)
        for (size_t k = 0; a->triggers[i].name && k < i; k++)
            if (a->triggers[k].name && !strcmp(a->triggers[i].name, a->triggers[k].name))
                problem(r, false, a->triggers[i].pos, str_from(a->triggers[i].name),
                        "two triggers have this name");
}

static void read_triggers(struct annotations_reader *r, const struct json *j)
{
    struct annotations *a = r->out;
    const struct json *inner = j->type == JSON_OBJECT ? json_get(j, "triggers") : NULL;
    if (inner) {
        check_members(r, j, "the map around triggers", "triggers");
        j = inner;
    }
    const struct json *single[] = {j};
    size_t n = 1;
    const struct json *const *items = single;
    if (j->type == JSON_ARRAY) {
        n = j->n;
        items = (const struct json *const *)j->items;
    } else if (j->type != JSON_OBJECT) {
        expect(r, j, JSON_ARRAY, "triggers");
        return;
    }
    if (!n || n > ANNOTATION_TRIGGERS_MAX) {
        problem(r, false, j->pos, STR_NONE, "needs 1 to %d triggers, not %zu",
                ANNOTATION_TRIGGERS_MAX, n);
        return;
    }
    a->triggers = ARENA_NEW_ARRAY(&a->arena, struct trigger, n);
    for (size_t i = 0; a->triggers && i < n; i++)
        read_trigger(r, items[i], &a->triggers[a->n_triggers++]);
    check_names(r);
}

/* ---- behavior ---- */

static void read_policy(struct annotations_reader *r, const struct json *j,
                        struct decide_rules *rules)
{
    if (!expect(r, j, JSON_OBJECT, "a policy"))
        return;
    check_members(r, j, "a policy", "type|value|periodSeconds");
    struct decide_policy p = {0};
    int type = member_choice(r, j, "type", "Pods|Percent");
    p.percent = type == 1;
    int64_t seconds = 0;
    member_count(r, j, "value", 1, INT32_MAX, &p.value);
    member_count(r, j, "periodSeconds", 1, 1800, &seconds);
    p.period = seconds * NS_PER_S;
    if (is_absent(json_get(j, "type")) || is_absent(json_get(j, "value")) ||
        is_absent(json_get(j, "periodSeconds")))
        problem(r, false, j->pos, STR_NONE, "a policy needs type, value and periodSeconds");
    rules->policies[rules->n_policies++] = p;
}

static void read_rules(struct annotations_reader *r, const struct json *j, const char *what,
                       struct decide_rules *rules)
{
    if (is_absent(j) || !expect(r, j, JSON_OBJECT, what))
        return;
    check_members(r, j, what, "policies|selectPolicy|stabilizationWindowSeconds|tolerance");
    rules->given = true;
    int64_t window = rules->window / NS_PER_S;
    member_count(r, j, "stabilizationWindowSeconds", 0, 3600, &window);
    rules->window = window * NS_PER_S;
    int choice = member_choice(r, j, "selectPolicy", "Max|Min|Disabled");
    if (choice >= 0)
        rules->select = (enum decide_select)choice;
    const struct json *tolerance = json_get(j, "tolerance");
    struct err err = ERR_INIT;
    if (!is_absent(tolerance) &&
        (num_parse_fixed(scalar_text(tolerance), 6, &rules->tolerance, &err) < 0 ||
         rules->tolerance < 0 || rules->tolerance > INT32_MAX))
        problem(r, false, tolerance->pos, scalar_text(tolerance),
                "tolerance must be a decimal number such as 0.1");
    const struct json *policies = json_get(j, "policies");
    if (is_absent(policies) || !expect(r, policies, JSON_ARRAY, "policies") || !policies->n)
        return;
    if (policies->n > DECIDE_POLICIES_MAX) {
        problem(r, false, policies->pos, STR_NONE, "at most %d policies", DECIDE_POLICIES_MAX);
        return;
    }
    rules->n_policies = 0;
    for (size_t i = 0; i < policies->n; i++)
        read_policy(r, policies->items[i], rules);
}

static void read_behavior(struct annotations_reader *r, const struct json *j)
{
    if (!expect(r, j, JSON_OBJECT, "behavior"))
        return;
    check_members(r, j, "behavior", "scaleUp|scaleDown");
    struct decide_config *d = &r->out->decide;
    read_rules(r, json_get(j, "scaleUp"), "scaleUp", &d->up);
    read_rules(r, json_get(j, "scaleDown"), "scaleDown", &d->down);
    d->has_behavior = d->up.given || d->down.given;
}

/* ---- fallback, modifiers, auth ---- */

static void read_fallback(struct annotations_reader *r, const struct json *j)
{
    if (!expect(r, j, JSON_OBJECT, "fallback"))
        return;
    struct decide_config *d = &r->out->decide;
    check_members(r, j, "fallback", "failureThreshold|replicas|behavior");
    if (is_absent(json_get(j, "failureThreshold")) || is_absent(json_get(j, "replicas")))
        problem(r, false, j->pos, STR_NONE, "fallback needs failureThreshold and replicas");
    member_count(r, j, "failureThreshold", 0, INT32_MAX, &d->fallback_threshold);
    member_count(r, j, "replicas", 0, INT32_MAX, &d->fallback_replicas);
    int b = member_choice(
        r, j, "behavior",
        "static|currentReplicas|currentReplicasIfHigher|currentReplicasIfLower|scalingModifiers");
    if (b == 4)
        problem(r, false, json_get(j, "behavior")->pos, STR("scalingModifiers"),
                "needs a formula of scaling modifiers");
    else if (b >= 0)
        d->fallback_behavior = (enum decide_fallback_behavior)b;
    d->has_fallback = true;
}

static void read_modifiers(struct annotations_reader *r, const struct json *j)
{
    if (!expect(r, j, JSON_OBJECT, "scaling modifiers"))
        return;
    check_members(r, j, "scaling modifiers", "formula|target|activationTarget|metricType");
    struct annotations *a = r->out;
    a->scaling_formula = member_text(r, j, "formula");
    a->scaling_target = member_text(r, j, "target");
    a->scaling_activation = member_text(r, j, "activationTarget");
    a->scaling_value = member_choice(r, j, "metricType", "AverageValue|Value") == 1;
    if (a->scaling_formula && !a->scaling_target)
        problem(r, false, j->pos, STR_NONE, "a formula needs a target");
}

static void read_targets(struct annotations_reader *r, const struct json *j, const char *what,
                         const char *known)
{
    if (is_absent(j) || !expect(r, j, JSON_ARRAY, what))
        return;
    for (size_t i = 0; i < j->n; i++) {
        const struct json *t = j->items[i];
        if (!expect(r, t, JSON_OBJECT, what))
            continue;
        check_members(r, t, what, known);
        if (!json_text(json_get(t, "parameter")).len || !json_text(json_get(t, "name")).len)
            problem(r, false, t->pos, STR_NONE, "%s needs parameter and name", what);
        if (str_find(str_from(known), STR("key"), 0) != SIZE_MAX &&
            !json_text(json_get(t, "key")).len)
            problem(r, false, t->pos, STR_NONE, "%s needs a key", what);
    }
}

static void read_auth(struct annotations_reader *r, const struct json *j)
{
    if (!expect(r, j, JSON_OBJECT, "auth"))
        return;
    for (size_t i = 0; i < j->n; i++) {
        const struct json *spec = j->members[i].value;
        if (!expect(r, spec, JSON_OBJECT, "an entry of auth"))
            continue;
        check_members(r, spec, "an entry of auth", "secretTargetRef|configMapTargetRef|env");
        read_targets(r, json_get(spec, "secretTargetRef"), "secretTargetRef", "parameter|name|key");
        read_targets(r, json_get(spec, "configMapTargetRef"), "configMapTargetRef",
                     "parameter|name|key");
        read_targets(r, json_get(spec, "env"), "env", "parameter|name|containerName");
    }
    r->out->auth = j;
}

/* ---- A whole ScaledObject spec ---- */

static void read_target_ref(struct annotations_reader *r, const struct json *j)
{
    if (is_absent(j) || !expect(r, j, JSON_OBJECT, "scaleTargetRef"))
        return;
    check_members(r, j, "scaleTargetRef", "name|kind|apiVersion|envSourceContainerName");
    r->out->env_container = member_text(r, j, "envSourceContainerName");
    const char *name = member_text(r, j, "name");
    if (name && r->workload_name && strcmp(name, r->workload_name) != 0)
        problem(r, false, json_get(j, "name")->pos, str_from(name),
                "scaleTargetRef names another workload than %s", r->workload_name);
}

static void read_advanced(struct annotations_reader *r, const struct json *j)
{
    if (is_absent(j) || !expect(r, j, JSON_OBJECT, "advanced"))
        return;
    check_members(r, j, "advanced",
                  "restoreToOriginalReplicaCount|horizontalPodAutoscalerConfig|scalingModifiers");
    member_bool(r, j, "restoreToOriginalReplicaCount", &r->out->restore_original);
    const struct json *hpa = json_get(j, "horizontalPodAutoscalerConfig");
    if (!is_absent(hpa) && expect(r, hpa, JSON_OBJECT, "horizontalPodAutoscalerConfig")) {
        check_members(r, hpa, "horizontalPodAutoscalerConfig", "name|behavior");
        if (!is_absent(json_get(hpa, "behavior")))
            read_behavior(r, json_get(hpa, "behavior"));
    }
    const struct json *modifiers = json_get(j, "scalingModifiers");
    if (!is_absent(modifiers) && modifiers->n)
        read_modifiers(r, modifiers);
}

static void read_spec(struct annotations_reader *r, const struct json *j)
{
    if (!expect(r, j, JSON_OBJECT, "a ScaledObject spec"))
        return;
    const struct json *inner = json_get(j, "spec"); /* people paste the parent too */
    if (inner && j->n == 1 && inner->type == JSON_OBJECT)
        j = inner;
    struct annotations *a = r->out;
    struct decide_config *d = &a->decide;
    check_members(r, j, "a ScaledObject spec",
                  "scaleTargetRef|pollingInterval|cooldownPeriod|initialCooldownPeriod|"
                  "idleReplicaCount|minReplicaCount|"
                  "maxReplicaCount|fallback|advanced|triggers");
    read_target_ref(r, json_get(j, "scaleTargetRef"));
    member_seconds(r, j, "pollingInterval", NS_PER_S, &a->polling_interval);
    member_seconds(r, j, "cooldownPeriod", 0, &d->cooldown);
    member_seconds(r, j, "initialCooldownPeriod", 0, &d->initial_cooldown);
    member_count(r, j, "idleReplicaCount", 0, INT32_MAX, &d->idle);
    member_count(r, j, "minReplicaCount", 0, INT32_MAX, &d->min);
    member_count(r, j, "maxReplicaCount", 1, INT32_MAX, &d->max);
    if (!is_absent(json_get(j, "fallback")))
        read_fallback(r, json_get(j, "fallback"));
    read_advanced(r, json_get(j, "advanced"));
    const struct json *triggers = json_get(j, "triggers");
    if (is_absent(triggers))
        problem(r, false, j->pos, STR_NONE, "a ScaledObject spec needs triggers");
    else if (expect(r, triggers, JSON_ARRAY, "triggers"))
        read_triggers(r, triggers);
}

/* ---- One value ---- */

/* "line:column: message" as the YAML reader says it, taken apart. */
static void yaml_problem(struct annotations_reader *r, const struct err *err)
{
    struct str rest = str_from(err->msg), line, column;
    int64_t l, c;
    struct json_pos pos = {0, 0};
    if (str_split(&rest, ':', &line) && str_split(&rest, ':', &column) &&
        num_parse_i64(line, &l, NULL) == 0 && num_parse_i64(column, &c, NULL) == 0) {
        pos = (struct json_pos){(uint32_t)l, (uint32_t)c};
        rest = str_trim(rest);
    } else
        rest = str_from(err->msg);
    problem(r, false, pos, STR_NONE, "%.*s", STR_ARG(rest));
}

void annotations_read_yaml(struct annotations_reader *r, const char *name, struct str text)
{
    static const struct {
        const char *name;
        void (*read)(struct annotations_reader *r, const struct json *j);
    } readers[] = {
        {"triggers", read_triggers}, {"spec", read_spec}, {"behavior", read_behavior},
        {"fallback", read_fallback}, {"auth", read_auth}, {"scaling-modifiers", read_modifiers},
    };
    struct yml_limits limits = {
        .bytes_max = ANNOTATION_BYTES_MAX, .depth_max = ANNOTATION_DEPTH_MAX, .documents_max = 1};
    struct json *root = NULL;
    struct err err = ERR_INIT;
    if (yml_parse_one(&r->out->arena, text, &limits, &root, &err) < 0) {
        yaml_problem(r, &err);
        return;
    }
    if (is_absent(root)) /* empty: as if the key were not there; for triggers, not managed */
        return;
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        if (!strcmp(readers[i].name, name))
            readers[i].read(r, root);
}
