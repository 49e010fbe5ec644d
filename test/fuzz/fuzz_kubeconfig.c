/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Kubeconfig files: a config with a server, or one line that says why not. */

#include <assert.h>

#include "kube/client/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct kube_config *c =
        kube_config_parse((struct str){(const char *)data, size}, "folder/config", NULL, &err);
    assert(c ? c->server != NULL : err.code != ERR_NONE && !strchr(err.msg, '\n'));
    kube_config_free(c);
    return 0;
}
