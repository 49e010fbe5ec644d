/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Selectors in text form: read or refused, and then matched without trouble. */

#include "kube/api/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct label labels[] = {{"app", "web"}, {"n", "5"}, {"tier", "a"}};
    const struct labels l = {labels, ARRAY_LEN(labels)};
    CLEANUP(arena_release) struct arena a = {.cap_bytes = 16u << 20};
    struct label_selector s;
    if (selector_parse(&a, (struct str){(const char *)data, size}, &s, NULL) == 0)
        (void)selector_matches(&s, &l);
    return 0;
}
