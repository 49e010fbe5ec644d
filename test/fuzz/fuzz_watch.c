/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Watch streams and lists of pods, in pieces: every object that comes out is whole, and is given
 * back. */

#include <assert.h>

#include "kube/api/pod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_event(void *arg, const struct watch_event *ev)
{
    size_t *n = arg;
    (*n)++;
    assert(ev->type == WATCH_ERROR || ev->object);
    if (ev->object)
        assert(ev->object->meta.name && ev->object->kind == &kind_pod);
}

static void on_item(void *arg, struct object *o)
{
    size_t *n = arg;
    (*n)++;
    assert(o->meta.name);
    object_unref(o);
}

static void on_bad(void *arg, const char *name, const struct err *err)
{
    (void)arg;
    assert(name && err->code != ERR_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    size_t seen = 0;
    struct watch_decoder *w = watch_decoder_new(&kind_pod, NULL, on_event, on_bad, &seen);
    struct list_decoder *l = list_decoder_new(&kind_pod, NULL, on_item, on_bad, &seen);
    bool watching = true, listing = true;
    for (size_t at = 0; at < size;) {
        size_t n = MIN((size_t)data[at] % 31 + 1, size - at);
        watching = watching && watch_decoder_feed(w, str_sub(text, at, at + n), NULL) == 0;
        listing = listing && list_decoder_feed(l, str_sub(text, at, at + n), NULL) == 0;
        at += n;
    }
    struct list_meta meta;
    if (listing)
        (void)list_decoder_finish(l, &meta, NULL);
    watch_decoder_free(w);
    list_decoder_free(l);
    return 0;
}
