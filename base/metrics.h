/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Counters, gauges and histograms in the Prometheus text format.
 *
 * A family is declared once with its label names; a series is looked up by label values and kept.
 * A family holds at most METRICS_SERIES_MAX series; more fold into one labelled "other". */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/buf.h"
#include "base/str.h"

#define METRICS_SERIES_MAX 20000

struct metrics; /* a registry */
struct metric_family;
struct metric;

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* `labels`: comma-separated names or "". `buckets`: ascending bounds for histograms. Declaring the
 * same name again returns the first family. */
struct metric_family *metrics_family(struct metrics *m, enum metric_kind kind, const char *name,
                                     const char *help, const char *labels, const double *buckets,
                                     size_t n_buckets);
/* `n` values in the order of the label names. */
struct metric *metric_of(struct metric_family *f, const struct str *values, size_t n);
void metric_add(struct metric *m, double by);
void metric_set(struct metric *m, double v);
void metric_observe(struct metric *m, double v); /* histogram */
double metric_value(const struct metric *m);
void metric_family_clear(
    struct metric_family *f); /* drops all series: before a gauge is rewritten */

void metrics_print(const struct metrics *m, struct buf *out);
/* Name, kind, labels and help of every family, as the Markdown table of the reference page. */
void metrics_docs(const struct metrics *m, struct buf *out);

#endif
