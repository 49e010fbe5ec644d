/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Who else scales a workload: HorizontalPodAutoscalers and ScaledObjects, listed once a minute in
 * each namespace that weft scales in. Their kinds may not be installed; that is "none". Until both
 * lists were read the answer is not known, and nobody may act on it. */
#ifndef SCALERS_RIVALS_H
#define SCALERS_RIVALS_H

#include "kube/client/client.h"

struct rivals;

enum rivals_answer { RIVALS_UNKNOWN, RIVALS_NONE, RIVALS_FOUND };

/* `changed` is called when a namespace was listed for the first time or its answer changed. */
struct rivals *rivals_new(struct client *c, void (*changed)(void *arg, const char *namespace_),
                          void *arg);
void rivals_free(struct rivals *r);
/* Starts listing the namespace if nobody asked before. FOUND: "HorizontalPodAutoscaler web" in
 * ret_text; UNKNOWN: why, or empty. */
enum rivals_answer rivals_find(struct rivals *r, const char *namespace_, const char *kind,
                               const char *name, char ret_text[320]);
/* Stops listing and forgets. */
void rivals_forget(struct rivals *r);

#endif
