/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Reading option tables: flags, environment, files; help and reference pages. */

#include "base/schema.h"

#include <assert.h>

#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"
#include "base/yml.h"

#define FILE_BYTES_MAX (1u << 20)

#undef getenv
const char *env_get(const char *name)
{
    return getenv(name);
}

static void *member(const struct option *o, void *to)
{
    return (char *)to + o->offset;
}

static bool is_one_of(const char *values, struct str text)
{
    struct str rest = str_from(values), value;
    while (str_split(&rest, '|', &value))
        if (str_eq(value, text))
            return true;
    return false;
}

/* Adds to a NULL-terminated list; each comma separates. */
static int add_to_list(struct str text, struct arena *a, const char ***list, struct err *err)
{
    struct str part;
    while (str_split(&text, ',', &part)) {
        size_t n = 0;
        while (*list && (*list)[n])
            n++;
        const char **grown = ARENA_NEW_ARRAY(a, const char *, n + 2);
        char *copy = arena_cstr(a, str_trim(part));
        if (!grown || !copy)
            return err_set(err, ERR_CAPACITY, "the list is too long");
        if (n)
            memcpy(grown, *list, n * sizeof(*grown));
        grown[n] = copy;
        *list = grown;
    }
    return 0;
}

static int set_int(const struct option *o, struct str text, int64_t *to, struct err *err)
{
    int64_t v;
    if (num_parse_i64(text, &v, err) < 0)
        return -1;
    if (v < o->min || v > o->max)
        return err_set(err, ERR_INVALID, "%lld is not between %lld and %lld", (long long)v,
                       (long long)o->min, (long long)o->max);
    *to = v;
    return 0;
}

static int set_duration(const struct option *o, struct str text, int64_t *to, struct err *err)
{
    int64_t v;
    char min[40], max[40];
    if (time_parse_seconds(text, &v, err) < 0)
        return -1;
    if (v < o->min || v > o->max)
        return err_set(err, ERR_INVALID, "'%.*s' is not between %s and %s", STR_ARG(text),
                       time_format_duration(min, o->min).p, time_format_duration(max, o->max).p);
    *to = v;
    return 0;
}

int schema_set(const struct option *o, struct str text, struct arena *a, void *to, struct err *err)
{
    void *at = member(o, to);
    switch (o->kind) {
    case OPTION_KIND_BOOL:
        return num_parse_bool(text, at, err);
    case OPTION_KIND_INT:
        return set_int(o, text, at, err);
    case OPTION_KIND_DURATION:
    case OPTION_KIND_SECONDS:
        return set_duration(o, text, at, err);
    case OPTION_KIND_DECIMAL:
        return num_parse_double(text, at, err);
    case OPTION_KIND_ENUM:
        if (!is_one_of(o->values, text))
            return err_set(err, ERR_INVALID, "'%.*s' is none of %s", STR_ARG(str_sub(text, 0, 40)),
                           o->values);
        /* fall through */
    case OPTION_KIND_STRING: {
        char *copy = arena_cstr(a, text);
        if (!copy)
            return err_set(err, ERR_CAPACITY, "the value is too long");
        *(const char **)at = copy;
        return 0;
    }
    case OPTION_KIND_LIST:
        return add_to_list(text, a, at, err);
    case OPTION_KIND_END:
        break;
    }
    assert(o->kind != OPTION_KIND_END);
    return -1;
}

int schema_defaults(const struct option *table, struct arena *a, void *to, struct err *err)
{
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++)
        if (o->standard && schema_set(o, str_from(o->standard), a, to, err) < 0)
            return err_prefix(err, "default of %s", o->name);
    return 0;
}

static const struct option *find(const struct option *table, struct str name)
{
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++)
        if (str_eq_c(name, o->name))
            return o;
    return NULL;
}

const char *schema_nearest(const struct option *table, struct str name)
{
    const char *best = NULL;
    unsigned least = name.len > 6 ? 4 : 3;
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++) {
        unsigned d = str_distance(name, str_from(o->name), least);
        if (d < least) {
            least = d;
            best = o->name;
        }
    }
    return best;
}

