# SPDX-License-Identifier: Apache-2.0
"""The chain on a real control plane and a real Redis: signal, replicas, pods, nodes, and back."""
import json
import os
import signal
import threading
import time

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


class Watcher(threading.Thread):
    """Sees every instance, and every pod that goes away, without asking weft."""

    def __init__(self, p):
        super().__init__(daemon=True)
        self.p, self.instances, self.pods, self.gone, self.running = p, {}, {}, [], True
        self.start()

    def run(self):
        while self.running:
            try:
                for i in weft.instances(self.p):
                    self.instances.setdefault(i["data"]["providerID"], i["data"])
                now = {x["metadata"]["uid"]: x for x in self.p.items("/api/v1/namespaces/default/pods")}
                self.gone += [uid for uid in self.pods if uid not in now and uid not in self.gone]
                self.pods = now
            except (OSError, AssertionError):
                pass
            time.sleep(0.02)

    def stop(self):
        self.running = False
        self.join()


def assert_never_twice(watcher):
    seen = watcher.instances.values()
    claims = [i["nodeClaim"] for i in seen]
    tokens = [i["token"] for i in seen]
    assert len(set(claims)) == len(claims), f"two instances for one claim: {claims}"
    assert len(set(tokens)) == len(tokens), "one token, two instances"


def assert_all_gone(p, seconds=90):
    wait_until("no instance, claim or node is left", seconds,
               lambda: not weft.instances(p) and not weft.claims(p) and not weft.nodes(p))


def simple_pool(p, **options):
    p.apply(weft.node_class(launchDelay="2s", registrationDelay="2s", readyDelay="1s"))
    p.apply(weft.node_pool(requirements=[("kubernetes.io/arch", "In", ["amd64"])], **options))


def test_pod_that_cannot_be_placed(c):
    p = c.plane
    simple_pool(p)
    start(c).wait_ready()
    p.apply(weft.deployment("nowhere", replicas=1, selector={"topology.kubernetes.io/zone": "mars-1a"}))
    p.apply(weft.deployment("fine", replicas=1))
    wait_until("the other pod runs", 60, lambda: len(weft.running(p, "fine")) == 1)
    found = wait_until("an event on the pod", 60, lambda: [
        e for e in weft.events(p, "FailedScheduling")
        if e.get("reportingComponent") == "weft" and e["involvedObject"]["name"].startswith("nowhere")])
    print("    event:", found[0]["message"][:200])
    assert len(found) == 1, [e["message"] for e in found]
    assert "topology.kubernetes.io/zone" in found[0]["message"], found[0]["message"]
    assert len(weft.instances(p)) == 1, "the pod that fits nowhere cost a launch"


def test_disruption_budget_blocks_a_drain(c):
    p = c.plane
    simple_pool(p)
    start(c).wait_ready()
    p.apply(json.dumps({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guarded", "namespace": "default"},
                        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}}))
    p.apply(weft.deployment("guarded", replicas=1))
    wait_until("the pod runs", 60, lambda: len(weft.running(p, "guarded")) == 1)
    before = weft.running(p, "guarded")[0]["metadata"]["uid"]
    claim = weft.claims(p)[0]["metadata"]["name"]
    p.delete(f"/apis/karpenter.sh/v1/nodeclaims/{claim}")
    wait_until("the node is being drained", 30, lambda: any(t["key"] == "karpenter.sh/disrupted" for n in weft.nodes(p)
                                                            for t in n["spec"].get("taints", [])))
    # The budget allows no eviction: the pod stays, the node and its instance stay, for as long as we look.
    end = time.monotonic() + 8
    while time.monotonic() < end:
        assert before in [x["metadata"]["uid"] for x in weft.running(p, "guarded")], "evicted against the budget"
        assert len(weft.instances(p)) >= 1
        time.sleep(0.2)
    # With a second replica elsewhere the budget allows one, and the drain goes on.
    p.patch("/apis/apps/v1/namespaces/default/deployments/guarded", {"spec": {"replicas": 2}})
    wait_until("the old claim is gone", 90, lambda: claim not in [x["metadata"]["name"] for x in weft.claims(p)])
    wait_until("two pods run", 60, lambda: len(weft.running(p, "guarded")) == 2)
    assert before not in [x["metadata"]["uid"] for x in weft.running(p, "guarded")]


