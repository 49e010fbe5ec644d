/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Where the API server is and who we are: kubeconfig files and the in-cluster environment.
 *
 * Relative paths are resolved against the folder of the file that names them. KUBECONFIG may list
 * several files (':'); they merge as kubectl does: the first to set a thing wins. */
#ifndef KUBE_CLIENT_CONFIG_H
#define KUBE_CLIENT_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "base/http.h"

struct kube_exec { /* an exec credential plugin, client.authentication.k8s.io v1 or v1beta1 */
    const char *command, *api_version;
    const char **args; /* NULL-terminated */
    const char **env;  /* "NAME=value", NULL-terminated */
    bool provide_cluster_info;
};

struct kube_config {
    struct arena arena; /* everything below lives here */
    const char *server; /* "https://host:port", no trailing slash */
    struct http_tls tls;
    const char *proxy; /* NULL: as the environment says */
    const char *namespace_;
    const char *token;      /* NULL: none. Never logged */
    const char *token_file; /* read again when it changes; wins over token */
    const char *username, *password;
    const char *impersonate;
    const struct kube_exec *exec;
    const char *source; /* the file and context, or "in-cluster", for messages */
};

/* `path` NULL: KUBECONFIG, else in-cluster if its files exist, else ~/.kube/config. `context`
 * NULL: the file's current-context. ERR_INVALID: file, line and what is wrong, in one line. */
struct kube_config *kube_config_load(const char *path, const char *context, struct err *err);
struct kube_config *kube_config_parse(struct str text, const char *file_name, const char *context,
                                      struct err *err);
void kube_config_free(struct kube_config *c);

#endif
