/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* JSON as events, several values after one another and some of them unwanted: pieces change
 * nothing, and events nest. */
#include <assert.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Counts what it hears, and does not want the values of one key. */
struct counter {
    struct json_sink sink;
    uint64_t digest;
    unsigned depth;
};

static int count(struct json_sink *sink, const struct json_event *ev, struct err *err)
{
    (void)err;
    struct counter *c = CONTAINER_OF(sink, struct counter, sink);
    c->digest = str_hash(ev->text, c->digest * 31 + ev->type + (ev->boolean ? 100 : 0));
    c->depth += ev->type == JSON_EV_OBJECT || ev->type == JSON_EV_ARRAY;
    assert(c->depth <= JSON_DEPTH_MAX);
    if (ev->type == JSON_EV_OBJECT_END || ev->type == JSON_EV_ARRAY_END) {
        assert(c->depth > 0);
        c->depth--;
    }
    assert(str_is_utf8(ev->text));
    return ev->type == JSON_EV_KEY && str_eq_c(ev->text, "skip") ? JSON_SKIP : 0;
}

/* The digest of the events, or 0 when the text is refused. */
static uint64_t events(struct str text, size_t piece)
{
    struct counter c = {.sink = {count}, .digest = 1};
    struct err e = ERR_INIT;
    struct json_parser *p = json_parser_new(&c.sink, true);
    int code = 0;
    while (code == 0 && text.len) {
        code = json_parser_feed(p, str_sub(text, 0, piece), &e);
        text = str_sub(text, piece, text.len);
    }
    if (code == 0)
        code = json_parser_finish(p, &e);
    assert(code == 0 || (e.code != ERR_NONE && e.msg[0]));
    assert(code < 0 || json_parser_depth(p) == 0);
    json_parser_free(p);
    return code == 0 ? c.digest : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    size_t piece = size ? data[0] % 7 + 1 : 1;
    uint64_t whole = events(text, SIZE_MAX), pieces = events(text, piece);
    assert(whole == pieces);
    return 0;
}
