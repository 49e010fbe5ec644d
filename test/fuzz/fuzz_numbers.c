/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Numbers, times and durations: what was formatted parses to the same value. */

#include <assert.h>

#include "base/num.h"
#include "base/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    int64_t v, back;
    double d;
    char out[40];
    int code;
    if (num_parse_fixed(text, 6, &v, NULL) == 0 && v != INT64_MIN) {
        code = num_parse_fixed(num_format_fixed(out, v, 6), 6, &back, NULL);
        assert(code == 0 && back == v);
    }
    if (time_parse_duration(text, &v, NULL) == 0 && v != INT64_MIN) {
        code = time_parse_duration(time_format_duration(out, v), &back, NULL);
        assert(code == 0 && back == v);
    }
    if (time_parse_rfc3339(text, &v, NULL) == 0 && v > INT64_MIN / 2 && v < INT64_MAX / 2) {
        code = time_parse_rfc3339(time_format_micro(out, v), &back, NULL);
        assert(code == 0 && back <= v && v - back < NS_PER_US);
    }
    (void)num_parse_double(text, &d, NULL);
    return 0;
}
