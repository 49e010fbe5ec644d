/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft lint: annotations, NodePools and node classes, checked as the controller would check them.
 */

#include <stdio.h>

#include "base/yml.h"
#include "cmd/manifests.h"
#include "cmd/table.h"
#include "kube/api/nodeclass.h"
#include "kube/api/nodepool.h"
#include "kube/api/workload.h"
#include "scalers/annotations.h"
#include "scalers/scaler.h"

struct lint_options {
    const char *output;
};

static const struct option lint_table[] = {
    {.kind = OPTION_KIND_ENUM,
     .name = "output",
     .short_name = 'o',
     .offset = offsetof(struct lint_options, output),
     .standard = "text",
     .values = "text|json",
     .help = "text is file:line:column: message, json one object a line"},
    OPTION_END,
};

struct lint {
    bool json;
    size_t objects, errors, warnings;
    const char *file;
};

static void report(struct lint *l, bool warning, struct json_pos pos, const char *message)
{
    l->errors += !warning;
    l->warnings += warning;
    if (!l->json) {
        printf("%s:%u:%u: %s%s\n", l->file, pos.line, pos.column, warning ? "warning: " : "",
               message);
        return;
    }
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &out, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "file", l->file);
    json_w_ki64(&w, "line", pos.line);
    json_w_ki64(&w, "column", pos.column);
    json_w_kcstr(&w, "severity", warning ? "warning" : "error");
    json_w_kcstr(&w, "message", message);
    json_w_object_end(&w);
    printf("%s\n", out.data);
}

/* Where the path of a message ("spec.weight: …", "spec.limits.cpu: …") stands in the document: the
 * deepest part of it that is there. */
static struct json_pos find_path(const struct json *document, const char *message)
{
    struct json_pos pos = document->pos;
    const struct json *at = document;
    struct str rest = str_sub(str_from(message), 0, str_find(str_from(message), STR(": "), 0)),
               part;
    while (at && str_split(&rest, '.', &part)) {
        size_t bracket = str_find_char(part, '[', 0);
        at = json_get_str(at, str_sub(part, 0, bracket));
        if (at && bracket != SIZE_MAX) {
            const char *index = part.p + bracket + 1;
            size_t i = 0;
            for (; *index >= '0' && *index <= '9'; index++)
                i = i * 10 + (size_t)(*index - '0');
            at = at->type == JSON_ARRAY && i < at->n ? at->items[i] : NULL;
        }
        if (at)
            pos = at->pos;
    }
    return pos;
}

/* A position within an annotation's value, in the file. The text of a block scalar begins on the
 * line after its header, indented; that of other scalars on the same line. */
static struct json_pos within(const struct json *value, struct json_pos inner,
                              const char *source_line)
{
    struct json_pos pos = value->pos;
    bool block = source_line && (*source_line == '|' || *source_line == '>');
    if (inner.line == 0)
        return pos;
    if (block) {
        pos.line += inner.line;
        const char *line = strchr(source_line, '\n');
        uint32_t indent = 0;
        while (line && line[1 + indent] == ' ')
            indent++;
        pos.column = inner.column + indent;
    } else if (inner.line == 1) {
        pos.column += inner.column;
    }
    return pos;
}

/* The source text that starts at a position. */
static const char *source_at(struct str text, struct json_pos pos)
{
    size_t at = 0;
    for (uint32_t line = 1; line < pos.line && at != SIZE_MAX; line++) {
        at = str_find_char(text, '\n', at);
        at = at == SIZE_MAX ? at : at + 1;
    }
    return at == SIZE_MAX || at + pos.column > text.len || pos.column == 0
               ? NULL
               : text.p + at + pos.column - 1;
}

