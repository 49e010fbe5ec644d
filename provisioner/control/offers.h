/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Memory of capacity that was not there.
 *
 * Per (instance type, zone, capacity type): an offering that failed is left alone for a while,
 * twice as long after each further failure, up to a cap; the memory of failures halves with quiet
 * time, so that an old shortage does not weigh on a new one. Pure: no clock; the text form survives
 * restarts and leader changes (control stores it in a ConfigMap). */
#ifndef PROVISIONER_CONTROL_OFFERS_H
#define PROVISIONER_CONTROL_OFFERS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "cloud/cloud.h"

#define OFFERS_FIRST_PAUSE (3 * NS_PER_MIN) /* Karpenter's constant; here only the first step */
#define OFFERS_LONGEST_PAUSE (60 * NS_PER_MIN)
#define OFFERS_HALF_LIFE (60 * NS_PER_MIN) /* of a failure count, after the pause is over */
#define OFFERS_MAX 4096                    /* remembered; the one that ends first makes room */

struct offers {
    struct map map;   /* "type/zone/capacity-type" to struct offer_memory */
    uint64_t version; /* grows whenever an answer may change */
};

#define OFFERS_INIT                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

void offers_release(struct offers *o);
/* It failed at `now`. Failures within a running pause do not count twice. */
void offers_failed(struct offers *o, const struct launch_offering *l, int64_t now);
/* It worked: forgotten. */
void offers_worked(struct offers *o, const struct launch_offering *l);
/* Until when it is to be left alone; 0: it may be tried. */
int64_t offers_blocked_until(const struct offers *o, const struct launch_offering *l, int64_t now);
/* Every offering that is to be left alone at `now`. Its texts die with the call. */
void offers_each(const struct offers *o, int64_t now,
                 void (*fn)(void *arg, const struct launch_offering *l), void *arg);
/* When the next pause ends; TIME_NEVER: none runs. */
int64_t offers_next(const struct offers *o, int64_t now);
/* Drops what has decayed to nothing. */
void offers_sweep(struct offers *o, int64_t now);

/* One line each, "type/zone/capacity-type failures until", sorted by insertion. Lines that cannot
 * be read are skipped: a lost memory costs one failed launch. */
void offers_print(const struct offers *o, struct buf *out);
void offers_parse(struct offers *o, struct str text);

#endif
