/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The weft.sh/ annotations of a workload, parsed and checked: pure, shared by the controller and by
 * `weft lint`.
 *
 * weft.sh/triggers holds KEDA's `triggers:` list, as a list, one map, or a map with that key;
 * weft.sh/spec a whole ScaledObject spec instead. The values under a trigger's `metadata` may be
 * any scalar and are kept as they were written. Everything wrong is reported with annotation, line,
 * column and value, as far as the text can be read, not only the first. Parameters that hold
 * secrets are refused where they are written in the open, and their values never repeated.
 *
 * Limits: 64 KiB a value, depth 16, one document, no anchors, aliases or tags. */
#ifndef SCALERS_ANNOTATIONS_H
#define SCALERS_ANNOTATIONS_H

#include "base/json.h"
#include "base/schema.h"
#include "kube/api/meta.h"
#include "scalers/decide.h"

#define ANNOTATION_PREFIX "weft.sh/"
#define ANNOTATION_STATUS "weft.sh/status"
#define ANNOTATION_BYTES_MAX (64 * 1024)
#define ANNOTATION_DEPTH_MAX 16
#define ANNOTATION_TRIGGERS_MAX DECIDE_SAMPLES_MAX

/* One fault or hint. Text belongs to the annotations it came with. */
struct annotation_problem {
    bool warning;        /* reported; the rest stays in force */
    const char *key;     /* the annotation, "weft.sh/triggers" */
    struct json_pos pos; /* within its value, from 1; 0: the value as a whole */
    const char *value;   /* the offending text, cut at 80 bytes; NULL: none, or a secret */
    const char *message;
};

struct trigger {
    const char *type;
    const char *name; /* NULL: none */
    enum decide_metric metric;
    bool utilization; /* metricType Utilization: resource triggers only */
    bool use_cached_metrics;
    const char *auth_name, *auth_kind; /* NULL: no authenticationRef */
    const struct json *metadata;       /* an object of strings; never NULL */
    struct json_pos pos;
};

enum annotation_class { ANNOTATION_CLASS_WEFT, ANNOTATION_CLASS_KEDA, ANNOTATION_CLASS_NONE };

struct annotations {
    struct arena arena;
    bool managed; /* triggers or a spec are there, and the class is ours */
    struct decide_config decide;
    int64_t polling_interval; /* ns */
    struct trigger *triggers;
    size_t n_triggers;
    const struct json *auth;                         /* weft.sh/auth: name -> spec; NULL: none */
    const char *env_container;                       /* envSourceContainerName; NULL: the first */
    const char *scaling_formula;                     /* of scaling-modifiers; NULL: none */
    const char *scaling_target, *scaling_activation; /* source text */
    bool scaling_value;                              /* metricType Value */
    enum annotation_class class_;
    bool take_over, restore_original;
    char hash[17]; /* of every annotation read here: unchanged hash, unchanged connections */
    struct annotation_problem *problems;
    size_t n_problems, n_errors;
};

/* The option table of a trigger type; NULL: no such type. */
typedef const struct option *annotations_schema(const char *type);

/* Never NULL. With n_errors > 0 the configuration must not be used; the problems say why. A trigger
 * of an unknown type is a warning: it is reported, and the others run. `workload_name` (may be
 * NULL) is compared with a spec's scaleTargetRef. */
struct annotations *annotations_parse(const struct labels *annotations, const char *workload_name,
                                      annotations_schema *schema);
void annotations_free(struct annotations *a);

/* Would annotations_parse find triggers? Cheap: for filters. */
bool annotations_present(const struct labels *annotations);

/* The hash above without reading the values. */
void annotations_hash(const struct labels *annotations, char ret[17]);

/* "weft.sh/triggers:3:7: message (value)" */
void annotation_problem_print(const struct annotation_problem *p, struct buf *out);

/* The reference table: every key with its form, default and meaning. */
struct annotation_doc {
    const char *key; /* without the prefix */
    const char *value, *standard, *help;
    bool scaling; /* read here; others belong to other rooms and are only known by name */
};
const struct annotation_doc *annotations_table(size_t *ret_n);
/* The same as a Markdown table: docs/reference/annotations.md. */
void annotations_docs(struct buf *out);

#endif
