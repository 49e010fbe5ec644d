/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Reading a catalogue file. What is wrong in a way that would mislead a decision is an error with
 * its line; a price that cannot be used only makes its offering unusable, and is told. */

#include "base/num.h"
#include "base/yml.h"
#include "cloud/catalog_build.h"

#define CATALOG_BYTES_MAX (256u << 20)
#define TYPES_MAX 100000

struct reader {
    struct catalog *c;
    const char *file;
    void (*warn)(void *arg, const char *msg);
    void *arg;
    struct arena scratch;
};

/* "file:line: " when the line is known, else "file: ". */
static int fail(struct reader *r, const struct json *at, struct err *err, const char *what,
                struct str text)
{
    char line[24] = "";
    if (at && at->pos.line)
        snprintf(line, sizeof(line), "%u:", at->pos.line);
    return err_set(err, ERR_INVALID, "%s:%s %s%s%.80s%s", r->file, line, what, text.p ? " '" : "",
                   text.p ? arena_cstr(&r->scratch, text) : "", text.p ? "'" : "");
}

static void warn(struct reader *r, const struct json *at, const char *type, const char *what)
{
    char msg[400];
    if (!r->warn)
        return;
    snprintf(msg, sizeof(msg), "%s:%u: %s: %s", r->file, at ? at->pos.line : 0, type, what);
    r->warn(r->arg, msg);
}

static char *keep(struct reader *r, struct str s)
{
    return arena_cstr(&r->c->arena, s);
}

/* ---- Parts of a type ---- */

static int read_amounts(struct reader *r, const struct json *j, struct resource_list *ret,
                        struct err *err)
{
    struct vec_amount v = {0};
    int code = 0;
    if (j->type != JSON_OBJECT)
        return fail(r, j, err, "resources must be an object of quantities", STR_NONE);
    for (size_t i = 0; i < j->n && code == 0; i++) {
        struct str name = j->members[i].key;
        const struct json *value = j->members[i].value;
        struct resource_amount a = {.name = keep(r, name)};
        struct err why = ERR_INIT;
        if (quantity_parse_for(name, json_text(value), &a.amount, &why) < 0)
            code = fail(r, value, err, "not a quantity:", json_text(value));
        else if (a.amount < 0)
            code = fail(r, value, err, "a capacity cannot be negative:", json_text(value));
        else
            vec_push(&v, a);
    }
    if (code == 0)
        *ret = catalog_amounts(r->c, &v);
    vec_release(&v);
    return code;
}

static int read_resources(struct reader *r, const struct json *j, struct instance_type *t,
                          struct err *err)
{
    const struct json *capacity = json_get(j, "capacity"),
                      *allocatable = json_get(j, "allocatable");
    if (!capacity)
        return fail(r, j, err, "no capacity in type", str_from(t->name));
    if (read_amounts(r, capacity, &t->capacity, err) < 0)
        return -1;
    if (resource_list_get(&t->capacity, "cpu") <= 0 ||
        resource_list_get(&t->capacity, "memory") <= 0)
        return fail(r, capacity, err, "capacity needs cpu and memory above zero, in type",
                    str_from(t->name));
    if (!allocatable) {
        t->allocatable = catalog_allocatable(r->c, &t->capacity);
        return 0;
    }
    if (read_amounts(r, allocatable, &t->allocatable, err) < 0)
        return -1;
    for (uint32_t i = 0; i < t->allocatable.n; i++) {
        const struct resource_amount *a = &t->allocatable.v[i];
        if (a->amount > resource_list_get(&t->capacity, a->name))
            return fail(r, allocatable, err,
                        "allocatable is more than the capacity:", str_from(a->name));
    }
    return 0;
}

