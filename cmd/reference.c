/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft-reference FOLDER: writes the generated pages of docs/reference, from the tables that the
 * program uses. Not installed; `make docs` runs it, and a test compares. */

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/worker.h"
#include "cmd/run_options.h"
#include "cmd/sim_world.h"
#include "cmd/table.h"
#include "provisioner/control/control.h"
#include "scalers/annotations.h"
#include "scalers/workload.h"

static int write_page(const char *folder, const char *name, const struct buf *text)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(text->data, 1, text->len, f) != text->len || fclose(f) != 0) {
        fprintf(stderr, "weft-reference: %s: %s\n", path, strerror(errno));
        return -1;
    }
    return 0;
}

static void options_page(struct buf *out)
{
    buf_cstr(out, "# Options\n\nEach option is a flag, a key of the YAML file that `--config` "
                  "names, and an environment variable: "
                  "`WEFT_`\nand the name in upper case with `_` for `-`. Flags win over the "
                  "environment, the environment over the "
                  "file.\n");
    for (size_t i = 0; commands[i]; i++) {
        buf_printf(out, "\n## weft %s\n\n%s.\n\n", commands[i]->name, commands[i]->summary);
        schema_docs(commands[i]->options, out);
    }
}

static void annotations_page(struct buf *out)
{
    buf_cstr(out,
             "# Annotations\n\nGenerated from the table that the program reads annotations with. "
             "See [scaling](../guide/scaling.md).\n\n");
    annotations_docs(out);
}

static void triggers_page(struct buf *out)
{
    buf_cstr(out, "# Triggers\n\nThe parameters of each trigger type, under `metadata` or from its "
                  "authentication.\n\n");
    scaler_docs(out);
}

/* The rooms declare their metrics when they are made, so they are made, on a loop that never turns.
 */
static void metrics_page(struct buf *out)
{
    struct sim_world world;
    struct kube_config config = {.server = "http://none"};
    struct metrics *m = metrics_new();
    sim_world_init(&world, NULL);
    struct worker *worker = worker_new(world.loop, 1);
    const struct client_options o = {.metrics = m};
    struct client *client = client_new(world.loop, world.http, worker, &config, &o, NULL);
    struct control *control = control_new(world.loop, worker, client, NULL, m, &world.cloud, 1,
                                          &(struct control_options){0});
    struct scalers *scalers = scalers_new(client, NULL, &(struct scalers_options){.metrics = m});
    buf_cstr(out, "# Metrics\n\nOn `/metrics`, in the Prometheus text format. Names that "
                  "dashboards for Karpenter and KEDA use are "
                  "kept.\n\n");
    metrics_docs(m, out);
    scalers_free(scalers);
    control_free(control);
    client_free(client);
    worker_free(worker);
    sim_world_release(&world);
    metrics_free(m);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(struct buf *out);
    } pages[] = {
        {"options.md", options_page},
        {"annotations.md", annotations_page},
        {"triggers.md", triggers_page},
        {"metrics.md", metrics_page},
    };
    if (argc != 2) {
        fprintf(stderr, "usage: weft-reference FOLDER\n");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        CLEANUP(buf_release) struct buf text = BUF_INIT;
        pages[i].write(&text);
        if (write_page(argv[1], pages[i].name, &text) < 0)
            return EXIT_OUTSIDE;
    }
    return EXIT_DONE;
}
