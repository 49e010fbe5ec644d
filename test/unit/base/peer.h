/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A server on loopback that does exactly what a test says, byte for byte: each connection has a
 * thread that calls the test's function. */
#ifndef TEST_UNIT_BASE_PEER_H
#define TEST_UNIT_BASE_PEER_H

#include <openssl/ssl.h>
#include <semaphore.h>
#include <stdbool.h>

#include "base/str.h"

struct peer;

struct peer_conn {
    struct peer *peer;
    int fd, nth; /* nth: 0 for the first connection */
    SSL *ssl;    /* NULL: plain */
    char request[65536];
    size_t request_len, request_n;
};

struct peer {
    int listener;
    uint16_t port;
    void (*serve)(struct peer_conn *c);
    void *arg;
    SSL_CTX *tls; /* taken at accept; change it with peer_set_tls */
    sem_t go;     /* for the test to let the server go on */
    struct peer_state *state;
};

/* `tls` may be NULL; it becomes the peer's. */
void peer_start(struct peer *p, void (*serve)(struct peer_conn *c), void *arg, SSL_CTX *tls);
/* Shuts all connections down and waits for the threads. */
void peer_stop(struct peer *p);
void peer_set_tls(struct peer *p, SSL_CTX *tls);
int peer_connections(struct peer *p); /* accepted so far */
int peer_requests(struct peer *p);    /* read by peer_read_request so far */

/* Reads one request, head and body, into c->request (the one before is dropped). False at the end.
 */
bool peer_read_request(struct peer_conn *c);
struct str peer_request(const struct peer_conn *c);
bool peer_write(struct peer_conn *c, const char *text); /* false: the client is gone */
bool peer_write_bytes(struct peer_conn *c, const void *p, size_t n);
void peer_url(const struct peer *p, const char *path, char out[128]);

#endif
