/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The table of subcommands, and what all of them need. */

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
