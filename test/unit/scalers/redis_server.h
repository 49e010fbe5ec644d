/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A real redis-server on loopback for tests: with a password, and on a second port with TLS that
 * asks for client certificates. */
#ifndef TEST_UNIT_SCALERS_REDIS_SERVER_H
#define TEST_UNIT_SCALERS_REDIS_SERVER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

struct redis_server_process {
    char folder[64];
    pid_t pid;
    uint16_t port, tls_port;
    char *ca_pem, *cert_pem, *key_pem, *other_ca_pem; /* the last did not sign anything here */
};

/* NULL on success, else why it cannot be had (to print after SKIPPED). */
const char *redis_server_start(struct redis_server_process *s, const char *password);
void redis_server_stop(struct redis_server_process *s); /* ends the process, removes the folder */

/* Sends inline commands, one a line, after AUTH, and waits for `n_replies` lines. */
void redis_server_do(const struct redis_server_process *s, const char *password,
                     const char *commands, int n_replies);

#endif