static void check_workload(struct lint *l, const struct json *document, const struct workload *w,
                           struct str text)
{
    const struct json *notes = json_at(document, "metadata", "annotations", NULL);
    const struct labels *inner = &w->template_.annotations;
    for (uint32_t i = 0; i < inner->n; i++)
        if (str_has_prefix(str_from(inner->v[i].key), STR(ANNOTATION_PREFIX "triggers")))
            report(l, true,
                   json_at(document, "spec", "template", "metadata", "annotations", NULL)->pos,
                   "weft.sh/triggers belongs on the workload itself; on the pod template it does "
                   "nothing but restart pods");
    if (!annotations_present(&w->obj.meta.annotations))
        return;
    struct annotations *a =
        annotations_parse(&w->obj.meta.annotations, w->obj.meta.name, scaler_schema);
    for (size_t i = 0; i < a->n_problems; i++) {
        const struct annotation_problem *p = &a->problems[i];
        const struct json *value = json_get(notes, p->key);
        CLEANUP(buf_release) struct buf message = BUF_INIT;
        struct annotation_problem plain = *p;
        plain.pos = (struct json_pos){0, 0};
        annotation_problem_print(&plain, &message);
        report(l, p->warning,
               value ? within(value, p->pos, source_at(text, value->pos)) : document->pos,
               message.data);
    }
    annotations_free(a);
}

static void check_object(struct lint *l, const struct json *document, struct object *o,
                         struct str text)
{
    struct err err = ERR_INIT;
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct sim_nodeclass_spec spec;
    l->objects++;
    if (o->kind == &kind_nodepool && nodepool_validate(nodepool_of(o), &err) < 0)
        report(l, false, find_path(document, err.msg), err.msg);
    else if (o->kind == &kind_sim_nodeclass &&
             sim_nodeclass_decode(nodeclass_of(o), &a, &spec, &err) < 0)
        report(l, false, find_path(document, err.msg), err.msg);
    else if (o->kind == &kind_deployment || o->kind == &kind_statefulset)
        check_workload(l, document, workload_of(o), text);
}

static void check_document(struct lint *l, const struct json *document, struct str text,
                           unsigned depth)
{
    struct err err = ERR_INIT;
    struct str version = json_text(json_get(document, "apiVersion")),
               kind = json_text(json_get(document, "kind"));
    const struct json *items = json_get(document, "items");
    if (str_has_suffix(kind, STR("List")) && items && items->type == JSON_ARRAY && depth == 0) {
        for (size_t i = 0; i < items->n; i++)
            check_document(l, items->items[i], text, 1);
        return;
    }
    if (document->type != JSON_OBJECT || kind.len == 0 || version.len == 0) {
        report(l, false, document->pos, "not a Kubernetes object: apiVersion or kind is missing");
        return;
    }
    const struct kind *k = kind_find(version, kind, true);
    if (!k)
        return;
    struct object *o = object_from_json(k, document, NULL, &err);
    if (o)
        check_object(l, document, o, text);
    else
        report(l, false, find_path(document, err.msg), err.msg);
    object_unref(o);
}

static int check_text(void *arg, const char *name, struct str text, struct err *ret UNUSED)
{
    struct lint *l = arg;
    struct err err = ERR_INIT;
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct yml_documents documents;
    l->file = name;
    if (yml_parse(&a, text, NULL, &documents, &err) < 0) {
        /* The reader says "line:column: message" itself. */
        l->errors++;
        printf("%s:%s\n", name, err.msg);
        return 0;
    }
    for (size_t i = 0; i < documents.n; i++)
        check_document(l, documents.v[i], text, 0);
    return 0;
}

static int lint_run(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = ARENA_INIT;
    struct lint_options o = {0};
    struct schema_args args = {0};
    struct err err = ERR_INIT;
    int code = cmd_options(&command_lint, argc, argv, &a, &o, &args);
    if (code >= 0)
        return code;
    if (args.n == 0)
        return cmd_fail(&command_lint, EXIT_USAGE,
                        "name files or folders, or - for standard input");
    struct lint l = {.json = strcmp(o.output, "json") == 0};
    for (size_t i = 0; i < args.n; i++)
        if (manifests_each(args.v[i], check_text, &l, &err) < 0)
            return cmd_fail(&command_lint, EXIT_WRONG, "%s", err.msg);
    if (!l.json)
        fprintf(stderr, "%zu objects read, %zu errors, %zu warnings\n", l.objects, l.errors,
                l.warnings);
    return l.errors ? EXIT_WRONG : EXIT_DONE;
}

const struct command command_lint = {
    .name = "lint",
    .arguments = "PATH… [-o text|json]",
    .summary = "check annotations, NodePools and node classes",
    .about = "Prints file:line:column: message for each fault and ends with 1 if there was an "
             "error. Objects of\n"
             "kinds that weft does not read are passed over.",
    .options = lint_table,
    .run = lint_run,
};