def test_cheapest_offering_out_of_capacity(c):
    p = c.plane
    simple_pool(p)
    first = start(c).wait_ready()
    p.apply(weft.deployment("worker", replicas=1))
    wait_until("the pod runs", 60, lambda: len(weft.running(p, "worker")) == 1)
    cheapest = weft.instances(p)[0]["data"]["instanceType"]
    p.patch("/apis/apps/v1/namespaces/default/deployments/worker", {"spec": {"replicas": 0}})
    assert_all_gone(p)
    first.stop()
    start(c, name="weft-2", extra=["--sim-exhausted", f"{cheapest}/*/on-demand"]).wait_ready()
    p.patch("/apis/apps/v1/namespaces/default/deployments/worker", {"spec": {"replicas": 1}})
    wait_until("the pod runs", 60, lambda: len(weft.running(p, "worker")) == 1)
    bought = [i["data"]["instanceType"] for i in weft.instances(p)]
    print(f"    cheapest {cheapest}, without it {bought}")
    assert len(bought) == 1 and bought[0] != cheapest, bought


def test_killed_at_ten_points(c):
    p = c.plane
    redis_secret(c)
    simple_pool(p)
    p.apply(weft.deployment("worker", cpu="1500m", memory="2Gi", annotations=scaled(c)))
    watcher = Watcher(p)
    w = start(c).wait_ready()
    points = []

    def kill_when(name, condition):
        wait_until(name, 90, condition, step=0.005)
        w.kill()
        points.append(name)
        w.start()

    def conditions(kind):
        return [x for claim in weft.claims(p) for x in claim.get("status", {}).get("conditions", []) if x["type"] == kind and x["status"] == "True"]

    c.redis.command("RPUSH", "jobs", *range(200))
    kill_when("replicas written", lambda: weft.replicas(p, "worker") == 4)
    kill_when("a NodeClaim exists", lambda: weft.claims(p))
    kill_when("an instance exists", lambda: weft.instances(p))
    kill_when("a claim is launched", lambda: conditions("Launched"))
    kill_when("a Node exists", lambda: weft.nodes(p))
    kill_when("a claim is initialized", lambda: conditions("Initialized"))
    wait_until("four pods running", 90, lambda: len(weft.running(p, "worker")) == 4)
    assert not watcher.gone, "a pod went away while all were wanted"
    launched = len(watcher.instances)
    c.redis.command("DEL", "jobs")
    kill_when("replicas zero", lambda: weft.replicas(p, "worker") == 0)
    kill_when("a node is tainted", lambda: any(t["key"] == "karpenter.sh/disrupted" for n in weft.nodes(p) for t in n["spec"].get("taints", [])))
    kill_when("a claim is ending", lambda: any("deletionTimestamp" in x["metadata"] for x in weft.claims(p)))
    kill_when("an instance is gone", lambda: len(weft.instances(p)) < launched)
    assert_all_gone(p, 120)
    watcher.stop()
    assert_never_twice(watcher)
    print(f"    killed at {len(points)} points, {launched} instances launched, none twice, none left")
    assert len(points) == 10


def test_two_replicas(c):
    p = c.plane
    simple_pool(p)
    watcher = Watcher(p)
    one = start(c, name="one", extra=["--identity", "one"]).wait_ready()
    two = start(c, name="two", extra=["--identity", "two"]).wait_ready(leading=False)
    assert one.leads() and not two.leads()
    p.apply(weft.deployment("worker", replicas=3, cpu="1500m"))
    wait_until("claims", 30, lambda: len(weft.claims(p)) == 3, step=0.005)
    one.process.send_signal(signal.SIGSTOP)  # half-way through the launches, and not dead: it will be back
    began = time.monotonic()
    wait_until("the other leads", 30, two.leads)
    took = time.monotonic() - began
    wait_until("three pods running", 60, lambda: len(weft.running(p, "worker")) == 3)
    wrote = len(one.decisions())
    one.process.send_signal(signal.SIGCONT)
    wait_until("the old leader knows", 20, lambda: one.alive() and not one.leads())
    p.patch("/apis/apps/v1/namespaces/default/deployments/worker", {"spec": {"replicas": 5}})
    wait_until("five pods running", 60, lambda: len(weft.running(p, "worker")) == 5)
    assert len(one.decisions()) == wrote, one.decisions()[wrote:]
    assert two.leads() and not one.leads()
    watcher.stop()
    assert_never_twice(watcher)
    assert len(watcher.instances) == 5, sorted(watcher.instances)
    print(f"    taken over in {took:.1f} s with a lease of 4 s; the old leader, revived, wrote nothing")
    # An orderly end gives the Lease up at once.
    began = time.monotonic()
    two.stop()
    wait_until("the first leads again", 10, one.leads)
    print(f"    handed over in {time.monotonic() - began:.1f} s when the leader ended in order")
