/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Kinds, objects and decoding: the table of what weft understands.
 *
 * A kind is one entry of a table: its group, version, plural, its C struct and the fields that are
 * kept of it. Everything else in the JSON is skipped while it streams by. Decoders consume
 * json events, so JSON bytes, YAML and trees all go through the same code.
 *
 * Objects are immutable and reference-counted; one allocation lifetime each. Not for several
 * threads to ref/unref; reading an object from a worker is fine while the loop holds a reference.
 */
#ifndef KUBE_API_KIND_H
#define KUBE_API_KIND_H

#include "base/intern.h"
#include "base/json.h"
#include "kube/api/meta.h"

struct field; /* kube/api/decode.h */

struct kind {
    const char *kind, *group, *version, *plural; /* group "": core */
    bool namespaced;
    size_t size; /* of the C struct, which starts with struct object */
    const struct field *fields;
    void (*finish)(void *object,
                   struct arena *a); /* derives what is not in the JSON; may be NULL */
};

struct object {
    const struct kind *kind;
    uint32_t refs;
    uint32_t bytes; /* memory it holds, for accounting */
    struct meta meta;
};

/* "v1" or "group/version". At most 128 bytes. */
struct str kind_api_version(char out[128], const struct kind *k);
/* By kind and apiVersion; NULL when weft does not know it. Any version of a known group matches
 * when `exact` is false. */
const struct kind *kind_find(struct str api_version, struct str kind, bool exact);
const struct kind *kind_find_plural(struct str group, struct str plural);
const struct kind *const *kind_all(size_t *ret_n);

/* Shared texts and parts of objects (labels of replicas are the same): pass one cache for all
 * objects of a store. Opaque. */
struct decode_cache;
struct decode_cache *decode_cache_new(void);
void decode_cache_free(struct decode_cache *c); /* after all its objects are gone */
size_t decode_cache_bytes(const struct decode_cache *c);

struct object *object_decode(const struct kind *k, struct str json, struct decode_cache *c,
                             struct err *err);
struct object *object_from_json(const struct kind *k, const struct json *j, struct decode_cache *c,
                                struct err *err);
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL is harmless */

/* A list answer, decoded as its bytes arrive. `item` gets one reference to each object. An item
 * that does not decode is reported through `bad` (may be NULL) and skipped; the list goes on. */
struct list_decoder;
struct list_meta {
    const char *resource_version, *continue_token; /* NULL: absent */
    int64_t remaining;                             /* -1: not told */
};
struct list_decoder *
list_decoder_new(const struct kind *k, struct decode_cache *c,
                 void (*item)(void *arg, struct object *o),
                 void (*bad)(void *arg, const char *name, const struct err *err), void *arg);
int list_decoder_feed(struct list_decoder *d, struct str chunk, struct err *err);
int list_decoder_finish(struct list_decoder *d, struct list_meta *ret, struct err *err);
void list_decoder_free(struct list_decoder *d);

/* A watch stream: objects {"type":…,"object":…} after one another. */
enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };
struct watch_event {
    enum watch_type type;
    struct object
        *object; /* borrowed; ref to keep. NULL for ERROR. BOOKMARK: only meta.resource_version */
    int status_code;            /* ERROR: 410 … */
    const char *status_message; /* ERROR */
};
struct watch_decoder;
struct watch_decoder *
watch_decoder_new(const struct kind *k, struct decode_cache *c,
                  void (*event)(void *arg, const struct watch_event *ev),
                  void (*bad)(void *arg, const char *name, const struct err *err), void *arg);
int watch_decoder_feed(struct watch_decoder *d, struct str chunk, struct err *err);
void watch_decoder_free(struct watch_decoder *d);

/* "namespace/name", or "name" for cluster-scoped objects. At most 512 bytes. */
struct str object_key(char out[512], const struct object *o);

#endif
