/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* A link goes down → connecting → greeting (AUTH) → up, and down again on any failure. */
#include "scalers/redis_link.h"

#include <assert.h>

#include "base/backoff.h"
#include "base/crypto.h"
#include "base/vec.h"

#define BACKOFF_BASE NS_PER_S
#define BACKOFF_CAP (30 * NS_PER_S)
#define WRITE_BYTES (256 * 1024) /* of one write, give or take a command */
#define OWED_MAX 8192            /* replies under way */

enum link_state { LINK_DOWN, LINK_CONNECTING, LINK_GREETING, LINK_UP };

/* What the server owes us, in order. */
struct owed {
    struct redis_call *call; /* NULL: a reply of our own (AUTH, SELECT), or of a cancelled call */
    unsigned n;
    bool select;
};

struct redis_room {
    struct map links; /* by fingerprint */
    struct redis_counts counts;
};

struct redis_link {
    struct scaler_host *host;
    struct redis_room *room;
    char fingerprint[65];
    unsigned refs;
    /* the server */
    char *name, *username, *password;
    uint16_t port;
    bool tls;
    struct stream_tls tls_options; /* texts are ours */
    enum link_state state;
    struct stream *stream;
    struct resp_reader *reader;
    struct {
        VEC(struct redis_call *);
    } waiting, failing; /* not sent yet; being told of a failure */
    struct {
        VEC(struct owed);
    } owed;
    int64_t database;        /* as selected, once all owed replies are in */
    struct err select_error; /* of the last SELECT; code 0: none */
    struct loop_timer turn;  /* sends what one turn collected */
    struct loop_timer deadline;
    struct backoff backoff;
    struct rng rng;
    int64_t next_try;
    struct err last; /* why it is down */
    unsigned busy;
    bool dead;
};

static void work(void *arg);
static void overdue(void *arg);

/* ---- Ends of calls ---- */

static void clear_replies(struct redis_call *c)
{
    for (unsigned i = 0; i < c->n_have; i++)
        resp_reply_free(c->replies[i]);
    c->n_have = 0;
}

static void finish(struct redis_call *c, const struct err *err)
{
    struct resp_reply *replies[REDIS_CALL_REPLIES_MAX];
    unsigned n = c->n_have;
    memcpy(replies, c->replies, sizeof(replies));
    c->n_have = 0;
    c->active = false;
    buf_release(&c->commands);
    c->done(c->arg, err ? NULL : replies, err); /* may start the call again */
    for (unsigned i = 0; i < n; i++)
        resp_reply_free(replies[i]);
}

/* The timer follows the earliest deadline of all calls. */
static void arm(struct redis_link *l)
{
    int64_t first = TIME_NEVER;
    for (size_t i = 0; i < l->owed.len; i++)
        if (l->owed.v[i].call)
            first = MIN(first, l->owed.v[i].call->deadline);
    for (size_t i = 0; i < l->waiting.len; i++)
        first = MIN(first, l->waiting.v[i]->deadline);
    if (first == TIME_NEVER)
        loop_timer_cancel(l->host->loop, &l->deadline);
    else if (!loop_timer_active(&l->deadline) || l->deadline.node.key != first)
        loop_timer_at(l->host->loop, &l->deadline, first, overdue, l);
}

/* ---- Down ---- */

static void disconnect(struct redis_link *l)
{
    stream_close(l->stream);
    l->stream = NULL;
    resp_reader_free(l->reader);
    l->reader = NULL;
    l->state = LINK_DOWN;
    l->database = 0;
    l->select_error.code = ERR_NONE;
}

static void destroy(struct redis_link *l)
{
    vec_release(&l->waiting);
    vec_release(&l->failing);
    vec_release(&l->owed);
    free(l->name);
    free(l->username);
    if (l->password)
        explicit_bzero(l->password, strlen(l->password));
    free(l->password);
    struct str texts[] = {l->tls_options.ca_pem, l->tls_options.cert_pem, l->tls_options.key_pem,
                          l->tls_options.key_password};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].len)
            explicit_bzero((char *)(uintptr_t)texts[i].p, texts[i].len);
        free((char *)(uintptr_t)texts[i].p);
    }
    free(l);
}

static void leave(struct redis_link *l)
{
    if (--l->busy == 0 && l->dead)
        destroy(l);
}

