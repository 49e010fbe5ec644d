/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Compiler attributes and the few macros every file may use. */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#include <stddef.h>

#include "base/banned.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct of which `ptr` is the member `member`. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NODISCARD __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))

/* Calls `fn(&variable)` when the variable leaves its scope: CLEANUP(buf_release) struct buf b =
 * BUF_INIT; */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
