/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The subcommands: one file each, one entry each in the array of main.c.
 *
 * A command's `run` gets the arguments after its name (argv[0] is the name) and returns the exit
 * code of the product contract. Errors are one line on stderr: cmd_fail prints "weft plan: …". */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include "base/err.h"
#include "base/schema.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_WRONG = 1, /* the input is wrong, or something could not be placed */
    EXIT_USAGE = 2,
    EXIT_OUTSIDE = 3, /* the API server or the cloud failed */
};

struct command {
    const char *name;
    const char *arguments; /* "-f PATH…" for the usage line */
    const char *summary;   /* one line */
    const char *about;     /* paragraphs under the usage line of --help; may be NULL */
    const struct option *options;
    int (*run)(int argc, char **argv);
};

extern const struct command command_run, command_plan, command_explain, command_simulate,
    command_lint, command_crds, command_version;

/* Ends with NULL. */
extern const struct command *const commands[];

/* Reads the command's options; on --help prints it to stdout. Returns -1 to go on, else the exit
 * code to return (DONE after help, USAGE with the line already printed). */
int cmd_options(const struct command *c, int argc, char **argv, struct arena *a, void *to,
                struct schema_args *ret_args);

/* Prints "weft NAME: message" and returns `code`. */
int cmd_fail(const struct command *c, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* INVALID, EXISTS …: WRONG; DENIED, RETRY, UNKNOWN …: OUTSIDE. */
int cmd_exit_code(const struct err *err);

/* Whether colour and progress may be shown on the descriptor (a terminal, and NO_COLOR unset). */
bool cmd_is_terminal(int fd);
bool cmd_use_colour(int fd);
unsigned cmd_columns(int fd); /* width of the terminal; 100 in a pipe */

#endif
