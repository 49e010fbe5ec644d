/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Trigger `redis`: the length of a list, set, sorted set or hash.
 *
 * TYPE and the length command of the type seen last leave together; only when the type has changed
 * a second pair follows. No EVAL, which many managed servers forbid, and no write of any kind. An
 * absent key is an empty list. */
#include "scalers/redis_link.h"
#include "scalers/types.h"

struct redis_options {
    const char *address, *host, *port, *username, *password, *list, *tls;
    const char *ca, *cert, *key, *key_password;
    int64_t length, activation, database;
    bool enable_tls, unsafe;
};

#define TEXT(member, name_, help_) OPTION_STRING(struct redis_options, member, name_, NULL, help_)

static const struct option options[] = {
    TEXT(address, "address", "host:port of the server; instead of host and port"),
    TEXT(host, "host", "name or address of the server"),
    TEXT(port, "port", "its port"),
    TEXT(username, "username", "user of AUTH; from authenticationRef or the environment"),
    TEXT(password, "password", "password of AUTH; from authenticationRef or the environment only"),
    {.kind = OPTION_KIND_STRING,
     .name = "listName",
     .offset = offsetof(struct redis_options, list),
     .required = true,
     .help = "the key whose length counts: a list, set, sorted set or hash"},
    OPTION_INT(struct redis_options, length, "listLength", "5", 1, INT64_C(1) << 40,
               "length that one replica is meant for"),
    OPTION_INT(struct redis_options, activation, "activationListLength", "0", 0, INT64_C(1) << 40,
               "active only above this length"),
    OPTION_INT(struct redis_options, database, "databaseIndex", "0", 0, 65535,
               "number of the database"),
    OPTION_BOOL(struct redis_options, enable_tls, "enableTLS", "false", "speak TLS"),
    OPTION_BOOL(struct redis_options, unsafe, "unsafeSsl", "false",
                "do not verify the server's certificate"),
    OPTION_ENUM(struct redis_options, tls, "tls", "disable", "enable|disable",
                "as enableTLS, from authenticationRef"),
    TEXT(ca, "ca", "PEM of the authorities to trust; from authenticationRef. Unset: the system's"),
    TEXT(cert, "cert", "PEM of the client certificate; from authenticationRef"),
    TEXT(key, "key", "PEM of its key; from authenticationRef"),
    TEXT(key_password, "keyPassword", "password of the key; from authenticationRef"),
    OPTION_END,
};

enum length_type { TYPE_LIST, TYPE_SET, TYPE_ZSET, TYPE_HASH, TYPE_NONE, TYPE_OTHER };

static const struct {
    const char *type, *command;
} length_types[] = {[TYPE_LIST] = {"list", "LLEN"},
                    [TYPE_SET] = {"set", "SCARD"},
                    [TYPE_ZSET] = {"zset", "ZCARD"},
                    [TYPE_HASH] = {"hash", "HLEN"}};

struct redis_scaler {
    struct scaler base;
    struct redis_link *link;
    struct redis_call call;
    const char *address, *list, *metric;
    int64_t database, length, activation;
    enum length_type guess; /* the type seen last */
    bool again;             /* the second pair of this poll */
};

static int read_server(const struct redis_options *o, struct redis_server *server, struct err *err)
{
    if (o->address) {
        if (stream_parse_address(str_from(o->address), &server->host, &server->port, err) < 0)
            return err_prefix(err, "address");
    } else {
        if (!o->host || !o->port)
            return err_set(err, ERR_INVALID, "address, or host and port, must be given");
        struct buf joined = {.cap = 1024};
        bool v6 = strchr(o->host, ':');
        buf_printf(&joined, v6 ? "[%s]:%s" : "%s:%s", o->host, o->port);
        struct str host;
        int ok = stream_parse_address(buf_view(&joined), &host, &server->port, err);
        buf_release(&joined);
        if (ok < 0)
            return err_prefix(err, "host and port");
        server->host = str_from(o->host);
    }
    bool by_auth = !strcmp(o->tls, "enable");
    if (o->enable_tls && by_auth)
        return err_set(err, ERR_INVALID,
                       "enableTLS and tls of the authentication are both set: keep one");
    server->tls = o->enable_tls || by_auth;
    server->tls_options = (struct stream_tls){.ca_pem = str_from(o->ca),
                                              .cert_pem = str_from(o->cert),
                                              .key_pem = str_from(o->key),
                                              .key_password = str_from(o->key_password),
                                              .insecure = o->unsafe};
    server->username = str_from(o->username);
    server->password = str_from(o->password);
    if (server->username.len && !server->password.len)
        return err_set(err, ERR_INVALID, "username needs a password");
    return 0;
}

