# SPDX-License-Identifier: Apache-2.0
"""weft under test, and what its users apply."""
import json
import os
import signal
import time
import urllib.request

import plane

NAMESPACE = "weft-system"
ARGUMENTS = ["--mode", "act", "--cloud", "sim", "--bind-address", "127.0.0.1", "--metrics-port", "0", "--health-probe-port", "0",
             "--log-format", "json", "--no-sim-kubelets", "--sim-speed", "10", "--leader-elect-lease-duration", "4s",
             "--leader-elect-renew-deadline", "3s", "--leader-elect-retry-period", "500ms"]


class Weft:
    """One replica. Decisions and log lines go to files of their own."""

    def __init__(self, control_plane, name="weft", kubeconfig=None, extra=()):
        self.name, self.folder = name, control_plane.folder
        self.health, = plane.free_ports(1)
        self.decisions_path = os.path.join(self.folder, name + ".decisions")
        self.log_path = os.path.join(self.folder, name + ".log")
        arguments = [a for a in ARGUMENTS]
        arguments[arguments.index("--health-probe-port") + 1] = str(self.health)
        self.command = [plane.program(), "run", "--kubeconfig", kubeconfig or control_plane.kubeconfig, *arguments, *extra]
        self.process = None
        self.start()

    def start(self):
        import subprocess
        with open(self.decisions_path, "ab") as out, open(self.log_path, "ab") as err:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)

    def alive(self):
        return self.process.poll() is None

    def page(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError:
            return 0, ""

    def ready(self):
        assert self.alive(), f"{self.name} ended with {self.process.returncode}:\n{self.tail()}"
        return self.page("/readyz")[0] == 200

    def leads(self):
        return "leader yes" in self.page("/readyz")[1]

    def wait_ready(self, leading=True):
        plane.wait_until(f"{self.name} ready", 30, self.ready)
        if leading:
            plane.wait_until(f"{self.name} leading", 30, self.leads)
        return self

    def kill(self):
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)

    def tail(self, lines=30):
        with open(self.log_path, errors="replace") as f:
            return "".join(f.readlines()[-lines:])

    def decisions(self):
        with open(self.decisions_path, errors="replace") as f:
            return [json.loads(line) for line in f if line.strip()]


def prepare(control_plane):
    control_plane.install_crds()
    control_plane.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")


def node_class(name="default", **delays):
    spec = json.dumps(delays)
    return f"""
apiVersion: weft.sh/v1alpha1
kind: SimNodeClass
metadata: {{name: {name}}}
spec: {spec}
"""


def node_pool(name="general", requirements=(), taints=(), startup_taints=(), limits=None, consolidate_after="0s", weight=None, budgets="100%"):
    spec = {"nodeClassRef": {"group": "weft.sh", "kind": "SimNodeClass", "name": "default"},
            "requirements": [dict(zip(("key", "operator", "values"), r)) for r in requirements]}
    if taints:
        spec["taints"] = list(taints)
    if startup_taints:
        spec["startupTaints"] = list(startup_taints)
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"template": {"spec": spec},
                     "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": consolidate_after,
                                    "budgets": [{"nodes": budgets}]}}}
    if limits:
        pool["spec"]["limits"] = limits
    if weight:
        pool["spec"]["weight"] = weight
    return json.dumps(pool)


def deployment(name, replicas=0, cpu="1", memory="1Gi", annotations=None, gpu=0, selector=None, tolerations=(), grace=1):
    container = {"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    if gpu:
        container["resources"]["limits"] = {"nvidia.com/gpu": str(gpu)}
    pod = {"containers": [container], "terminationGracePeriodSeconds": grace}
    if selector:
        pod["nodeSelector"] = selector
    if tolerations:
        pod["tolerations"] = list(tolerations)
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default",
                                                                                  "annotations": annotations or {}},
                       "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                                "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}})


def instances(p):
    """The simulated cloud's instances: the truth about what is paid for."""
    return p.items(f"/api/v1/namespaces/{NAMESPACE}/configmaps?labelSelector=weft.sh%2Fsim-instance%3Dtrue")


def nodes(p):
    return p.items("/api/v1/nodes")


def claims(p):
    return p.items("/apis/karpenter.sh/v1/nodeclaims")


def pods(p, app):
    return p.items(f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}")


def running(p, app):
    def is_ready(pod):
        conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
        return pod["status"].get("phase") == "Running" and conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
    return [x for x in pods(p, app) if is_ready(x)]


def replicas(p, name):
    return p.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")["spec"].get("replicas", 0)


def events(p, reason=None):
    found = p.items("/api/v1/events")
    return [e for e in found if reason is None or e["reason"] == reason]


class Clock:
    """Moments since the start, for the tables."""

    def __init__(self):
        self.start, self.marks = time.monotonic(), []

    def mark(self, name):
        self.marks.append((name, time.monotonic() - self.start))

    def table(self, title):
        print(f"\n  {title}")
        before = 0.0
        for name, at in self.marks:
            print(f"    {name:<44} {at:8.2f} s   +{at - before:.2f}")
            before = at
        print(flush=True)
