/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* What the two files of the libcurl transport share; private to base/http_curl*.c. */
#ifndef BASE_HTTP_CURL_H
#define BASE_HTTP_CURL_H

#include <curl/curl.h>

#include "base/arena.h"
#include "base/http.h"
#include "base/vec.h"

struct file_cache;
struct socket_watch;

struct http_curl {
    struct http http;
    struct loop *loop;
    CURLM *multi;
    struct loop_timer timer, deliver;
    struct http_op *ops;          /* all under way */
    struct socket_watch *watches; /* all sockets with transfers */
    struct file_cache *files;     /* certificates and keys */
    uint64_t arrivals;            /* lines of heads and pieces of bodies so far */
    bool seen_http2;
    struct loop_timer *looking; /* of the watch that is being looked at again; NULL: it is gone */
    unsigned depth;             /* calls of libcurl or of handlers under way */
    bool closing;               /* closed inside one of them: freed when it returns */
};

struct http_op {
    struct http_curl *owner;
    struct http_op *next, **at;
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    struct http_handler handler;
    void *arg;
    struct loop_timer idle; /* once cancelled: frees the operation */
    int64_t idle_timeout, last_byte;
    char *body;
    size_t body_len, body_sent;
    size_t answer_bytes, answer_bytes_max, header_bytes;
    bool head_sent, too_large, headers_too_large, dead, has_client_cert;
    int status;
    struct arena arena; /* the answer's headers */
    struct {
        VEC(struct http_header);
    } answer;
    char message[CURL_ERROR_SIZE];
};

/* Sets every option of op->easy; what it needs for longer is kept in `op`. */
int http_curl_options(struct http_op *op, const struct http_request *req, struct err *err);

/* libcurl's callbacks for lines of the head and for bytes of the body. */
size_t http_curl_on_header(char *data, size_t size, size_t n, void *op);
size_t http_curl_on_body(char *data, size_t size, size_t n, void *op);

#endif
