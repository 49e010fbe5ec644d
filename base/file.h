/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Whole files into memory. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the file's bytes; more than `cap` of them are ERR_INVALID. Messages name the path. */
int file_read(const char *path, size_t cap, struct buf *to, struct err *err);

#endif
