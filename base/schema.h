/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Option tables: one array declares an option's name, type, default, bounds and help; from it come
 * parsing of flags, environment and YAML, validation, --help and the reference pages.
 *
 *     struct run_options { int64_t batch_idle; const char *mode; bool take_over; … };
 *     static const struct option run_table[] = {
 *         OPTION_DURATION(struct run_options, batch_idle, "batch-idle-duration", "1s", 0,
 * NS_PER_HOUR, "how long no new pod may arrive before a batch is planned"), OPTION_ENUM(struct
 * run_options, mode, "mode", "observe", "observe|act", "…"), … OPTION_END,
 *     };
 *
 * Precedence: flags, then the environment (WEFT_ + NAME in upper case, '-' as '_'), then the file,
 * then the default. Unknown names are refused with the nearest known one. The same tables serve
 * trigger metadata (base/schema reads any json object with them). */
#ifndef BASE_SCHEMA_H
#define BASE_SCHEMA_H

#include "base/json.h"
#include "base/time.h"

enum option_kind {
    OPTION_KIND_END,
    OPTION_KIND_BOOL,     /* bool */
    OPTION_KIND_INT,      /* int64_t, min..max */
    OPTION_KIND_DURATION, /* int64_t ns, min..max; Go form, or whole seconds */
    OPTION_KIND_SECONDS,  /* as DURATION, printed as seconds (KEDA's bare integers) */
    OPTION_KIND_DECIMAL,  /* double; min..max do not apply */
    OPTION_KIND_STRING,   /* const char *; in the arena given to the reader; NULL when unset */
    OPTION_KIND_ENUM, /* const char *, one of `values` ("a|b|c"), points into the table or arena */
    OPTION_KIND_LIST, /* const char ** NULL-terminated; flag may repeat, or commas */
};

struct option {
    enum option_kind kind;
    const char *name;
    size_t offset;
    const char *standard; /* default, as text; NULL: unset */
    int64_t min, max;
    const char *values;
    const char *help;
    bool required;
    char short_name; /* 'f' for -f; 0: none */
};

#define OPTION_BOOL(type, member, name_, std, help_)                                               \
    {                                                                                              \
        .kind = OPTION_KIND_BOOL, .name = name_, .offset = offsetof(type, member),                 \
        .standard = std, .help = help_                                                             \
    }
#define OPTION_INT(type, member, name_, std, min_, max_, help_)                                    \
    {                                                                                              \
        .kind = OPTION_KIND_INT, .name = name_, .offset = offsetof(type, member), .standard = std, \
        .min = min_, .max = max_, .help = help_                                                    \
    }
#define OPTION_DURATION(type, member, name_, std, min_, max_, help_)                               \
    {                                                                                              \
        .kind = OPTION_KIND_DURATION, .name = name_, .offset = offsetof(type, member),             \
        .standard = std, .min = min_, .max = max_, .help = help_                                   \
    }
#define OPTION_SECONDS(type, member, name_, std, min_, max_, help_)                                \
    {                                                                                              \
        .kind = OPTION_KIND_SECONDS, .name = name_, .offset = offsetof(type, member),              \
        .standard = std, .min = min_, .max = max_, .help = help_                                   \
    }
#define OPTION_DECIMAL(type, member, name_, std, help_)                                            \
    {                                                                                              \
        .kind = OPTION_KIND_DECIMAL, .name = name_, .offset = offsetof(type, member),              \
        .standard = std, .help = help_                                                             \
    }
#define OPTION_STRING(type, member, name_, std, help_)                                             \
    {                                                                                              \
        .kind = OPTION_KIND_STRING, .name = name_, .offset = offsetof(type, member),               \
        .standard = std, .help = help_                                                             \
    }
#define OPTION_ENUM(type, member, name_, std, values_, help_)                                      \
    {                                                                                              \
        .kind = OPTION_KIND_ENUM, .name = name_, .offset = offsetof(type, member),                 \
        .standard = std, .values = values_, .help = help_                                          \
    }
#define OPTION_LIST(type, member, name_, std, help_)                                               \
    {                                                                                              \
        .kind = OPTION_KIND_LIST, .name = name_, .offset = offsetof(type, member),                 \
        .standard = std, .help = help_                                                             \
    }
#define OPTION_END                                                                                 \
    {                                                                                              \
        .kind = OPTION_KIND_END                                                                    \
    }

/* Fills `to` from flags, environment, file and defaults. Positional arguments come back in
 * `ret_args` (pointers into argv). "--" ends options; "--name=value", "--name value", "-f value",
 * "--flag", "--no-flag" for bools; "--config FILE" is read by every table's command. ERR_INVALID
 * names the option and value. `--help` sets *ret_help and stops. */
struct schema_args {
    const char **v;
    size_t n;
};
int schema_read(const struct option *table, int argc, char **argv, struct arena *a, void *to,
                struct schema_args *ret_args, bool *ret_help, struct err *err);

/* Reads one object's members with the table: used for YAML files and trigger metadata. Values may
 * be any scalar and are taken by source text. Errors carry line and column when known. */
int schema_read_json(const struct option *table, const struct json *object, struct arena *a,
                     void *to, struct err *err);

/* Sets one option from text. */
int schema_set(const struct option *o, struct str text, struct arena *a, void *to, struct err *err);
int schema_defaults(const struct option *table, struct arena *a, void *to, struct err *err);

/* The name nearest to `name`, or NULL when none is near. */
const char *schema_nearest(const struct option *table, struct str name);

/* "--name VALUE   help (default …, min … max …)" lines, wrapped at `columns`. */
void schema_help(const struct option *table, unsigned columns, struct buf *out);
/* The Markdown table of the reference pages. */
void schema_docs(const struct option *table, struct buf *out);

/* An environment variable; the only place that reads it. NULL: unset. */
const char *env_get(const char *name);

#endif
