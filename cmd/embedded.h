/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Files of the tree that the program carries inside (cmake/embed.cmake). */
#ifndef CMD_EMBEDDED_H
#define CMD_EMBEDDED_H

#include <stddef.h>

struct embedded {
    const char *name; /* NULL ends the array */
    const char *text;
    size_t len;
};

extern const struct embedded embedded_crds[];

#endif
