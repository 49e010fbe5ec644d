/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Decoding a PodList: megabytes a second, and bytes that stay for each stored pod.
 *
 * 20,000 realistic pods of about 3.7 kB each, with managed fields, environment, volumes and
 * container statuses that nobody reads. The limit is yajl alone over the same bytes with empty
 * callbacks. */

#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <yajl/yajl_parse.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/vec.h"
#include "kube/api/pod.h"

#define PODS 20000
#define REPEATS 5
#define CHUNK 16384

VEC_DEFINE(vec_object, struct object *);

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t resident(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void write_pod(struct buf *out, struct rng *r, unsigned i)
{
    unsigned service = (unsigned)rng_below(r, 400), node = (unsigned)rng_below(r, 2000);
    buf_printf(out,
               "{\"metadata\":{\"name\":\"service-%u-7d4b9c6f8d-%05x\",\"generateName\":\"service-%"
               "u-7d4b9c6f8d-\",\"namespace\":\"team-%u\","
               "\"uid\":\"%08x-0000-4000-8000-%012x\",\"resourceVersion\":\"%u\","
               "\"creationTimestamp\":\"2026-07-20T10:%02u:%02uZ\",\"labels\":{"
               "\"app.kubernetes.io/name\":\"service-%u\",\"app.kubernetes.io/"
               "instance\":\"service-%u\",\"app.kubernetes.io/component\":\"api\","
               "\"app.kubernetes.io/"
               "part-of\":\"shop\",\"pod-template-hash\":\"7d4b9c6f8d\",\"team\":\"team-%u\"},"
               "\"annotations\":{"
               "\"kubernetes.io/config.seen\":\"2026-07-20T10:00:00Z\",\"prometheus.io/"
               "scrape\":\"true\",\"prometheus.io/port\":\"8080\"},"
               "\"ownerReferences\":[{\"apiVersion\":\"apps/"
               "v1\",\"kind\":\"ReplicaSet\",\"name\":\"service-%u-7d4b9c6f8d\",\"uid\":"
               "\"%08x-1111-4000-8000-000000000000\",\"controller\":true,\"blockOwnerDeletion\":"
               "true}],\"managedFields\":[{\"manager\":"
               "\"kube-controller-manager\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
               "\"time\":\"2026-07-20T10:00:00Z\",\"fieldsType\":"
               "\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\"."
               "\":{},\"f:app.kubernetes.io/name\":{},"
               "\"f:pod-template-hash\":{}},\"f:ownerReferences\":{\".\":{}}},\"f:spec\":{\"f:"
               "containers\":{\"k:{\\\"name\\\":\\\"app\\\"}\":{"
               "\".\":{},\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{\"."
               "\":{},\"f:requests\":{\".\":{},\"f:cpu\":{},"
               "\"f:memory\":{}}},\"f:terminationMessagePath\":{}}},\"f:dnsPolicy\":{},\"f:"
               "enableServiceLinks\":{},\"f:restartPolicy\":{}}}}]},",
               service, i, service, service % 40, i, i, 100000 + i, i / 60 % 60, i % 60, service,
               service, service % 40, service, service);
    buf_printf(out,
               "\"spec\":{\"volumes\":[{\"name\":\"kube-api-access-%05x\",\"projected\":{"
               "\"sources\":[{\"serviceAccountToken\":{"
               "\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{\"name\":\"kube-"
               "root-ca.crt\",\"items\":[{\"key\":\"ca.crt\","
               "\"path\":\"ca.crt\"}]}}],\"defaultMode\":420}}],\"containers\":[{\"name\":\"app\","
               "\"image\":\"registry.example/shop/service-%u:1.%u\","
               "\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}],"
               "\"env\":[{\"name\":\"LOG_LEVEL\",\"value\":\"info\"},"
               "{\"name\":\"DATABASE\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"database\","
               "\"key\":\"url\"}}},{\"name\":\"REGION\",\"value\":"
               "\"us-east-1\"},{\"name\":\"FEATURES\",\"value\":\"checkout,search,"
               "recommendations\"}],\"resources\":{\"limits\":{\"memory\":\"%uMi\"},"
               "\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}},\"volumeMounts\":[{\"name\":"
               "\"kube-api-access-%05x\",\"readOnly\":true,"
               "\"mountPath\":\"/var/run/secrets/kubernetes.io/"
               "serviceaccount\"}],\"terminationMessagePath\":\"/dev/termination-log\","
               "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],"
               "\"restartPolicy\":\"Always\","
               "\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\","
               "\"serviceAccountName\":\"default\",\"serviceAccount\":\"default\","
               "\"nodeName\":\"ip-10-0-%u-%u.ec2.internal\",\"securityContext\":{},"
               "\"schedulerName\":\"default-scheduler\",\"tolerations\":[{\"key\":"
               "\"node.kubernetes.io/"
               "not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":"
               "300},{\"key\":"
               "\"node.kubernetes.io/"
               "unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
               "\"tolerationSeconds\":300}],\"priority\":0,"
               "\"enableServiceLinks\":true,\"preemptionPolicy\":\"PreemptLowerPriority\"},",
               i, service, service % 30, 256 + service % 8 * 128, 100 + service % 10 * 50,
               256 + service % 8 * 128, i, node / 250, node % 250);
    buf_printf(out,
               "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Initialized\","
               "\"status\":\"True\",\"lastProbeTime\":null,"
               "\"lastTransitionTime\":\"2026-07-20T10:00:00Z\"},{\"type\":\"Ready\",\"status\":"
               "\"True\",\"lastProbeTime\":null,"
               "\"lastTransitionTime\":\"2026-07-20T10:00:05Z\"},{\"type\":\"ContainersReady\","
               "\"status\":\"True\",\"lastProbeTime\":null,"
               "\"lastTransitionTime\":\"2026-07-20T10:00:05Z\"},{\"type\":\"PodScheduled\","
               "\"status\":\"True\",\"lastProbeTime\":null,"
               "\"lastTransitionTime\":\"2026-07-20T10:00:00Z\"}],\"hostIP\":\"10.0.%u.%u\","
               "\"podIP\":\"10.1.%u.%u\",\"startTime\":"
               "\"2026-07-20T10:00:00Z\",\"containerStatuses\":[{\"name\":\"app\",\"state\":{"
               "\"running\":{\"startedAt\":\"2026-07-20T10:00:04Z\"}},"
               "\"lastState\":{},\"ready\":true,\"restartCount\":0,\"image\":\"registry.example/"
               "shop/service-%u:1.%u\",\"imageID\":"
               "\"registry.example/shop/service-%u@sha256:%064x\",\"containerID\":\"containerd://"
               "%064x\",\"started\":true}],\"qosClass\":\"Burstable\"}}",
               node / 250, node % 250, i / 250 % 250, i % 250, service, service % 30, service,
               service, i);
}

static void take(void *arg, struct object *o)
{
    struct vec_object *v = arg;
    vec_push(v, o);
}

static void bad(void *arg, const char *name, const struct err *err)
{
    (void)arg;
    fprintf(stderr, "bench_decode: %s: %s\n", name, err->msg);
    exit(1);
}

static double decode(struct str text, struct decode_cache *cache, struct vec_object *to)
{
    struct err err = ERR_INIT;
    struct list_meta meta;
    double began = seconds();
    struct list_decoder *d = list_decoder_new(&kind_pod, cache, take, bad, to);
    for (size_t at = 0; at < text.len; at += CHUNK)
        if (list_decoder_feed(d, str_sub(text, at, at + CHUNK), &err) < 0)
            bad(NULL, "the list", &err);
    if (list_decoder_finish(d, &meta, &err) < 0)
        bad(NULL, "the list", &err);
    list_decoder_free(d);
    return seconds() - began;
}

static double parse_only(struct str text)
{
    static const yajl_callbacks none;
    double began = seconds();
    yajl_handle h = yajl_alloc(&none, NULL, NULL);
    for (size_t at = 0; at < text.len; at += CHUNK) {
        struct str piece = str_sub(text, at, at + CHUNK);
        yajl_parse(h, (const unsigned char *)piece.p, piece.len);
    }
    yajl_complete_parse(h);
    yajl_free(h);
    return seconds() - began;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    CLEANUP(buf_release) struct buf text = BUF_INIT;
    struct rng r;
    rng_init(&r, 1);
    buf_cstr(&text, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
                    "\"1\"},\"items\":[");
    for (unsigned i = 0; i < PODS; i++) {
        if (i)
            buf_char(&text, ',');
        write_pod(&text, &r, i);
    }
    buf_cstr(&text, "]}");
    double ours[REPEATS], limit[REPEATS], megabytes = (double)text.len / 1e6;
    size_t bytes = 0;
    for (int i = 0; i < REPEATS; i++) {
        struct vec_object pods = {0};
        struct decode_cache *cache = decode_cache_new();
        vec_reserve(&pods, PODS);
        size_t before = resident();
        ours[i] = decode(buf_view(&text), cache, &pods);
        bytes = (resident() - before) / PODS;
        limit[i] = parse_only(buf_view(&text));
        for (size_t k = 0; k < pods.len; k++)
            object_unref(pods.v[k]);
        vec_release(&pods);
        decode_cache_free(cache);
    }
    qsort(ours, REPEATS, sizeof(*ours), by_value);
    qsort(limit, REPEATS, sizeof(*limit), by_value);
    double speed = megabytes / ours[REPEATS / 2], most = megabytes / limit[REPEATS / 2];
    printf("%d pods, %.1f MB, %.0f bytes a pod; medians of %d\n", PODS, megabytes,
           (double)text.len / PODS, REPEATS);
    printf("%-44s %12s %12s %8s\n", "work", "ours", "limit", "ratio");
    printf("%-44s %7.0f MB/s %7.0f MB/s %8.2f\n", "decode a PodList (limit: yajl alone)", speed,
           most, speed / most);
    printf("%-44s %7.0f MB/s %7.0f MB/s %8.2f\n", "the same (limit: the bar)", speed, 300.0,
           speed / 300);
    printf("%-44s %10zu B %10d B %8.2f\n", "resident for a stored pod (limit: the bar)", bytes,
           1024, (double)bytes / 1024);
    FILE *f = argc > 1 ? fopen(argv[1], "we") : NULL;
    if (f) {
        fprintf(f,
                "{\"benchmark\": \"decode\", \"megabytesPerSecond\": %.0f, "
                "\"yajlMegabytesPerSecond\": %.0f, \"bytesPerPod\": %zu}\n",
                speed, most, bytes);
        fclose(f);
    }
    return 0;
}
