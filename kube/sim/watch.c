/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Lists and watches.
 *
 * A watcher walks the ring of its resource by sequence number. A change wakes it after its lag; it
 * then sends everything that is due in one go. A watcher that falls behind the ring is told 410,
 * as is one that wants to start before it. */

#include "base/num.h"
#include "kube/sim/api.h"

struct watcher {
    struct resource *res;
    struct watcher *next, *previous;
    struct watch_sink sink;
    struct filter filter;
    struct arena arena;
    struct loop_timer timer, bookmark, end;
    uint64_t at; /* the next change to send */
    bool bookmarks, stopped, sending;
};

/* ---- List ---- */

static void list_meta(struct json_writer *w, uint64_t number, const struct item *last,
                      int64_t remaining)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    json_w_kobject(w, "metadata");
    json_w_kcstr(w, "resourceVersion", text);
    if (remaining > 0) {
        CLEANUP(buf_release) struct buf token = BUF_INIT;
        buf_printf(&token, "%s:%s", text, last->key);
        json_w_kstr(w, "continue", buf_view(&token));
        json_w_ki64(w, "remainingItemCount", remaining);
    }
    json_w_object_end(w);
}

static void list_body(struct resource *r, struct item **v, size_t n, uint64_t number,
                      int64_t remaining, struct buf *out)
{
    struct json_writer w;
    char kind[160], api_version[160];
    snprintf(kind, sizeof(kind), "%sList", r->kind);
    snprintf(api_version, sizeof(api_version), "%s%s%s", r->group, *r->group ? "/" : "",
             r->version);
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "kind", kind);
    json_w_kcstr(&w, "apiVersion", api_version);
    list_meta(&w, number, n ? v[n - 1] : NULL, remaining);
    json_w_object_end(&w);
    out->len--; /* reopened for the items, whose text is ready-made */
    buf_cstr(out, ",\"items\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(out, ',');
        buf_str(out, version_text(v[i]->now));
    }
    buf_cstr(out, "]}");
}

/* "VERSION:KEY": the list goes on after the key, and still calls itself the first page's version,
 * so that a watch from there tells what changed meanwhile. */
static bool parse_continue(struct request *r, uint64_t *number, struct str *after,
                           struct answer *ret)
{
    struct str token = request_query(r, "continue");
    size_t colon = str_find_char(token, ':', 0);
    if (colon == SIZE_MAX || num_parse_u64(str_sub(token, 0, colon), number, NULL) < 0) {
        answer_fail(ret, 400, "BadRequest", "continue key is not valid");
        return false;
    }
    *after = str_sub(token, colon + 1, token.len);
    if (*number < r->res->expired) {
        answer_fail(
            ret, 410, "Expired",
            "The provided continue parameter is too old to display a consistent list result.");
        return false;
    }
    return true;
}

void handle_list(struct sim *s, struct request *r, struct answer *ret)
{
    struct filter f;
    uint64_t number = s->number;
    struct str after = STR_NONE;
    int64_t limit = 0;
    if (!filter_parse(r, &r->arena, &f, ret))
        return;
    if (request_query(r, "limit").len &&
        num_parse_range(request_query(r, "limit"), 0, INT32_MAX, &limit, NULL) < 0) {
        answer_fail(ret, 400, "BadRequest", "limit is not a number");
        return;
    }
    if (request_query(r, "continue").len && !parse_continue(r, &number, &after, ret))
        return;
    size_t n, n_out = 0;
    int64_t remaining = 0;
    struct item **all = store_sorted(r->res, &n);
    struct item **out = ARENA_NEW_ARRAY(&r->arena, struct item *, n + 1);
    for (size_t i = 0; i < n; i++) {
        if ((after.p && str_cmp(str_from(all[i]->key), after) <= 0) ||
            !filter_matches(&f, all[i]->now))
            continue;
        if (limit && (int64_t)n_out == limit)
            remaining++;
        else
            out[n_out++] = all[i];
    }
    ret->status = 200;
    list_body(r->res, out, n_out, number, remaining, &ret->body);
}

