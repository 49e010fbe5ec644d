/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The rules of a NodePool (reference: the CRD in deploy/crds, and what its schema cannot say), and
 * the hash that drift compares. */

#include "base/buf.h"
#include "base/cron.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/num.h"
#include "kube/api/nodepool.h"

#define REQUIREMENTS_MAX 100
#define LABELS_MAX 100
#define BUDGETS_MAX 50

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A label value or the name part of a key: up to 63 of [-A-Za-z0-9_.], alphanumeric at both ends.
 */
static bool is_name(struct str s, bool may_be_empty)
{
    if (s.len == 0)
        return may_be_empty;
    if (s.len > 63 || !is_alnum(s.p[0]) || !is_alnum(s.p[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return true;
}

/* A DNS subdomain: up to 253 of [-a-z0-9.], alphanumeric around the dots. */
static bool is_domain(struct str s)
{
    if (s.len == 0 || s.len > 253)
        return false;
    struct str rest = s, part;
    while (str_split(&rest, '.', &part)) {
        if (part.len == 0 || !is_alnum(part.p[0]) || !is_alnum(part.p[part.len - 1]))
            return false;
        for (size_t i = 0; i < part.len; i++)
            if (!(part.p[i] >= 'a' && part.p[i] <= 'z') &&
                !(part.p[i] >= '0' && part.p[i] <= '9') && part.p[i] != '-')
                return false;
    }
    return s.p[s.len - 1] != '.';
}

static bool is_qualified(const char *key)
{
    struct str s = str_from(key);
    size_t slash = str_find_char(s, '/', 0);
    if (slash == SIZE_MAX)
        return is_name(s, false);
    return is_domain(str_sub(s, 0, slash)) && is_name(str_sub(s, slash + 1, s.len), false);
}

static bool in_domain(struct str domain, const char *of)
{
    struct str suffix = str_from(of);
    return str_eq(domain, suffix) || (domain.len > suffix.len && str_has_suffix(domain, suffix) &&
                                      domain.p[domain.len - suffix.len - 1] == '.');
}

/* Labels of these domains are set by Kubernetes or by weft; some keys are free all the same. */
static bool is_restricted(const char *key)
{
    static const char *const free_keys[] = {LABEL_CAPACITY_TYPE,
                                            LABEL_INSTANCE_TYPE,
                                            LABEL_ZONE,
                                            LABEL_REGION,
                                            LABEL_ARCH,
                                            LABEL_OS,
                                            "node.kubernetes.io/windows-build",
                                            "beta.kubernetes.io/instance-type",
                                            "beta.kubernetes.io/os",
                                            "beta.kubernetes.io/arch",
                                            "failure-domain.beta.kubernetes.io/zone",
                                            "failure-domain.beta.kubernetes.io/region"};
    for (size_t i = 0; i < ARRAY_LEN(free_keys); i++)
        if (strcmp(key, free_keys[i]) == 0)
            return false;
    struct str s = str_from(key);
    size_t slash = str_find_char(s, '/', 0);
    if (slash == SIZE_MAX)
        return false;
    struct str domain = str_sub(s, 0, slash);
    if (in_domain(domain, "node.kubernetes.io") ||
        in_domain(domain, "node-restriction.kubernetes.io") || in_domain(domain, "kops.k8s.io"))
        return false;
    return in_domain(domain, "kubernetes.io") || in_domain(domain, "k8s.io") ||
           in_domain(domain, "karpenter.sh");
}

static int check_labels(const struct labels *l, struct err *err)
{
    static const char path[] = "spec.template.metadata.labels";
    if (l->n > LABELS_MAX)
        return err_set(err, ERR_INVALID, "%s: %u labels: at most %d are taken", path, l->n,
                       LABELS_MAX);
    for (uint32_t i = 0; i < l->n; i++) {
        if (!is_qualified(l->v[i].key))
            return err_set(err, ERR_INVALID, "%s: '%.80s': not a label key", path, l->v[i].key);
        if (is_restricted(l->v[i].key))
            return err_set(err, ERR_INVALID, "%s: '%.80s': this label is restricted", path,
                           l->v[i].key);
        if (!is_name(str_from(l->v[i].value), true))
            return err_set(err, ERR_INVALID, "%s.%.80s: '%.80s': not a label value", path,
                           l->v[i].key, l->v[i].value);
    }
    return 0;
}

/* Keys whose values come from a known list: at least one of them must be known. */
static int check_vocabulary(const struct selector_requirement *r, uint32_t i, struct err *err)
{
    static const struct {
        const char *key;
        const char *known[5];
    } vocabularies[] = {
        {LABEL_CAPACITY_TYPE, {"spot", "on-demand", "reserved"}},
        {LABEL_ARCH, {"amd64", "arm64"}},
        {LABEL_OS, {"linux", "windows"}},
    };
    if (r->op != SELECTOR_IN)
        return 0;
    for (size_t v = 0; v < ARRAY_LEN(vocabularies); v++) {
        if (strcmp(vocabularies[v].key, r->key) != 0)
            continue;
        for (size_t k = 0; vocabularies[v].known[k]; k++)
            if (string_list_has(&r->values, vocabularies[v].known[k]))
                return 0;
        return err_set(err, ERR_INVALID,
                       "spec.template.spec.requirements[%u].values: '%.80s': no known value of %s",
                       i, r->values.n ? r->values.v[0] : "", r->key);
    }
    return 0;
}

static int check_operator(const struct selector_requirement *r, uint32_t i, struct err *err)
{
    static const char path[] = "spec.template.spec.requirements";
    bool set = r->op == SELECTOR_IN || r->op == SELECTOR_NOT_IN;
    bool bound = r->op == SELECTOR_GT || r->op == SELECTOR_LT || r->op == SELECTOR_GTE ||
                 r->op == SELECTOR_LTE;
    int64_t number;
    if (r->op == SELECTOR_IN && r->values.n == 0)
        return err_set(err, ERR_INVALID, "%s[%u].values: operator In needs a value", path, i);
    if (!set && !bound && r->values.n)
        return err_set(err, ERR_INVALID, "%s[%u].values: operator %s takes no values", path, i,
                       selector_op_name(r->op));
    if (bound && (r->values.n != 1 ||
                  num_parse_range(str_from(r->values.v[0]), 0, INT64_MAX, &number, NULL) < 0))
        return err_set(err, ERR_INVALID,
                       "%s[%u].values: operator %s needs one non-negative integer", path, i,
                       selector_op_name(r->op));
    for (uint32_t k = 0; k < r->values.n; k++)
        if (!is_name(str_from(r->values.v[k]), true))
            return err_set(err, ERR_INVALID, "%s[%u].values[%u]: '%.80s': not a label value", path,
                           i, k, r->values.v[k]);
    if (r->min_values < 0 || r->min_values > 50)
        return err_set(err, ERR_INVALID, "%s[%u].minValues: %d: between 1 and 50", path, i,
                       r->min_values);
    if (r->op == SELECTOR_IN && (uint32_t)r->min_values > r->values.n)
        return err_set(err, ERR_INVALID, "%s[%u].minValues: %d: more than the %u values", path, i,
                       r->min_values, r->values.n);
    return 0;
}

static int check_requirements(const struct node_template *t, struct err *err)
{
    static const char path[] = "spec.template.spec.requirements";
    if (t->n_requirements > REQUIREMENTS_MAX)
        return err_set(err, ERR_INVALID, "%s: %u entries: at most %d are taken", path,
                       t->n_requirements, REQUIREMENTS_MAX);
    for (uint32_t i = 0; i < t->n_requirements; i++) {
        const struct selector_requirement *r = &t->requirements[i];
        if (!r->key || strlen(r->key) > 316 || !is_qualified(r->key))
            return err_set(err, ERR_INVALID, "%s[%u].key: '%.80s': not a label key", path, i,
                           r->key ? r->key : "");
        if (is_restricted(r->key) || strcmp(r->key, LABEL_HOSTNAME) == 0)
            return err_set(err, ERR_INVALID, "%s[%u].key: '%.80s': this label is restricted", path,
                           i, r->key);
        if (check_operator(r, i, err) < 0 || check_vocabulary(r, i, err) < 0)
            return -1;
    }
    return 0;
}

static int check_taint_list(const char *path, const struct taint *v, uint32_t n, struct err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!v[i].key || !is_qualified(v[i].key))
            return err_set(err, ERR_INVALID, "%s[%u].key: '%.80s': not a taint key", path, i,
                           v[i].key ? v[i].key : "");
        if (v[i].value && !is_name(str_from(v[i].value), true))
            return err_set(err, ERR_INVALID, "%s[%u].value: '%.80s': not a taint value", path, i,
                           v[i].value);
        if (v[i].effect == TAINT_ANY_EFFECT)
            return err_set(err, ERR_INVALID, "%s[%u].effect: missing", path, i);
    }
    return 0;
}

static int check_taints(const struct node_template *t, struct err *err)
{
    if (check_taint_list("spec.template.spec.taints", t->taints, t->n_taints, err) < 0 ||
        check_taint_list("spec.template.spec.startupTaints", t->startup_taints, t->n_startup_taints,
                         err) < 0)
        return -1;
    uint32_t n = t->n_taints + t->n_startup_taints;
    for (uint32_t i = 0; i < n; i++) {
        const struct taint *a =
            i < t->n_taints ? &t->taints[i] : &t->startup_taints[i - t->n_taints];
        for (uint32_t k = i + 1; k < n; k++) {
            const struct taint *b =
                k < t->n_taints ? &t->taints[k] : &t->startup_taints[k - t->n_taints];
            if (strcmp(a->key, b->key) == 0 && a->effect == b->effect)
                return err_set(err, ERR_INVALID,
                               "spec.template.spec.taints: '%.80s:%s': stands twice", a->key,
                               taint_effect_name(a->effect));
        }
    }
    return 0;
}

static int check_budget_nodes(const char *nodes, uint32_t i, struct err *err)
{
    struct str s = str_from(nodes);
    int64_t v;
    bool percent = s.len && s.p[s.len - 1] == '%';
    if (nodes &&
        num_parse_range(str_sub(s, 0, s.len - percent), 0, percent ? 100 : INT32_MAX, &v, NULL) ==
            0 &&
        s.p[0] != '+')
        return 0;
    return err_set(err, ERR_INVALID,
                   "spec.disruption.budgets[%u].nodes: '%.40s': a count or 0%% to 100%%", i,
                   nodes ? nodes : "");
}

static int check_budgets(const struct nodepool *p, struct err *err)
{
    if (p->n_budgets > BUDGETS_MAX)
        return err_set(err, ERR_INVALID,
                       "spec.disruption.budgets: %u entries: at most %d are taken", p->n_budgets,
                       BUDGETS_MAX);
    for (uint32_t i = 0; i < p->n_budgets; i++) {
        const struct disruption_budget *b = &p->budgets[i];
        struct cron schedule;
        struct err why = ERR_INIT;
        if (check_budget_nodes(b->nodes, i, err) < 0)
            return -1;
        if ((b->schedule != NULL) != (b->duration != 0))
            return err_set(err, ERR_INVALID,
                           "spec.disruption.budgets[%u]: schedule and duration must stand together",
                           i);
        if (b->schedule && cron_parse(str_from(b->schedule), &schedule, &why) < 0)
            return err_set(err, ERR_INVALID,
                           "spec.disruption.budgets[%u].schedule: '%.60s': %.200s", i, b->schedule,
                           why.msg);
        if (b->duration < 0 || b->duration == TIME_NEVER || b->duration % NS_PER_MIN != 0)
            return err_set(err, ERR_INVALID,
                           "spec.disruption.budgets[%u].duration: hours and minutes only", i);
    }
    return 0;
}

static int check_template(const struct node_template *t, struct err *err)
{
    const struct node_class_ref *r = &t->class_ref;
    static const char path[] = "spec.template.spec.nodeClassRef";
    if (!r->group || !*r->group || strchr(r->group, '/'))
        return err_set(err, ERR_INVALID, "%s.group: '%.80s': an API group without a version", path,
                       r->group ? r->group : "");
    if (!r->kind || !*r->kind)
        return err_set(err, ERR_INVALID, "%s.kind: missing", path);
    if (!r->name || !*r->name)
        return err_set(err, ERR_INVALID, "%s.name: missing", path);
    if (check_labels(&t->labels, err) < 0 || check_requirements(t, err) < 0 ||
        check_taints(t, err) < 0)
        return -1;
    if (t->expire_after <= 0)
        return err_set(err, ERR_INVALID,
                       "spec.template.spec.expireAfter: a duration above 0, or Never");
    if (t->termination_grace == TIME_NEVER || t->termination_grace < -1)
        return err_set(err, ERR_INVALID, "spec.template.spec.terminationGracePeriod: a duration");
    return 0;
}

int nodepool_validate(const struct nodepool *p, struct err *err)
{
    if (p->invalid)
        return err_set(err, ERR_INVALID, "%s", p->invalid);
    if (check_template(&p->template_, err) < 0)
        return -1;
    if (p->consolidate_after < 0)
        return err_set(err, ERR_INVALID, "spec.disruption.consolidateAfter: a duration, or Never");
    if (check_budgets(p, err) < 0)
        return -1;
    for (uint32_t i = 0; i < p->limits.n; i++)
        if (p->limits.v[i].amount < 0)
            return err_set(err, ERR_INVALID, "spec.limits.%.80s: below 0", p->limits.v[i].name);
    if (p->weight < 0 || p->weight > 100)
        return err_set(err, ERR_INVALID, "spec.weight: %d: between 1 and 100", p->weight);
    if (p->replicas < -1)
        return err_set(err, ERR_INVALID, "spec.replicas: %lld: at least 0", (long long)p->replicas);
    if (p->replicas >= 0 && p->weight)
        return err_set(err, ERR_INVALID, "spec.weight: not on a static pool");
    if (p->replicas >= 0 &&
        (p->limits.n > 1 || (p->limits.n == 1 && strcmp(p->limits.v[0].name, "nodes") != 0)))
        return err_set(err, ERR_INVALID, "spec.limits: only nodes on a static pool");
    return 0;
}

/* ---- Hash ---- */

static int taint_order(const void *a, const void *b)
{
    const struct taint *x = a, *y = b;
    int c = strcmp(x->key ? x->key : "", y->key ? y->key : "");
    return c ? c : (int)x->effect - (int)y->effect;
}

static void hash_taints(struct json_writer *w, const char *name, const struct taint *v, uint32_t n)
{
    struct taint *sorted = xcalloc(n, sizeof(*sorted));
    if (n)
        memcpy(sorted, v, n * sizeof(*v));
    qsort(sorted, n, sizeof(*sorted), taint_order);
    json_w_karray(w, name);
    for (uint32_t i = 0; i < n; i++) {
        json_w_cstr(w, sorted[i].key);
        json_w_cstr(w, sorted[i].value ? sorted[i].value : "");
        json_w_cstr(w, taint_effect_name(sorted[i].effect));
    }
    json_w_array_end(w);
    free(sorted);
}

static void hash_labels(struct json_writer *w, const char *name, const struct labels *l)
{
    json_w_kobject(w, name);
    for (uint32_t i = 0; i < l->n; i++)
        json_w_kcstr(w, l->v[i].key, l->v[i].value);
    json_w_object_end(w);
}

void nodepool_hash(const struct nodepool *p, char ret[17])
{
    const struct node_template *t = &p->template_;
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &text, 0);
    json_w_object(&w);
    hash_labels(&w, "labels", &t->labels);
    hash_labels(&w, "annotations", &t->annotations);
    hash_taints(&w, "taints", t->taints, t->n_taints);
    hash_taints(&w, "startupTaints", t->startup_taints, t->n_startup_taints);
    json_w_kcstr(&w, "group", t->class_ref.group);
    json_w_kcstr(&w, "kind", t->class_ref.kind);
    json_w_kcstr(&w, "name", t->class_ref.name);
    json_w_ki64(&w, "expireAfter", t->expire_after);
    json_w_ki64(&w, "terminationGracePeriod", t->termination_grace);
    json_w_object_end(&w);
    crypto_sha256_hex(buf_view(&text), 16, ret);
}
