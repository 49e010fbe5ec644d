/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The parser: yajl's callbacks become events. */

#include "base/json.h"

#include <assert.h>
#include <yajl/yajl_parse.h>

struct json_parser {
    yajl_handle yajl;
    struct json_sink *sink;
    unsigned depth;
    unsigned skip; /* containers open inside a value that nobody wants, + 1; 0: not skipping */
    bool multi;
    bool failed;
    bool heard;      /* yajl has called back since the chunk began */
    uint64_t offset; /* bytes of earlier chunks */
    size_t quiet;    /* bytes of the last chunks that made no event: yajl keeps them */
    struct err err;
};

/* Whether this value is to be passed over: counts it, ends the skipping after it. */
static bool skip_scalar(struct json_parser *p)
{
    p->heard = true;
    if (p->skip == 0)
        return false;
    if (p->skip == 1)
        p->skip = 0;
    return true;
}

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Nearly every text is short and ASCII, and there are millions: words that overlap at the end, no
 * loop over bytes but for the shortest. */
static inline bool is_ascii(const char *p, size_t n)
{
    uint64_t any = 0, word;
    if (n < sizeof(word)) {
        for (size_t i = 0; i < n; i++)
            any |= (uint8_t)p[i];
        return (any & 0x80) == 0;
    }
    for (size_t i = 0; i + sizeof(word) < n; i += sizeof(word)) {
        memcpy(&word, p + i, sizeof(word));
        any |= word;
    }
    memcpy(&word, p + n - sizeof(word), sizeof(word));
    return ((any | word) & HIGH_BITS) == 0;
}

/* yajl lets overlong forms and surrogates pass, and makes lone ones from \u escapes. */
static bool check_text(struct json_parser *p, const unsigned char *text, size_t len)
{
    if (is_ascii((const char *)text, len) || str_is_utf8((struct str){(const char *)text, len}))
        return true;
    err_set(&p->err, ERR_INVALID, "a text that is not UTF-8");
    return false;
}

static int emit(struct json_parser *p, const struct json_event *ev)
{
    int answer = p->sink->event(p->sink, ev, &p->err);
    if (answer < 0)
        return 0;
    if (answer == JSON_SKIP && ev->type == JSON_EV_KEY)
        p->skip = 1;
    return 1;
}

static int on_null(void *ctx)
{
    struct json_parser *p = ctx;
    return skip_scalar(p) ? 1 : emit(p, &(struct json_event){.type = JSON_EV_NULL});
}

static int on_boolean(void *ctx, int value)
{
    struct json_parser *p = ctx;
    return skip_scalar(p)
               ? 1
               : emit(p, &(struct json_event){.type = JSON_EV_BOOL, .boolean = value != 0});
}

static int on_number(void *ctx, const char *text, size_t len)
{
    struct json_parser *p = ctx;
    return skip_scalar(p)
               ? 1
               : emit(p, &(struct json_event){.type = JSON_EV_NUMBER, .text = {text, len}});
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    struct json_parser *p = ctx;
    if (skip_scalar(p))
        return 1;
    return check_text(p, text, len) &&
           emit(p, &(struct json_event){.type = JSON_EV_STRING, .text = {(const char *)text, len}});
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    struct json_parser *p = ctx;
    p->heard = true;
    if (p->skip)
        return 1;
    return check_text(p, text, len) &&
           emit(p, &(struct json_event){.type = JSON_EV_KEY, .text = {(const char *)text, len}});
}

static int open_container(struct json_parser *p, enum json_event_type type)
{
    p->heard = true;
    if (++p->depth > JSON_DEPTH_MAX) {
        err_set(&p->err, ERR_INVALID, "nested deeper than %d levels", JSON_DEPTH_MAX);
        return 0;
    }
    if (p->skip) {
        p->skip++;
        return 1;
    }
    return emit(p, &(struct json_event){.type = type});
}

static int close_container(struct json_parser *p, enum json_event_type type)
{
    p->heard = true;
    p->depth--;
    if (p->skip) {
        if (--p->skip == 1)
            p->skip = 0;
        return 1;
    }
    return emit(p, &(struct json_event){.type = type});
}

static int on_object(void *ctx)
{
    return open_container(ctx, JSON_EV_OBJECT);
}

static int on_object_end(void *ctx)
{
    return close_container(ctx, JSON_EV_OBJECT_END);
}

static int on_array(void *ctx)
{
    return open_container(ctx, JSON_EV_ARRAY);
}

