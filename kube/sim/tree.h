/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Changing JSON trees in place, and the patch formats of the Kubernetes API. */
#ifndef KUBE_SIM_TREE_H
#define KUBE_SIM_TREE_H

#include "base/json.h"

/* The member `key` as an object, made if it is absent or of another type. */
struct json *tree_object(struct arena *a, struct json *object, const char *key);
struct json *tree_array(struct arena *a, struct json *object, const char *key);
void tree_str(struct arena *a, struct json *object, const char *key, struct str value);
void tree_cstr(struct arena *a, struct json *object, const char *key, const char *value);
void tree_i64(struct arena *a, struct json *object, const char *key, int64_t value);
void tree_bool(struct arena *a, struct json *object, const char *key, bool value);
void tree_time(struct arena *a, struct json *object, const char *key, int64_t value);
void tree_set(struct arena *a, struct json *object, const char *key, struct json *value);
void tree_drop(struct json *object, const char *key);
void tree_drop_item(struct json *array, size_t i);
struct json *tree_get(struct json *object, const char *key); /* a mutable json_get */
/* An element that is an object, added to the array. */
struct json *tree_add_object(struct arena *a, struct json *array);

/* Sets status.conditions[type]; lastTransitionTime moves only when the status does. True when
 * something changed. reason and message may be NULL. */
bool tree_condition(struct arena *a, struct json *root, const char *type, const char *status,
                    const char *reason, const char *message, int64_t wall);

/* RFC 6902: add, remove, replace, test (copy and move too). ERR_INVALID tells the operation. */
int tree_json_patch(struct arena *a, struct json **root, const struct json *patch, struct err *err);
/* Server-side apply, simplified: objects merge, null removes, lists whose elements have a known
 * key merge by it (conditions by type, containers, volumes and env by name, ports by
 * containerPort, owners by uid), all other lists are replaced. Fields that an earlier apply set
 * and this one leaves out stay. */
struct json *tree_apply(struct arena *a, const struct json *target, const struct json *patch);

#endif
