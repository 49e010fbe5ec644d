/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* The memory of unavailable offerings, kept in a ConfigMap so that a new leader does not have to
 * learn it by failing. Written a little after it changed; a lost write costs one failed launch. */
#include "base/json.h"
#include "provisioner/control/internal.h"

#define CONFIG_MAP "weft-unavailable-offerings"
#define CONFIG_KEY "offerings"
#define SAVE_AFTER (5 * NS_PER_S)

static void saved(struct control *c, const char *key, const struct effect_answer *a)
{
    (void)c, (void)key;
    if (a->err)
        log_warn("the memory of unavailable offerings could not be stored", LOG_ERR(a->err));
}

static void save(void *arg)
{
    struct control *c = arg;
    CLEANUP(buf_release) struct buf text = BUF_INIT, body = BUF_INIT;
    struct json_writer w;

    offers_sweep(&c->offers, control_now(c));
    offers_print(&c->offers, &text);
    json_writer_init(&w, &body, 0);
    json_w_object(&w);
    json_w_kcstr(&w, "apiVersion", "v1");
    json_w_kcstr(&w, "kind", "ConfigMap");
    json_w_kobject(&w, "metadata");
    json_w_kcstr(&w, "name", CONFIG_MAP);
    json_w_kcstr(&w, "namespace", c->namespace_);
    json_w_object_end(&w);
    json_w_kobject(&w, "data");
    json_w_kstr(&w, CONFIG_KEY, buf_view(&text));
    json_w_object_end(&w);
    json_w_object_end(&w);
    (void)execute_apply(c, &kind_configmap, CONFIG_MAP, c->namespace_, CONFIG_MAP, buf_view(&body),
                        saved);
}

void offers_save(struct control *c)
{
    c->cluster.generation++;
    if (!loop_timer_active(&c->offers_timer))
        loop_timer_in(c->loop, &c->offers_timer, SAVE_AFTER, save, c);
}

static void loaded(void *arg, const struct client_answer *answer, const struct err *err)
{
    struct control *c = arg;
    const struct data_entry *e;

    c->offers_load = NULL;
    if (err || !answer->object)
        return;
    e = config_data_get((const struct config_data *)(const void *)answer->object, CONFIG_KEY);
    if (e)
        offers_parse(&c->offers, e->value);
}

void offers_load(struct control *c)
{
    c->offers_load = client_get(c->client, &kind_configmap, c->namespace_, CONFIG_MAP, loaded, c);
}