static int on_array_end(void *ctx)
{
    return close_container(ctx, JSON_EV_ARRAY_END);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_map_key = on_key,
    .yajl_start_map = on_object,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

struct json_parser *json_parser_new(struct json_sink *sink, bool multi)
{
    struct json_parser *p = xcalloc(1, sizeof(*p));
    p->sink = sink;
    p->multi = multi;
    p->yajl = yajl_alloc(&callbacks, NULL, p);
    if (!p->yajl)
        abort();
    if (multi)
        yajl_config(p->yajl, yajl_allow_multiple_values, 1);
    return p;
}

void json_parser_free(struct json_parser *p)
{
    if (!p)
        return;
    yajl_free(p->yajl);
    free(p);
}

unsigned json_parser_depth(const struct json_parser *p)
{
    return p->depth;
}

static int repeat_error(const struct json_parser *p, struct err *err)
{
    return err_set(err, p->err.code, "%s", p->err.msg);
}

/* Turns yajl's status into an error with the offset. yajl's own text quotes the input at length and
 * over several lines; its first line names the fault. */
static int fail(struct json_parser *p, yajl_status status, struct str chunk, struct err *err)
{
    uint64_t at = p->offset + yajl_get_bytes_consumed(p->yajl);
    p->failed = true;
    if (status == yajl_status_client_canceled) {
        if (p->err.code == ERR_NONE)
            err_set(&p->err, ERR_INVALID, "refused");
    } else {
        unsigned char *text = yajl_get_error(p->yajl, 0, (const unsigned char *)chunk.p, chunk.len);
        struct str line = str_from((const char *)text);
        line = str_trim(str_sub(line, 0, str_find_char(line, '\n', 0)));
        err_set(&p->err, ERR_INVALID, "not JSON at byte %llu: %.*s", (unsigned long long)at,
                STR_ARG(line));
        yajl_free_error(p->yajl, text);
    }
    return repeat_error(p, err);
}

int json_parser_feed(struct json_parser *p, struct str chunk, struct err *err)
{
    if (p->failed)
        return repeat_error(p, err);
    yajl_status status =
        yajl_parse(p->yajl, (const unsigned char *)(chunk.p ? chunk.p : ""), chunk.len);
    if (status != yajl_status_ok)
        return fail(p, status, chunk, err);
    p->offset += chunk.len;
    p->quiet = p->heard ? 0 : p->quiet + chunk.len;
    p->heard = false;
    if (p->quiet <= JSON_TOKEN_BYTES_MAX)
        return 0;
    p->failed = true;
    err_set(&p->err, ERR_CAPACITY, "a text of more than %zu bytes", JSON_TOKEN_BYTES_MAX);
    return repeat_error(p, err);
}

static int end_within(struct json_parser *p, struct err *err)
{
    p->failed = true;
    err_set(&p->err, ERR_INVALID, "the JSON ends at byte %llu within an unfinished value",
            (unsigned long long)p->offset);
    return repeat_error(p, err);
}

/* yajl wants a value before the end. A last one of our own, passed over unseen, is taken where a
 * value may begin, and is swallowed by an unfinished text. */
static int finish_multi(struct json_parser *p, struct err *err)
{
    yajl_status status = yajl_parse(p->yajl, (const unsigned char *)" ", 1);
    if (status != yajl_status_ok)
        return fail(p, status, STR(" "), err);
    p->skip = 1;
    status = yajl_parse(p->yajl, (const unsigned char *)"0 ", 2);
    return status != yajl_status_ok || p->skip ? end_within(p, err) : 0;
}

int json_parser_finish(struct json_parser *p, struct err *err)
{
    if (p->failed)
        return repeat_error(p, err);
    if (p->depth > 0)
        return end_within(p, err);
    if (p->multi)
        return finish_multi(p, err);
    yajl_status status = yajl_complete_parse(p->yajl);
    if (status != yajl_status_ok)
        return fail(p, status, STR(""), err);
    return 0;
}

struct json *json_parse(struct arena *a, struct str text, struct err *err)
{
    struct json_builder b;
    json_builder_init(&b, a);
    struct json_parser *p = json_parser_new(&b.sink, false);
    int failed = json_parser_feed(p, text, err) < 0 || json_parser_finish(p, err) < 0;
    json_parser_free(p);
    if (failed)
        return NULL;
    if (!b.root)
        err_set(err, ERR_INVALID, "there is no JSON value");
    return b.root;
}
