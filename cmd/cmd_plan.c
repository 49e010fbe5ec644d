/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft plan: what would be launched, placed and refused, and how far from the least that is. */

#include <time.h>
#include <unistd.h>

#include "cmd/manifests.h"
#include "cmd/table.h"
#include "provisioner/solve/solve.h"

struct plan_options {
    const char **files;
    const char *catalog, *output;
    int64_t work;
};

static const struct option plan_table[] = {
    {.kind = OPTION_KIND_LIST,
     .name = "filename",
     .short_name = 'f',
     .offset = offsetof(struct plan_options, files),
     .help = "manifests to read: files, folders, or - for standard input"},
    OPTION_STRING(struct plan_options, catalog, "catalog", NULL,
                  "file of instance types, offerings and prices; the built-in table when absent"),
    {.kind = OPTION_KIND_ENUM,
     .name = "output",
     .short_name = 'o',
     .offset = offsetof(struct plan_options, output),
     .standard = "text",
     .values = "text|json",
     .help = "how to print it"},
    OPTION_INT(struct plan_options, work, "work", "0", 0, INT64_MAX,
               "steps to spend on a cheaper plan and a tighter bound; 0: the standard"),
    OPTION_END,
};

static int64_t microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void print_plan(const struct plan *plan, const char *output)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    const struct plan_print_options print = {.columns = cmd_columns(STDOUT_FILENO),
                                             .colour = cmd_use_colour(STDOUT_FILENO),
                                             .certificate = true};
    if (strcmp(output, "json") == 0)
        plan_print_json(plan, &print, &out);
    else
        plan_print_text(plan, &print, &out);
    fwrite(out.data, 1, out.len, stdout);
}

static int plan_world(const struct world *w, const struct plan_options *o, int64_t decode_us)
{
    int64_t start = microseconds();
    const struct solve_options first = {.work = o->work, .no_bound = true};
    plan_free(solve(w, &first)); /* only to tell how long the first answer takes */
    int64_t greedy = microseconds();
    const struct solve_options full = {.work = o->work};
    struct plan *plan = solve(w, &full);
    plan->timing.decode_us = decode_us;
    plan->timing.greedy_us = greedy - start;
    plan->timing.solve_us = microseconds() - greedy;
    print_plan(plan, o->output);
    int code = plan->n_refusals ? EXIT_WRONG : EXIT_DONE;
    plan_free(plan);
    return code;
}

static int plan_manifests(const struct command *c, const struct manifests *m,
                          const struct plan_options *o, int64_t start)
{
    struct err err = ERR_INIT;
    struct catalog *catalog = manifests_catalog(o->catalog, &err);
    if (!catalog)
        return cmd_fail(c, cmd_exit_code(&err), "%s", err.msg);
    struct world *w = manifests_world(m, catalog, (int64_t)time(NULL) * NS_PER_S, &err);
    int code = w ? plan_world(w, o, microseconds() - start)
                 : cmd_fail(c, cmd_exit_code(&err), "%s", err.msg);
    world_free(w);
    catalog_unref(catalog);
    return code;
}

static int plan_run(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct plan_options o = {0};
    struct schema_args args = {0};
    int code = cmd_options(&command_plan, argc, argv, &a, &o, &args);
    if (code >= 0)
        return code;
    if (args.n)
        return cmd_fail(&command_plan, EXIT_USAGE,
                        "'%s' is not an option; manifests are named with -f", args.v[0]);
    if (!o.files || !o.files[0])
        return cmd_fail(&command_plan, EXIT_USAGE,
                        "nothing to read: name manifests with -f (see: weft plan --help)");
    int64_t start = microseconds();
    CLEANUP(manifests_release) struct manifests m = {0};
    struct err err = ERR_INIT;
    for (size_t i = 0; o.files[i]; i++)
        if (manifests_read(&m, o.files[i], &err) < 0)
            return cmd_fail(&command_plan, err.code == ERR_RETRY ? EXIT_OUTSIDE : EXIT_WRONG, "%s",
                            err.msg);
    return plan_manifests(&command_plan, &m, &o, start);
}

const struct command command_plan = {
    .name = "plan",
    .arguments = "-f PATH... [--catalog FILE] [-o text|json]",
    .summary =
        "print what would be launched, placed and refused, its price and the proven lower bound",
    .about = "Reads manifests and touches nothing. Workloads that have no pods yet are planned for "
             "from their\n"
             "template. Exit code 1 says that some pod cannot be placed.",
    .options = plan_table,
    .run = plan_run,
};
