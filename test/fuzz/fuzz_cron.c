/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Schedules and zone files. The first byte chooses; a schedule's next instant is after the time
 * asked about, and is its own last one. */

#include <assert.h>

#include "base/cron.h"
#include "base/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str rest = {(const char *)data + 1, size - 1};
    int64_t at = INT64_C(1774700000) * NS_PER_S;
    if (data[0] % 2) {
        struct zone *z = zone_parse(rest, NULL);
        for (int i = 0; z && i < 40; i++)
            (void)zone_offset(z, at + (int64_t)i * 97 * NS_PER_DAY);
        zone_free(z);
        return 0;
    }
    struct cron c;
    if (cron_parse(rest, &c, NULL) < 0)
        return 0;
    int64_t next = cron_next(&c, NULL, at);
    assert(next > at);
    if (next != TIME_NEVER)
        assert(cron_prev(&c, NULL, next) == next);
    return 0;
}
