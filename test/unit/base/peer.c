/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "test/unit/base/peer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/num.h"

#define CONNECTIONS_MAX 1024

struct peer_state {
    pthread_t acceptor;
    pthread_mutex_t lock; /* guards what follows and peer.tls */
    pthread_t threads[CONNECTIONS_MAX];
    int fds[CONNECTIONS_MAX]; /* -1: closed */
    int n, requests;
    bool stopping;
};

/* A close with bytes unread would reset the connection and take the alert back that says why. */
static void linger(int fd)
{
    char rest[4096];
    shutdown(fd, SHUT_WR);
    while (read(fd, rest, sizeof(rest)) > 0)
        ;
}

static void *connection_main(void *arg)
{
    struct peer_conn *c = arg;
    struct peer_state *s = c->peer->state;
    if (!c->ssl || SSL_accept(c->ssl) == 1)
        c->peer->serve(c);
    else
        linger(c->fd);
    if (c->ssl) {
        SSL_shutdown(c->ssl);
        SSL_free(c->ssl);
    }
    pthread_mutex_lock(&s->lock);
    s->fds[c->nth] = -1;
    pthread_mutex_unlock(&s->lock);
    close(c->fd);
    free(c);
    return NULL;
}

static void *accept_main(void *arg)
{
    struct peer *p = arg;
    struct peer_state *s = p->state;
    for (;;) {
        int fd = accept(p->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        struct peer_conn *c = xcalloc(1, sizeof(*c));
        *c = (struct peer_conn){.peer = p, .fd = fd};
        pthread_mutex_lock(&s->lock);
        assert(s->n < CONNECTIONS_MAX);
        c->nth = s->n++;
        s->fds[c->nth] = fd;
        if (p->tls) {
            c->ssl = SSL_new(p->tls);
            SSL_set_fd(c->ssl, fd);
        }
        if (s->stopping)
            shutdown(fd, SHUT_RDWR);
        int failed = pthread_create(&s->threads[c->nth], NULL, connection_main, c);
        assert(!failed);
        pthread_mutex_unlock(&s->lock);
    }
}

void peer_start(struct peer *p, void (*serve)(struct peer_conn *c), void *arg, SSL_CTX *tls)
{
    *p = (struct peer){.serve = serve, .arg = arg, .tls = tls};
    p->state = xcalloc(1, sizeof(*p->state));
    pthread_mutex_init(&p->state->lock, NULL);
    sem_init(&p->go, 0, 0);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int failed = bind(p->listener, (struct sockaddr *)&at, sizeof(at)) | listen(p->listener, 128) |
                 getsockname(p->listener, (struct sockaddr *)&at, &len);
    assert(!failed);
    p->port = ntohs(at.sin_port);
    failed = pthread_create(&p->state->acceptor, NULL, accept_main, p);
    assert(!failed);
}

void peer_stop(struct peer *p)
{
    struct peer_state *s = p->state;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    for (int i = 0; i < s->n; i++)
        if (s->fds[i] >= 0)
            shutdown(s->fds[i], SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(s->acceptor, NULL);
    close(p->listener);
    for (int i = 0; i < s->n; i++) {
        sem_post(&p->go);
        pthread_join(s->threads[i], NULL);
    }
    SSL_CTX_free(p->tls);
    sem_destroy(&p->go);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void peer_set_tls(struct peer *p, SSL_CTX *tls)
{
    pthread_mutex_lock(&p->state->lock);
    SSL_CTX_free(p->tls);
    p->tls = tls;
    pthread_mutex_unlock(&p->state->lock);
}

int peer_connections(struct peer *p)
{
    pthread_mutex_lock(&p->state->lock);
    int n = p->state->n;
    pthread_mutex_unlock(&p->state->lock);
    return n;
}

int peer_requests(struct peer *p)
{
    pthread_mutex_lock(&p->state->lock);
    int n = p->state->requests;
    pthread_mutex_unlock(&p->state->lock);
    return n;
}

static ssize_t read_some(struct peer_conn *c, char *out, size_t n)
{
    return c->ssl ? SSL_read(c->ssl, out, (int)n) : read(c->fd, out, n);
}

static size_t content_length(struct str head)
{
    size_t at = str_find(head, STR("Content-Length: "), 0);
    if (at == SIZE_MAX)
        return 0;
    int64_t n = 0;
    at += 16;
    num_parse_i64(str_sub(head, at, str_find_char(head, '\r', at)), &n, NULL);
    return (size_t)n;
}

/* Length of the first whole request in what was read, or 0. */
static size_t whole(const struct peer_conn *c)
{
    struct str got = {c->request, c->request_n};
    size_t end = str_find(got, STR("\r\n\r\n"), 0);
    if (end == SIZE_MAX)
        return 0;
    size_t len = end + 4 + content_length(str_sub(got, 0, end + 2));
    return len <= got.len ? len : 0;
}

bool peer_read_request(struct peer_conn *c)
{
    c->request_n -= c->request_len;
    memmove(c->request, c->request + c->request_len, c->request_n);
    while ((c->request_len = whole(c)) == 0) {
        ssize_t n = read_some(c, c->request + c->request_n, sizeof(c->request) - c->request_n);
        if (n <= 0)
            return false;
        c->request_n += (size_t)n;
    }
    pthread_mutex_lock(&c->peer->state->lock);
    c->peer->state->requests++;
    pthread_mutex_unlock(&c->peer->state->lock);
    return true;
}

struct str peer_request(const struct peer_conn *c)
{
    return (struct str){c->request, c->request_len};
}

bool peer_write_bytes(struct peer_conn *c, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        ssize_t sent = c->ssl ? SSL_write(c->ssl, at, (int)n) : send(c->fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

bool peer_write(struct peer_conn *c, const char *text)
{
    return peer_write_bytes(c, text, strlen(text));
}

void peer_url(const struct peer *p, const char *path, char out[128])
{
    snprintf(out, 128, "%s://127.0.0.1:%u%s", p->tls ? "https" : "http", (unsigned)p->port, path);
}
