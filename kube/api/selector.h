/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Label selectors: matchLabels with matchExpressions, and the string form of list calls.
 *
 * A NULL selector matches nothing, an empty one everything (metav1.LabelSelector's rule). */
#ifndef KUBE_API_SELECTOR_H
#define KUBE_API_SELECTOR_H

#include "base/arena.h"
#include "base/err.h"
#include "kube/api/meta.h"

enum selector_op {
    SELECTOR_IN,
    SELECTOR_NOT_IN,
    SELECTOR_EXISTS,
    SELECTOR_DOES_NOT_EXIST,
    SELECTOR_GT, /* node selectors only; the value is an integer */
    SELECTOR_LT,
    SELECTOR_GTE, /* NodePool requirements only */
    SELECTOR_LTE,
    SELECTOR_OP_INVALID,
};

struct selector_requirement {
    const char *key;
    enum selector_op op;
    struct string_list values;
    int32_t min_values; /* NodePool requirements; 0: unset */
};

struct label_selector {
    struct labels match_labels;
    const struct selector_requirement *requirements;
    uint32_t n_requirements;
};

bool selector_matches(const struct label_selector *s, const struct labels *labels);
bool selector_requirement_matches(const struct selector_requirement *r,
                                  const struct labels *labels);
/* "app=web,tier in (a,b),!x,y!=1" (the query parameter labelSelector). */
int selector_parse(struct arena *a, struct str text, struct label_selector *ret, struct err *err);
const char *selector_op_name(enum selector_op op); /* "In" … */

#endif
