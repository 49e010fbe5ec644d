/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Schedules from bytes, in zones with and without shifts: firings lie on whole minutes, in order,
 * and next and previous agree. */
#include <assert.h>

#include "base/cron.h"
#include "base/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cron *c, const struct zone *z, int64_t t)
{
    int64_t next = cron_next(c, z, t), prev = cron_prev(c, z, t);
    assert(next > t && prev <= t);
    if (next != TIME_NEVER) {
        int64_t local = next + zone_offset(z, next) * NS_PER_S;
        struct time_civil d;
        time_to_civil(local, &d);
        assert(d.second == 0 && d.nanosecond == 0);
        assert((c->minutes >> d.minute & 1) && (c->hours >> d.hour & 1) &&
               (c->months >> d.month & 1));
        assert((c->days >> d.day & 1) || (c->weekdays >> d.weekday & 1));
        assert(cron_prev(c, z, next) == next);
        assert(cron_prev(c, z, next - 1) == prev);
    }
    if (prev != INT64_MIN)
        assert(cron_next(c, z, prev - 1) == prev && cron_next(c, z, prev) == next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cron c;
    struct err e = ERR_INIT;
    if (cron_parse((struct str){(const char *)data, size}, &c, &e) < 0) {
        assert(e.code == ERR_INVALID && e.msg[0]);
        return 0;
    }
    static struct zone *zones[3];
    static const char *const names[] = {"UTC", "Europe/Prague", "Australia/Lord_Howe"};
    for (size_t i = 0; i < ARRAY_LEN(zones); i++) {
        if (!zones[i])
            zones[i] = zone_load(str_from(names[i]), NULL, NULL);
        /* October 2026 and March 2027, when clocks change. */
        check(&c, zones[i], INT64_C(1792890000) * NS_PER_S);
        check(&c, zones[i], INT64_C(1806195600) * NS_PER_S + 1);
    }
    return 0;
}
