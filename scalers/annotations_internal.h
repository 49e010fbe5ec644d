/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the two files of the annotation reader share. */
#ifndef SCALERS_ANNOTATIONS_INTERNAL_H
#define SCALERS_ANNOTATIONS_INTERNAL_H

#include <stdarg.h>

#include "base/vec.h"
#include "scalers/annotations.h"

#define ANNOTATIONS_PROBLEMS_MAX 50

struct annotations_reader {
    struct annotations *out;
    annotations_schema *schema;
    const char *workload_name;
    const char *key; /* the annotation being read */
    struct {
        VEC(struct annotation_problem);
    } problems;
};

void problem(struct annotations_reader *r, bool warning, struct json_pos pos, struct str value,
             const char *fmt, ...) PRINTF_LIKE(5, 6);
void read_seconds(struct annotations_reader *r, struct str text, struct json_pos pos, int64_t min,
                  int64_t *ret);
int read_choice(struct annotations_reader *r, struct str text, struct json_pos pos,
                const char *choices);

/* One of the keys whose value is YAML; `name` without the prefix. */
void annotations_read_yaml(struct annotations_reader *r, const char *name, struct str text);

#endif