static int unknown(const struct option *table, const char *prefix, struct str name,
                   struct json_pos pos, struct err *err)
{
    const char *near = schema_nearest(table, name);
    char where[32] = "";
    if (pos.line)
        snprintf(where, sizeof(where), "%u:%u: ", pos.line, pos.column);
    struct str shown = str_sub(name, 0, 60);
    if (near)
        return err_set(err, ERR_INVALID, "%sthere is no option %s%.*s; did you mean %s%s?", where,
                       prefix, STR_ARG(shown), prefix, near);
    return err_set(err, ERR_INVALID, "%sthere is no option %s%.*s", where, prefix, STR_ARG(shown));
}

/* ---- JSON objects ---- */

static int set_from_json(const struct option *o, const struct json *j, struct arena *a, void *to,
                         struct err *err)
{
    if (j->type == JSON_ARRAY && o->kind == OPTION_KIND_LIST) {
        *(const char ***)member(o, to) = NULL;
        for (size_t i = 0; i < j->n; i++)
            if (schema_set(o, json_text(j->items[i]), a, to, err) < 0)
                return -1;
        return 0;
    }
    if (j->type == JSON_ARRAY || j->type == JSON_OBJECT)
        return err_set(err, ERR_INVALID, "%s stands where a value is needed",
                       json_type_name(j->type));
    if (j->type == JSON_NULL)
        return 0;
    if (o->kind == OPTION_KIND_LIST)
        *(const char ***)member(o, to) = NULL;
    struct str text = j->type == JSON_BOOL ? (j->boolean ? STR("true") : STR("false")) : j->text;
    return schema_set(o, text, a, to, err);
}

static int read_members(const struct option *table, const struct json *object, struct arena *a,
                        void *to, struct err *err)
{
    if (object->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "%u:%u: an object is needed, not %s", object->pos.line,
                       object->pos.column, json_type_name(object->type));
    for (size_t i = 0; i < object->n; i++) {
        const struct json_member *m = &object->members[i];
        const struct option *o = find(table, m->key);
        if (!o)
            return unknown(table, "", m->key, m->pos, err);
        if (set_from_json(o, m->value, a, to, err) < 0) {
            if (m->value->pos.line)
                return err_prefix(err, "%u:%u: %s", m->value->pos.line, m->value->pos.column,
                                  o->name);
            return err_prefix(err, "%s", o->name);
        }
    }
    return 0;
}

int schema_read_json(const struct option *table, const struct json *object, struct arena *a,
                     void *to, struct err *err)
{
    if (read_members(table, object, a, to, err) < 0)
        return -1;
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++)
        if (o->required && !json_get(object, o->name))
            return err_set(err, ERR_INVALID, "%s is missing", o->name);
    return 0;
}

/* ---- The command line ---- */

static int read_config(const struct option *table, const char *path, struct arena *a, void *to,
                       const struct json **ret_document, struct err *err)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    struct json *document = NULL;
    if (file_read(path, FILE_BYTES_MAX, &text, err) < 0)
        return -1;
    if (yml_parse_one(a, buf_view(&text), NULL, &document, err) < 0)
        return err_prefix(err, "%s", path);
    if (document && read_members(table, document, a, to, err) < 0)
        return err_prefix(err, "%s", path);
    *ret_document = document;
    return 0;
}

/* The environment variable of an option, or NULL. */
static const char *variable_of(const struct option *o, char name[96])
{
    size_t n = (size_t)snprintf(name, 96, "WEFT_");
    for (const char *p = o->name; *p && n < 95; p++)
        name[n++] = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    name[n] = '\0';
    return env_get(name);
}

static int read_environment(const struct option *table, struct arena *a, void *to, struct err *err)
{
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++) {
        char name[96];
        const char *value = variable_of(o, name);
        if (!value)
            continue;
        if (o->kind == OPTION_KIND_LIST)
            *(const char ***)member(o, to) = NULL;
        if (schema_set(o, str_from(value), a, to, err) < 0)
            return err_prefix(err, "%s", name);
    }
    return 0;
}

struct flag {
    const struct option *option; /* NULL: --config */
    struct str value;
    bool negated;
};

VEC_DEFINE(vec_flag, struct flag);
VEC_DEFINE(vec_argument, const char *);

struct command_line {
    const struct option *table;
    int argc;
    char **argv;
    int at;
    struct vec_flag flags;
    struct vec_argument arguments;
    const char *config;
    bool help;
};

