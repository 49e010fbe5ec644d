/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft explain: why a pod is pending, where it would go, what a node is and holds. */

#include <time.h>

#include "cmd/manifests.h"
#include "cmd/table.h"
#include "provisioner/solve/solve.h"
#include "provisioner/solve/why.h"

struct explain_options {
    const char **files;
    const char *catalog;
};

static const struct option explain_table[] = {
    {.kind = OPTION_KIND_LIST,
     .name = "filename",
     .short_name = 'f',
     .offset = offsetof(struct explain_options, files),
     .help = "manifests to read: files, folders, or - for standard input"},
    OPTION_STRING(struct explain_options, catalog, "catalog", NULL,
                  "file of instance types, offerings and prices; the built-in table when absent"),
    OPTION_END,
};

static int explain(const struct command *c, const struct world *w, const char *kind,
                   const char *name)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    CLEANUP(buf_release) struct buf key = BUF_INIT;
    const struct solve_options options = {.no_bound = true};
    struct plan *plan = solve(w, &options);
    int code = EXIT_DONE;
    if (strcmp(kind, "pod") == 0) {
        buf_printf(&key, "%s%s", strchr(name, '/') ? "" : "default/", name);
        const struct world_pod *pod = world_find_pod(w, key.data);
        if (pod)
            why_explain_pod(w, plan, pod, &out);
        else
            code = cmd_fail(c, EXIT_WRONG, "there is no pod %s that needs a place", key.data);
    } else {
        const struct world_node *node = world_find_node(w, name);
        if (node)
            why_explain_node(w, plan, node, &out);
        else
            code = cmd_fail(c, EXIT_WRONG, "there is no node %s", name);
    }
    if (out.len)
        fwrite(out.data, 1, out.len, stdout);
    plan_free(plan);
    return code;
}

static int explain_manifests(const struct command *c, const struct explain_options *o,
                             const char *kind, const char *name)
{
    struct err err = ERR_INIT;
    CLEANUP(manifests_release) struct manifests m = {0};
    for (size_t i = 0; o->files[i]; i++)
        if (manifests_read(&m, o->files[i], &err) < 0)
            return cmd_fail(c, err.code == ERR_RETRY ? EXIT_OUTSIDE : EXIT_WRONG, "%s", err.msg);
    struct catalog *catalog = manifests_catalog(o->catalog, &err);
    if (!catalog)
        return cmd_fail(c, cmd_exit_code(&err), "%s", err.msg);
    struct world *w = manifests_world(&m, catalog, (int64_t)time(NULL) * NS_PER_S, &err);
    int code = w ? explain(c, w, kind, name) : cmd_fail(c, cmd_exit_code(&err), "%s", err.msg);
    world_free(w);
    catalog_unref(catalog);
    return code;
}

static int explain_run(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct explain_options o = {0};
    struct schema_args args = {0};
    const struct command *c = &command_explain;
    int code = cmd_options(c, argc, argv, &a, &o, &args);
    if (code >= 0)
        return code;
    struct str rest = args.n == 1 ? str_from(args.v[0]) : STR_NONE, kind;
    if (!str_split(&rest, '/', &kind) || rest.len == 0 ||
        !(str_eq(kind, STR("pod")) || str_eq(kind, STR("node"))))
        return cmd_fail(c, EXIT_USAGE, "name one thing: pod/NAMESPACE/NAME or node/NAME");
    if (!o.files || !o.files[0])
        return cmd_fail(c, EXIT_USAGE,
                        "nothing to read: name manifests with -f (see: weft explain --help)");
    return explain_manifests(c, &o, arena_cstr(&a, kind), arena_cstr(&a, rest));
}

const struct command command_explain = {
    .name = "explain",
    .arguments = "pod/NAMESPACE/NAME|node/NAME -f PATH... [--catalog FILE]",
    .summary = "tell why a pod is pending or where it would go, and what a node is and holds",
    .options = explain_table,
    .run = explain_run,
};
