/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, fmt);
    /* The arguments may point into the message that is being replaced. */
    char text[sizeof(err->msg)];
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    memcpy(err->msg, text, sizeof(text));
    err->code = code;
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[sizeof(err->msg)];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (n < 0)
        return -1;
    size_t at = MIN((size_t)n, sizeof(text) - 1);
    for (const char *p = ": "; *p && at < sizeof(text) - 1; p++)
        text[at++] = *p;
    size_t rest = MIN(strlen(err->msg), sizeof(text) - 1 - at);
    memcpy(text + at, err->msg, rest);
    text[at + rest] = '\0';
    memcpy(err->msg, text, sizeof(text));
    return -1;
}

static enum err_code code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case EEXIST:
        return ERR_EXISTS;
    case EACCES:
    case EPERM:
        return ERR_DENIED;
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
        return ERR_INVALID;
    default:
        return ERR_RETRY;
    }
}

int err_errno(struct err *err, int errnum, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[sizeof(err->msg)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    char reason[128];
    return err_set(err, code_of_errno(errnum), "%s: %s", text,
                   strerror_r(errnum, reason, sizeof(reason)));
}

const char *err_code_name(enum err_code code)
{
    static const char *const names[] = {
        [ERR_NONE] = "none",
        [ERR_RETRY] = "retry",
        [ERR_CONFLICT] = "conflict",
        [ERR_GONE] = "gone",
        [ERR_NOT_FOUND] = "not found",
        [ERR_EXISTS] = "exists",
        [ERR_DENIED] = "denied",
        [ERR_CAPACITY] = "capacity",
        [ERR_THROTTLED] = "throttled",
        [ERR_INVALID] = "invalid",
        [ERR_UNKNOWN] = "unknown outcome",
    };
    return (size_t)code < ARRAY_LEN(names) ? names[code] : "unknown code";
}
