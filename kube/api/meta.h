/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What every Kubernetes object has: metadata, labels, owners, conditions.
 *
 * Text in decoded objects is NUL-terminated and belongs to the object; NULL means absent. Lists are
 * arrays with a count. Instants are ns since 1970, 0 absent (base/time.h). Objects are immutable
 * once decoded. */
#ifndef KUBE_API_META_H
#define KUBE_API_META_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/time.h"

struct label {
    const char *key, *value;
};

/* Sorted by key, keys unique: labels, annotations, node selectors. */
struct labels {
    const struct label *v;
    uint32_t n;
};

struct owner_ref {
    const char *api_version, *kind, *name, *uid;
    bool controller, block_owner_deletion;
};

struct string_list {
    const char *const *v;
    uint32_t n;
};

struct meta {
    const char *name, *namespace_, *generate_name, *uid;
    const char *resource_version; /* opaque; compare for equality only */
    int64_t generation;
    int64_t creation, deletion; /* deletion != 0: being deleted */
    int64_t deletion_grace_s;
    struct labels labels, annotations;
    const struct owner_ref *owners;
    uint32_t n_owners;
    struct string_list finalizers;
};

enum condition_status { CONDITION_UNKNOWN, CONDITION_FALSE, CONDITION_TRUE };

struct condition {
    const char *type, *reason, *message;
    enum condition_status status;
    int64_t last_transition, last_probe;
    int64_t observed_generation;
};

struct conditions {
    const struct condition *v;
    uint32_t n;
};

/* NULL when absent. */
const char *labels_get(const struct labels *l, const char *key);
bool labels_has(const struct labels *l, const char *key);
bool labels_equal(const struct labels *a, const struct labels *b);

/* The owner with controller: true, or NULL. */
const struct owner_ref *meta_controller(const struct meta *m);
bool meta_has_finalizer(const struct meta *m, const char *finalizer);
bool string_list_has(const struct string_list *l, const char *s);

const struct condition *condition_find(const struct conditions *c,
                                       const char *type); /* NULL: absent */
bool condition_is(const struct conditions *c, const char *type, enum condition_status s);
const char *condition_status_name(enum condition_status s); /* "True" "False" "Unknown" */

#endif