/* ---- Watch ---- */

static void send_event(struct watcher *w, const char *type, struct version *v)
{
    CLEANUP(buf_release) struct buf line = BUF_INIT;
    struct str text = version_text(v);
    buf_reserve(&line, text.len + 48);
    buf_cstr(&line, "{\"type\":\"");
    buf_cstr(&line, type);
    buf_cstr(&line, "\",\"object\":");
    buf_str(&line, text);
    buf_cstr(&line, "}\n");
    w->res->sim->counters.events_sent++;
    w->res->sim->counters.bytes_sent += line.len;
    w->sink.send(w->sink.arg, buf_view(&line));
}

static void send_bookmark(struct watcher *w, bool initial_end)
{
    CLEANUP(buf_release) struct buf line = BUF_INIT;
    const struct resource *r = w->res;
    uint64_t number = r->sim->number;
    /* Never past what this watcher has been told. */
    if (w->at < r->next)
        number = r->ring[w->at % r->ring_size].number - 1;
    buf_printf(&line,
               "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s%s%s\","
               "\"metadata\":{"
               "\"resourceVersion\":\"%llu\"%s}}}\n",
               r->kind, r->group, *r->group ? "/" : "", r->version, (unsigned long long)number,
               initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
    w->sink.send(w->sink.arg, buf_view(&line));
}

static void send_gone(struct watcher *w)
{
    struct answer a = {0};
    CLEANUP(buf_release) struct buf line = BUF_INIT;
    answer_fail(&a, 410, "Expired", "too old resource version");
    buf_printf(&line, "{\"type\":\"ERROR\",\"object\":%.*s}\n", STR_ARG(buf_view(&a.body)));
    buf_release(&a.body);
    w->sink.send(w->sink.arg, buf_view(&line));
}

/* A selector turns a change into an arrival or a departure. */
static void send_change(struct watcher *w, const struct change *c)
{
    struct version *after = version_ref(c->after); /* the ring may turn while it is sent */
    bool was = c->before && filter_matches(&w->filter, c->before);
    bool is = !c->removed && filter_matches(&w->filter, after);
    if (is)
        send_event(w, was ? "MODIFIED" : "ADDED", after);
    else if (was)
        send_event(w, "DELETED", after);
    version_unref(after);
}

static void watch_tick(void *arg);

static void arm(struct watcher *w)
{
    const struct resource *r = w->res;
    if (w->stopped || w->at >= r->next || loop_timer_active(&w->timer))
        return;
    int64_t at = w->at < r->first ? 0 : r->ring[w->at % r->ring_size].at;
    loop_timer_at(r->sim->loop, &w->timer, MAX(sim_now(r->sim), at + w->sink.lag(w->sink.arg)),
                  watch_tick, w);
}

static void watch_free(struct watcher *w)
{
    arena_release(&w->arena);
    free(w);
}

static void finish(struct watcher *w)
{
    w->sink.end(w->sink.arg); /* stops the watch */
}

static void send_due(struct watcher *w)
{
    struct resource *r = w->res;
    int64_t lag = w->sink.lag(w->sink.arg);
    while (!w->stopped && w->at < r->next) {
        if (w->at < r->first) {
            send_gone(w);
            if (!w->stopped)
                finish(w);
            return;
        }
        struct change *c = &r->ring[w->at % r->ring_size];
        if (c->at + lag > sim_now(r->sim))
            break;
        w->at++;
        send_change(w, c);
        if (!w->stopped && w->sink.broken(w->sink.arg)) {
            finish(w);
            return;
        }
    }
    arm(w);
}

static void watch_tick(void *arg)
{
    struct watcher *w = arg;
    w->sending = true;
    send_due(w);
    w->sending = false;
    if (w->stopped)
        watch_free(w);
}

void watch_wake(struct resource *r)
{
    for (struct watcher *w = r->watchers; w; w = w->next)
        arm(w);
}

static void watch_bookmark(void *arg)
{
    struct watcher *w = arg;
    loop_timer_in(w->res->sim->loop, &w->bookmark, NS_PER_MIN, watch_bookmark, w);
    w->sending = true;
    send_bookmark(w, false);
    w->sending = false;
    if (w->stopped)
        watch_free(w);
}

static void watch_end(void *arg)
{
    finish(arg);
}

/* Without a version, or with 0, what exists comes first, as ADDED. */
static void initial_events(void *arg)
{
    struct watcher *w = arg;
    size_t n;
    struct item **all = store_sorted(w->res, &n);
    struct vec_item items = {0};
    for (size_t i = 0; i < n; i++)
        if (filter_matches(&w->filter, all[i]->now))
            vec_push(&items, item_ref(all[i]));
    w->at = w->res->next;
    w->sending = true;
    for (size_t i = 0; i < items.len && !w->stopped; i++)
        send_event(w, "ADDED", items.v[i]->now);
    if (!w->stopped && w->bookmarks)
        send_bookmark(w, true);
    w->sending = false;
    vec_each(&items, struct item **, it)
        item_unref(*it);
    vec_release(&items);
    if (w->stopped)
        watch_free(w);
    else
        arm(w);
}

/* The first change after `number`. */
static uint64_t find_change(const struct resource *r, uint64_t number)
{
    uint64_t lo = r->first, hi = r->next;
    while (lo < hi) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (r->ring[middle % r->ring_size].number <= number)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

struct watcher *watch_start(struct sim *s, struct request *r, const struct watch_sink *sink,
                            struct answer *ret)
{
    uint64_t number = 0;
    int64_t seconds = 0;
    struct str version = request_query(r, "resourceVersion");
    if (version.len && num_parse_u64(version, &number, NULL) < 0) {
        answer_fail(ret, 400, "BadRequest", "Invalid value: \"%.*s\": resourceVersion",
                    STR_ARG(version));
        return NULL;
    }
    if (number && number < r->res->expired) {
        answer_fail(ret, 410, "Expired", "too old resource version: %llu (%llu)",
                    (unsigned long long)number, (unsigned long long)r->res->expired);
        return NULL;
    }
    struct watcher *w = xcalloc(1, sizeof(*w));
    w->arena = r->arena;
    r->arena = (struct arena)ARENA_INIT;
    if (!filter_parse(r, &w->arena, &w->filter, ret)) {
        watch_free(w);
        return NULL;
    }
    w->res = r->res;
    w->sink = *sink;
    w->bookmarks = str_eq_c(request_query(r, "allowWatchBookmarks"), "true") ||
                   str_eq_c(request_query(r, "allowWatchBookmarks"), "1");
    w->next = r->res->watchers;
    if (w->next)
        w->next->previous = w;
    r->res->watchers = w;
    s->counters.watches++;
    w->at = r->res->next;
    if (number)
        w->at = find_change(r->res, number);
    else
        loop_timer_in(s->loop, &w->timer, 0, initial_events, w);
    arm(w);
    if (w->bookmarks)
        loop_timer_in(s->loop, &w->bookmark, NS_PER_MIN, watch_bookmark, w);
    if (num_parse_range(request_query(r, "timeoutSeconds"), 1, 86400, &seconds, NULL) == 0)
        loop_timer_in(s->loop, &w->end, seconds * NS_PER_S, watch_end, w);
    return w;
}

void watch_stop(struct watcher *w)
{
    struct loop *l = w->res->sim->loop;
    if (w->stopped)
        return;
    w->stopped = true;
    loop_timer_cancel(l, &w->timer);
    loop_timer_cancel(l, &w->bookmark);
    loop_timer_cancel(l, &w->end);
    if (w->previous)
        w->previous->next = w->next;
    else
        w->res->watchers = w->next;
    if (w->next)
        w->next->previous = w->previous;
    if (!w->sending)
        watch_free(w);
}
