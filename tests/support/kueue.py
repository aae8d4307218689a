"""A real Kueue on a real API server, without cert-manager, containers or root: all of it listens on loopback.

The server reaches Kueue's webhooks through a Service of type ExternalName. Kueue makes its own certificates; what a
kubelet would mount is copied from the Secret that it keeps them in. `tests/tools/kueue/server.go` moves its visibility
API, which no test reads, from port 8082 of all addresses to a port of loopback.
"""

import base64
import contextlib
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from control_plane import Server
from kubernetes_programs import programs_or_skip, source_of

NAMESPACE = "kueue-system"
API = "/apis/kueue.x-k8s.io/v1beta2"
_SERVICE, _SECRET = "kueue-webhook-service", "kueue-webhook-server-cert"
_CONVERTED = frozenset({"workloads", "clusterqueues", "localqueues", "cohorts", "multikueueclusters"})
_WEBHOOKS = frozenset({"workload", "clusterqueue", "resourceflavor", "cohort", "pod"})
_KEYS = ("tls.crt", "tls.key", "ca.crt", "ca.key")
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Kueue:
    """A Kueue at work; it can be killed and started again."""

    def __init__(self, server: Server, settings: Mapping[str, Any]) -> None:
        """Its CRDs and webhooks are there; it isn't started yet."""
        self._server = server
        self._programs = server.programs
        self._webhook_port, self._health_port = self._programs.port(), self._programs.port()
        self._visibility_port = self._programs.port()
        self._certificates = server.folder / "kueue-certificates"
        self._certificates.mkdir()
        self._settings = settings
        self._program: Any = None

    def install(self) -> None:
        """Create what Kueue's manifests create."""
        ask, components = self._server.ask, source_of("kueue") / "config" / "components"
        ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        system = f"/api/v1/namespaces/{NAMESPACE}"
        ask("POST", f"{system}/secrets", {"metadata": {"name": _SECRET}})
        service = {"metadata": {"name": _SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        ask("POST", f"{system}/services", service)
        for path in sorted((components / "crd" / "bases").glob("*.yaml")):
            ask("POST", _CRDS, self._definition(yaml.load(path.read_text(), yaml.CSafeLoader)))
        for manifest in yaml.safe_load_all((components / "webhook" / "manifests.yaml").read_text()):
            kind = manifest["kind"].removesuffix("WebhookConfiguration").lower()
            manifest["metadata"]["name"] = f"kueue-{kind}-webhook-configuration"
            manifest["webhooks"] = [self._webhook(each) for each in manifest["webhooks"] if _is_kept(each)]
            ask("POST", f"{_ADMISSION}/{kind}webhookconfigurations", manifest)

    def start(self) -> None:
        """Start it and wait until it answers and its webhooks are believed. Blocks."""
        folder = self._server.folder
        configuration = folder / "kueue.yaml"
        configuration.write_text(yaml.safe_dump(self._configuration()))
        self._programs.environment = {
            **self._programs.environment,
            "KUBECONFIG": str(self._server.kubeconfig("admin")),
            "KUEUE_VISIBILITY_PORT": str(self._visibility_port),
        }
        self._program = self._programs.start("kueue", config=configuration)
        secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/{_SECRET}"

        def certified() -> dict[str, str]:
            data: dict[str, str] = self._server.ask("GET", secret).get("data") or {}
            return data if set(_KEYS) <= set(data) else {}

        certificates = self._programs.wait("Kueue's certificates", certified)
        for key, value in certificates.items():
            (self._certificates / key).write_bytes(base64.b64decode(value))
        url = f"http://127.0.0.1:{self._health_port}/readyz"
        self._programs.wait("Kueue", lambda: _answers(url) and self._accepts())

    @contextlib.contextmanager
    def configured(self, **settings: Any) -> Iterator[None]:
        """Another Kueue in its place, as after an administrator's change of its Configuration, until the context ends.

        These settings come on top of its own.
        """
        own = self._settings
        self._restart({**own, **settings})
        try:
            yield
        finally:
            self._restart(own)

    def _restart(self, settings: Mapping[str, Any]) -> None:
        self.kill()
        self._settings = settings
        self.start()

    def kill(self) -> None:
        """End it as a crash would."""
        self._programs.started.remove(self._program)
        self._program.process.kill()
        self._program.process.wait()

    def _accepts(self) -> bool:
        """Whether the server believes its webhooks by now."""
        flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
        self._server.ask("POST", f"{API}/resourceflavors?dryRun=All", flavor)
        return True

    def _configuration(self) -> dict[str, Any]:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health_port}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self._webhook_port, "certDir": str(self._certificates)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {
                "enable": True,
                "webhookServiceName": _SERVICE,
                "webhookSecretName": _SECRET,
            },
            "integrations": {"frameworks": ["pod"]},
            **self._settings,
        }

    def _definition(self, crd: dict[str, Any]) -> dict[str, Any]:
        if crd["spec"]["names"]["plural"] in _CONVERTED:
            client = {"service": {**self._service(), "path": "/convert"}}
            webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return crd

    def _webhook(self, webhook: dict[str, Any]) -> dict[str, Any]:
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"service": {**self._service(), "path": path}}
        if webhook["name"].endswith("pod.kb.io"):
            out = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
            webhook["namespaceSelector"] = {"matchExpressions": [out]}
        return webhook

    def _service(self) -> dict[str, Any]:
        return {"namespace": NAMESPACE, "name": _SERVICE, "port": self._webhook_port}


@contextlib.contextmanager
def kueue(server: Server, **settings: Any) -> Iterator[Kueue]:
    """A Kueue on this server, with these settings of its Configuration; it ends with the server."""
    server.programs.paths = {**server.programs.paths, **programs_or_skip(["kueue"])}
    made = Kueue(server, settings)
    made.install()
    made.start()
    yield made


def _is_kept(webhook: dict[str, Any]) -> bool:
    return webhook["name"].removesuffix(".kb.io")[1:] in _WEBHOOKS


def _answers(url: str) -> bool:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return bool(answer.status == 200)