/* Every call learns why. Those that their callbacks start meanwhile meet the pause. */
static void down(struct redis_link *l, const struct err *why)
{
    l->busy++;
    l->last = *why;
    l->next_try = loop_now(l->host->loop) + backoff_next(&l->backoff, &l->rng);
    disconnect(l);
    loop_timer_cancel(l->host->loop, &l->deadline);
    vec_each(&l->owed, struct owed *, o)
        if (o->call)
            vec_push(&l->failing, o->call);
    vec_each(&l->waiting, struct redis_call **, c)
        vec_push(&l->failing, *c);
    vec_clear(&l->owed);
    vec_clear(&l->waiting);
    while (l->failing.len) { /* a callback may cancel its neighbours */
        struct redis_call *c = l->failing.v[0];
        vec_remove(&l->failing, 0);
        clear_replies(c);
        finish(c, why);
    }
    leave(l);
}

static void overdue(void *arg)
{
    struct redis_link *l = arg;
    struct err err = ERR_INIT;
    const char *what = l->state == LINK_CONNECTING ? "no connection"
                       : l->state == LINK_GREETING ? "no answer to AUTH"
                                                   : "no answer";
    err_set(&err, ERR_RETRY, "redis %s:%u: %s within %d s", l->name, l->port, what,
            (int)(SCALER_TIMEOUT / NS_PER_S));
    down(l, &err);
}

/* ---- Up ---- */

static void send_bytes(struct redis_link *l, struct buf *bytes)
{
    l->room->counts.writes++;
    stream_write(l->stream, buf_view(bytes));
}

static void add_select(struct redis_link *l, struct buf *out, int64_t database)
{
    char number[24];
    snprintf(number, sizeof(number), "%lld", (long long)database);
    const struct str words[] = {STR("SELECT"), str_from(number)};
    resp_command(out, words, 2);
    vec_push(&l->owed, (struct owed){.n = 1, .select = true});
    l->database = database;
}

/* Sends the waiting calls: those of the database at hand first, then database by database. What is
 * too much for one write waits for replies. */
static void send_waiting(struct redis_link *l)
{
    struct buf out = BUF_INIT;
    int64_t database = l->database;
    while (l->waiting.len && out.len < WRITE_BYTES && l->owed.len < OWED_MAX) {
        size_t kept = 0, sent = 0;
        for (size_t i = 0; i < l->waiting.len; i++) {
            struct redis_call *c = l->waiting.v[i];
            if (c->database != database || out.len >= WRITE_BYTES || l->owed.len >= OWED_MAX) {
                l->waiting.v[kept++] = c;
                continue;
            }
            if (!sent++ && database != l->database)
                add_select(l, &out, database);
            buf_str(&out, buf_view(&c->commands));
            buf_release(&c->commands);
            vec_push(&l->owed, (struct owed){.call = c, .n = c->n_replies});
            l->room->counts.calls++;
        }
        l->waiting.len = kept;
        if (kept)
            database = l->waiting.v[0]->database;
    }
    if (out.len)
        send_bytes(l, &out);
    buf_release(&out);
}

static void greet(struct redis_link *l)
{
    if (!l->password) {
        l->state = LINK_UP;
        return;
    }
    struct buf out = BUF_INIT;
    struct str words[3] = {STR("AUTH")};
    size_t n = 1;
    if (l->username)
        words[n++] = str_from(l->username);
    words[n++] = str_from(l->password);
    resp_command(&out, words, n);
    vec_push(&l->owed, (struct owed){.n = 1});
    l->state = LINK_GREETING;
    send_bytes(l, &out);
    explicit_bzero(out.data, out.len);
    buf_release(&out);
}

static bool looks_like_redis(struct str text)
{
    size_t i = 0;
    while (i < text.len && text.p[i] >= 'A' && text.p[i] <= 'Z')
        i++;
    if (i < 2 || i == text.len || text.p[i] != ' ')
        return false;
    for (; i < text.len; i++)
        if (text.p[i] < ' ' || text.p[i] > '~')
            return false;
    return true;
}

int redis_reply_error(const struct resp_reply *reply, struct err *err)
{
    struct str text = reply->text;
    bool denied = str_has_prefix(text, STR("NOAUTH")) || str_has_prefix(text, STR("WRONGPASS")) ||
                  str_has_prefix(text, STR("NOPERM"));
    if (!looks_like_redis(text))
        return err_set(err, ERR_RETRY, "the server answers with an error");
    return err_set(err, denied ? ERR_DENIED : ERR_RETRY, "%.*s", STR_ARG(str_sub(text, 0, 160)));
}

