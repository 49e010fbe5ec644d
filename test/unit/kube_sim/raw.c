/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* See raw.h. */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */

#include "test/unit/kube_sim/raw.h"

void raw_open(struct raw *r, uint64_t seed, const struct sim_options *o)
{
    int64_t start = 0;
    *r = (struct raw){0};
    assert_int_equal(time_parse_rfc3339(STR("2026-07-20T10:00:00Z"), &start, NULL), 0);
    r->loop = loop_new_virtual(start);
    r->sim = sim_new(r->loop, seed, o);
    r->http = sim_http(r->sim, "test", 0);
}

void raw_close(struct raw *r)
{
    http_close(r->http);
    sim_free(r->sim);
    loop_free(r->loop);
    buf_release(&r->body);
    arena_release(&r->arena);
}

static void on_head(void *arg, const struct http_response *head)
{
    struct raw *r = arg;
    r->retry_after = http_retry_after(head, 0);
}

static void on_chunk(void *arg, struct str data)
{
    buf_str(&((struct raw *)arg)->body, data);
}

static void on_done(void *arg, int status, const struct err *err)
{
    struct raw *r = arg;
    r->status = status;
    r->error = err ? err->code : ERR_NONE;
    r->done = true;
    loop_stop(r->loop);
}

int raw_send(struct raw *r, const char *method, const char *path, const char *type,
             const char *body)
{
    CLEANUP(buf_release) struct buf url = BUF_INIT;
    const struct http_handler handler = {on_head, on_chunk, on_done};
    struct http_header header = {STR("Content-Type"), str_from(type)};
    buf_printf(&url, "https://sim.test:6443%s", path);
    struct http_request req = {.method = str_from(method),
                               .url = buf_view(&url),
                               .headers = &header,
                               .n_headers = 1,
                               .body = str_from(body)};
    buf_clear(&r->body);
    arena_clear(&r->arena);
    r->done = false;
    r->retry_after = -1;
    assert_non_null(http_start(r->http, &req, &handler, r, NULL));
    while (!r->done)
        loop_run_until(r->loop, loop_now(r->loop) + NS_PER_S);
    r->json = json_parse(&r->arena, buf_view(&r->body), NULL);
    return r->status;
}

int raw_call(struct raw *r, const char *method, const char *path, const char *body)
{
    return raw_send(
        r, method, path,
        strcmp(method, "PATCH") == 0 ? "application/merge-patch+json" : "application/json", body);
}

struct str raw_text(const struct raw *r, const char *a, const char *b, const char *c)
{
    const struct json *j = json_get(r->json, a);
    if (b)
        j = json_get(j, b);
    return json_text(c ? json_get(j, c) : j);
}

void raw_run(struct raw *r, double seconds)
{
    loop_run_until(r->loop, loop_now(r->loop) + (int64_t)(seconds * (double)NS_PER_S));
}

static void watch_head(void *arg, const struct http_response *head)
{
    ((struct raw_watch *)arg)->status = head->status;
}

static void watch_chunk(void *arg, struct str data)
{
    buf_str(&((struct raw_watch *)arg)->text, data);
}

static void watch_done(void *arg, int status, const struct err *err)
{
    struct raw_watch *w = arg;
    (void)status;
    (void)err;
    w->ended = true;
}

void raw_watch(struct raw *r, struct http *h, const char *path, struct raw_watch *w)
{
    const struct http_handler handler = {watch_head, watch_chunk, watch_done};
    struct http_request req = {.method = STR("GET"), .url = str_from(path), .timeout = TIME_NEVER};
    *w = (struct raw_watch){0};
    w->op = http_start(h ? h : r->http, &req, &handler, w, NULL);
    assert_non_null(w->op);
}

size_t raw_watch_count(const struct raw_watch *w, const char *needle)
{
    size_t n = 0, at = 0;
    while ((at = str_find(buf_view(&w->text), str_from(needle), at)) != SIZE_MAX) {
        n++;
        at++;
    }
    return n;
}

void raw_pod(struct raw *r, const char *name, const char *extra_spec)
{
    char text[2048];
    struct err err = ERR_INIT;
    snprintf(text, sizeof(text),
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
             "\"app\":\"a\"}},"
             "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"
             "\"100m\"}}}]%s}}",
             name, extra_spec ? extra_spec : "");
    if (!sim_apply_text(r->sim, text, &err))
        fail_msg("%s", err.msg);
}

void raw_node(struct raw *r, const char *name, const char *zone, int64_t cpu_milli)
{
    const struct resource_amount v[] = {
        {"cpu", cpu_milli}, {"memory", INT64_C(8) << 30}, {"pods", 110}};
    struct sim_node n = {
        .name = name, .provider_id = name, .instance_type = "t", .zone = zone, .region = "r"};
    n.capacity = n.allocatable = (struct resource_list){v, 3};
    sim_node_add(r->sim, &n);
}
