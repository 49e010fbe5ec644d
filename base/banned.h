/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Functions that invite mistakes do not compile here; each line names what to use instead. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BANNED(fn, use) banned_##fn##_use_##use

#undef strcpy
#define strcpy(x, y) BANNED(strcpy, str_or_buf)
#undef strcat
#define strcat(x, y) BANNED(strcat, buf)
#undef strncpy
#define strncpy(x, y, n) BANNED(strncpy, str_or_buf)
#undef strncat
#define strncat(x, y, n) BANNED(strncat, buf)
#undef sprintf
#define sprintf(...) BANNED(sprintf, snprintf_or_buf_printf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf, vsnprintf)
#undef strtok
#define strtok(x, y) BANNED(strtok, str_split)
#undef atoi
#define atoi(x) BANNED(atoi, num_parse_i64)
#undef atol
#define atol(x) BANNED(atol, num_parse_i64)
#undef rand
#define rand() BANNED(rand, rng_u64)
#undef srand
#define srand(x) BANNED(srand, rng_init)
/* The environment is read once, in base/schema, so that every variable is in an option table. */
#undef getenv
#define getenv(x) BANNED(getenv, env_get)

#endif
