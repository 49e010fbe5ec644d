/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Annotations from bytes: the first picks the key, the rest is its value. Whatever comes, every
 * problem can be printed and a usable configuration keeps its bounds. */
#include <assert.h>

#include "scalers/annotations.h"
#include "scalers/scaler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n;
    const struct annotation_doc *table = annotations_table(&n);
    if (!size)
        return 0;
    char key[80];
    snprintf(key, sizeof(key), ANNOTATION_PREFIX "%s", table[data[0] % n].key);
    char *value = xstr_dup((struct str){(const char *)data + 1, size - 1});
    struct label label = {key, value};
    struct labels labels = {&label, 1};
    struct annotations *a = annotations_parse(&labels, "web", scaler_schema);
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < a->n_problems; i++)
        annotation_problem_print(&a->problems[i], &out);
    buf_release(&out);
    assert(a->n_triggers <= ANNOTATION_TRIGGERS_MAX);
    if (!a->n_errors) {
        assert(a->decide.min >= 0 && a->decide.min <= a->decide.max &&
               a->polling_interval >= NS_PER_S);
        for (size_t i = 0; i < a->n_triggers; i++)
            assert(a->triggers[i].type && a->triggers[i].metadata);
    }
    annotations_free(a);
    free(value);
    return 0;
}
