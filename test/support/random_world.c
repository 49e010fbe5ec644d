/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Making random worlds. */

#include "test/support/random_world.h"

#include <assert.h>

static struct buf *document(struct random_world *r)
{
    assert(r->n_documents < ARRAY_LEN(r->documents));
    return &r->documents[r->n_documents++];
}

static void add_catalog(struct random_world *r, struct rng *g, const struct random_world_options *o)
{
    static const char *const zones[] = {"a", "b", "c"};
    int64_t times = o->price_times ? o->price_times : 1;
    uint64_t n = 1 + rng_below(g, o->types_max);
    buf_cstr(&r->catalog, "{\"region\":\"r\",\"asOf\":\"2026-07-20\",\"types\":[");
    for (uint64_t i = 0; i < n + o->dominated; i++) {
        static uint64_t cpu, memory, price, gpu;
        if (i < n) {
            cpu = 1 + rng_below(g, 16);
            memory = 1 + rng_below(g, 32);
            gpu = rng_chance(g, 300000) ? 1 + rng_below(g, 4) : 0;
            price = 10000 + cpu * 20000 + memory * 5000 + gpu * 400000 + rng_below(g, 60000);
        } else {
            price++;
        }
        buf_printf(&r->catalog,
                   "%s{\"name\":\"t%llu\",\"arch\":\"%s\",\"os\":\"linux\",\"capacity\":{\"cpu\":"
                   "\"%llu\",\"memory\":\"%lluGi\","
                   "\"pods\":\"10\",\"nvidia.com/"
                   "gpu\":\"%llu\"},\"allocatable\":{\"cpu\":\"%llu\",\"memory\":\"%lluGi\","
                   "\"pods\":\"10\","
                   "\"nvidia.com/gpu\":\"%llu\"},\"labels\":{\"family\":\"f%llu\"},\"offerings\":[",
                   i ? "," : "", (unsigned long long)i, o->plain || i % 3 ? "amd64" : "arm64",
                   (unsigned long long)cpu, (unsigned long long)memory, (unsigned long long)gpu,
                   (unsigned long long)cpu, (unsigned long long)memory, (unsigned long long)gpu,
                   (unsigned long long)i % 2);
        for (size_t z = 0; z < (o->plain ? 1 : ARRAY_LEN(zones)); z++)
            buf_printf(&r->catalog,
                       "%s{\"zone\":\"%s\",\"capacityType\":\"on-demand\",\"priceUsdHour\":\"%lld.%"
                       "06lld\",\"available\":true}",
                       z ? "," : "", zones[z], (long long)((int64_t)price * times / 1000000),
                       (long long)((int64_t)price * times % 1000000));
        buf_cstr(&r->catalog, "]}");
    }
    buf_cstr(&r->catalog, "]}");
}

static void add_pool(struct random_world *r, struct rng *g, const struct random_world_options *o,
                     int index)
{
    struct buf *b = document(r);
    bool taint = !o->plain && index && rng_chance(g, 500000),
         limit = !o->plain && rng_chance(g, 400000);
    buf_printf(
        b,
        "{\"apiVersion\":\"karpenter.sh/"
        "v1\",\"kind\":\"NodePool\",\"metadata\":{\"name\":\"pool%d\"},\"spec\":{\"weight\":%d,"
        "\"template\":{\"metadata\":{\"labels\":{\"team\":\"x%d\"}},\"spec\":{\"nodeClassRef\":{"
        "\"group\":\"weft.sh\",\"kind\":"
        "\"SimNodeClass\",\"name\":\"d\"},\"requirements\":[",
        index, o->plain ? 0 : (int)rng_below(g, 2) * 10 + 1, index);
    if (!o->plain && rng_chance(g, 400000))
        buf_cstr(b, "{\"key\":\"kubernetes.io/arch\",\"operator\":\"In\",\"values\":[\"amd64\"]},");
    if (!o->plain && rng_chance(g, 300000))
        buf_cstr(b, "{\"key\":\"open\",\"operator\":\"In\",\"values\":[\"p\",\"q\"]},");
    buf_cstr(b, "{\"key\":\"kubernetes.io/os\",\"operator\":\"In\",\"values\":[\"linux\"]}]");
    if (taint)
        buf_cstr(b,
                 ",\"taints\":[{\"key\":\"dedicated\",\"value\":\"x\",\"effect\":\"NoSchedule\"}]");
    buf_cstr(b, "}}");
    if (limit)
        buf_printf(b, ",\"limits\":{\"%s\":\"%llu\"}", rng_chance(g, 500000) ? "nodes" : "cpu",
                   (unsigned long long)(2 + rng_below(g, 20)));
    buf_cstr(b, "}}");
}

