/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Tokens that rotate in files, and exec credential plugins. */

#include "kube/client/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/schema.h"
#include "base/vec.h"

#define TOKEN_BYTES_MAX (64 * 1024)
#define EXEC_OUTPUT_MAX (1u << 20)
#define EXEC_SECONDS 60
#define EXEC_COST (200 * NS_PER_MS) /* under virtual time */
#define REFRESH_EARLY (60 * NS_PER_S)
#define EXEC_LIFE (10 * NS_PER_MIN) /* of a credential without an expiry */

/* What a plugin gave. */
struct credential {
    char *token, *cert, *key;
    int64_t expires; /* wall; 0: unknown */
};

struct exec_job {
    struct auth *auth;
    const struct kube_exec *exec;
    struct credential made;
    struct err err;
};

struct auth {
    struct loop *loop;
    struct worker *worker;
    const struct kube_config *config;
    struct http_tls tls;
    char *file_token;
    struct stat file_stat;
    bool file_stale;
    struct credential plugin;
    int64_t plugin_good_until; /* wall */
    struct exec_job *job;
    struct worker_job *job_handle;
    struct auth_waiter *waiters;
};

static void wipe_text(char **s)
{
    if (*s)
        explicit_bzero(*s, strlen(*s));
    free(*s);
    *s = NULL;
}

static void wipe(struct credential *c)
{
    wipe_text(&c->token);
    wipe_text(&c->cert);
    wipe_text(&c->key);
    c->expires = 0;
}

struct auth *auth_new(struct loop *l, struct worker *w, const struct kube_config *c)
{
    struct auth *a = xcalloc(1, sizeof(*a));
    *a = (struct auth){.loop = l, .worker = w, .config = c, .tls = c->tls};
    return a;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    if (a->job_handle)
        worker_cancel(a->job_handle);
    if (a->job)
        a->job->auth = NULL;
    wipe_text(&a->file_token);
    wipe(&a->plugin);
    free(a);
}

const struct http_tls *auth_tls(const struct auth *a)
{
    return &a->tls;
}

/* ---- Token files ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A file that is gone or empty for a moment (a rotation under way) leaves the old token in use. */
static void read_token_file(struct auth *a)
{
    struct stat st;
    const char *path = a->config->token_file;
    if (stat(path, &st) < 0 || (a->file_token && !a->file_stale && same_file(&st, &a->file_stat)))
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    char *text = xcalloc(1, TOKEN_BYTES_MAX + 1);
    ssize_t n = read(fd, text, TOKEN_BYTES_MAX);
    close(fd);
    struct str token = str_trim((struct str){text, n > 0 ? (size_t)n : 0});
    if (token.len) {
        wipe_text(&a->file_token);
        a->file_token = xstr_dup(token);
        a->file_stat = st;
        a->file_stale = false;
    }
    explicit_bzero(text, TOKEN_BYTES_MAX);
    free(text);
}

/* ---- Exec plugins ---- */

static int parse_credential(struct str text, struct credential *ret, struct err *err)
{
    CLEANUP(arena_release) struct arena arena = {.cap_bytes = 4u << 20};
    const struct json *root = json_parse(&arena, text, err);
    if (!root)
        return err_prefix(err, "its output");
    const struct json *status = json_get(root, "status");
    struct str kind = json_text(json_get(root, "kind"));
    if (!str_eq_c(kind, "ExecCredential") || !status)
        return err_set(err, ERR_DENIED, "its output is no ExecCredential with a status");
    struct str token = json_text(json_get(status, "token")),
               cert = json_text(json_get(status, "clientCertificateData")),
               key = json_text(json_get(status, "clientKeyData")),
               expires = json_text(json_get(status, "expirationTimestamp"));
    if (token.len == 0 && (cert.len == 0 || key.len == 0))
        return err_set(err, ERR_DENIED, "it gave neither a token nor a certificate with its key");
    if (expires.len && time_parse_rfc3339(expires, &ret->expires, err) < 0)
        return -1;
    ret->token = token.len ? xstr_dup(token) : NULL;
    ret->cert = cert.len ? xstr_dup(cert) : NULL;
    ret->key = key.len ? xstr_dup(key) : NULL;
    return 0;
}

extern char **environ;

static char **plugin_environment(const struct kube_exec *x)
{
    VEC_DEFINE(vec_text, char *);
    struct vec_text v = {0};
    for (char **e = environ; *e; e++)
        vec_push(&v, *e);
    for (const char **e = x->env; e && *e; e++)
        vec_push(&v, (char *)(uintptr_t)*e);
    CLEANUP(buf_release) struct buf info = BUF_INIT;
    buf_printf(&info,
               "KUBERNETES_EXEC_INFO={\"apiVersion\":\"%s\",\"kind\":\"ExecCredential\",\"spec\":{"
               "\"interactive\":false}}",
               x->api_version);
    vec_push(
        &v,
        xstrdup(
            info.data)); /* lives as long as the process that is spawned; freed with the array */
    vec_push(&v, NULL);
    return v.v;
}

