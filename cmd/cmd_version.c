/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft version. */

#include <stdio.h>

#include "base/arena.h"
#include "cmd/table.h"

struct version_options {
    const char *output;
};

static const struct option version_table[] = {
    {.kind = OPTION_KIND_ENUM,
     .name = "output",
     .short_name = 'o',
     .offset = offsetof(struct version_options, output),
     .standard = "text",
     .values = "text|json",
     .help = "how to print it"},
    OPTION_END,
};

static int version_run(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct version_options o = {0};
    struct schema_args args = {0};
    int code = cmd_options(&command_version, argc, argv, &a, &o, &args);
    if (code >= 0)
        return code;
    if (strcmp(o.output, "json") == 0)
        printf("{\"version\": \"%s\"}\n", WEFT_VERSION);
    else
        printf("weft %s\n", WEFT_VERSION);
    return EXIT_DONE;
}

const struct command command_version = {
    .name = "version",
    .arguments = "[-o text|json]",
    .summary = "print the version",
    .options = version_table,
    .run = version_run,
};
