/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Starting, feeding and ending redis-server. */
#include "test/unit/scalers/redis_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"

extern char **environ;

static uint16_t free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        abort();
    close(fd);
    return ntohs(a.sin_port);
}

static pid_t spawn_quiet(char *const *argv)
{
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid = -1;
    int error = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return error ? -1 : pid;
}

static bool run_quiet(char *const *argv)
{
    pid_t pid = spawn_quiet(argv);
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static char *slurp(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    struct buf b = BUF_INIT;
    char bytes[4096];
    size_t n;
    while (f && (n = fread(bytes, 1, sizeof(bytes), f)) > 0)
        buf_add(&b, bytes, n);
    if (f)
        fclose(f);
    return buf_detach(&b);
}

/* A self-signed certificate for 127.0.0.1 is its own authority. */
static bool make_certificate(const char *folder, const char *name)
{
    char cert[128], key[128];
    snprintf(cert, sizeof(cert), "%s/%s.crt", folder, name);
    snprintf(key, sizeof(key), "%s/%s.key", folder, name);
    char *argv[] = {"openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:prime256v1",
                    "-nodes",
                    "-days",
                    "2",
                    "-subj",
                    "/CN=test",
                    "-addext",
                    "subjectAltName=IP:127.0.0.1",
                    "-keyout",
                    key,
                    "-out",
                    cert,
                    NULL};
    return run_quiet(argv);
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool wait_until_up(const struct redis_server_process *s)
{
    for (int i = 0; i < 500; i++) {
        int fd = connect_to(s->port);
        if (fd >= 0) {
            close(fd);
            return true;
        }
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

static bool start_process(struct redis_server_process *s, const char *password)
{
    char port[8], tls_port[8], cert[128], key[128];
    snprintf(port, sizeof(port), "%u", s->port);
    snprintf(tls_port, sizeof(tls_port), "%u", s->tls_port);
    snprintf(cert, sizeof(cert), "%s/server.crt", s->folder);
    snprintf(key, sizeof(key), "%s/server.key", s->folder);
    char secret[64];
    snprintf(secret, sizeof(secret), "%s", password);
    char *argv[] = {"redis-server",
                    "--bind",
                    "127.0.0.1",
                    "--port",
                    port,
                    "--tls-port",
                    tls_port,
                    "--tls-cert-file",
                    cert,
                    "--tls-key-file",
                    key,
                    "--tls-ca-cert-file",
                    cert,
                    "--tls-auth-clients",
                    "yes",
                    "--requirepass",
                    secret,
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                    "--dir",
                    s->folder,
                    NULL};
    s->pid = spawn_quiet(argv);
    return s->pid > 0 && wait_until_up(s);
}

const char *redis_server_start(struct redis_server_process *s, const char *password)
{
    char *version[] = {"redis-server", "--version", NULL};
    if (!run_quiet(version))
        return "redis-server is not installed";
    *s = (struct redis_server_process){.folder = "/tmp/weft-redis-XXXXXX", .pid = -1};
    if (!mkdtemp(s->folder))
        return "no folder under /tmp can be made";
    if (!make_certificate(s->folder, "server") || !make_certificate(s->folder, "other"))
        return "the openssl program cannot make certificates";
    s->ca_pem = slurp(s->folder, "server.crt");
    s->cert_pem = slurp(s->folder, "server.crt");
    s->key_pem = slurp(s->folder, "server.key");
    s->other_ca_pem = slurp(s->folder, "other.crt");
    s->port = free_port();
    s->tls_port = free_port();
    return start_process(s, password) ? NULL : "redis-server does not start";
}

void redis_server_stop(struct redis_server_process *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGTERM);
        waitpid(s->pid, NULL, 0);
    }
    static const char *const files[] = {"server.crt", "server.key", "other.crt", "other.key"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", s->folder, files[i]);
        unlink(path);
    }
    rmdir(s->folder);
    free(s->ca_pem);
    free(s->cert_pem);
    free(s->key_pem);
    free(s->other_ca_pem);
}

void redis_server_do(const struct redis_server_process *s, const char *password,
                     const char *commands, int n_replies)
{
    int fd = connect_to(s->port);
    struct buf out = BUF_INIT;
    buf_printf(&out, "AUTH %s\r\n%s", password, commands);
    ssize_t sent = write(fd, out.data, out.len);
    assert(sent == (ssize_t)out.len);
    buf_release(&out);
    char c;
    for (int lines = 0; lines < n_replies + 1;) {
        ssize_t n = read(fd, &c, 1);
        assert(n == 1);
        assert(lines > 0 || c != '-');
        lines += c == '\n';
    }
    close(fd);
}
