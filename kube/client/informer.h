/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A cache of one kind that follows the API server: list, then watch, for ever.
 *
 * Paged lists and watch streams are decoded as they arrive. Bookmarks move the position; 410 and
 * unreadable streams list again; everything else resumes the watch where it was, after a jittered
 * pause. A relist diffs against the store, so that handlers see exactly the changes. Until the
 * first list has ended the informer is not synced and nobody may conclude that something is absent.
 *
 * Handlers run on the loop after the store has changed; they mark work dirty and return
 * (level-triggered), they do not act. Iteration is in the order of keys (namespace/name). */
#ifndef KUBE_CLIENT_INFORMER_H
#define KUBE_CLIENT_INFORMER_H

#include "kube/client/client.h"

struct informer;

struct informer_options {
    const char *namespace_;     /* NULL: all */
    const char *label_selector; /* NULL: none */
    const char *field_selector;
    int64_t page_size; /* 0: 500 */
    bool optional; /* 404 (the CRD is not installed) counts as synced and empty, and is asked again
                    */
};

typedef void informer_changed(void *arg, struct object *before,
                              struct object *after); /* NULL: added / deleted */

struct informer *informer_new(struct client *c, const struct kind *k,
                              const struct informer_options *o);
void informer_free(struct informer *i);
/* Before start. Any number. */
void informer_on_change(struct informer *i, informer_changed *fn, void *arg);
void informer_on_sync(struct informer *i, void (*fn)(void *arg), void *arg); /* first sync only */
void informer_start(struct informer *i);

bool informer_synced(const struct informer *i);
/* Whether all of them are; NULL entries are passed over. */
bool informers_synced(struct informer *const *v, size_t n);
/* How long ago the stream last told us anything (event, bookmark or list), ns: staleness. */
int64_t informer_age(const struct informer *i);
size_t informer_count(const struct informer *i);
size_t informer_bytes(const struct informer *i); /* resident, with the shared parts */
const struct kind *informer_kind(const struct informer *i);

/* Borrowed. NULL: absent (only meaningful once synced). namespace_ NULL for cluster scope. */
struct object *informer_get(const struct informer *i, const char *namespace_, const char *name);
/* In key order; do not hold across events without object_ref. `cursor` starts at 0; NULL ends. */
struct object *informer_next(const struct informer *i, size_t *cursor);

/* An object that our own write returned: put into the store if the store still has the version the
 * write was based on (or nothing, for a create), so that the next reconcile sees its own write. */
void informer_wrote(struct informer *i, struct object *written);
/* Our own delete was confirmed with 404 or finalizer removal. */
void informer_gone(struct informer *i, const char *namespace_, const char *name, const char *uid);

#endif
