"""Kubernetes control plane on loopback: etcd and kube-apiserver, then controller manager and scheduler.

All files lie in one folder, which only its owner may enter: etcd, which asks nobody who they are, listens on sockets in
it. RBAC and the admission plugins that are on by default are on.
"""

import json
import ssl
import urllib.request
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from program_processes import Programs

from mxnet_operator.local.certificates import kubeconfig
from mxnet_operator.local.home import write_private

CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
ADMINISTRATORS = "system:masters"
"""Group of cluster administrators."""
_ETCD, _ETCD_PEERS = "unix://etcd:1", "unix://etcd:2"


@dataclass(frozen=True)
class User:
    """User whom the API server authenticates by a token; `groups` is a comma-separated list."""

    name: str
    token: str
    groups: str = ""


@dataclass(frozen=True)
class Server:
    """Running API server, with its address, CA and administrator's token."""

    url: str
    authority: Path
    folder: Path
    token: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request as the administrator and return the decoded response. Blocks.

        Raises:
            urllib.error.HTTPError: the server rejected it.
        """
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        context = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith(b"{") else text.decode()


def start_api_server(
    programs: Programs,
    authority: trustme.CA,
    users: Collection[User],
    *,
    port: int = 0,
    address: str = "127.0.0.1",
    **flags: object,
) -> Server:
    """Start etcd and kube-apiserver and wait until it answers. Blocks.

    The first of the users is the administrator; the default port is any free one; the address is one of this machine;
    `flags` are kube-apiserver's, in addition.

    Raises:
        ProgramError: see `Programs.wait`.
    """
    folder, port = programs.folder, port or programs.port()
    ca = folder / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    for name in ("server", "client", "accounts"):
        certificate = authority.issue_cert(address, common_name=f"mxjob {name}")
        write_private(folder / f"{name}.pem", certificate.cert_chain_pems[0].bytes())
        write_private(folder / f"{name}.key", certificate.private_key_pem.bytes())
    rows = [f'{user.token},{user.name},{user.name},"{user.groups}"\n' for user in users]
    write_private(folder / "tokens.csv", "".join(rows).encode())
    programs.start(
        "etcd",
        data_dir=folder / "etcd",
        listen_client_urls=_ETCD,
        advertise_client_urls=_ETCD,
        listen_peer_urls=_ETCD_PEERS,
        initial_advertise_peer_urls=_ETCD_PEERS,
        initial_cluster=f"default={_ETCD_PEERS}",
        unsafe_no_fsync="true",
        log_level="warn",
    )
    programs.start(
        "kube-apiserver",
        etcd_servers=_ETCD,
        bind_address=address,
        advertise_address=address,
        secure_port=port,
        tls_cert_file=folder / "server.pem",
        tls_private_key_file=folder / "server.key",
        token_auth_file=folder / "tokens.csv",
        authorization_mode="Node,RBAC",
        service_account_issuer="https://kubernetes.default.svc",
        service_account_key_file=folder / "accounts.key",
        service_account_signing_key_file=folder / "accounts.key",
        service_cluster_ip_range="10.0.0.0/16",
        endpoint_reconciler_type="none",
        kubelet_certificate_authority=ca,
        kubelet_client_certificate=folder / "client.pem",
        kubelet_client_key=folder / "client.key",
        kubelet_preferred_address_types="InternalIP",
        **flags,
    )
    administrator = next(iter(users))
    server = Server(f"https://{address}:{port}", ca, folder, administrator.token)
    programs.wait("kube-apiserver", lambda: server.ask("GET", "/readyz") == "ok")
    for user in users:  # for the programs that act in their name
        config = kubeconfig(port=port, authority_pem=ca.read_bytes(), token=user.token, address=address)
        write_private(_kubeconfig_path(folder, user.name), config)
    return server


def add_crds(programs: Programs, server: Server, crds: Collection[dict[str, Any]]) -> None:
    """Create the CRDs and wait until they are served. Blocks.

    They come before kube-controller-manager: its garbage collector looks for new kinds only every 30 s.
    """
    for crd in crds:
        server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    for crd in crds:
        programs.wait(f"the CRD {crd['metadata']['name']}", lambda crd=crd: _established(server, crd))  # type: ignore[misc]


def start_controllers(
    programs: Programs, server: Server, *, scheduler: Mapping[str, object] | None = None, **flags: object
) -> None:
    """Start kube-controller-manager and kube-scheduler and wait until pods can be created in `default`. Blocks.

    `flags` are kube-controller-manager's, in addition, and `scheduler` kube-scheduler's.
    """
    common: dict[str, object] = {"leader_elect": "false", "secure_port": 0}
    programs.start(
        "kube-controller-manager",
        kubeconfig=_kubeconfig_path(server.folder, CONTROLLER_MANAGER),
        use_service_account_credentials="true",
        service_account_private_key_file=server.folder / "accounts.key",
        root_ca_file=server.authority,
        **common,
        **flags,
    )
    kubeconfig_of_scheduler = _kubeconfig_path(server.folder, SCHEDULER)
    programs.start("kube-scheduler", kubeconfig=kubeconfig_of_scheduler, **common, **(scheduler or {}))
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    programs.wait("a service account", lambda: bool(server.ask("GET", account)))


def _established(server: Server, crd: Mapping[str, Any]) -> bool:
    spec = crd["spec"]
    versions = [each["name"] for each in spec["versions"] if each["served"]]
    names = [server.ask("GET", f"/apis/{spec['group']}/{version}/{spec['names']['plural']}") for version in versions]
    return bool(names)


def _kubeconfig_path(folder: Path, user: str) -> Path:
    return folder / f"{user.replace(':', '-')}.kubeconfig"
