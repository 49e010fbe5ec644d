/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The objects that leases hold: found by kind, namespace and name, watched while held. */
#ifndef SCALERS_AUTH_STORE_H
#define SCALERS_AUTH_STORE_H

#include "kube/api/misc.h"
#include "scalers/auth.h"

enum auth_kind { AUTH_SECRET, AUTH_CONFIG_MAP, AUTH_TRIGGER };

const char *auth_kind_name(enum auth_kind k); /* "Secret" … */

/* The entry, watched from now on, with a reference of the lease. */
struct auth_entry *auth_store_entry(struct auth_store *s, struct auth_lease *l, enum auth_kind kind,
                                    const char *namespace_, const char *name);
/* READY with the object, WAITING, or FAILED: there is none. */
enum auth_outcome auth_entry_config(const struct auth_entry *e, const struct config_data **ret);
/* READY with the spec, or with NULL when there is no such object or kind; FAILED with err. */
enum auth_outcome auth_entry_spec(const struct auth_entry *e, const struct json **ret,
                                  struct err *err);

/* `l` takes what `fresh` holds and keeps its watchers; what only `l` held is released. */
void auth_lease_replace(struct auth_store *s, struct auth_lease *l, struct auth_lease *fresh);

#endif
