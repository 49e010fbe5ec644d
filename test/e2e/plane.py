# SPDX-License-Identifier: Apache-2.0
"""A real control plane and real servers on loopback, for the end-to-end tests.

Everything is started by this process, listens on 127.0.0.1, writes below one folder and is ended by
its process id. Credentials are made at run time.
"""
import base64
import glob
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.environ.get("WEFT_CACHE", os.path.expanduser("~/.cache/weft"))
PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"]


class Missing(Exception):
    """A peer cannot be had here; the tests that need it are skipped, or fail where nothing may be."""


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_until(what, seconds, condition, step=0.05):
    """Polls until `condition()` is true; returns its value. Raises with `what` at the deadline."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(step)


class Process:
    def __init__(self, name, command, folder, env=None):
        self.name, self.log = name, os.path.join(folder, name + ".log")
        self.command, self.env = command, env
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.env, start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def tail(self, lines=15):
        with open(self.log, errors="replace") as f:
            return "".join(f.readlines()[-lines:])

    def wait_for(self, seconds, condition):
        end = time.monotonic() + seconds
        while not condition():
            if not self.alive():
                raise AssertionError(f"{self.name} ended:\n{self.tail()}")
            if time.monotonic() > end:
                raise AssertionError(f"{self.name} is not ready after {seconds} s:\n{self.tail()}")
            time.sleep(0.05)

    def end(self, how=signal.SIGKILL):
        if self.alive():
            self.process.send_signal(how)
        return self.process.wait(timeout=30)


def build_control_plane():
    """Builds the programs as ordinary Go modules, once a version, below the cache; returns their folder."""
    source = os.path.join(HERE, "control-plane")
    version = {}
    with open(os.path.join(source, "go.mod")) as f:
        for line in f:
            words = line.split()
            if len(words) >= 2 and words[0] in ("k8s.io/kubernetes", "sigs.k8s.io/kwok", "go.etcd.io/etcd/server/v3"):
                version[words[0]] = words[1]
    kubernetes = version["k8s.io/kubernetes"]
    out = os.path.join(CACHE, f"control-plane-{kubernetes}-{version['sigs.k8s.io/kwok']}")
    if all(os.path.exists(os.path.join(out, p)) for p in PROGRAMS + ["stages.yaml"]):
        return out
    go = shutil.which("go")
    if go is None:
        raise Missing("go is not installed; it builds the control plane")
    print(f"building the control plane {kubernetes} (about 15 CPU minutes, once) …", flush=True)
    work = out + ".work"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    for name in ("go.mod", "go.sum"):
        shutil.copy(os.path.join(source, name), work)
    stamp = "k8s.io/component-base/version"
    minor = kubernetes.split(".")[1]
    flags = (f"-s -w -X {stamp}.gitVersion={kubernetes} -X {stamp}.gitMajor=1 -X {stamp}.gitMinor={minor} "
             f"-X {stamp}.gitTreeState=clean")
    env = dict(os.environ, CGO_ENABLED="0", GOFLAGS="-mod=readonly")
    subprocess.run([go, "build", "-trimpath", "-ldflags", flags, "-o", work + "/", "tool"], cwd=work, env=env, check=True)
    os.rename(os.path.join(work, "server"), os.path.join(work, "etcd"))  # etcd's main package is called server
    kwok = subprocess.run([go, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"], cwd=work, env=env, check=True,
                          capture_output=True, text=True).stdout.strip()
    stages = ["node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready",
              "pod/fast/pod-complete", "pod/fast/pod-delete"]
    with open(os.path.join(work, "stages.yaml"), "w") as f:
        for stage in stages:
            with open(os.path.join(kwok, "kustomize", "stage", stage + ".yaml")) as g:
                f.write("---\n" + g.read())
    shutil.rmtree(out, ignore_errors=True)
    os.rename(work, out)
    return out


class ControlPlane:
    """etcd, API server, controller manager, scheduler and kwok's kubelets."""

    def __init__(self, folder, with_kwok=True):
        self.folder = folder
        self.programs = build_control_plane()
        self.with_kwok = with_kwok
        self.processes = []
        os.makedirs(os.path.join(folder, "pki"), mode=0o700)
        self.port, self.etcd_port, self.etcd_peer, self.manager, self.scheduler, self.kwok = free_ports(6)
        self.ca = os.path.join(folder, "pki", "apiserver.crt")
        self._tokens()

    def _tokens(self):
        users = {"admin": "system:masters", "kwok": "system:masters", "system:kube-controller-manager": "",
                 "system:kube-scheduler": ""}
        self.tokens = {user: secrets.token_hex(16) for user in users}
        with open(os.path.join(self.folder, "tokens.csv"), "w") as f:
            os.fchmod(f.fileno(), 0o600)
            for user, group in users.items():
                f.write(f"{self.tokens[user]},{user},{user}" + (f',"{group}"' if group else "") + "\n")
        self.kubeconfig = self.write_kubeconfig("admin", self.tokens["admin"])

    def write_kubeconfig(self, name, token, token_file=None):
        path = os.path.join(self.folder, name.replace(":", "-") + ".kubeconfig")
        user = {"tokenFile": token_file} if token_file else {"token": token}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "plane",
                  "clusters": [{"name": "plane", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                             "certificate-authority": self.ca}}],
                  "users": [{"name": name, "user": user}],
                  "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": name}}]}
        with open(path, "w") as f:
            os.fchmod(f.fileno(), 0o600)
            json.dump(config, f)
        return path

    def _start(self, name, *arguments):
        process = Process(name, [os.path.join(self.programs, name), *arguments], self.folder)
        self.processes.append(process)
        return process

    def up(self):
        f, pki = self.folder, os.path.join(self.folder, "pki")
        key = os.path.join(pki, "accounts.key")
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key],
                       check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", key + ".pub"], check=True)
        etcd = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{self.etcd_peer}"
        self._start("etcd", "--name=plane", f"--data-dir={f}/etcd", "--unsafe-no-fsync", "--log-level=warn",
                    f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=plane={peer}")
        api = self._start("kube-apiserver", f"--etcd-servers={etcd}", "--bind-address=127.0.0.1",
                          "--advertise-address=127.0.0.1", f"--secure-port={self.port}", f"--cert-dir={pki}",
                          "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
                          f"--token-auth-file={f}/tokens.csv", "--authorization-mode=RBAC", "--anonymous-auth=false",
                          "--service-account-issuer=https://kubernetes.default.svc",
                          f"--service-account-signing-key-file={key}", f"--service-account-key-file={key}.pub")
        api.wait_for(90, lambda: self.answers("/readyz"))
        # Its own certificate file holds the leaf, then the CA that signed it.
        with open(self.ca) as g:
            blocks = g.read().split("-----BEGIN CERTIFICATE-----")
        ca_only = os.path.join(pki, "ca.crt")
        with open(ca_only, "w") as g:
            g.write("-----BEGIN CERTIFICATE-----" + blocks[2])
        manager = self._start("kube-controller-manager", "--kubeconfig=" + self._of("system:kube-controller-manager"),
                              "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={self.manager}",
                              f"--cert-dir={pki}/manager", "--use-service-account-credentials", "--kube-api-qps=1000",
                              "--kube-api-burst=1000", f"--service-account-private-key-file={key}",
                              f"--root-ca-file={ca_only}")
        self._start("kube-scheduler", "--kubeconfig=" + self._of("system:kube-scheduler"), "--leader-elect=false",
                    "--bind-address=127.0.0.1", f"--secure-port={self.scheduler}", f"--cert-dir={pki}/scheduler")
        if self.with_kwok:
            self._start("kwok", "--kubeconfig=" + self._of("kwok"), f"--config={self.programs}/stages.yaml",
                        "--manage-all-nodes", "--node-lease-duration-seconds=40",
                        f"--server-address=127.0.0.1:{self.kwok}")
        manager.wait_for(60, lambda: self.answers("/api/v1/namespaces/default/serviceaccounts/default"))
        return self

    def _of(self, user):
        return self.write_kubeconfig(user, self.tokens[user])

    def down(self):
        """Killed at once: nothing here is to be kept."""
        for process in reversed(self.processes):
            process.end()

    # ---- A small client of our own, so that what we assert does not go through the code under test ----

    def connection(self):
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=20)

    def call(self, method, path, body=None, content_type="application/json", token=None):
        """(status, decoded body)."""
        headers = {"Authorization": "Bearer " + (token or self.tokens["admin"]), "Accept": "application/json"}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body)
        connection = self.connection()
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode(errors="replace")

    def answers(self, path):
        try:
            return self.call("GET", path)[0] == 200
        except OSError:
            return False

    def get(self, path):
        status, body = self.call("GET", path)
        assert status == 200, (path, status, body)
        return body

    def items(self, path):
        return self.get(path)["items"]

    def patch(self, path, body):
        status, answer = self.call("PATCH", path, body, "application/merge-patch+json")
        assert status == 200, (path, status, answer)
        return answer

    def delete(self, path):
        status, answer = self.call("DELETE", path)
        assert status in (200, 202, 404), (path, status, answer)

    def kubectl(self, *arguments, text=None):
        out = subprocess.run([os.path.join(self.programs, "kubectl"), "--kubeconfig", self.kubeconfig, *arguments],
                             input=text, capture_output=True, text=True, timeout=60)
        assert out.returncode == 0, (arguments, out.stdout, out.stderr)
        return out.stdout

    def apply(self, text):
        return self.kubectl("apply", "--server-side", "-f", "-", text=text)

    def apply_file(self, path):
        return self.kubectl("apply", "--server-side", "-f", path)

    def install_crds(self):
        for path in sorted(glob.glob(os.path.join(ROOT, "deploy", "crds", "*_*.yaml"))):
            self.apply_file(path)
        for name in ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "simnodeclasses.weft.sh"):
            self.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/" + name)


