/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The bytes of small files, read again when they change: certificates and keys that are rotated.
 *
 * Each use costs one stat. A file that is gone, empty or unreadable for a moment, as in the middle
 * of a rotation, leaves the last good bytes in use. What is dropped is wiped: keys are among it. */
#ifndef BASE_FILE_CACHE_H
#define BASE_FILE_CACHE_H

#include "base/err.h"
#include "base/str.h"

#define FILE_CACHE_BYTES_MAX ((size_t)4 << 20) /* of one file */
#define FILE_CACHE_FILES_MAX 64                /* the longest unused is dropped */

struct file_cache;

struct file_cache *file_cache_new(void);
void file_cache_free(struct file_cache *c);

/* *ret_bytes is valid until the same file is asked for again, or FILE_CACHE_FILES_MAX others are.
 * ERR_INVALID names the path when there never were good bytes. */
int file_cache_get(struct file_cache *c, const char *path, struct str *ret_bytes, struct err *err);

#endif
