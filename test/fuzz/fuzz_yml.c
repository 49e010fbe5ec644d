/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* YAML: refused with a position, or printed and read back equal. */

#include <assert.h>

#include "base/yml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct arena a = {.cap_bytes = 64u << 20};
    struct yml_documents documents = {0};
    struct err err = ERR_INIT;
    if (yml_parse(&a, (struct str){(const char *)data, size}, NULL, &documents, &err) < 0) {
        assert(err.code != ERR_NONE && err.msg[0]);
        return 0;
    }
    for (size_t i = 0; i < documents.n; i++) {
        CLEANUP(buf_release) struct buf out = BUF_INIT;
        struct json *back = NULL;
        yml_print(&out, documents.v[i]);
        int code = yml_parse_one(&a, buf_view(&out), NULL, &back, &err);
        assert(code == 0 && json_equal(documents.v[i], back));
    }
    return 0;
}
