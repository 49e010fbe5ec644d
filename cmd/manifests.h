/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Kubernetes manifests from files, folders and standard input, as decoded objects.
 *
 * What `weft plan`, `explain` and `lint` work on when they are not given a cluster. A later
 * document of the same kind, namespace and name replaces an earlier one, as applying them in order
 * would. */
#ifndef CMD_MANIFESTS_H
#define CMD_MANIFESTS_H

#include "base/map.h"
#include "base/vec.h"
#include "cloud/cloud.h"
#include "kube/api/kind.h"
#include "provisioner/model/world.h"

struct manifests {
    struct map objects; /* "Kind namespace/name" to struct object *, a reference each */
    struct decode_cache *cache;
    size_t n_unknown; /* documents of kinds that weft does not read */
};

void manifests_release(struct manifests *m);

/* `path`: a file, a folder (its .yaml, .yml and .json files and those of its folders, by name) or
 * "-". Errors name file, line and column. */
int manifests_read(struct manifests *m, const char *path, struct err *err);
/* The same walk, file by file: the texts die when the callback returns, -1 ends it. */
typedef int manifests_take(void *arg, const char *name, struct str text, struct err *err);
int manifests_each(const char *path, manifests_take *take, void *arg, struct err *err);
/* One text; `name` is for messages. */
int manifests_read_text(struct manifests *m, const char *name, struct str text, struct err *err);

/* A world of the manifests: workloads without pods become coming pods, every pool uses `c`. */
struct world *manifests_world(const struct manifests *m, const struct catalog *c, int64_t now,
                              struct err *err);

/* The catalogue of the file, or the built-in one when `path` is NULL; warnings go to stderr. */
struct catalog *manifests_catalog(const char *path, struct err *err);

#endif