static int read_labels(struct reader *r, const struct json *j, struct instance_type *t,
                       struct err *err)
{
    const struct json *labels = json_get(j, "labels");
    const struct label own[] = {
        {"kubernetes.io/arch", t->arch},
        {"kubernetes.io/os", t->os},
        {"node.kubernetes.io/instance-type", t->name},
        {"topology.kubernetes.io/region", r->c->region},
    };
    struct vec_label v = {0};
    if (labels && labels->type != JSON_OBJECT)
        return fail(r, labels, err, "labels must be an object of texts", STR_NONE);
    for (size_t i = 0; labels && i < labels->n; i++) {
        if (labels->members[i].value->type != JSON_STRING) {
            vec_release(&v);
            return fail(r, labels->members[i].value, err,
                        "a label's value must be a text:", labels->members[i].key);
        }
        vec_push(&v, (struct label){keep(r, labels->members[i].key),
                                    keep(r, json_text(labels->members[i].value))});
    }
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i].value && !json_get(labels, own[i].key))
            vec_push(&v, own[i]);
    t->labels = catalog_labels(r->c, &v);
    vec_release(&v);
    return 0;
}

/* ---- Offerings ---- */

static int64_t read_price(struct reader *r, const struct json *j, const char *type)
{
    const struct json *price = json_get(j, "priceUsdHour");
    int64_t v = 0;
    if (!price)
        warn(r, j, type, "an offering has no price and is not used");
    else if (num_parse_fixed(json_text(price), 6, &v, NULL) < 0)
        warn(r, price, type, "a price is not a number and its offering is not used");
    else if (v <= 0)
        warn(r, price, type, "a price is not above zero and its offering is not used");
    return MAX(v, 0);
}

static int read_offering(struct reader *r, const struct json *j, const char *type,
                         struct offering *o, struct err *err)
{
    struct str zone = json_text(json_get(j, "zone"));
    struct str capacity = json_text(json_get(j, "capacityType"));
    const struct json *interruption = json_get(j, "interruptionPerMonth");
    int64_t ppm = 0;
    if (!zone.len)
        return fail(r, j, err, "an offering has no zone, in type", str_from(type));
    if (capacity.p && capacity_type_parse(capacity, &o->capacity_type, NULL) < 0)
        return fail(r, json_get(j, "capacityType"), err, "no such capacity type:", capacity);
    if (interruption &&
        (num_parse_fixed(json_text(interruption), 6, &ppm, NULL) < 0 || ppm < 0 || ppm > 1000000))
        return fail(r, interruption, err, "interruptionPerMonth must be a fraction from 0 to 1:",
                    json_text(interruption));
    o->zone = keep(r, zone);
    o->price_uusd_h = read_price(r, j, type);
    o->available = json_bool(json_get(j, "available"), true);
    o->interruption_ppm_month = (int32_t)ppm;
    return 0;
}

static int read_offerings(struct reader *r, const struct json *j, struct instance_type *t,
                          struct err *err)
{
    const struct json *list = json_get(j, "offerings");
    size_t n = list ? list->n : 0;
    if (list && list->type != JSON_ARRAY)
        return fail(r, list, err, "offerings must be a list, in type", str_from(t->name));
    struct offering *out = ARENA_NEW_ARRAY(&r->c->arena, struct offering, n);
    for (size_t i = 0; i < n; i++) {
        if (!out || read_offering(r, list->items[i], t->name, &out[i], err) < 0)
            return -1;
        for (size_t k = 0; k < i; k++)
            if (out[k].capacity_type == out[i].capacity_type &&
                strcmp(out[k].zone, out[i].zone) == 0)
                return fail(r, list->items[i], err,
                            "the same zone and capacity type twice, in type", str_from(t->name));
    }
    t->offerings = out;
    t->n_offerings = (uint32_t)n;
    return 0;
}

/* ---- Types ---- */

