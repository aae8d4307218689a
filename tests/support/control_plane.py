"""A real Kubernetes control plane for tests: the local cluster's, and KWOK, an audit log and users besides."""

import contextlib
import json
import secrets
import ssl
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes_server as server
import trustme
import yaml
from kubeconfigs import write_kubeconfig
from program_processes import Programs
from waiting import SECONDS

from mxnet_operator.local.home import write_private

STAGES = Path(__file__).resolve().parents[1] / "tools" / "kwok" / "stages.yaml"
FAKE_NODES = "type=kwok"
ADMIN = "admin"
USERS = {  # their names to the server, and groups: each program has the rights that a real cluster gives it
    ADMIN: (ADMIN, server.ADMINISTRATORS),
    "controller-manager": (server.CONTROLLER_MANAGER, ""),
    "scheduler": (server.SCHEDULER, ""),
    "kwok": ("kwok", server.ADMINISTRATORS),
    "controller": ("mxnet-operator", server.ADMINISTRATORS),
}
_OUR_JOBS = "/apis/kubeflow.org/v1/mxjobs?limit=1"
"""Served a moment after the API server says that it is ready."""
_GOGC = "400"
"""How much their heaps grow between two garbage collections, in percent: a quarter less CPU, for more memory."""
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True)
class Server(server.Server):
    """A running API server and what a client needs to reach it."""

    tokens: Mapping[str, str]
    ca: trustme.CA
    programs: Programs

    def restart_api_server(self) -> None:
        """Kill it, as a crash would, start it again as it was, and wait until it answers; etcd stays. Blocks."""
        started = self.programs.started
        (old,) = [each for each in started if each.name == "kube-apiserver"]
        old.process.kill()
        old.process.wait()
        arguments = old.process.args
        assert isinstance(arguments, list)
        flags = dict(str(each).removeprefix("--").split("=", 1) for each in arguments[1:])
        new = self.programs.start(old.name, **{flag.replace("-", "_"): value for flag, value in flags.items()})
        started.remove(new)
        started[started.index(old)] = new  # they are stopped in the order of this list
        self.programs.wait(old.name, lambda: self.ask("GET", "/readyz") == "ok" and self.ask("GET", _OUR_JOBS))

    def kubeconfig(self, user: str = ADMIN, token: str | None = None) -> Path:
        """A kubeconfig for one of USERS, or for whoever has the token."""
        path = self.folder / f"{user}.kubeconfig"
        write_kubeconfig(path, self.url, token or self.tokens[user], self.authority)
        return path

    def kubelet_context(self) -> ssl.SSLContext:
        """With what a kubelet's API, which the server calls, listens."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert("127.0.0.1").configure_cert(context)
        return context

    def requests(self, user: str) -> list[dict[str, Any]]:
        """What a user has asked for so far, as the server's audit log tells it; one answered with 401 has no user."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        return [entry for line in lines if (entry := json.loads(line))["user"].get("username") == user]


@contextlib.contextmanager
def control_plane(
    paths: Mapping[str, str],
    folder: Path,
    crds: Collection[dict[str, Any]],
    *,
    scheduler: Mapping[str, object] | None = None,
    controller_manager: Mapping[str, object] | None = None,
    **api_server_flags: Any,
) -> Iterator[Server]:
    """A control plane that serves `crds`, its API server started with these flags too; it ends with the context.

    `scheduler` and `controller_manager` are further flags of those programs.
    """
    programs = Programs(paths, folder, {"GOGC": _GOGC}, ready_seconds=SECONDS)
    tokens = {user: secrets.token_urlsafe() for user in USERS}
    users = [server.User(name, tokens[user], groups) for user, (name, groups) in USERS.items()]
    (folder / "audit.yaml").write_text(yaml.safe_dump(_AUDIT_POLICY))
    audit: dict[str, Any] = {"audit_policy_file": folder / "audit.yaml", "audit_log_path": folder / "audit.log"}
    try:
        ca = trustme.CA()
        flags = {**audit, **_aggregation(folder), **api_server_flags}
        started = server.start_api_server(programs, ca, users, **flags)
        result = Server(started.url, started.authority, folder, started.token, tokens, ca, programs)
        server.add_crds(programs, result, crds)
        server.start_controllers(programs, result, scheduler=scheduler, **(controller_manager or {}))
        _start_kwok(programs, result)
        yield result
    finally:
        programs.stop()


def _aggregation(folder: Path) -> dict[str, Any]:
    """Flags by which servers behind an APIService believe what the API server says of who asks."""
    front = trustme.CA()
    front.cert_pem.write_to_path(folder / "front-proxy-ca.pem")
    certificate = front.issue_cert("front-proxy.test", common_name="front-proxy-client")
    write_private(folder / "front-proxy.pem", certificate.private_key_and_cert_chain_pem.bytes())
    return {
        "requestheader_client_ca_file": folder / "front-proxy-ca.pem",
        "requestheader_allowed_names": "front-proxy-client",
        "requestheader_username_headers": "X-Remote-User",
        "requestheader_group_headers": "X-Remote-Group",
        "requestheader_extra_headers_prefix": "X-Remote-Extra-",
        "proxy_client_cert_file": folder / "front-proxy.pem",
        "proxy_client_key_file": folder / "front-proxy.pem",
    }


def _start_kwok(programs: Programs, result: Server) -> None:
    programs.start(
        "kwok",
        kubeconfig=result.kubeconfig("kwok"),
        config=STAGES,
        manage_all_nodes="false",
        manage_nodes_with_label_selector=FAKE_NODES,
        node_lease_duration_seconds=40,
    )
