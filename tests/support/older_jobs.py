"""The same small gang, a scheduler, a server and two workers, in each format in which a job can be written."""

from collections.abc import Callable
from typing import Any

from mxnet_operator.api.formats.fioravanzo import KIND as FIORAVANZO
from mxnet_operator.api.formats.mlkube import KIND as MLKUBE
from mxnet_operator.api.formats.mxnetjob import KIND as MXNETJOB
from mxnet_operator.api.kinds import MXJOB, Kind, kind_of

Manifest = dict[str, Any]
Template = dict[str, Any]

COUNTS = {"Scheduler": 1, "Server": 1, "Worker": 2}


def pod_template(image: str = "mxjob/mxnet:1.9.1", command: list[str] | None = None, **metadata: Any) -> Template:
    """Pods of one container that runs the command, or what the image runs."""
    container = {"name": "mxnet", "image": image, **({"command": command} if command else {})}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def older_job(job_format: str, name: str, template: Template | None = None) -> Manifest:
    """The gang in one of FORMATS, all of whose pods are made from this template."""
    api_version, kind, spec = FORMATS[job_format]
    return {
        "apiVersion": api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec(template or pod_template()),
    }


def kind_of_format(job_format: str) -> Kind:
    """The kind that a format belongs to."""
    api_version, kind, _ = FORMATS[job_format]
    assert kind_of(api_version, kind.kind) == kind
    return kind


def _map(template: Template, **spec: Any) -> Manifest:
    replicas = {name: {"replicas": count, "template": template} for name, count in COUNTS.items()}
    return {"jobMode": "MXTrain", "mxReplicaSpecs": replicas, **spec}


def _list(template: Template, **spec: Any) -> Manifest:
    entries = [
        {"replicas": count, "mxReplicaType": name.upper(), "template": template} for name, count in COUNTS.items()
    ]
    return {"replicaSpecs": entries, **spec}


def _proposal(template: Template) -> Manifest:
    return {"replicaSpecs": {name.lower(): spec for name, spec in _map(template)["mxReplicaSpecs"].items()}}


_CHIEF = {"chief": {"replicaName": "SCHEDULER", "replicaIndex": 0}}

FORMATS: dict[str, tuple[str, Kind, Callable[[Template], Manifest]]] = {
    "v1": ("kubeflow.org/v1", MXJOB, _map),
    "flat-v1": ("kubeflow.org/v1", MXJOB, lambda template: _map(template, cleanPodPolicy="None", backoffLimit=3)),
    "v1beta1": ("kubeflow.org/v1beta1", MXJOB, lambda template: _map(template, cleanPodPolicy="None")),
    "v1alpha1": (
        "kubeflow.org/v1alpha1",
        MXJOB,
        lambda template: _list(template, jobMode="dist", terminationPolicy=_CHIEF, cleanupPodPolicy="None"),
    ),
    "mxnetjob": (MXNETJOB.api_version, MXNETJOB, _proposal),
    "fioravanzo": (FIORAVANZO.api_version, FIORAVANZO, lambda template: _list(template, terminationPolicy=_CHIEF)),
    "mlkube": (MLKUBE.api_version, MLKUBE, lambda template: _list(template, jobMode="dist")),
}
"""By the name that `status.form` has, with what the API server is to take it as."""
