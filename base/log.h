/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Log lines: one JSON object (or a readable line on a terminal) each, to stderr.
 *
 * Libraries do not log; controllers and commands do. A line has ts, level, msg and key/value
 * fields. Never a secret: pass names of secrets, not values.
 *
 *     log_info("launched nodeclaim", LOG_STR("nodeclaim", name), LOG_I64("pods", n)); */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"
#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_NS, LOG_FIELD_BOOL } kind;
    struct str s;
    int64_t i;
};

#define LOG_STR(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_STR, .s = (v)})
#define LOG_CSTR(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_STR, .s = str_from(v)})
#define LOG_I64(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_I64, .i = (v)})
#define LOG_NS(k, v)                                                                               \
    ((struct log_field){.key = (k), .kind = LOG_FIELD_NS, .i = (v)}) /* a duration */
#define LOG_BOOL(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_BOOL, .i = (v)})
#define LOG_ERR(e)                                                                                 \
    ((struct log_field){.key = "error", .kind = LOG_FIELD_STR, .s = str_from((e)->msg)})

/* Where lines go and which; a process has one. `wall` gives the time (the loop's). */
void log_setup(enum log_level least, bool text, int fd, int64_t (*wall)(void *arg), void *arg);
/* NULL fn: back to the descriptor. For tests and the simulator. */
void log_capture(void (*fn)(void *arg, struct str line), void *arg);
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *msg, const struct log_field *fields, size_t n);

#define LOG_AT(level, msg, ...)                                                                    \
    do {                                                                                           \
        if (log_enabled(level)) {                                                                  \
            const struct log_field log_f_[] = {{0}, ##__VA_ARGS__};                                \
            log_write(level, msg, log_f_ + 1, ARRAY_LEN(log_f_) - 1);                              \
        }                                                                                          \
    } while (0)
#define log_debug(msg, ...) LOG_AT(LOG_DEBUG, msg, ##__VA_ARGS__)
#define log_info(msg, ...) LOG_AT(LOG_INFO, msg, ##__VA_ARGS__)
#define log_warn(msg, ...) LOG_AT(LOG_WARN, msg, ##__VA_ARGS__)
#define log_error(msg, ...) LOG_AT(LOG_ERROR, msg, ##__VA_ARGS__)

#endif
