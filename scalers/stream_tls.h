/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* TLS between two buffers: ciphertext in, plain text out, and the other way (OpenSSL). */
#ifndef SCALERS_STREAM_TLS_H
#define SCALERS_STREAM_TLS_H

#include "base/buf.h"
#include "base/err.h"
#include "scalers/stream.h"

struct stream_tls_session;

/* ERR_INVALID: a certificate or key that cannot be read; never says what is in it. */
struct stream_tls_session *stream_tls_new(const struct stream_tls *tls, const char *host,
                                          struct err *err);
void stream_tls_free(struct stream_tls_session *s); /* NULL is harmless */

/* Takes bytes of the socket. While `handshaking`, sets *ret_done once the handshake is over;
 * afterwards hands plain text to `data`. DENIED: the server is not who it should be. */
int stream_tls_input(struct stream_tls_session *s, struct str bytes, bool *ret_done,
                     void (*data)(void *arg, struct str plain), void *arg, bool handshaking,
                     struct err *err);
void stream_tls_write(struct stream_tls_session *s, struct str plain);
/* Appends what the socket should send. */
void stream_tls_output(struct stream_tls_session *s, struct buf *out);

#endif
