#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The weft authors.
"""Turns a table of AWS instance types (data/aws-instances) into a catalogue for `weft plan --catalog`.

usage: aws_csv_to_catalog.py TABLE.csv [FAMILY-PREFIX…] > catalogue.json
"""
import csv
import json
import sys

REGION = "us-east-1"
INTERRUPTIONS = {"0": 0.025, "1": 0.075, "2": 0.125, "3": 0.175, "4": 0.25}


def resources(row, cpu, mem_mib, storage):
    out = {"cpu": cpu, "memory": f"{mem_mib}Mi", "pods": row["max_pods"], "ephemeral-storage": storage}
    if row["gpu_manufacturer"].lower() == "nvidia" and int(row["gpu_count"]):
        out["nvidia.com/gpu"] = row["gpu_count"]
    return out


def offerings(row):
    for zone in row["zones"].split():
        yield {"zone": REGION + zone, "capacityType": "on-demand", "priceUsdHour": row["od_usd_hr"]}
        if row["spot_usd_hr_derived"]:
            yield {"zone": REGION + zone, "capacityType": "spot", "priceUsdHour": row["spot_usd_hr_derived"],
                   "interruptionPerMonth": INTERRUPTIONS.get(row["interruption_bucket"], 0.25)}


def labels(row):
    family, size = row["instance_type"].split(".", 1)
    key = "karpenter.k8s.aws/instance-"
    digit = next((i for i, c in enumerate(family) if c.isdigit()), len(family))
    generation = "".join(c for c in family[digit:digit + 2] if c.isdigit())
    out = {key + "family": family, key + "size": size, key + "category": family[:digit], key + "generation": generation,
           key + "cpu": row["vcpu"], key + "memory": row["mem_mib"]}
    if row["gpu_name"]:
        out.update({key + "gpu-name": row["gpu_name"], key + "gpu-manufacturer": row["gpu_manufacturer"].lower(),
                    key + "gpu-count": row["gpu_count"], key + "gpu-memory": row["gpu_mem_mib_each"]})
    return out


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    types = []
    with open(sys.argv[1], newline="") as table:
        for row in csv.DictReader(table):
            if len(sys.argv) > 2 and not row["instance_type"].startswith(tuple(sys.argv[2:])):
                continue
            types.append({"name": row["instance_type"], "arch": row["arch"], "os": "linux",
                          "capacity": resources(row, row["vcpu"], row["mem_mib"], "20Gi"),
                          "allocatable": resources(row, row["alloc_cpu_m"] + "m", row["alloc_mem_mib"], "17Gi"),
                          "labels": labels(row), "offerings": list(offerings(row))})
    json.dump({"region": REGION, "asOf": "2026-07-20", "types": types}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
