/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Runs a fuzz target over the files of the folders it is given: the seeds as a test. */
#include <dirent.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    struct buf b = BUF_INIT;
    char bytes[8192];
    size_t n;
    while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
        buf_add(&b, bytes, n);
    fclose(f);
    LLVMFuzzerTestOneInput((const uint8_t *)buf_view(&b).p, b.len);
    buf_release(&b);
    return 1;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        for (struct dirent *e; folder && (e = readdir(folder));) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
            if (e->d_name[0] != '.')
                n += replay_file(path);
        }
        if (folder)
            closedir(folder);
    }
    printf("%d seeds\n", n);
    return n ? 0 : 1;
}