static void add_node(struct random_world *r, struct rng *g, int index)
{
    struct buf *b = document(r);
    buf_printf(
        b,
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node%d\",\"labels\":{"
        "\"kubernetes.io/hostname\":\"node%d\","
        "\"kubernetes.io/arch\":\"amd64\",\"kubernetes.io/os\":\"linux\",\"topology.kubernetes.io/"
        "zone\":\"%c\",\"team\":\"x0\","
        "\"karpenter.sh/nodepool\":\"pool0\",\"karpenter.sh/registered\":\"true\",\"karpenter.sh/"
        "initialized\":\"true\"}},"
        "\"spec\":{%s},\"status\":{\"capacity\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"10\"},"
        "\"allocatable\":{\"cpu\":\"4\","
        "\"memory\":\"8Gi\",\"pods\":\"10\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
        "\"True\"}]}}",
        index, index, "abc"[rng_below(g, 3)],
        rng_chance(g, 300000)
            ? "\"taints\":[{\"key\":\"dedicated\",\"value\":\"x\",\"effect\":\"NoSchedule\"}]"
            : "");
}

static void add_affinity(struct buf *b, struct rng *g, const char *app)
{
    const char *key =
        rng_chance(g, 500000) ? "kubernetes.io/hostname" : "topology.kubernetes.io/zone";
    const char *kind = rng_chance(g, 600000) ? "podAntiAffinity" : "podAffinity";
    buf_printf(b,
               ",\"affinity\":{\"%s\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
               "\"topologyKey\":\"%s\","
               "\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}]}}",
               kind, key, app);
}

/* One skew for all that select the same pods: mixed ones make the outcome depend on who came first.
 */
static void add_spread(struct buf *b, struct rng *g, const char *app)
{
    const char *key =
        rng_chance(g, 500000) ? "kubernetes.io/hostname" : "topology.kubernetes.io/zone";
    buf_printf(b,
               ",\"topologySpreadConstraints\":[{\"maxSkew\":%d,\"topologyKey\":\"%s\","
               "\"whenUnsatisfiable\":\"DoNotSchedule\","
               "\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}]",
               *app == 'r' ? 2 : 1, key, app);
}

