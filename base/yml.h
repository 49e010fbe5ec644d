/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* YAML as JSON trees and events (libyaml, only in yml.c).
 *
 * The subset that configuration needs: block and flow collections, all scalar styles, comments,
 * several documents. Refused with line and column: anchors, aliases, tags, duplicate keys, keys
 * that are not scalars, depth above the limit, size above the limit. Depth is checked before
 * libyaml sees the text, whose time grows with the square of flow nesting.
 *
 * Plain scalars follow the YAML 1.2 core schema: null ~ (empty), true/false (any of the three
 * cases), numbers; everything else is a string. "yes" and "on" are strings, as in kubectl's
 * reader of JSON-compatible YAML. JSON text is YAML and keeps its positions. */
#ifndef BASE_YML_H
#define BASE_YML_H

#include "base/json.h"

struct yml_limits {
    size_t bytes_max;     /* 0: 64 MiB */
    unsigned depth_max;   /* 0: JSON_DEPTH_MAX */
    size_t documents_max; /* 0: no limit */
};

/* Each document in turn; empty documents are skipped. `*ret` grows in the arena. -1 with
 * "line:column: message". */
struct yml_documents {
    struct json **v;
    size_t n;
};
int yml_parse(struct arena *a, struct str text, const struct yml_limits *limits,
              struct yml_documents *ret, struct err *err);

/* Exactly one document (or none: *ret is NULL). */
int yml_parse_one(struct arena *a, struct str text, const struct yml_limits *limits,
                  struct json **ret, struct err *err);

/* Writes block YAML that yml_parse reads back to an equal tree. */
void yml_print(struct buf *out, const struct json *j);

#endif