static int read_type(struct reader *r, const struct json *j, struct instance_type *t,
                     struct err *err)
{
    struct str name = json_text(json_get(j, "name"));
    struct str arch = json_text(json_get(j, "arch")), os = json_text(json_get(j, "os"));
    if (j->type != JSON_OBJECT || !name.len)
        return fail(r, j, err, "an instance type needs a name", STR_NONE);
    t->name = keep(r, name);
    t->arch = keep(r, arch.len ? arch : STR("amd64"));
    t->os = keep(r, os.len ? os : STR("linux"));
    if (read_resources(r, j, t, err) < 0 || read_labels(r, j, t, err) < 0)
        return -1;
    return read_offerings(r, j, t, err);
}

static const struct json *second_of_name(const struct json *list, const char *name)
{
    const struct json *found = NULL;
    for (size_t i = 0; i < list->n; i++)
        if (str_eq_c(json_text(json_get(list->items[i], "name")), name))
            found = list->items[i];
    return found;
}

static int read_types(struct reader *r, const struct json *list, struct err *err)
{
    if (!list || list->type != JSON_ARRAY || list->n == 0)
        return fail(r, list, err, "'types' must be a list of at least one instance type", STR_NONE);
    if (list->n > TYPES_MAX)
        return fail(r, list, err, "too many instance types", STR_NONE);
    struct instance_type *types = ARENA_NEW_ARRAY(&r->c->arena, struct instance_type, list->n);
    for (size_t i = 0; i < list->n; i++)
        if (!types || read_type(r, list->items[i], &types[i], err) < 0)
            return -1;
    size_t twice = catalog_sort(types, list->n);
    if (twice)
        return fail(r, second_of_name(list, types[twice - 1].name), err,
                    "the same name twice:", str_from(types[twice - 1].name));
    r->c->types = types;
    r->c->n_types = (uint32_t)list->n;
    return 0;
}

static int read_head(struct reader *r, const struct json *root, struct err *err)
{
    const struct json *as_of = json_get(root, "asOf");
    char day[48];
    if (root->type != JSON_OBJECT)
        return fail(r, root, err, "a catalogue is an object", STR_NONE);
    struct str region = json_text(json_get(root, "region"));
    r->c->region = region.len ? keep(r, region) : NULL;
    if (!as_of)
        return 0;
    struct str text = json_text(as_of);
    snprintf(day, sizeof(day), "%.*sT00:00:00Z", STR_ARG(str_sub(text, 0, 20)));
    if (time_parse_rfc3339(text, &r->c->as_of, NULL) < 0 &&
        time_parse_rfc3339(str_from(day), &r->c->as_of, NULL) < 0)
        return fail(r, as_of, err, "asOf is not a date:", text);
    return 0;
}

/* Read as YAML, of which JSON is a part, since that keeps lines; as JSON where YAML is stricter
 * (tabs, for one). */
static struct json *read_text(struct reader *r, struct str text, struct err *err)
{
    struct json *root = NULL;
    struct err first = ERR_INIT;
    if (yml_parse_one(&r->scratch, text, &(struct yml_limits){.bytes_max = CATALOG_BYTES_MAX},
                      &root, &first) == 0 &&
        root)
        return root;
    root = json_parse(&r->scratch, text, NULL);
    if (!root)
        err_set(err, ERR_INVALID, "%s:%s", r->file, first.code ? first.msg : " empty");
    return root;
}

struct catalog *catalog_parse(struct str text, const char *file_name,
                              void (*warn_fn)(void *arg, const char *msg), void *arg,
                              struct err *err)
{
    struct reader r = {.c = catalog_new(CATALOG_BYTES_MAX),
                       .file = file_name ? file_name : "catalogue",
                       .warn = warn_fn,
                       .arg = arg};
    arena_init(&r.scratch, 4 * (size_t)CATALOG_BYTES_MAX, 0);
    const struct json *root = read_text(&r, text, err);
    bool good =
        root && read_head(&r, root, err) == 0 && read_types(&r, json_get(root, "types"), err) == 0;
    arena_release(&r.scratch);
    if (!good) {
        catalog_unref(r.c);
        return NULL;
    }
    r.c->version = str_hash(text, 0);
    return r.c;
}