static int redis_open(struct scaler *s, const struct json *parameters, struct err *err)
{
    struct redis_scaler *r = (struct redis_scaler *)(void *)s;
    struct arena scratch = ARENA_INIT;
    struct redis_options o = {0};
    struct redis_server server = {0};
    int result = schema_defaults(options, &scratch, &o, err);
    if (result == 0)
        result = schema_read_json(options, parameters, &scratch, &o, err);
    if (result == 0)
        result = read_server(&o, &server, err);
    if (result == 0 && !(r->link = redis_link_get(s->host, &server, err)))
        result = -1;
    if (result == 0) {
        struct buf name = {.cap = 4096};
        buf_printf(&name, "redis-%s", o.list);
        r->metric = scaler_metric_name(s, buf_view(&name));
        buf_release(&name);
        r->list = arena_cstr(&s->arena, str_from(o.list));
        r->address = arena_cstr(
            &s->arena, arena_printf(&s->arena, "%.*s:%u", STR_ARG(server.host), server.port));
        r->database = o.database;
        r->length = o.length;
        r->activation = o.activation;
    }
    if (o.password)
        explicit_bzero((char *)(uintptr_t)o.password, strlen(o.password));
    arena_release(&scratch);
    return result;
}

static void ask(struct redis_scaler *r);

static void answer_error(struct redis_scaler *r, const struct err *why)
{
    struct err err = *why;
    err_prefix(&err, "redis %s, database %lld, key %.80s", r->address, (long long)r->database,
               r->list);
    scaler_answer(&r->base, NULL, 0, &err);
}

static enum length_type type_of(struct str text)
{
    if (str_eq_c(text, "none"))
        return TYPE_NONE;
    for (size_t i = 0; i < ARRAY_LEN(length_types); i++)
        if (str_eq_c(text, length_types[i].type))
            return (enum length_type)i;
    return TYPE_OTHER;
}

/* The length, from a TYPE reply and the reply to the command of `guess`. 1: ask again with the
 * right command. */
static int read_length(struct redis_scaler *r, struct resp_reply *const *replies, int64_t *ret,
                       struct err *err)
{
    if (replies[0]->type == RESP_ERROR)
        return redis_reply_error(replies[0], err);
    if (replies[0]->type != RESP_STATUS)
        return err_set(err, ERR_RETRY, "TYPE was answered with something else");
    enum length_type type = type_of(replies[0]->text);
    if (type == TYPE_OTHER)
        return err_set(err, ERR_INVALID, "the key holds a %.*s, which has no length to scale by",
                       STR_ARG(str_sub(replies[0]->text, 0, 20)));
    if (type == TYPE_NONE) {
        *ret = 0;
        return 0;
    }
    if (type != r->guess) {
        r->guess = type;
        return 1;
    }
    if (replies[1]->type == RESP_ERROR)
        return redis_reply_error(replies[1], err);
    if (replies[1]->type != RESP_INTEGER || replies[1]->integer < 0)
        return err_set(err, ERR_RETRY, "%s was answered with no length",
                       length_types[type].command);
    *ret = replies[1]->integer;
    return 0;
}

static void answered(void *arg, struct resp_reply *const *replies, const struct err *failed)
{
    struct redis_scaler *r = arg;
    if (failed) {
        answer_error(r, failed);
        return;
    }
    struct err err = ERR_INIT;
    int64_t length = 0;
    int result = read_length(r, replies, &length, &err);
    if (result == 1 && !r->again) {
        r->again = true;
        ask(r);
        return;
    }
    if (result == 1)
        err_set(&err, ERR_RETRY, "the key changes its type while it is read");
    if (result != 0) {
        answer_error(r, &err);
        return;
    }
    struct scaler_value v = {.metric = r->metric,
                             .verdict = VERDICT_KNOWN,
                             .value = scaler_milli(length),
                             .target = scaler_milli(r->length),
                             .activation = scaler_milli(r->activation)};
    scaler_answer(&r->base, &v, 1, NULL);
}

static void ask(struct redis_scaler *r)
{
    const struct str type[] = {STR("TYPE"), str_from(r->list)};
    const struct str length[] = {str_from(length_types[r->guess].command), str_from(r->list)};
    buf_clear(&r->call.commands);
    resp_command(&r->call.commands, type, 2);
    resp_command(&r->call.commands, length, 2);
    r->call.database = r->database;
    r->call.n_replies = 2;
    r->call.done = answered;
    r->call.arg = r;
    redis_call_start(r->link, &r->call);
}

static void redis_poll(struct scaler *s)
{
    struct redis_scaler *r = (struct redis_scaler *)(void *)s;
    r->again = false;
    ask(r);
}

static void redis_close(struct scaler *s)
{
    struct redis_scaler *r = (struct redis_scaler *)(void *)s;
    redis_call_cancel(r->link, &r->call);
    buf_release(&r->call.commands);
    redis_link_put(r->link);
}

const struct scaler_type scaler_redis = {
    .name = "redis",
    .schema = options,
    .size = sizeof(struct redis_scaler),
    .open = redis_open,
    .poll = redis_poll,
    .close = redis_close,
};