/* The value of a flag: after '=', or the next argument. */
static int take_value(struct command_line *c, struct str name, bool has_value, struct str *value,
                      struct err *err)
{
    if (has_value)
        return 0;
    if (c->at + 1 >= c->argc)
        return err_set(err, ERR_INVALID, "--%.*s needs a value", STR_ARG(name));
    *value = str_from(c->argv[++c->at]);
    return 0;
}

static int take_long(struct command_line *c, struct str text, struct err *err)
{
    size_t equals = str_find_char(text, '=', 0);
    bool has_value = equals != SIZE_MAX;
    struct str name = str_sub(text, 0, equals),
               value = has_value ? str_sub(text, equals + 1, text.len) : STR("true");
    if (str_eq_c(name, "help")) {
        c->help = true;
        return 0;
    }
    const struct option *o = find(c->table, name);
    if (!o && str_eq_c(name, "config")) {
        if (take_value(c, name, has_value, &value, err) < 0)
            return -1;
        c->config = value.p;
        return 0;
    }
    bool negated = !o && str_has_prefix(name, STR("no-"));
    if (negated)
        o = find(c->table, str_sub(name, 3, name.len));
    if (!o || (negated && (o->kind != OPTION_KIND_BOOL || has_value)))
        return unknown(c->table, "--", name, (struct json_pos){0, 0}, err);
    if (o->kind != OPTION_KIND_BOOL && take_value(c, name, has_value, &value, err) < 0)
        return -1;
    vec_push(&c->flags, (struct flag){o, negated ? STR("false") : value, negated});
    return 0;
}

static int take_short(struct command_line *c, const char *text, struct err *err)
{
    if (strcmp(text, "-h") == 0) {
        c->help = true;
        return 0;
    }
    for (const struct option *o = c->table; o->kind != OPTION_KIND_END; o++) {
        if (!o->short_name || o->short_name != text[1])
            continue;
        struct str value = o->kind == OPTION_KIND_BOOL ? STR("true") : str_from(text + 2);
        if (o->kind != OPTION_KIND_BOOL &&
            take_value(c, str_from(o->name), value.len > 0, &value, err) < 0)
            return -1;
        vec_push(&c->flags, (struct flag){o, value, false});
        return 0;
    }
    return err_set(err, ERR_INVALID, "there is no option %.40s", text);
}

static int take_arguments(struct command_line *c, struct err *err)
{
    bool options = true;
    for (c->at = 1; c->at < c->argc; c->at++) {
        const char *text = c->argv[c->at];
        if (!options || text[0] != '-' || strcmp(text, "-") == 0)
            vec_push(&c->arguments, text);
        else if (strcmp(text, "--") == 0)
            options = false;
        else if ((text[1] == '-' ? take_long(c, str_from(text + 2), err)
                                 : take_short(c, text, err)) < 0)
            return -1;
    }
    return 0;
}

/* The first flag of a list replaces what file and environment said; later ones add. */
static int apply_flags(struct command_line *c, struct arena *a, void *to, struct err *err)
{
    for (size_t i = 0; i < c->flags.len; i++) {
        const struct flag *f = &c->flags.v[i];
        bool first = f->option->kind == OPTION_KIND_LIST;
        for (size_t k = 0; k < i && first; k++)
            first = c->flags.v[k].option != f->option;
        if (first)
            *(const char ***)member(f->option, to) = NULL;
        if (schema_set(f->option, f->value, a, to, err) < 0)
            return err_prefix(err, "--%s", f->option->name);
    }
    return 0;
}

/* Any of the three sources will do. */
static int check_required(const struct command_line *c, const struct json *document,
                          struct err *err)
{
    for (const struct option *o = c->table; o->kind != OPTION_KIND_END; o++) {
        char name[96];
        bool given = !o->required || json_get(document, o->name) || variable_of(o, name);
        for (size_t i = 0; i < c->flags.len; i++)
            given |= c->flags.v[i].option == o;
        if (!given)
            return err_set(err, ERR_INVALID, "--%s is missing", o->name);
    }
    return 0;
}

static int apply_all(struct command_line *c, struct arena *a, void *to, struct err *err)
{
    const char *config = c->config ? c->config : env_get("WEFT_CONFIG");
    if (schema_defaults(c->table, a, to, err) < 0)
        return -1;
    const struct json *document = NULL;
    if (config && *config && read_config(c->table, config, a, to, &document, err) < 0)
        return -1;
    if (read_environment(c->table, a, to, err) < 0 || apply_flags(c, a, to, err) < 0)
        return -1;
    return check_required(c, document, err);
}

