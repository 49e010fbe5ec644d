/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* weft's entry: finds the subcommand and hands over. */

#include <signal.h>
#include <stdio.h>

#include "base/str.h"
#include "cmd/table.h"

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
