/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Texts that are equal exactly when what scheduling reads is equal. */
#ifndef MODEL_SIGNATURE_H
#define MODEL_SIGNATURE_H

#include "base/buf.h"
#include "kube/api/podspec.h"

void signature_text(struct buf *b, const char *s); /* NULL differs from "" */
void signature_labels(struct buf *b, const struct labels *l);
void signature_selector(struct buf *b, const struct label_selector *s);
/* nodeSelector, required node affinity and tolerations: on which nodes it may run. */
void signature_where(struct buf *b, const struct pod_spec *s);
/* The rest: requests, ports, spread, pod affinity, volumes and claims. `labels` are read for
 * matchLabelKeys only. */
void signature_spec(struct buf *b, const struct pod_spec *s, const struct resource_list *requests,
                    const struct labels *labels);

#endif
