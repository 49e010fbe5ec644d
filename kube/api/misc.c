/* SPDX-License-Identifier: Apache-2.0
 * Copyright The weft authors. */
#include "kube/api/misc.h"

#include "kube/api/decode.h"
#include "kube/api/pdb.h"

#define META(type) F_STRUCT(type, obj.meta, "metadata", fields_meta)

/* ---- PodDisruptionBudget ---- */

static const struct field fields_pdb_spec[] = {
    F_POINTER(struct pdb, selector, "selector", struct label_selector, fields_label_selector),
    F(FIELD_TEXT, struct pdb, min_available, "minAvailable"),
    F(FIELD_TEXT, struct pdb, max_unavailable, "maxUnavailable"),
    F_IS(struct pdb, always_allow_unhealthy, "unhealthyPodEvictionPolicy", "AlwaysAllow"),
    F_END,
};
static const struct field fields_pdb_status[] = {
    F(FIELD_INT64, struct pdb, disruptions_allowed, "disruptionsAllowed"),
    F(FIELD_INT64, struct pdb, current_healthy, "currentHealthy"),
    F(FIELD_INT64, struct pdb, desired_healthy, "desiredHealthy"),
    F(FIELD_INT64, struct pdb, expected_pods, "expectedPods"),
    F(FIELD_INT64, struct pdb, observed_generation, "observedGeneration"),
    F_END,
};
static const struct field fields_pdb[] = {META(struct pdb), F_INLINE("spec", fields_pdb_spec),
                                          F_INLINE("status", fields_pdb_status), F_END};
const struct kind kind_pdb = {"PodDisruptionBudget", "policy",   "v1", "poddisruptionbudgets", true,
                              sizeof(struct pdb),    fields_pdb, NULL};

/* ---- Lease ---- */

static const struct field fields_lease_spec[] = {
    F(FIELD_TEXT, struct lease, holder, "holderIdentity"),
    F(FIELD_INT64, struct lease, duration_s, "leaseDurationSeconds"),
    F(FIELD_INT64, struct lease, transitions, "leaseTransitions"),
    F(FIELD_TIME, struct lease, acquire_time, "acquireTime"),
    F(FIELD_TIME, struct lease, renew_time, "renewTime"),
    F_END,
};
static const struct field fields_lease[] = {META(struct lease), F_INLINE("spec", fields_lease_spec),
                                            F_END};
const struct kind kind_lease = {"Lease", "coordination.k8s.io", "v1",         "leases",
                                true,    sizeof(struct lease),  fields_lease, NULL};

/* ---- Secret, ConfigMap ---- */

static const struct field fields_secret[] = {
    META(struct config_data), F_DATA(struct config_data, data, n_data, "data", 0), F_END};
const struct kind kind_secret = {
    "Secret", "", "v1", "secrets", true, sizeof(struct config_data), fields_secret, NULL};
static const struct field fields_configmap[] = {
    META(struct config_data), F_DATA(struct config_data, data, n_data, "data", 1), F_END};
const struct kind kind_configmap = {
    "ConfigMap", "", "v1", "configmaps", true, sizeof(struct config_data), fields_configmap, NULL};

const struct data_entry *config_data_get(const struct config_data *d, const char *key)
{
    for (uint32_t i = 0; i < d->n_data; i++)
        if (strcmp(d->data[i].key, key) == 0)
            return &d->data[i];
    return NULL;
}

/* ---- PriorityClass, Namespace, Event ---- */

static const struct field fields_priority_class[] = {
    META(struct priority_class),
    F(FIELD_INT32, struct priority_class, value, "value"),
    F(FIELD_BOOL, struct priority_class, global_default, "globalDefault"),
    F_END,
};
const struct kind kind_priority_class = {"PriorityClass",
                                         "scheduling.k8s.io",
                                         "v1",
                                         "priorityclasses",
                                         false,
                                         sizeof(struct priority_class),
                                         fields_priority_class,
                                         NULL};

static const struct field fields_object[] = {F_STRUCT(struct object, meta, "metadata", fields_meta),
                                             F_END};
const struct kind kind_namespace = {
    "Namespace", "", "v1", "namespaces", false, sizeof(struct object), fields_object, NULL};
const struct kind kind_event = {"Event",       "",  "v1", "events", true, sizeof(struct object),
                                fields_object, NULL};

/* ---- Volumes ---- */

static const struct field fields_attachment_source[] = {
    F(FIELD_TEXT, struct volume_attachment, pv_name, "persistentVolumeName"), F_END};