class Redis:
    """A redis-server with a password, a plain and a TLS port, and a certificate made now."""

    def __init__(self, folder):
        self.program = shutil.which("redis-server")
        if self.program is None:
            raise Missing("redis-server is not installed")
        self.folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.port, self.tls_port = free_ports(2)
        self.password = secrets.token_hex(16)
        self.ca = os.path.join(folder, "redis-ca.pem")
        self._certificates()
        config = os.path.join(folder, "redis.conf")
        with open(config, "w") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write(f"bind 127.0.0.1\nport {self.port}\ntls-port {self.tls_port}\ntls-auth-clients no\n"
                    f"tls-cert-file {folder}/redis.pem\ntls-key-file {folder}/redis.key\ntls-ca-cert-file {self.ca}\n"
                    f"requirepass {self.password}\nsave \"\"\nappendonly no\ndir {folder}\ndatabases 16\n")
        self.process = Process("redis", [self.program, config], folder)
        self.process.wait_for(20, self.answers)

    def _certificates(self):
        f = self.folder
        run = lambda *a: subprocess.run(["openssl", *a], check=True, stderr=subprocess.DEVNULL)
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=redis test CA", "-keyout", f"{f}/redis-ca.key", "-out", self.ca)
        run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-keyout",
            f"{f}/redis.key", "-out", f"{f}/redis.csr")
        with open(f"{f}/redis.ext", "w") as g:
            g.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        run("x509", "-req", "-in", f"{f}/redis.csr", "-CA", self.ca, "-CAkey", f"{f}/redis-ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", f"{f}/redis.ext", "-out", f"{f}/redis.pem")

    def answers(self):
        try:
            return self.command("PING") == "PONG"
        except OSError:
            return False

    def command(self, *words, db=0):
        """One command over a fresh connection; integers and simple or bulk strings come back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            stream = s.makefile("rwb")
            for parts in (("AUTH", self.password), ("SELECT", str(db)), words):
                stream.write(b"*%d\r\n" % len(parts))
                for part in parts:
                    raw = str(part).encode()
                    stream.write(b"$%d\r\n%s\r\n" % (len(raw), raw))
                stream.flush()
                answer = self._read(stream)
            return answer

    def _read(self, stream):
        line = stream.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:].decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            n = int(rest)
            return None if n < 0 else stream.read(n + 2)[:-2].decode()
        if kind == b"-":
            raise AssertionError("redis: " + rest)
        return rest

    def end(self):
        self.process.end()


def program():
    return os.environ.get("WEFT", os.path.join(ROOT, "build", "dev", "cmd", "weft"))


def encode_secret(values):
    return {k: base64.b64encode(v.encode()).decode() for k, v in values.items()}
