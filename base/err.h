/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What went wrong, for the caller to act on and for a person to read.
 *
 * A function that can fail returns 0 or -1 (or a pointer or NULL) and takes `struct err *err` last.
 * On success it leaves `err` alone. The code says what the caller may do; the message says what
 * happened, where, and what to do, without a trailing newline and without secrets. `err` may be
 * NULL where the caller does not care. Bugs are not errors: those are asserts, which stay on. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/attr.h"

enum err_code {
    ERR_NONE = 0,
    ERR_RETRY,     /* transient: the same call may work later */
    ERR_CONFLICT,  /* somebody else changed it: read again, then decide again */
    ERR_GONE,      /* the position asked for has expired: list again */
    ERR_NOT_FOUND, /* there is no such thing */
    ERR_EXISTS,    /* it is there already */
    ERR_DENIED,    /* not authenticated or not allowed */
    ERR_CAPACITY,  /* the cloud has none of it, or a cap was reached */
    ERR_THROTTLED, /* too many requests: wait */
    ERR_INVALID,   /* the input is wrong; repeating will not help */
    ERR_UNKNOWN,   /* the outcome is not known: it may have happened */
};

struct err {
    enum err_code code;
    char msg[480];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        ERR_NONE, ""                                                                               \
    }

/* Sets code and message (cut when too long) and returns -1, so that callers write
 * `return err_set(err, ERR_INVALID, "…")`. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts "…: " before the message of an error that is set. Returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Sets from an errno value: code RETRY, DENIED, NOT_FOUND or EXISTS as fits. Returns -1. */
int err_errno(struct err *err, int errnum, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* "retry", "conflict" … for logs and metrics. */
const char *err_code_name(enum err_code code);

#endif
