# SPDX-License-Identifier: Apache-2.0
"""The chain on a real control plane and a real Redis: signal, replicas, pods, nodes, and back."""
import json
import os

import plane
import weft
from plane import wait_until


class Context:
    pass


def setup(folder):
    c = Context()
    c.redis = None
    c.replicas = []
    c.plane = plane.ControlPlane(folder)
    try:
        c.plane.up()
        weft.prepare(c.plane)
        c.redis = plane.Redis(os.path.join(folder, "redis"))
    except BaseException:
        teardown(c)
        raise
    return c


def teardown(c):
    for w in c.replicas:
        w.kill()
    if c.redis:
        c.redis.end()
    c.plane.down()


def explain(c):
    for w in c.replicas:
        print(f"--- {w.name}\n{w.tail(40)}")
    for what in ("nodepools", "nodeclaims", "nodes", "deployments", "pods"):
        print(f"--- {what}")
        print(c.plane.kubectl("get", what, "-o", "wide"))
    for pod in weft.pods(c.plane, "worker"):
        if pod["status"].get("phase") != "Running":
            print(json.dumps(pod["status"]))
    for e in weft.events(c.plane):
        if e.get("reportingComponent") == "weft" or e["reason"] == "FailedScheduling":
            print(e["lastTimestamp"], e["involvedObject"]["name"], e["reason"], e["message"][:300])


def start(c, **options):
    w = weft.Weft(c.plane, **options)
    c.replicas.append(w)
    return w


def redis_secret(c):
    c.plane.apply(json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "redis-password", "namespace": "default"},
                              "data": plane.encode_secret({"password": c.redis.password})}))


def trigger(c, list_length=50, **more):
    metadata = {"address": f"127.0.0.1:{c.redis.port}", "listName": "jobs", "listLength": list_length, **more}
    return json.dumps([{"type": "redis", "metadata": metadata, "authenticationRef": {"name": "redis-password"}}])


def scaled(c, **more):
    return {"weft.sh/min-replicas": "0", "weft.sh/max-replicas": "20", "weft.sh/polling-interval": "1", "weft.sh/cooldown-period": "2",
            "weft.sh/triggers": trigger(c, **more),
            "weft.sh/behavior": json.dumps({"scaleDown": {"stabilizationWindowSeconds": 0}})}


def test_queue_fills_and_drains(c):
    p, clock = c.plane, weft.Clock()
    redis_secret(c)
    p.apply(weft.node_class(launchDelay="2s", registrationDelay="2s", readyDelay="1s"))
    p.apply(weft.node_pool(requirements=[("kubernetes.io/arch", "In", ["amd64"])]))
    p.apply(weft.deployment("worker", cpu="1500m", memory="2Gi", annotations=scaled(c)))
    w = start(c).wait_ready()
    assert weft.replicas(p, "worker") == 0 and not weft.instances(p)

    clock = weft.Clock()
    c.redis.command("RPUSH", "jobs", *range(500))
    clock.mark("500 items pushed")
    wait_until("ten replicas", 30, lambda: weft.replicas(p, "worker") == 10)
    clock.mark("replicas written")
    wait_until("a claim", 30, lambda: weft.claims(p))
    clock.mark("first NodeClaim")
    wait_until("an instance", 30, lambda: weft.instances(p))
    clock.mark("first instance")
    wait_until("ten pods running", 15, lambda: len(weft.running(p, "worker")) == 10)
    clock.mark("ten pods running")
    bought = weft.instances(p)
    print(f"    instances: {sorted(i['data']['instanceType'] for i in bought)}")
    assert len({i["data"]["token"] for i in bought}) == len(bought), "a token launched twice"
    c.redis.command("DEL", "jobs")
    clock.mark("list emptied")
    wait_until("zero replicas", 60, lambda: weft.replicas(p, "worker") == 0)
    clock.mark("zero replicas")
    wait_until("zero pods", 60, lambda: not weft.pods(p, "worker"))
    clock.mark("zero pods")
    wait_until("zero nodes", 60, lambda: not weft.nodes(p))
    clock.mark("zero nodes")
    wait_until("zero instances and claims", 60, lambda: not weft.instances(p) and not weft.claims(p))
    clock.mark("zero instances")
    clock.table("the chain, link by link")
    assert w.alive()
    kinds = {d["decision"] for d in w.decisions()}
    print("    decisions:", sorted(kinds))
    assert "scale" in kinds and "launch" in kinds, kinds
