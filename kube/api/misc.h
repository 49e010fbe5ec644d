/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
/* Small kinds: Lease, Secret, ConfigMap, PriorityClass, Namespace, VolumeAttachment,
 * PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode. */
#ifndef KUBE_API_MISC_H
#define KUBE_API_MISC_H

#include "kube/api/kind.h"
#include "kube/api/podspec.h"

struct lease {
    struct object obj;
    const char *holder;
    int64_t duration_s, transitions;
    int64_t acquire_time, renew_time;
};

struct data_entry {
    const char *key;
    struct str value; /* decoded bytes of a Secret */
};

/* Secret and ConfigMap. Values of a Secret are wiped when the object is freed. */
struct config_data {
    struct object obj;
    const struct data_entry *data; /* sorted by key */
    uint32_t n_data;
};

struct priority_class {
    struct object obj;
    int32_t value;
    bool global_default;
};

struct volume_attachment {
    struct object obj;
    const char *attacher, *node_name, *pv_name;
    bool attached;
};

struct pvc {
    struct object obj;
    const char *storage_class, *volume_name, *phase;
    bool has_storage_class;
};

struct pv {
    struct object obj;
    const char *csi_driver, *storage_class;
    const struct node_selector_term *node_terms; /* nodeAffinity.required, OR */
    uint32_t n_node_terms;
    bool local; /* local or hostPath */
};

struct storage_class {
    struct object obj;
    const char *provisioner;
    bool wait_for_first_consumer;
    const struct node_selector_term *topologies; /* allowedTopologies, OR, as In expressions */
    uint32_t n_topologies;
};

struct csi_driver_limit {
    const char *name;
    int64_t count; /* -1: no limit told */
};

struct csi_node {
    struct object obj;
    const struct csi_driver_limit *drivers;
    uint32_t n_drivers;
};

extern const struct kind kind_lease, kind_secret, kind_configmap, kind_priority_class,
    kind_namespace;
extern const struct kind kind_volume_attachment, kind_pvc, kind_pv, kind_storage_class,
    kind_csi_node;
extern const struct kind kind_event; /* decoded as metadata only; written by kube/client/recorder */

const struct data_entry *config_data_get(const struct config_data *d, const char *key);

#endif
