/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Requirements on labels: the sets of values a key may have, and their algebra.
 *
 * A requirement is a set of values or, when `complement`, everything but that set; whole-number
 * bounds may narrow a complement. In is a plain set, DoesNotExist the empty one, NotIn a
 * complement, Exists the complement of nothing; Gt n and Lt n become gte n+1 and lte n-1.
 * The rules are those of karpenter.sh (pkg/scheduling/requirement.go, restated in the tests). */
#ifndef MODEL_REQUIREMENT_H
#define MODEL_REQUIREMENT_H

#include "base/arena.h"
#include "kube/api/podspec.h"

struct requirement {
    const char *key;
    const char *const *values; /* sorted, unique */
    uint32_t n_values;
    bool complement;
    bool has_gte, has_lte;
    int64_t gte, lte;
    int32_t min_values;
};

/* One expression. Aliased keys (failure-domain.beta.kubernetes.io/zone …) are put in today's form.
 * An operator or bound that is not valid gives DoesNotExist, which matches no labelled node. */
struct requirement requirement_from(const struct selector_requirement *s, struct arena *a);
struct requirement requirement_equals(const char *key, const char *value, struct arena *a);

bool requirement_has(const struct requirement *r, const char *value);
/* Whether a node without the key satisfies it: NotIn and DoesNotExist. */
bool requirement_allows_absent(const struct requirement *r);
struct requirement requirement_intersect(const struct requirement *x, const struct requirement *y,
                                         struct arena *a);
/* Whether the intersection has a value; two complements overlap when their bounds do not cross. */
bool requirement_overlaps(const struct requirement *x, const struct requirement *y);
/* A value that satisfies it: the smallest listed, or for a complement the smallest whole number in
 * the bounds that is not excluded. NULL: none. */
const char *requirement_any(const struct requirement *r, struct arena *a);

/* Sorted by key, keys unique. */
struct requirements {
    const struct requirement *v;
    uint32_t n;
};

const struct requirement *requirements_find(const struct requirements *s, const char *key);
/* All of both; common keys are intersected. */
struct requirements requirements_merge(const struct requirements *x, const struct requirements *y,
                                       struct arena *a);
struct requirements requirements_from_selectors(const struct selector_requirement *v, uint32_t n,
                                                struct arena *a);
struct requirements requirements_from_labels(const struct labels *l, struct arena *a);

/* Whether a node that is described by `node` can satisfy `pod`. Common keys must overlap (or both
 * be of the NotIn / DoesNotExist kind). A key that only the pod names is refused unless it allows
 * absence, or `undefined_ok(key)` (NULL: never). On refusal *ret_key is the first failing key. */
bool requirements_compatible(const struct requirements *node, const struct requirements *pod,
                             bool (*undefined_ok)(const char *key), const char **ret_key);
bool requirements_equal(const struct requirements *x, const struct requirements *y);

/* "zone In [a b]" for messages. */
struct str requirement_format(const struct requirement *r, struct arena *a);

/* The key under which matchFields metadata.name is kept; no label can be called so. */
#define REQUIREMENT_FIELD_NAME "@metadata.name"

/* Labels that the cloud defines, of which a pool need not speak for pods to ask for them. */
bool label_is_well_known(const char *key);

#endif
