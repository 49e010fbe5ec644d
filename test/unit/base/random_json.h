/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Random trees for the readers and writers of JSON and YAML. */
#ifndef TEST_UNIT_BASE_RANDOM_JSON_H
#define TEST_UNIT_BASE_RANDOM_JSON_H

#include "base/json.h"
#include "base/rng.h"

/* A text of any code points, with many that some format gives a meaning. */
struct str random_text(struct arena *a, struct rng *r);
/* At most `depth` containers within one another; keys are unique. */
struct json *random_json(struct arena *a, struct rng *r, unsigned depth);

#endif