static pid_t spawn_plugin(const struct kube_exec *x, int out, struct err *err)
{
    size_t n = 0;
    while (x->args && x->args[n])
        n++;
    char **argv = xcalloc(n + 2, sizeof(*argv));
    argv[0] = (char *)(uintptr_t)x->command;
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = (char *)(uintptr_t)x->args[i];
    char **env = plugin_environment(x);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    pid_t pid = -1;
    int code = posix_spawnp(&pid, x->command, &actions, &attr, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    size_t last = 0;
    while (env[last + 1])
        last++;
    free(env[last]);
    free(env);
    free(argv);
    if (code != 0) {
        err_errno(err, code, "cannot start it");
        return -1;
    }
    return pid;
}

static int read_output(int fd, struct buf *out, struct err *err)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t end = t.tv_sec + EXEC_SECONDS;
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (t.tv_sec >= end || poll(&p, 1, (int)(end - t.tv_sec) * 1000) <= 0)
            return err_set(err, ERR_RETRY, "it did not end within %d s", EXEC_SECONDS);
        char chunk[4096];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n == 0)
            return 0;
        if (n < 0)
            return err_errno(err, errno, "its output");
        buf_add(out, chunk, (size_t)n);
        explicit_bzero(chunk, sizeof(chunk));
        if (out->overflow)
            return err_set(err, ERR_INVALID, "it wrote more than %u bytes", EXEC_OUTPUT_MAX);
    }
}

static void run_plugin(void *arg)
{
    struct exec_job *j = arg;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        err_errno(&j->err, errno, "a pipe");
        return;
    }
    pid_t pid = spawn_plugin(j->exec, fds[1], &j->err);
    close(fds[1]);
    CLEANUP(buf_release) struct buf out = {.cap = EXEC_OUTPUT_MAX};
    if (pid > 0) {
        int code = read_output(fds[0], &out, &j->err), status = 0;
        if (code < 0)
            kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        if (code == 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
            err_set(&j->err, ERR_DENIED, "it ended with %s %d",
                    WIFEXITED(status) ? "exit code" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        else if (code == 0)
            parse_credential(buf_view(&out), &j->made, &j->err);
    }
    close(fds[0]);
    if (out.data)
        explicit_bzero(out.data, out.len);
}

static void plugin_done(void *arg)
{
    struct exec_job *j = arg;
    struct auth *a = j->auth;
    if (!a)
        return;
    a->job = NULL;
    a->job_handle = NULL;
    struct err err = j->err;
    if (err.code == ERR_NONE) {
        wipe(&a->plugin);
        a->plugin = j->made;
        j->made = (struct credential){0};
        int64_t wall = loop_wall(a->loop);
        int64_t life = a->plugin.expires ? a->plugin.expires - wall : EXEC_LIFE;
        a->plugin_good_until = wall + MAX(life - REFRESH_EARLY, life / 2);
        if (a->plugin.cert) {
            a->tls.cert_pem = str_from(a->plugin.cert);
            a->tls.key_pem = str_from(a->plugin.key);
        }
    } else {
        err_prefix(&err, "credential plugin %s", a->config->exec->command);
    }
    while (a->waiters) {
        struct auth_waiter *w = a->waiters;
        a->waiters = w->next;
        w->linked = false;
        w->fn(w->arg, err.code ? &err : NULL);
    }
}

static void dispose_job(void *arg)
{
    struct exec_job *j = arg;
    wipe(&j->made);
    free(j);
}

bool auth_is_ready(struct auth *a)
{
    if (!a->config->exec)
        return true;
    return (a->plugin.token || a->plugin.cert) && loop_wall(a->loop) < a->plugin_good_until;
}

void auth_wait(struct auth *a, struct auth_waiter *w, void (*fn)(void *arg, const struct err *err),
               void *arg)
{
    *w = (struct auth_waiter){.next = a->waiters, .fn = fn, .arg = arg, .linked = true};
    a->waiters = w;
    if (a->job)
        return;
    struct exec_job *j = xcalloc(1, sizeof(*j));
    j->auth = a;
    j->exec = a->config->exec;
    a->job = j;
    a->job_handle = worker_start(a->worker, EXEC_COST, run_plugin, dispose_job, plugin_done, j);
}

void auth_unwait(struct auth *a, struct auth_waiter *w)
{
    if (!w->linked)
        return;
    for (struct auth_waiter **p = &a->waiters; *p; p = &(*p)->next) {
        if (*p == w) {
            *p = w->next;
            break;
        }
    }
    w->linked = false;
}

void auth_header(struct auth *a, struct buf *ret)
{
    const struct kube_config *c = a->config;
    const char *token = c->token;
    if (c->token_file) {
        read_token_file(a);
        token = a->file_token ? a->file_token : c->token;
    }
    if (c->exec && a->plugin.token)
        token = a->plugin.token;
    if (token) {
        buf_printf(ret, "Bearer %s", token);
    } else if (c->username) {
        CLEANUP(buf_release) struct buf pair = BUF_INIT;
        buf_printf(&pair, "%s:%s", c->username, c->password ? c->password : "");
        buf_cstr(ret, "Basic ");
        crypto_base64(ret, buf_view(&pair));
        explicit_bzero(pair.data, pair.len);
    }
}

void auth_refused(struct auth *a)
{
    a->file_stale = true;
    a->plugin_good_until = 0;
}
