/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Replies through hiredis' reader into structs of our own: the reader calls back for every element,
 * so the limits are checked before memory is taken. */
#include "scalers/resp.h"

#include <hiredis/hiredis.h>

#include "base/arena.h"

struct resp_reader {
    redisReader *reader;
    size_t unread_bytes; /* fed since the last whole reply */
    size_t elements;     /* of the reply under way */
    struct err failed;
};

/* ---- What the reader calls ---- */

static void attach(const redisReadTask *task, struct resp_reply *reply)
{
    if (!task->parent)
        return;
    struct resp_reply *parent = task->parent->obj;
    parent->items[task->idx] = reply;
}

static struct resp_reply *new_reply(const redisReadTask *task, enum resp_type type)
{
    struct resp_reader *r = task->privdata;
    if (++r->elements > RESP_ELEMENTS_MAX)
        return NULL; /* the reader reports it as out of memory */
    struct resp_reply *reply = xcalloc(1, sizeof(*reply));
    reply->type = type;
    return reply;
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    enum resp_type type = task->type == REDIS_REPLY_ERROR    ? RESP_ERROR
                          : task->type == REDIS_REPLY_STATUS ? RESP_STATUS
                                                             : RESP_STRING;
    struct resp_reply *reply = new_reply(task, type);
    if (!reply)
        return NULL;
    reply->text = (struct str){xstr_dup((struct str){text, len}), len};
    attach(task, reply);
    return reply;
}

static void *create_array(const redisReadTask *task, int n)
{
    if (n < 0 || n > RESP_ELEMENTS_MAX)
        return NULL;
    struct resp_reply *reply = new_reply(task, RESP_ARRAY);
    if (!reply)
        return NULL;
    reply->n = (size_t)n;
    reply->items = xcalloc((size_t)n + 1, sizeof(struct resp_reply *));
    attach(task, reply);
    return reply;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct resp_reply *reply = new_reply(task, RESP_INTEGER);
    if (!reply)
        return NULL;
    reply->integer = value;
    attach(task, reply);
    return reply;
}

static void *create_nil(const redisReadTask *task)
{
    struct resp_reply *reply = new_reply(task, RESP_NIL);
    if (reply)
        attach(task, reply);
    return reply;
}

static void free_object(void *p)
{
    resp_reply_free(p);
}

void resp_reply_free(struct resp_reply *reply)
{
    if (!reply)
        return;
    for (size_t i = 0; i < reply->n; i++)
        resp_reply_free(reply->items[i]);
    free(reply->items);
    free((char *)(uintptr_t)reply->text.p);
    free(reply);
}

/* ---- Reader ---- */

struct resp_reader *resp_reader_new(void)
{
    static redisReplyObjectFunctions functions = {create_string, create_array, create_integer,
                                                  create_nil, free_object};
    struct resp_reader *r = xcalloc(1, sizeof(*r));
    r->reader = redisReaderCreateWithFunctions(&functions);
    if (!r->reader)
        abort(); /* no memory: crash-only */
    r->reader->privdata = r;
    return r;
}

void resp_reader_free(struct resp_reader *r)
{
    if (!r)
        return;
    redisReaderFree(r->reader);
    free(r);
}

static int failed(struct resp_reader *r, struct err *err)
{
    if (err)
        *err = r->failed;
    return -1;
}

int resp_reader_feed(struct resp_reader *r, struct str bytes, struct err *err)
{
    if (r->failed.code)
        return failed(r, err);
    r->unread_bytes += bytes.len;
    if (r->unread_bytes > RESP_BYTES_MAX) {
        err_set(&r->failed, ERR_INVALID, "a reply is longer than %d bytes", RESP_BYTES_MAX);
        return failed(r, err);
    }
    if (bytes.len && redisReaderFeed(r->reader, bytes.p, bytes.len) != REDIS_OK)
        err_set(&r->failed, ERR_INVALID, "the reply cannot be read");
    return r->failed.code ? failed(r, err) : 0;
}

int resp_reader_next(struct resp_reader *r, struct resp_reply **ret, struct err *err)
{
    if (r->failed.code)
        return failed(r, err);
    void *reply = NULL;
    if (redisReaderGetReply(r->reader, &reply) != REDIS_OK) {
        /* The reader quotes the byte it met, never the bytes around it. */
        err_set(&r->failed, ERR_INVALID, "the answer is no Redis reply: %s",
                r->elements > RESP_ELEMENTS_MAX || r->reader->err == REDIS_ERR_OOM
                    ? "too many elements"
                    : r->reader->errstr);
        return failed(r, err);
    }
    if (reply) {
        r->elements = 0;
        r->unread_bytes = r->reader->len - r->reader->pos;
    }
    *ret = reply;
    return 0;
}

void resp_command(struct buf *out, const struct str *words, size_t n)
{
    buf_printf(out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "$%zu\r\n", words[i].len);
        buf_str(out, words[i]);
        buf_cstr(out, "\r\n");
    }
}
