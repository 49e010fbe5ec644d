/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* JSON: however the text is cut, the tree is the same; and what was printed reads back equal. */

#include <assert.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Feeds the text in pieces whose lengths come from its own bytes. */
static struct json *parse_in_pieces(struct arena *a, struct str text)
{
    struct json_builder b;
    json_builder_init(&b, a);
    struct json_parser *p = json_parser_new(&b.sink, false);
    int code = 0;
    for (size_t at = 0; at < text.len && code == 0;) {
        size_t n = MIN((size_t)(uint8_t)text.p[at] % 7 + 1, text.len - at);
        code = json_parser_feed(p, str_sub(text, at, at + n), NULL);
        at += n;
    }
    if (code == 0)
        code = json_parser_finish(p, NULL);
    json_parser_free(p);
    return code < 0 ? NULL : b.root;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct arena a = {.cap_bytes = 64u << 20};
    struct str text = {(const char *)data, size};
    struct err err = ERR_INIT;
    const struct json *whole = json_parse(&a, text, &err);
    const struct json *pieces = parse_in_pieces(&a, text);
    assert(!whole == !pieces);
    assert(whole || err.code != ERR_NONE);
    if (!whole)
        return 0;
    assert(json_equal(whole, pieces));
    CLEANUP(buf_release) struct buf out = BUF_INIT;
    json_print(&out, whole, (unsigned)(size % 3));
    const struct json *back = json_parse(&a, buf_view(&out), &err);
    assert(back && json_equal(whole, back));
    return 0;
}
