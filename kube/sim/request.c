/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Taking requests apart and making answers. */

#include <stdarg.h>

#include "kube/sim/api.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decoding; a plus is a space in queries only. */
static struct str unescape(struct arena *a, struct str s, bool query)
{
    char *out = arena_bytes(a, s.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '%' && i + 2 < s.len && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0) {
            c = (char)(hex(s.p[i + 1]) * 16 + hex(s.p[i + 2]));
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        out[n++] = c;
    }
    out[n] = 0;
    return (struct str){out, n};
}

struct str request_query(const struct request *r, const char *key)
{
    for (size_t i = 0; i < r->n_query; i++)
        if (str_eq_c(r->query[i].key, key))
            return r->query[i].value;
    return STR_NONE;
}

static void parse_query(struct request *r, struct str text)
{
    struct str part;
    while (str_split(&text, '&', &part)) {
        if (!part.len || r->n_query == QUERY_MAX)
            continue;
        size_t equals = str_find_char(part, '=', 0);
        struct str key = str_sub(part, 0, MIN(equals, part.len));
        struct str value = equals == SIZE_MAX ? STR("") : str_sub(part, equals + 1, part.len);
        r->query[r->n_query++] =
            (struct query){unescape(&r->arena, key, true), unescape(&r->arena, value, true)};
    }
}

static void answer_init(struct answer *a)
{
    buf_clear(&a->body);
    a->retry_after_s = 0;
    a->stream = false;
}

void answer_fail(struct answer *a, int status, const char *reason, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    int64_t retry = a->retry_after_s;
    answer_init(a);
    a->status = status;
    a->retry_after_s = retry;
    struct json_writer w;
    json_writer_init(&w, &a->body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "kind", "Status");
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kobject(&w, "metadata");
    json_w_object_end(&w);
    json_w_kcstr(&w, "status", "Failure");
    json_w_kcstr(&w, "message", message);
    json_w_kcstr(&w, "reason", reason);
    if (retry > 0 || strcmp(reason, "TooManyRequests") == 0) {
        json_w_kobject(&w, "details");
        if (retry > 0)
            json_w_ki64(&w, "retryAfterSeconds", retry);
        json_w_object_end(&w);
    }
    json_w_ki64(&w, "code", status);
    json_w_object_end(&w);
}

void answer_not_found(struct answer *a, const struct request *r)
{
    if (!r->res) {
        answer_fail(a, 404, "NotFound", "the server could not find the requested resource");
        return;
    }
    const char *dot = *r->res->group ? "." : "";
    answer_fail(a, 404, "NotFound", "%s%s%s \"%.*s\" not found", r->res->plural, dot, r->res->group,
                STR_ARG(r->name));
}

void answer_object(struct answer *a, int status, struct version *v)
{
    answer_init(a);
    a->status = status;
    buf_str(&a->body, version_text(v));
}

void answer_success(struct answer *a, int status)
{
    answer_init(a);
    a->status = status;
    buf_printf(&a->body,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
               "\"code\":%d}",
               status);
}

/* /api/v1/… and /apis/GROUP/VERSION/…, with or without namespaces/NAME. */
static bool parse_resource(struct sim *s, struct request *r, struct str *part, size_t n)
{
    size_t i = str_eq_c(part[0], "api") ? 1 : 2;
    struct str group = i == 1 ? STR("") : part[1];
    if (n <= i + 1)
        return false;
    struct str version = part[i++];
    if (str_eq_c(part[i], "namespaces") && n > i + 2) {
        struct resource *own = store_resource(s, group, part[i + 2]);
        if (own && own->namespaced) {
            r->namespace_ = part[i + 1];
            i += 2;
        }
    }
    r->res = store_resource(s, group, part[i]);
    if (!r->res || !str_eq_c(version, r->res->version))
        return false;
    r->name = n > i + 1 ? part[i + 1] : STR_NONE;
    r->subresource = n > i + 2 ? part[i + 2] : STR_NONE;
    return n <= i + 3 && (!r->res->namespaced || !r->name.len || r->namespace_.len);
}

