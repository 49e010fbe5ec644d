/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft crds: the custom resource definitions, as they ship in deploy/crds. */

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/yml.h"
#include "cmd/embedded.h"
#include "cmd/table.h"

struct crds_options {
    const char *output;
};

static const struct option crds_table[] = {
    {.kind = OPTION_KIND_ENUM,
     .name = "output",
     .short_name = 'o',
     .offset = offsetof(struct crds_options, output),
     .standard = "yaml",
     .values = "yaml|json",
     .help = "yaml documents, or one json List"},
    OPTION_END,
};

static void print_yaml(void)
{
    for (const struct embedded *e = embedded_crds; e->name; e++)
        printf("---\n%.*s", (int)e->len, e->text);
}

static int print_json(struct arena *a, struct err *err)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &out, 2);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kcstr(&w, "kind", "List");
    json_w_karray(&w, "items");
    for (const struct embedded *e = embedded_crds; e->name; e++) {
        struct json *document = NULL;
        if (yml_parse_one(a, (struct str){e->text, e->len}, NULL, &document, err) < 0)
            return err_prefix(err, "%s", e->name);
        json_w_tree(&w, document);
    }
    json_w_array_end(&w);
    json_w_object_end(&w);
    printf("%.*s\n", (int)out.len, out.data);
    return 0;
}

static int crds_run(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct crds_options o = {0};
    struct schema_args args = {0};
    int code = cmd_options(&command_crds, argc, argv, &a, &o, &args);
    if (code >= 0)
        return code;
    struct err err = ERR_INIT;
    if (strcmp(o.output, "yaml") == 0)
        print_yaml();
    else if (print_json(&a, &err) < 0)
        return cmd_fail(&command_crds, EXIT_WRONG, "%s", err.msg);
    return EXIT_DONE;
}

const struct command command_crds = {
    .name = "crds",
    .arguments = "[-o yaml|json]",
    .summary = "print the custom resource definitions, for kubectl apply",
    .options = crds_table,
    .run = crds_run,
};
