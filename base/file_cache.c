/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Files by path; what tells a change is what stat says. */

#include "base/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

struct file {
    char *path; /* NULL: free */
    char *bytes;
    size_t len;
    struct stat as_read;
    uint64_t used; /* the cache's clock at the last use */
};

struct file_cache {
    struct file files[FILE_CACHE_FILES_MAX];
    uint64_t clock;
};

struct file_cache *file_cache_new(void)
{
    return xcalloc(1, sizeof(struct file_cache));
}

static void wipe(char **bytes, size_t len)
{
    if (*bytes)
        explicit_bzero(*bytes, len);
    free(*bytes);
    *bytes = NULL;
}

static void drop(struct file *f)
{
    wipe(&f->bytes, f->len);
    free(f->path);
    *f = (struct file){0};
}

void file_cache_free(struct file_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < ARRAY_LEN(c->files); i++)
        drop(&c->files[i]);
    free(c);
}

/* The file's place: its own, a free one, or that of the longest unused. */
static struct file *place_of(struct file_cache *c, const char *path)
{
    struct file *best = &c->files[0];
    for (size_t i = 0; i < ARRAY_LEN(c->files); i++) {
        struct file *f = &c->files[i];
        if (f->path && strcmp(f->path, path) == 0)
            return f;
        if (f->used < best->used)
            best = f;
    }
    drop(best);
    best->path = xstrdup(path);
    return best;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Reads an open file whole. The state is taken before the bytes, so that a write in between shows
 * at the next use. Returns an errno value. */
static int read_whole(int fd, struct file *f)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EINVAL;
    if ((uint64_t)st.st_size > FILE_CACHE_BYTES_MAX)
        return EFBIG;
    size_t size = (size_t)st.st_size, len = 0;
    char *bytes = xmalloc(size + 1);
    ssize_t n = 1;
    while (len < size && (n = read(fd, bytes + len, size - len)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0 || len == 0) {
        int why = n < 0 ? errno : ENODATA;
        wipe(&bytes, size);
        return why;
    }
    bytes[len] = '\0';
    wipe(&f->bytes, f->len);
    f->bytes = bytes;
    f->len = len;
    f->as_read = st;
    return 0;
}

int file_cache_get(struct file_cache *c, const char *path, struct str *ret_bytes, struct err *err)
{
    struct file *f = place_of(c, path);
    f->used = ++c->clock;
    struct stat st;
    if (!f->bytes || (stat(path, &st) == 0 && !same(&st, &f->as_read))) {
        /* Without O_NONBLOCK a named pipe in the file's place would stop the loop. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        int why = fd < 0 ? errno : read_whole(fd, f);
        if (fd >= 0)
            close(fd);
        if (!f->bytes)
            return err_set(err, ERR_INVALID, "cannot read %.300s: %s", path, strerror(why));
    }
    *ret_bytes = (struct str){f->bytes, f->len};
    return 0;
}
