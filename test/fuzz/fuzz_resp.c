/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Redis replies from bytes: cut in two anywhere, they read the same as in one piece. */
#include <assert.h>

#include "scalers/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(struct buf *out, const struct resp_reply *r)
{
    buf_printf(out, "%d:%lld:", (int)r->type, (long long)r->integer);
    buf_str(out, r->text);
    for (size_t i = 0; i < r->n; i++) {
        assert(r->items[i]);
        print(out, r->items[i]);
    }
}

/* False: the reader refused something. */
static bool read_all(struct resp_reader *r, struct str bytes, struct buf *out)
{
    if (resp_reader_feed(r, bytes, NULL) < 0)
        return false;
    for (;;) {
        struct resp_reply *reply = NULL;
        if (resp_reader_next(r, &reply, NULL) < 0)
            return false;
        if (!reply)
            return true;
        assert(reply->n <= RESP_ELEMENTS_MAX);
        print(out, reply);
        resp_reply_free(reply);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct str bytes = {(const char *)data + 1, size - 1};
    size_t cut = data[0] % (bytes.len + 1);
    struct buf whole = {.cap = 1 << 20}, parts = {.cap = 1 << 20};
    struct resp_reader *one = resp_reader_new(), *two = resp_reader_new();
    bool ok = read_all(one, bytes, &whole);
    bool first = read_all(two, str_sub(bytes, 0, cut), &parts);
    bool second = first && read_all(two, str_sub(bytes, cut, bytes.len), &parts);
    assert(ok == (first && second));
    assert(str_eq(buf_view(&whole), buf_view(&parts)));
    resp_reader_free(one);
    resp_reader_free(two);
    buf_release(&whole);
    buf_release(&parts);
    return 0;
}