static const struct field fields_attachment_spec[] = {
    F(FIELD_TEXT, struct volume_attachment, attacher, "attacher"),
    F(FIELD_TEXT, struct volume_attachment, node_name, "nodeName"),
    F_INLINE("source", fields_attachment_source),
    F_END,
};
static const struct field fields_attachment_status[] = {
    F(FIELD_BOOL, struct volume_attachment, attached, "attached"), F_END};
static const struct field fields_attachment[] = {
    META(struct volume_attachment), F_INLINE("spec", fields_attachment_spec),
    F_INLINE("status", fields_attachment_status), F_END};
const struct kind kind_volume_attachment = {"VolumeAttachment",
                                            "storage.k8s.io",
                                            "v1",
                                            "volumeattachments",
                                            false,
                                            sizeof(struct volume_attachment),
                                            fields_attachment,
                                            NULL};

static const struct field fields_pvc_spec[] = {
    F_HAS(FIELD_TEXT, struct pvc, storage_class, has_storage_class, "storageClassName"),
    F(FIELD_TEXT, struct pvc, volume_name, "volumeName"),
    F_END,
};
static const struct field fields_pvc_status[] = {F(FIELD_TEXT, struct pvc, phase, "phase"), F_END};
static const struct field fields_pvc[] = {META(struct pvc), F_INLINE("spec", fields_pvc_spec),
                                          F_INLINE("status", fields_pvc_status), F_END};
const struct kind kind_pvc = {
    "PersistentVolumeClaim", "",         "v1", "persistentvolumeclaims", true,
    sizeof(struct pvc),      fields_pvc, NULL};

static const struct field fields_csi[] = {F(FIELD_TEXT, struct pv, csi_driver, "driver"), F_END};
static const struct field fields_pv_required[] = {
    F_LIST(struct pv, node_terms, n_node_terms, "nodeSelectorTerms", struct node_selector_term,
           fields_node_selector_term),
    F_END};
static const struct field fields_pv_affinity[] = {F_INLINE("required", fields_pv_required), F_END};
static const struct field fields_pv_spec[] = {
    F(FIELD_TEXT, struct pv, storage_class, "storageClassName"),
    F_INLINE("csi", fields_csi),
    F_INLINE("nodeAffinity", fields_pv_affinity),
    F(FIELD_PRESENT, struct pv, local, "local"),
    F(FIELD_PRESENT, struct pv, local, "hostPath"),
    F_END,
};
static const struct field fields_pv[] = {META(struct pv), F_INLINE("spec", fields_pv_spec), F_END};
const struct kind kind_pv = {"PersistentVolume", "",        "v1", "persistentvolumes", false,
                             sizeof(struct pv),  fields_pv, NULL};

static const struct field fields_topology_expression[] = {
    F(FIELD_TEXT, struct selector_requirement, key, "key"),
    F(FIELD_STRINGS, struct selector_requirement, values,
      "values"), /* the operator is In, which is 0 */
    F_END,
};
static const struct field fields_topology_term[] = {
    F_LIST(struct node_selector_term, expressions, n_expressions, "matchLabelExpressions",
           struct selector_requirement, fields_topology_expression),
    F_END,
};
static const struct field fields_storage_class[] = {
    META(struct storage_class),
    F(FIELD_TEXT, struct storage_class, provisioner, "provisioner"),
    F_IS(struct storage_class, wait_for_first_consumer, "volumeBindingMode",
         "WaitForFirstConsumer"),
    F_LIST(struct storage_class, topologies, n_topologies, "allowedTopologies",
           struct node_selector_term, fields_topology_term),
    F_END,
};
const struct kind kind_storage_class = {"StorageClass",
                                        "storage.k8s.io",
                                        "v1",
                                        "storageclasses",
                                        false,
                                        sizeof(struct storage_class),
                                        fields_storage_class,
                                        NULL};

static const struct field fields_csi_allocatable[] = {
    F(FIELD_INT64, struct csi_driver_limit, count, "count"), F_END};
static const struct field fields_csi_driver[] = {
    F_PRESET(struct csi_driver_limit, count, -1),
    F(FIELD_TEXT, struct csi_driver_limit, name, "name"),
    F_INLINE("allocatable", fields_csi_allocatable),
    F_END,
};
static const struct field fields_csi_spec[] = {F_LIST(struct csi_node, drivers, n_drivers,
                                                      "drivers", struct csi_driver_limit,
                                                      fields_csi_driver),
                                               F_END};
static const struct field fields_csi_node[] = {META(struct csi_node),
                                               F_INLINE("spec", fields_csi_spec), F_END};
const struct kind kind_csi_node = {
    "CSINode", "storage.k8s.io", "v1", "csinodes", false, sizeof(struct csi_node), fields_csi_node,
    NULL};
