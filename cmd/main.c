/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft's entry: finds the subcommand and hands over. */

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd/table.h"

const struct command *const commands[] = {
    &command_run,  &command_plan, &command_explain, &command_simulate,
    &command_lint, &command_crds, &command_version, NULL,
};

bool cmd_is_terminal(int fd)
{
    return isatty(fd) == 1;
}

bool cmd_use_colour(int fd)
{
    const char *no_color = env_get("NO_COLOR");
    return cmd_is_terminal(fd) && !(no_color && *no_color);
}

unsigned cmd_columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col;
    return 100;
}

int cmd_fail(const struct command *c, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "weft %s: ", c->name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

int cmd_exit_code(const struct err *err)
{
    switch (err->code) {
    case ERR_RETRY:
    case ERR_DENIED:
    case ERR_THROTTLED:
    case ERR_UNKNOWN:
    case ERR_CAPACITY:
    case ERR_GONE:
    case ERR_CONFLICT:
        return EXIT_OUTSIDE;
    default:
        return EXIT_WRONG;
    }
}

static void print_command_help(const struct command *c)
{
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    buf_printf(&out, "usage: weft %s %s\n\n%s\n", c->name, c->arguments, c->summary);
    if (c->about)
        buf_printf(&out, "\n%s\n", c->about);
    if (c->options && c->options[0].kind != OPTION_KIND_END) {
        buf_cstr(&out, "\noptions:\n");
        schema_help(c->options, cmd_columns(STDOUT_FILENO), &out);
    }
    fwrite(out.data, 1, out.len, stdout);
}

int cmd_options(const struct command *c, int argc, char **argv, struct arena *a, void *to,
                struct schema_args *ret_args)
{
    struct err err = ERR_INIT;
    bool help = false;
    if (schema_read(c->options, argc, argv, a, to, ret_args, &help, &err) < 0)
        return cmd_fail(c, EXIT_USAGE, "%s (see: weft %s --help)", err.msg, c->name);
    if (help) {
        print_command_help(c);
        return EXIT_DONE;
    }
    return -1;
}

static void print_help(FILE *to)
{
    fprintf(to, "weft: nodes for pods, pods for signals, at the lowest price, with the proof.\n\n"
                "usage: weft COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; commands[i]; i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(to, "\nweft COMMAND --help tells more.\n");
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const struct command *near = NULL;
    unsigned best = 3;
    for (size_t i = 0; commands[i]; i++) {
        unsigned d = str_distance(str_from(name), str_from(commands[i]->name), best);
        if (d < best) {
            best = d;
            near = commands[i];
        }
    }
    fprintf(stderr, "weft: there is no command '%.40s'%s%s%s (see: weft --help)\n", name,
            near ? "; did you mean '" : "", near ? near->name : "", near ? "'?" : "");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (strcmp(name, "--version") == 0)
        name = "version";
    const struct command *c = find_command(name);
    if (!c)
        return unknown_command(name);
    int code = c->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "weft %s: cannot write to standard output\n", c->name);
        return EXIT_OUTSIDE;
    }
    return code;
}
