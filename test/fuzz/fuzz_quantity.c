/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Quantities: milli is never further from a thousand units than rounding allows, and what was
 * formatted parses to the same amount. */

#include <assert.h>

#include "kube/api/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    int64_t units, milli;
    if (quantity_parse(text, &units, NULL) < 0) {
        assert(quantity_parse_milli(text, &milli, NULL) < 0);
        return 0;
    }
    int code = quantity_parse_milli(text, &milli, NULL);
    assert(code == 0);
    if (milli > INT64_MIN && milli < INT64_MAX) {
        /* Both round away from zero: units is the ceiling of milli / 1000 in magnitude. */
        __int128 m = milli < 0 ? -(__int128)milli : milli, u = units < 0 ? -(__int128)units : units;
        assert(u * 1000 >= m && (u - 1) * 1000 < m + (m == 0));
    }
    static const char *const resources[] = {"cpu", "memory", "nvidia.com/gpu"};
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        char out[32];
        int64_t amount, back;
        struct str name = str_from(resources[i]);
        if (quantity_parse_for(name, text, &amount, NULL) < 0)
            continue;
        code = quantity_parse_for(name, quantity_format_for(out, name, amount), &back, NULL);
        assert(code == 0 && back == amount);
    }
    return 0;
}
