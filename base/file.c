/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "base/file.h"

#include <errno.h>

int file_read(const char *path, size_t cap, struct buf *to, struct err *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_errno(err, errno, "%s", path);
    char chunk[16384];
    size_t n, total = 0;
    while (total <= cap && (n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        buf_add(to, chunk, n);
        total += n;
    }
    bool failed = ferror(f) != 0;
    int errnum = errno;
    fclose(f);
    if (failed)
        return err_errno(err, errnum, "%s", path);
    if (total > cap || to->overflow)
        return err_set(err, ERR_INVALID, "%s: larger than %zu bytes", path, cap);
    return 0;
}
