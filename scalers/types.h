/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The trigger types, one line a type; registry.c lists them. */
#ifndef SCALERS_TYPES_H
#define SCALERS_TYPES_H

#include "scalers/scaler.h"

extern const struct scaler_type scaler_cron;  /* cron.c */
extern const struct scaler_type scaler_redis; /* redis.c */

#endif