/* One shape for several pods, so that classes have members. */
static void add_pods(struct random_world *r, struct rng *g, const struct random_world_options *o,
                     int shape, uint64_t count, int on_node)
{
    CLEANUP(buf_release) struct buf rest = BUF_INIT;
    static const char *const apps[] = {"red", "green", "blue"};
    const char *app = apps[rng_below(g, 3)];
    int cpu = 250 * (1 + (int)rng_below(g, on_node >= 0 ? 4 : 24)),
        memory = 256 * (1 + (int)rng_below(g, on_node >= 0 ? 4 : 30));
    int gpu = on_node < 0 && rng_chance(g, 200000) ? 1 + (int)rng_below(g, 2) : 0;
    if (!o->plain && on_node < 0) {
        /* Spreads of pods that only some pools take count differently on each pool's nodes; the
         * judge does not follow that. */
        bool selects = rng_chance(g, 200000);
        if (selects)
            buf_printf(&rest, ",\"nodeSelector\":{\"%s\"}",
                       rng_chance(g, 500000)   ? "team\":\"x0"
                       : rng_chance(g, 500000) ? "open\":\"p"
                                               : "kubernetes.io/arch\":\"amd64");
        if (rng_chance(g, 300000))
            buf_cstr(&rest, ",\"tolerations\":[{\"key\":\"dedicated\",\"operator\":\"Exists\"}]");
        if (rng_chance(g, 250000))
            add_affinity(&rest, g, apps[rng_below(g, 3)]);
        if (rng_chance(g, 250000) && !selects)
            add_spread(&rest, g, rng_chance(g, 700000) ? app : apps[rng_below(g, 3)]);
    }
    bool port = !o->plain && rng_chance(g, 150000) && on_node < 0;
    for (uint64_t i = 0; i < count; i++) {
        struct buf *b = document(r);
        buf_printf(b,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod%d-%llu\","
                   "\"namespace\":\"default\",\"labels\":{\"app\":\"%s\"}},\"spec\":{",
                   shape, (unsigned long long)i, app);
        if (on_node >= 0)
            buf_printf(b, "\"nodeName\":\"node%d\",", on_node);
        buf_printf(b,
                   "\"containers\":[{\"name\":\"c\"%s,\"resources\":{\"requests\":{\"cpu\":\"%dm\","
                   "\"memory\":\"%dMi\"",
                   port ? ",\"ports\":[{\"containerPort\":80,\"hostPort\":80}]" : "", cpu, memory);
        if (gpu)
            buf_printf(b, ",\"nvidia.com/gpu\":\"%d\"", gpu);
        buf_printf(b, "}}}]%s}}", rest.data ? rest.data : "");
    }
}

void random_world_make(struct random_world *r, uint64_t seed, const struct random_world_options *o)
{
    *r = (struct random_world){0};
    struct rng g;
    rng_init(&g, seed);
    add_catalog(r, &g, o);
    rng_split(&g, seed, "objects");
    int pools = o->plain ? 1 : 1 + (int)rng_below(&g, 2);
    for (int i = 0; i < pools; i++)
        add_pool(r, &g, o, i);
    int nodes = o->nodes_max ? (int)rng_below(&g, o->nodes_max + 1) : 0;
    for (int i = 0; i < nodes; i++)
        add_node(r, &g, i);
    int shape = 0;
    for (int i = 0; i < nodes; i++)
        if (rng_chance(&g, 600000))
            add_pods(r, &g, o, shape++, 1 + rng_below(&g, 2), i);
    for (uint64_t left = 1 + rng_below(&g, o->pods_max); left > 0;) {
        uint64_t n = 1 + rng_below(&g, MIN(left, 6));
        add_pods(r, &g, o, shape++, n, -1);
        left -= n;
    }
}

void random_world_build(struct random_world *r, uint64_t shuffle)
{
    struct err err = ERR_INIT;
    size_t order[ARRAY_LEN(r->documents)];
    for (size_t i = 0; i < r->n_documents; i++)
        order[i] = i;
    if (shuffle) {
        struct rng g;
        rng_init(&g, shuffle);
        for (size_t i = r->n_documents; i > 1; i--) {
            size_t k = (size_t)rng_below(&g, i), t = order[i - 1];
            order[i - 1] = order[k];
            order[k] = t;
        }
    }
    for (size_t i = 0; i < r->n_documents; i++)
        if (manifests_read_text(&r->manifests, "random", buf_view(&r->documents[order[i]]), &err) <
            0) {
            fprintf(stderr, "%s\n%s\n", err.msg, r->documents[order[i]].data);
            assert(!"manifest");
        }
    r->offers = catalog_parse(buf_view(&r->catalog), "random", NULL, NULL, &err);
    if (!r->offers)
        fprintf(stderr, "%s\n", err.msg);
    assert(r->offers);
    r->world = manifests_world(&r->manifests, r->offers, NS_PER_S, &err);
    assert(r->world);
}

void random_world_release(struct random_world *r)
{
    world_free(r->world);
    catalog_unref(r->offers);
    manifests_release(&r->manifests);
    for (size_t i = 0; i < r->n_documents; i++)
        buf_release(&r->documents[i]);
    buf_release(&r->catalog);
}
