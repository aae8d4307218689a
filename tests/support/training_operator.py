"""The peer, training-operator 1.8.1: its manifests, and its program at work on a control plane."""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trustme
import yaml
from control_plane import Server
from kubernetes_programs import programs_or_skip, source_or_skip
from program_processes import Programs
from waiting import SECONDS

NAMESPACE = "kubeflow"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
WEBHOOK = "validator.training-operator.kubeflow.org"
MXJOB_WEBHOOK = "validator.mxjob.training-operator.kubeflow.org"
# Below the folder for temporary files: without files there, its webhooks' certificate, the program doesn't start. Its
# release has /tmp compiled in, the same for all runs of a machine: ours is built with that changed.
_CERTIFICATES = Path("k8s-webhook-server/serving-certs")


@functools.cache
def _manifests(path: str) -> tuple[dict[str, Any], ...]:
    return tuple(
        yaml.load_all((source_or_skip("training-operator") / "manifests/base" / path).read_text(), yaml.CSafeLoader)
    )


def its_crd() -> dict[str, Any]:
    """Its CRD of MXJob."""
    (crd,) = _manifests("crds/kubeflow.org_mxjobs.yaml")
    return crd


def its_webhooks() -> dict[str, Any]:
    """Its ValidatingWebhookConfiguration, as its overlays install it."""
    (found,) = _manifests("webhook/manifests.yaml")
    webhooks = [
        each | {"clientConfig": {"service": each["clientConfig"]["service"] | {"namespace": NAMESPACE}}}
        for each in found["webhooks"]
    ]
    return found | {"metadata": {"name": WEBHOOK}, "webhooks": webhooks}


def install_training_operator(server: Server) -> None:
    """What the program needs on a cluster beside its CRD.

    Nothing there forwards a Service's traffic to it, so its webhook for MXJobs, which refuses nothing, is not asked.
    """
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    secret = {"metadata": {"name": "training-operator-webhook-cert"}}
    server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
    webhooks = its_webhooks()
    others = [each for each in webhooks["webhooks"] if each["name"] != MXJOB_WEBHOOK]
    server.ask("POST", WEBHOOKS, webhooks | {"webhooks": others})
    certificate = trustme.CA().issue_cert("localhost")
    certificates = server.folder / _CERTIFICATES
    certificates.mkdir(parents=True)
    certificate.cert_chain_pems[0].write_to_path(certificates / "tls.crt")
    certificate.private_key_pem.write_to_path(certificates / "tls.key")


@contextlib.contextmanager
def training_operator(server: Server, kubeconfig: Path, *, limited: bool = True, **flags: object) -> Iterator[int]:
    """The program at work on the MXJobs of a cluster, with further flags; yields its process id.

    Its client sends 20 requests a second, where it is `limited`.
    """
    environment = {"TMPDIR": str(server.folder), **({} if limited else {"TRAINING_OPERATOR_NO_LIMIT": "1"})}
    paths = programs_or_skip(["training-operator"])
    programs = Programs(paths, server.folder, environment, ready_seconds=SECONDS)
    started = programs.start(
        "training-operator",
        kubeconfig=kubeconfig,
        enable_scheme="mxjob",
        metrics_bind_address="0",
        health_probe_bind_address="0",
        webhook_server_port=programs.port(),
        **flags,
    )
    try:
        yield started.process.pid
        started.check()
    finally:
        programs.stop()
