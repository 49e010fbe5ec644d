/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The HTTP transport seam: send a request, receive chunks.
 *
 * Two implementations from the first day: http_curl (libcurl's multi interface on the loop) and the
 * simulators. Decorators (metrics, limits, faults) have the same vtable. Async contract: base/op.h.
 * Redirects are never followed by the transport. Bodies are bytes; the transport undoes
 * Content-Encoding. Nothing here logs a header or a body: they carry secrets. */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"

struct http_header {
    struct str name, value;
};

/* How to reach and trust a server. Immutable; the transport keeps a reference while in use. Files
 * are read again when they change, so that rotated certificates work without a restart. */
struct http_tls {
    const char *ca_file;              /* NULL: the system's */
    struct str ca_pem;                /* instead of a file */
    const char *cert_file, *key_file; /* client certificate */
    struct str cert_pem, key_pem;
    const char *server_name; /* for SNI and verification; NULL: from the URL */
    bool insecure;           /* no verification: only on a person's explicit word */
};

struct http_request {
    struct str method; /* "GET" … */
    struct str url;
    const struct http_header *headers;
    size_t n_headers;
    struct str body;
    int64_t timeout;      /* ns for the whole exchange; 0: the default, 30 s */
    int64_t idle_timeout; /* ns without a byte; for streams, whose `timeout` is TIME_NEVER; 0: none,
                           * or 5 min for those */
    size_t body_bytes_max; /* of the answer; 0: 1 GiB. Past it: ERR_INVALID */
    const struct http_tls *tls;
    const char *proxy; /* NULL: as the environment says; "": none */
    bool http1_only;
};

struct http_response {
    int status; /* 0: no answer came */
    const struct http_header *headers;
    size_t n_headers;
};

/* Called as things arrive; NULL members are skipped. */
struct http_handler {
    /* Once, before any chunk. Pointers die on return. */
    void (*head)(void *arg, const struct http_response *r);
    void (*chunk)(void *arg, struct str data);
    /* Exactly once. err NULL: the exchange is complete (any status). Codes: RETRY (connection
     * failed, timed out before sending), UNKNOWN (failed after the request may have been read),
     * DENIED (TLS: their certificate or ours is refused), INVALID (answer too large, bad URL, a
     * certificate file that cannot be read). A request with a body is never sent twice. */
    void (*done)(void *arg, int status, const struct err *err);
};

struct http_op;

struct http {
    const struct http_vtable *vt;
};

struct http_vtable {
    struct http_op *(*start)(struct http *h, const struct http_request *req,
                             const struct http_handler *handler, void *arg, struct err *err);
    void (*cancel)(struct http *h, struct http_op *op);
    void (*close)(struct http *h); /* frees; operations under way are cancelled */
};

static inline struct http_op *http_start(struct http *h, const struct http_request *req,
                                         const struct http_handler *handler, void *arg,
                                         struct err *err)
{
    return h->vt->start(h, req, handler, arg, err);
}
static inline void http_cancel(struct http *h, struct http_op *op)
{
    h->vt->cancel(h, op);
}
static inline void http_close(struct http *h)
{
    if (h)
        h->vt->close(h);
}

/* The real one. Connections are shared; HTTP/2 streams multiplex where the server offers it. */
struct http *http_curl_new(struct loop *l, struct err *err);

/* Value of a header, name compared without case; STR_NONE when absent. */
struct str http_header(const struct http_response *r, const char *name);
/* Retry-After as a delay: seconds or an HTTP date. -1 when absent or malformed. */
int64_t http_retry_after(const struct http_response *r, int64_t wall_now);
/* Appends `s` percent-encoded for a path segment or query value (RFC 3986 unreserved kept). */
struct buf;
void http_escape(struct buf *out, struct str s);

#endif
