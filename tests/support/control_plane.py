"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, KWOK.

RBAC and the admission plugins that are on by default are on. All files lie in one folder, all ports are chosen free,
and what was started is stopped by its process id.
"""

import contextlib
import json
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
import yaml

READY_SECONDS = 120
STOP_SECONDS = 20
POLL_SECONDS = 0.05
STAGES = Path(__file__).resolve().parents[1] / "tools" / "kwok" / "stages.yaml"
FAKE_NODES = "type=kwok"
ETCD, ETCD_PEERS = "unix://etcd:1", "unix://etcd:2"
ADMIN = "admin"
USERS = {  # their names to the server, and groups: each program has the rights that a real cluster gives it
    ADMIN: (ADMIN, "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
    "controller": ("mxnet-operator", "system:masters"),
}
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True)
class Server:
    """A running API server and what a client needs to reach it."""

    url: str
    authority: Path
    folder: Path
    tokens: Mapping[str, str]

    @property
    def token(self) -> str:
        """The administrator's."""
        return self.tokens[ADMIN]

    def kubeconfig(self, user: str = ADMIN, token: str | None = None) -> Path:
        """A kubeconfig for one of USERS, or for whoever has the token."""
        path = self.folder / f"{user}.kubeconfig"
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token or self.tokens[user]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": "default"}}],
        }
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    def requests(self, user: str) -> list[dict[str, Any]]:
        """What a user has asked for so far, as the server's audit log tells it."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        return [entry for line in lines if (entry := json.loads(line))["user"]["username"] == user]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer to one request of the administrator's.

        Raises:
            urllib.error.HTTPError: The server refused it.
        """
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        context = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith(b"{") else text.decode()


@dataclass
class Program:
    """One started program and its log."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def check(self) -> None:
        """Fail with the end of the log if the program has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        """Ask it to end, insist if it doesn't, and wait until it is gone."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Programs:
    """Starts programs in one folder."""

    paths: Mapping[str, str]
    folder: Path
    started: list[Program] = field(default_factory=list)

    def start(self, name: str, **flags: object) -> Program:
        """Start a program with `--flag=value` for each flag."""
        command = [self.paths[name], *(f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items())]
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        self.started.append(Program(name, process, log))
        return self.started[-1]

    def wait(self, what: str, ready: Any) -> Any:
        """Poll until `ready()` is true, while everything that was started runs."""
        give_up = time.monotonic() + READY_SECONDS
        while True:
            for program in self.started:
                program.check()
            with contextlib.suppress(OSError):  # not listening yet, or an answer that is a refusal
                if answer := ready():
                    return answer
            if time.monotonic() > give_up:
                logs = "\n".join(f"{each.name}: {each.log.read_text()[-1000:]}" for each in self.started)
                raise RuntimeError(f"waited {READY_SECONDS} s for {what}\n{logs}")
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def control_plane(
    paths: Mapping[str, str], folder: Path, crds: Collection[dict[str, Any]], **api_server_flags: object
) -> Iterator[Server]:
    """A control plane that serves `crds`, its API server started with these flags too; it ends with the context.

    `folder` is for its files, and nobody else's to read.

    The CRDs come before kube-controller-manager: its garbage collector looks for new kinds only every 30 s.
    """
    programs = Programs(paths, folder)
    try:
        server = _api_server(programs, api_server_flags)
        for crd in crds:
            server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for crd in crds:
            programs.wait(f"the CRD {crd['metadata']['name']}", lambda crd=crd: _established(server, crd))
        _controllers(programs, server)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        programs.wait("a service account", lambda: server.ask("GET", account))
        yield server
    finally:
        for program in reversed(programs.started):
            program.stop()


def _api_server(programs: Programs, flags: Mapping[str, object]) -> Server:
    folder = programs.folder
    # sockets in our own folder: etcd asks nobody who they are
    programs.start(
        "etcd",
        data_dir=folder / "etcd",
        listen_client_urls=ETCD,
        advertise_client_urls=ETCD,
        listen_peer_urls=ETCD_PEERS,
        initial_advertise_peer_urls=ETCD_PEERS,
        initial_cluster=f"default={ETCD_PEERS}",
        unsafe_no_fsync="true",
        log_level="warn",
    )
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(folder / "server.pem")
    accounts = authority.issue_cert("service-accounts")
    for name, keys in (("server.key", certificate), ("accounts.key", accounts)):
        keys.private_key_pem.write_to_path(folder / name)
    tokens = {user: secrets.token_urlsafe() for user in USERS}
    rows = [f'{tokens[user]},{name},{name},"{groups}"' for user, (name, groups) in USERS.items()]
    (folder / "tokens.csv").write_text("\n".join(rows) + "\n")
    (folder / "audit.yaml").write_text(yaml.safe_dump(_AUDIT_POLICY))
    for private in ("server.key", "accounts.key", "tokens.csv"):
        (folder / private).chmod(0o600)
    port = free_ports(1)[0]
    programs.start(
        "kube-apiserver",
        etcd_servers=ETCD,
        bind_address="127.0.0.1",
        advertise_address="127.0.0.1",
        secure_port=port,
        tls_cert_file=folder / "server.pem",
        tls_private_key_file=folder / "server.key",
        token_auth_file=folder / "tokens.csv",
        authorization_mode="Node,RBAC",
        service_account_issuer="https://kubernetes.default.svc",
        service_account_key_file=folder / "accounts.key",
        service_account_signing_key_file=folder / "accounts.key",
        service_cluster_ip_range="10.0.0.0/24",
        endpoint_reconciler_type="none",
        audit_policy_file=folder / "audit.yaml",
        audit_log_path=folder / "audit.log",
        **flags,
    )
    server = Server(f"https://127.0.0.1:{port}", folder / "ca.pem", folder, tokens)
    programs.wait("kube-apiserver", lambda: server.ask("GET", "/readyz") == "ok")
    return server


def _controllers(programs: Programs, server: Server) -> None:
    common: dict[str, object] = {"leader_elect": "false", "secure_port": 0}
    programs.start(
        "kube-controller-manager",
        kubeconfig=server.kubeconfig("controller-manager"),
        use_service_account_credentials="true",
        service_account_private_key_file=server.folder / "accounts.key",
        root_ca_file=server.authority,
        **common,
    )
    programs.start("kube-scheduler", kubeconfig=server.kubeconfig("scheduler"), **common)
    programs.start(
        "kwok",
        kubeconfig=server.kubeconfig("kwok"),
        config=STAGES,
        manage_all_nodes="false",
        manage_nodes_with_label_selector=FAKE_NODES,
        node_lease_duration_seconds=40,
    )


def _established(server: Server, crd: Mapping[str, Any]) -> bool:
    spec = crd["spec"]
    versions = [each["name"] for each in spec["versions"] if each["served"]]
    names = [server.ask("GET", f"/apis/{spec['group']}/{version}/{spec['names']['plural']}") for version in versions]
    return bool(names)


def has_service_account(server: Server, namespace: str) -> bool:
    """Whether pods can be created in a namespace: the default account is there."""
    try:
        return bool(server.ask("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
    except urllib.error.HTTPError:
        return False


def free_ports(count: int) -> list[int]:
    """So many ports of loopback that nothing listens on."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