/* One reply to whom it is owed. False: the link went down or is gone. */
static bool dispatch(struct redis_link *l, struct resp_reply *reply)
{
    struct owed *o = &l->owed.v[0];
    if (!o->call) {
        struct err err = ERR_INIT;
        bool select = o->select, failed = reply->type == RESP_ERROR;
        if (failed) {
            redis_reply_error(reply, &err);
            err_prefix(&err, "redis %s:%u: %s", l->name, l->port, select ? "SELECT" : "AUTH");
        }
        resp_reply_free(reply);
        if (--o->n == 0)
            vec_remove(&l->owed, 0);
        if (select)
            l->select_error = err;
        else if (l->state == LINK_GREETING && failed) {
            down(l, &err);
            return false;
        } else if (l->state == LINK_GREETING) {
            l->state = LINK_UP;
            work(l);
        }
        return l->state != LINK_DOWN;
    }
    struct redis_call *c = o->call;
    c->replies[c->n_have++] = reply;
    if (c->n_have < c->n_replies)
        return true;
    vec_remove(&l->owed, 0);
    if (l->select_error.code) {
        clear_replies(c);
        finish(c, &l->select_error);
    } else
        finish(c, NULL);
    return !l->dead && l->state != LINK_DOWN;
}

static void on_data(void *arg, struct str bytes)
{
    struct redis_link *l = arg;
    struct err err = ERR_INIT;
    l->busy++;
    bool alive = resp_reader_feed(l->reader, bytes, &err) == 0;
    bool bad = !alive;
    while (alive) {
        struct resp_reply *reply = NULL;
        if (resp_reader_next(l->reader, &reply, &err) < 0) {
            bad = true;
            break;
        }
        if (!reply)
            break;
        if (!l->owed.len) {
            resp_reply_free(reply);
            err_set(&err, ERR_INVALID, "it answers without being asked");
            bad = true;
            break;
        }
        alive = dispatch(l, reply);
    }
    if (bad) {
        err_prefix(&err, "redis %s:%u", l->name, l->port);
        down(l, &err);
    } else if (alive) {
        if (l->state == LINK_UP && !l->owed.len)
            backoff_reset(&l->backoff); /* it has answered everything: it works */
        arm(l);
        work(l);
    }
    leave(l);
}

static void on_ready(void *arg)
{
    struct redis_link *l = arg;
    l->busy++;
    greet(l);
    work(l);
    leave(l);
}

static void on_closed(void *arg, const struct err *why)
{
    struct redis_link *l = arg;
    struct err err = *why;
    l->stream = NULL; /* gone */
    err_prefix(&err, "redis");
    down(l, &err);
}

static int open_stream(struct redis_link *l, struct err *err)
{
    static const struct stream_handler handler = {on_ready, on_data, on_closed};
    struct stream_options o = {l->name, l->port, l->tls ? &l->tls_options : NULL, SCALER_TIMEOUT};
    l->stream = stream_open(l->host->loop, l->host->worker, &o, &handler, l, err);
    if (!l->stream)
        return err_prefix(err, "redis %s:%u", l->name, l->port);
    l->reader = resp_reader_new();
    l->state = LINK_CONNECTING;
    l->room->counts.connects++;
    return 0;
}

/* Fails what waits while the pause lasts, with the reason it lasts for. */
static void refuse(struct redis_link *l)
{
    struct err err = l->last;
    int64_t left = l->next_try - loop_now(l->host->loop);
    size_t len = strlen(err.msg);
    snprintf(err.msg + len, sizeof(err.msg) - len, "; next attempt in %lld ms",
             (long long)(left / NS_PER_MS));
    l->busy++;
    size_t n = l->waiting.len; /* only those that are here now */
    while (n-- && l->waiting.len) {
        struct redis_call *c = l->waiting.v[0];
        vec_remove(&l->waiting, 0);
        finish(c, &err);
    }
    leave(l);
}

/* One step of whatever is to do; safe to call at any time. */
static void work(void *arg)
{
    struct redis_link *l = arg;
    struct err err = ERR_INIT;
    if (!l->waiting.len || l->dead)
        return;
    if (l->state == LINK_DOWN && loop_now(l->host->loop) < l->next_try) {
        refuse(l);
        return;
    }
    if (l->state == LINK_DOWN && open_stream(l, &err) < 0) {
        down(l, &err);
        return;
    }
    l->busy++;
    if (l->state == LINK_UP)
        send_waiting(l);
    if (!l->dead && l->state != LINK_DOWN)
        arm(l);
    leave(l);
}

/* ---- Calls ---- */

void redis_call_start(struct redis_link *l, struct redis_call *c)
{
    assert(!c->active && c->n_replies >= 1 && c->n_replies <= REDIS_CALL_REPLIES_MAX);
    c->active = true;
    c->n_have = 0;
    c->deadline = loop_now(l->host->loop) + SCALER_TIMEOUT;
    vec_push(&l->waiting, c);
    if (!loop_timer_active(&l->turn))
        loop_timer_in(l->host->loop, &l->turn, 0, work, l);
}