bool request_parse(struct sim *s, struct str url, struct request *r, struct answer *ret)
{
    size_t scheme = str_find(url, STR("://"), 0);
    size_t slash = str_find_char(url, '/', scheme == SIZE_MAX ? 0 : scheme + 3);
    struct str rest = slash == SIZE_MAX ? STR("/") : str_sub(url, slash, url.len);
    size_t mark = str_find_char(rest, '?', 0);
    if (mark != SIZE_MAX)
        parse_query(r, str_sub(rest, mark + 1, rest.len));
    r->path = str_sub(rest, 0, MIN(mark, rest.len));
    struct str left = str_sub(r->path, 1, r->path.len), part[8], one;
    size_t n = 0;
    while (n < ARRAY_LEN(part) && str_split(&left, '/', &one))
        if (one.len)
            part[n++] = unescape(&r->arena, one, false);
    if (n > 2 && (str_eq_c(part[0], "api") || (str_eq_c(part[0], "apis") && n > 3))) {
        if (parse_resource(s, r, part, n))
            return true;
        r->res = NULL;
        answer_not_found(ret, r);
        return false;
    }
    return true; /* discovery and health decide for themselves */
}

struct json *request_json(struct request *r, struct answer *ret)
{
    struct err err = ERR_INIT;
    struct json *j = json_parse(&r->arena, r->body, &err);
    if (!j)
        answer_fail(ret, 400, "BadRequest", "the body is not JSON: %s", err.msg);
    return j;
}

/* ---- Filters ---- */

static bool parse_fields(struct request *r, struct str text, struct filter *f, struct answer *ret)
{
    struct str part;
    while (str_split(&text, ',', &part)) {
        if (!part.len)
            continue;
        size_t equals = str_find_char(part, '=', 0);
        if (equals == SIZE_MAX || equals == 0 || f->n_fields == ARRAY_LEN(f->fields)) {
            answer_fail(ret, 400, "BadRequest", "invalid field selector \"%.*s\"", STR_ARG(part));
            return false;
        }
        struct field_term *t = &f->fields[f->n_fields++];
        t->not_equal = part.p[equals - 1] == '!';
        t->path = str_sub(part, 0, equals - t->not_equal);
        size_t from = equals + 1 + (equals + 1 < part.len && part.p[equals + 1] == '=');
        t->value = str_sub(part, from, part.len);
    }
    (void)r;
    return true;
}

bool filter_parse(struct request *r, struct arena *a, struct filter *ret, struct answer *answer)
{
    struct err err = ERR_INIT;
    *ret = (struct filter){.namespace_ = r->namespace_};
    struct str labels = request_query(r, "labelSelector");
    if (labels.len) {
        if (selector_parse(a, labels, &ret->selector, &err) < 0) {
            answer_fail(answer, 400, "BadRequest", "labelSelector: %s", err.msg);
            return false;
        }
        ret->has_selector = true;
    }
    return parse_fields(r, request_query(r, "fieldSelector"), ret, answer);
}

static struct str field_value(const struct json *root, struct str path)
{
    struct str part;
    while (root && str_split(&path, '.', &part))
        root = json_get_str(root, part);
    return json_text(root);
}

bool filter_matches(const struct filter *f, struct version *v)
{
    if (f->namespace_.len &&
        !str_eq(json_text(json_at(v->root, "metadata", "namespace", NULL)), f->namespace_))
        return false;
    if (f->has_selector && !selector_matches(&f->selector, version_labels(v)))
        return false;
    for (size_t i = 0; i < f->n_fields; i++) {
        bool equal = str_eq(field_value(v->root, f->fields[i].path), f->fields[i].value);
        if (equal == f->fields[i].not_equal)
            return false;
    }
    return true;
}
