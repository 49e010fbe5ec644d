/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A stream of bytes to host:port on the loop, plain or in TLS: what triggers that speak their own
 * protocol (Redis and the like) stand on.
 *
 * Names are resolved on the worker; every address is tried in turn within one deadline. TLS needs
 * version 1.2, verifies the chain and the server's name, and knows client certificates. Link-local
 * addresses are refused, so that nobody reaches a cloud's metadata service through a trigger.
 * Async contract: base/op.h; callbacks never run before stream_open has returned. */
#ifndef SCALERS_STREAM_H
#define SCALERS_STREAM_H

#include "base/loop.h"
#include "base/str.h"
#include "base/worker.h"

struct stream;

/* Texts may be empty. Copied by stream_open. */
struct stream_tls {
    struct str ca_pem;            /* empty: the system's */
    struct str cert_pem, key_pem; /* client certificate; both or none */
    struct str key_password;
    const char *server_name; /* NULL: the host */
    bool insecure;           /* no verification: only on a person's explicit word */
};

struct stream_options {
    const char *host; /* name or address */
    uint16_t port;
    const struct stream_tls *tls; /* NULL: plain */
    int64_t timeout;              /* to connect and shake hands, ns */
};

struct stream_handler {
    void (*ready)(void *arg); /* once, before any data */
    void (*data)(void *arg, struct str bytes);
    /* At most once, last; the stream is gone then. DENIED: TLS verification; INVALID: certificates
     * that cannot be read; RETRY: everything else. */
    void (*closed)(void *arg, const struct err *err);
};

/* `worker` NULL: numeric addresses only. NULL with err: TLS material that cannot be read. */
struct stream *stream_open(struct loop *l, struct worker *w, const struct stream_options *o,
                           const struct stream_handler *handler, void *arg, struct err *err);
/* Queues bytes; before `ready` too. More than 1 MiB unsent closes the stream. */
void stream_write(struct stream *s, struct str bytes);
void stream_close(struct stream *s); /* silent; allowed in every callback; NULL is harmless */

/* "host:port", "[v6]:port": splits. ERR_INVALID names the text. */
int stream_parse_address(struct str text, struct str *ret_host, uint16_t *ret_port,
                         struct err *err);

#endif
