/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* RESP2, the protocol of Redis: commands out, replies in (hiredis' reader, only in resp.c).
 *
 * Bounded: a reply has at most RESP_ELEMENTS_MAX elements, RESP_DEPTH_MAX levels and RESP_BYTES_MAX
 * bytes; anything else is an error, as are bytes that are no RESP at all. */
#ifndef SCALERS_RESP_H
#define SCALERS_RESP_H

#include "base/buf.h"
#include "base/err.h"

#define RESP_ELEMENTS_MAX 1024
#define RESP_BYTES_MAX (1024 * 1024)

enum resp_type { RESP_STRING, RESP_STATUS, RESP_ERROR, RESP_INTEGER, RESP_NIL, RESP_ARRAY };

struct resp_reply {
    enum resp_type type;
    int64_t integer;
    struct str text; /* string, status, error; NUL-terminated */
    size_t n;
    struct resp_reply **items; /* none is NULL */
};

struct resp_reader;

struct resp_reader *resp_reader_new(void);
void resp_reader_free(struct resp_reader *r); /* NULL is harmless */
/* After an error the reader only repeats it. */
int resp_reader_feed(struct resp_reader *r, struct str bytes, struct err *err);
/* The next whole reply; *ret NULL when more bytes are needed. The caller frees it. */
int resp_reader_next(struct resp_reader *r, struct resp_reply **ret, struct err *err);
void resp_reply_free(struct resp_reply *reply); /* NULL is harmless */

/* Appends a command as an array of bulk strings. */
void resp_command(struct buf *out, const struct str *words, size_t n);

#endif
