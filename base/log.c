/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Log lines. */

#include "base/log.h"

#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"

#define FIELD_BYTES_MAX 16384 /* of one text; more is cut */
#define LINE_BYTES_MAX (256 * 1024)

static struct {
    enum log_level least;
    bool text;
    int fd;
    int64_t (*wall)(void *arg);
    void *wall_arg;
    void (*capture)(void *arg, struct str line);
    void *capture_arg;
} config = {.least = LOG_INFO, .fd = STDERR_FILENO};

void log_setup(enum log_level least, bool text, int fd, int64_t (*wall)(void *arg), void *arg)
{
    config.least = least;
    config.text = text;
    config.fd = fd;
    config.wall = wall;
    config.wall_arg = arg;
}

void log_capture(void (*fn)(void *arg, struct str line), void *arg)
{
    config.capture = fn;
    config.capture_arg = arg;
}

bool log_enabled(enum log_level level)
{
    return level >= config.least;
}

static int64_t wall_now(void)
{
    if (config.wall)
        return config.wall(config.wall_arg);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static const char *level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return names[level];
}

/* Cut between characters. */
static struct str clip(struct str s)
{
    if (s.len <= FIELD_BYTES_MAX)
        return s;
    size_t end = FIELD_BYTES_MAX;
    while (end > FIELD_BYTES_MAX - 3 && ((unsigned char)s.p[end] & 0xc0) == 0x80)
        end--;
    return str_sub(s, 0, end);
}

static void write_field_json(struct json_writer *w, const struct log_field *f)
{
    char text[40];
    switch (f->kind) {
    case LOG_FIELD_STR:
        json_w_kstr(w, f->key, clip(f->s));
        break;
    case LOG_FIELD_I64:
        json_w_ki64(w, f->key, f->i);
        break;
    case LOG_FIELD_NS:
        json_w_kstr(w, f->key, time_format_duration(text, f->i));
        break;
    case LOG_FIELD_BOOL:
        json_w_kbool(w, f->key, f->i != 0);
        break;
    }
}

static void write_json(struct buf *out, enum log_level level, struct str ts, const char *msg,
                       const struct log_field *fields, size_t n)
{
    struct json_writer w;
    json_writer_init(&w, out, 0);
    json_w_object(&w);
    json_w_kstr(&w, "ts", ts);
    json_w_kcstr(&w, "level", level_name(level));
    json_w_kcstr(&w, "msg", msg);
    for (size_t i = 0; i < n; i++)
        write_field_json(&w, &fields[i]);
    json_w_object_end(&w);
}

static void write_text(struct buf *out, enum log_level level, struct str ts, const char *msg,
                       const struct log_field *fields, size_t n)
{
    buf_printf(out, "%.*s %-5s %s", STR_ARG(ts), level_name(level), msg);
    for (size_t i = 0; i < n; i++) {
        char text[40];
        struct json_writer w;
        buf_printf(out, "  %s=", fields[i].key);
        json_writer_init(&w, out, 0);
        if (fields[i].kind == LOG_FIELD_STR)
            json_w_str(&w, clip(fields[i].s));
        else if (fields[i].kind == LOG_FIELD_NS)
            buf_str(out, time_format_duration(text, fields[i].i));
        else if (fields[i].kind == LOG_FIELD_BOOL)
            json_w_bool(&w, fields[i].i != 0);
        else
            json_w_i64(&w, fields[i].i);
    }
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields, size_t n)
{
    CLEANUP(buf_release) struct buf out = {.cap = LINE_BYTES_MAX};
    char text[40];
    struct str ts = time_format_micro(text, wall_now());
    void (*write_line)(struct buf *, enum log_level, struct str, const char *,
                       const struct log_field *, size_t) = config.text ? write_text : write_json;
    write_line(&out, level, ts, msg, fields, n);
    if (out.overflow) { /* half a line helps nobody */
        buf_clear(&out);
        const struct log_field cut = LOG_BOOL("fieldsDropped", true);
        write_line(&out, level, ts, msg, &cut, 1);
    }
    if (config.capture) {
        config.capture(config.capture_arg, buf_view(&out));
        return;
    }
    buf_char(&out, '\n');
    /* One write a line, so that lines of several processes do not mix. A log that cannot be written
     * is no reason to stop. */
    ssize_t written = write(config.fd, out.data, out.len);
    (void)written;
}
