/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "provisioner/control/offers.h"

#include "base/num.h"

struct offer_memory {
    int64_t failures;
    int64_t until; /* end of the pause, ns since 1970 */
};

static struct str offer_key(char out[256], const struct launch_offering *l)
{
    int n = snprintf(out, 256, "%s/%s/%s", l->instance_type, l->zone,
                     capacity_type_name(l->capacity_type));

    return (struct str){out, (size_t)MIN(n, 255)};
}

void offers_release(struct offers *o)
{
    map_release(&o->map, free);
}

/* Failures that still count: each half-life after the pause halves them. */
static int64_t decayed(const struct offer_memory *m, int64_t now)
{
    int64_t quiet = now - m->until;

    if (quiet <= 0)
        return m->failures;
    return quiet / OFFERS_HALF_LIFE >= 62 ? 0 : m->failures >> (quiet / OFFERS_HALF_LIFE);
}

static void make_room(struct offers *o)
{
    struct map_entry *first = NULL;
    int64_t until = TIME_NEVER;

    if (map_len(&o->map) < OFFERS_MAX)
        return;
    map_each(&o->map, it) {
        const struct offer_memory *m = it->value;

        if (m->until < until) {
            until = m->until;
            first = it;
        }
    }
    if (first)
        free(map_remove(&o->map, map_key(first)));
}

void offers_failed(struct offers *o, const struct launch_offering *l, int64_t now)
{
    char text[256];
    struct str key = offer_key(text, l);
    struct offer_memory *m = map_get(&o->map, key);
    int64_t pause = OFFERS_FIRST_PAUSE;

    if (m && now < m->until)
        return;
    if (!m) {
        make_room(o);
        m = xcalloc(1, sizeof(*m));
        map_put(&o->map, key, m);
    }
    m->failures = MIN(decayed(m, now) + 1, 32);
    for (int64_t i = 1; i < m->failures && pause < OFFERS_LONGEST_PAUSE; i++)
        pause *= 2;
    m->until = now + MIN(pause, OFFERS_LONGEST_PAUSE);
    o->version++;
}

void offers_worked(struct offers *o, const struct launch_offering *l)
{
    char text[256];
    struct offer_memory *m = map_remove(&o->map, offer_key(text, l));

    if (m)
        o->version++;
    free(m);
}

int64_t offers_blocked_until(const struct offers *o, const struct launch_offering *l, int64_t now)
{
    char text[256];
    const struct offer_memory *m = map_get(&o->map, offer_key(text, l));

    return m && now < m->until ? m->until : 0;
}

void offers_each(const struct offers *o, int64_t now,
                 void (*fn)(void *arg, const struct launch_offering *l), void *arg)
{
    map_each(&o->map, it) {
        const struct offer_memory *m = it->value;
        char type[256], zone[256];
        struct str key = map_key(it), part;
        struct launch_offering l = {.instance_type = type, .zone = zone};

        if (m->until <= now || !str_split(&key, '/', &part))
            continue;
        snprintf(type, sizeof(type), "%.*s", STR_ARG(part));
        if (!str_split(&key, '/', &part) || capacity_type_parse(key, &l.capacity_type, NULL) < 0)
            continue;
        snprintf(zone, sizeof(zone), "%.*s", STR_ARG(part));
        fn(arg, &l);
    }
}

int64_t offers_next(const struct offers *o, int64_t now)
{
    int64_t next = TIME_NEVER;

    map_each(&o->map, it) {
        const struct offer_memory *m = it->value;

        if (m->until > now)
            next = MIN(next, m->until);
    }
    return next;
}

void offers_sweep(struct offers *o, int64_t now)
{
    map_each(&o->map, it) {
        if (decayed(it->value, now) == 0)
            free(map_remove(&o->map, map_key(it)));
    }
}

void offers_print(const struct offers *o, struct buf *out)
{
    map_each(&o->map, it) {
        const struct offer_memory *m = it->value;
        char until[40];

        buf_printf(out, "%.*s %lld %s\n", STR_ARG(map_key(it)), (long long)m->failures,
                   time_format(until, m->until).p);
    }
}

static bool parse_line(struct str line, struct str *ret_key, struct offer_memory *ret)
{
    struct str failures, until;

    return str_split(&line, ' ', ret_key) && str_split(&line, ' ', &failures) &&
           str_split(&line, ' ', &until) && line.len == 0 && ret_key->len > 0 &&
           ret_key->len < 256 && num_parse_range(failures, 1, 32, &ret->failures, NULL) == 0 &&
           time_parse_rfc3339(until, &ret->until, NULL) == 0;
}

void offers_parse(struct offers *o, struct str text)
{
    struct str line;

    while (str_split(&text, '\n', &line)) {
        struct offer_memory m;
        struct str key;

        if (!parse_line(line, &key, &m))
            continue;
        make_room(o);
        void **slot = map_slot(&o->map, key);
        if (!*slot)
            *slot = xcalloc(1, sizeof(m));
        *(struct offer_memory *)*slot = m;
    }
    o->version++;
}
