/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Zone files from bytes: offsets are those of the earth at every instant that can be asked for. */
#include <assert.h>

#include "base/cron.h"
#include "base/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct zone *z = zone_parse((struct str){(const char *)data, size}, &e);
    if (!z) {
        assert(e.code == ERR_INVALID && e.msg[0]);
        return 0;
    }
    static const int64_t instants[] = {INT64_MIN, INT64_MIN + 1, -NS_PER_S, -1, 0,
                                       1,         INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(instants); i++)
        assert(zone_offset(z, instants[i]) <= 170 * 3600 &&
               zone_offset(z, instants[i]) >= -170 * 3600);
    for (int64_t t = -100 * 366 * NS_PER_DAY; t < 100 * 366 * NS_PER_DAY;
         t += 97 * NS_PER_DAY + 12345)
        assert(zone_offset(z, t) <= 170 * 3600 && zone_offset(z, t) >= -170 * 3600);
    struct cron c;
    if (cron_parse(STR("30 2 * * *"), &c, NULL) == 0)
        assert(cron_next(&c, z, INT64_C(1792890000) * NS_PER_S) > INT64_C(1792890000) * NS_PER_S);
    zone_free(z);
    return 0;
}