void redis_call_cancel(struct redis_link *l, struct redis_call *c)
{
    if (!c->active)
        return;
    c->active = false;
    for (size_t i = 0; i < l->waiting.len; i++)
        if (l->waiting.v[i] == c) {
            vec_remove(&l->waiting, i);
            break;
        }
    for (size_t i = 0; i < l->failing.len; i++)
        if (l->failing.v[i] == c) {
            vec_remove(&l->failing, i);
            break;
        }
    for (size_t i = 0; i < l->owed.len; i++)
        if (l->owed.v[i].call == c) { /* its replies still come; nobody hears them */
            l->owed.v[i].call = NULL;
            l->owed.v[i].n = c->n_replies - c->n_have;
        }
    clear_replies(c);
    buf_release(&c->commands);
}

/* ---- The pool ---- */

static void room_release(void *p)
{
    struct redis_room *room = p;
    assert(!map_len(&room->links)); /* every scaler is closed */
    map_release(&room->links, NULL);
}

static struct redis_room *room_of(struct scaler_host *h)
{
    return scaler_host_room(h, "redis", sizeof(struct redis_room), room_release);
}

struct redis_counts redis_counts(struct scaler_host *h)
{
    struct redis_room *room = room_of(h);
    struct redis_counts counts = room->counts;
    counts.links = map_len(&room->links);
    return counts;
}

static void fingerprint(const struct redis_server *s, char out[65])
{
    struct buf all = BUF_INIT;
    const struct stream_tls *t = &s->tls_options;
    struct str texts[] = {s->host,     s->username, s->password,     t->ca_pem,
                          t->cert_pem, t->key_pem,  t->key_password, str_from(t->server_name)};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_printf(&all, "%zu:", texts[i].len);
        buf_str(&all, texts[i]);
    }
    buf_printf(&all, "%u %d %d", s->port, s->tls, t->insecure);
    crypto_sha256_hex(buf_view(&all), 64, out);
    explicit_bzero(all.data, all.len);
    buf_release(&all);
}

static struct str own(struct str s)
{
    return s.len ? (struct str){xstr_dup(s), s.len} : STR_NONE;
}

/* Certificates are read once here, so that a bad one is an error of the trigger, not of each poll.
 */
static int check_tls(const struct redis_server *s, struct scaler_host *h, struct err *err)
{
    if (!s->tls)
        return 0;
    static const struct stream_handler nobody = {0};
    struct stream_options o = {"check", 1, &s->tls_options, SCALER_TIMEOUT};
    struct stream *probe = stream_open(h->loop, NULL, &o, &nobody, NULL, err);
    stream_close(probe);
    return probe ? 0 : -1;
}

struct redis_link *redis_link_get(struct scaler_host *h, const struct redis_server *server,
                                  struct err *err)
{
    char print[65];
    fingerprint(server, print);
    struct redis_room *room = room_of(h);
    struct redis_link *l = map_get(&room->links, str_from(print));
    if (l) {
        l->refs++;
        return l;
    }
    if (check_tls(server, h, err) < 0)
        return NULL;
    l = xcalloc(1, sizeof(*l));
    l->host = h;
    l->room = room;
    l->refs = 1;
    memcpy(l->fingerprint, print, sizeof(print));
    l->name = xstr_dup(server->host);
    l->username = server->username.len ? xstr_dup(server->username) : NULL;
    l->password = server->password.len ? xstr_dup(server->password) : NULL;
    l->port = server->port;
    l->tls = server->tls;
    const struct stream_tls *t = &server->tls_options;
    l->tls_options = (struct stream_tls){
        own(t->ca_pem), own(t->cert_pem), own(t->key_pem), own(t->key_password), NULL, t->insecure};
    l->backoff = (struct backoff){BACKOFF_BASE, BACKOFF_CAP, 0};
    rng_split(&l->rng, h->seed, print);
    map_put(&room->links, str_from(print), l);
    return l;
}

void redis_link_put(struct redis_link *l)
{
    if (!l || --l->refs)
        return;
    assert(!l->waiting.len);
    map_remove(&l->room->links, str_from(l->fingerprint));
    loop_timer_cancel(l->host->loop, &l->turn);
    loop_timer_cancel(l->host->loop, &l->deadline);
    disconnect(l);
    l->busy++;
    l->dead = true;
    leave(l);
}