int schema_read(const struct option *table, int argc, char **argv, struct arena *a, void *to,
                struct schema_args *ret_args, bool *ret_help, struct err *err)
{
    struct command_line c = {.table = table, .argc = argc, .argv = argv};
    int code = take_arguments(&c, err);
    if (code == 0 && !c.help)
        code = apply_all(&c, a, to, err);
    if (code == 0) {
        const char **v = ARENA_NEW_ARRAY(a, const char *, c.arguments.len + 1);
        if (v && c.arguments.len)
            memcpy(v, c.arguments.v, c.arguments.len * sizeof(*v));
        *ret_args = (struct schema_args){v, c.arguments.len};
        *ret_help = c.help;
    }
    vec_release(&c.flags);
    vec_release(&c.arguments);
    return code;
}

/* ---- Help ---- */

static void describe(const struct option *o, struct buf *out)
{
    static const char *const kinds[] = {"",        "",      " N", " DURATION", " SECONDS",
                                        " NUMBER", " TEXT", "",   " LIST"};
    if (o->short_name)
        buf_printf(out, "-%c, ", o->short_name);
    buf_printf(out, "--%s", o->name);
    if (o->kind == OPTION_KIND_ENUM)
        buf_printf(out, " %s", o->values);
    else
        buf_cstr(out, kinds[o->kind]);
}

static void bounds(const struct option *o, struct buf *out)
{
    char min[40], max[40];
    bool bounded = o->kind == OPTION_KIND_INT || o->kind == OPTION_KIND_DURATION ||
                   o->kind == OPTION_KIND_SECONDS;
    if (!bounded || (o->min == INT64_MIN && o->max == INT64_MAX))
        return;
    if (o->kind == OPTION_KIND_INT)
        buf_printf(out, "%lld to %lld", (long long)o->min, (long long)o->max);
    else
        buf_printf(out, "%s to %s", time_format_duration(min, o->min).p,
                   time_format_duration(max, o->max).p);
}

/* Wraps words at `columns`, with later lines indented. */
static void wrap(struct str text, unsigned indent, unsigned columns, struct buf *out)
{
    unsigned at = indent;
    struct str word;
    while (str_split(&text, ' ', &word)) {
        if (at + word.len + 1 > columns && at > indent) {
            buf_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            buf_char(out, ' ');
            at++;
        }
        buf_str(out, word);
        at += (unsigned)word.len;
    }
    buf_char(out, '\n');
}

void schema_help(const struct option *table, unsigned columns, struct buf *out)
{
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++) {
        CLEANUP(buf_release) struct buf left = BUF_INIT, right = BUF_INIT, range = BUF_INIT;
        describe(o, &left);
        buf_cstr(&right, o->help);
        bounds(o, &range);
        if (o->standard && *o->standard && o->kind != OPTION_KIND_BOOL)
            buf_printf(&right, " (default %s%s%s)", o->standard, range.len ? "; " : "",
                       range.len ? range.data : "");
        else if (range.len)
            buf_printf(&right, " (%s)", range.data);
        buf_printf(out, "  %-26s", left.data);
        if (left.len > 25)
            buf_printf(out, "\n%28s", "");
        wrap(buf_view(&right), 28, MAX(columns, 60u), out);
    }
}

void schema_docs(const struct option *table, struct buf *out)
{
    buf_cstr(out, "| option | default | bounds | meaning |\n|---|---|---|---|\n");
    for (const struct option *o = table; o->kind != OPTION_KIND_END; o++) {
        CLEANUP(buf_release) struct buf range = BUF_INIT;
        bounds(o, &range);
        buf_printf(out, "| `--%s` | %s%s%s | ", o->name, o->standard && *o->standard ? "`" : "",
                   o->standard ? o->standard : "", o->standard && *o->standard ? "`" : "");
        if (o->kind == OPTION_KIND_ENUM) {
            struct str rest = str_from(o->values), value;
            for (bool first = true; str_split(&rest, '|', &value); first = false)
                buf_printf(out, "%s`%.*s`", first ? "" : ", ", STR_ARG(value));
        } else if (range.len) {
            buf_str(out, buf_view(&range));
        }
        buf_printf(out, " | %s |\n", o->help);
    }
}
