"""Rules of kube-apiserver for the sources of a pod's variables and volumes, which no schema can express.

Messages and order are those of `validateEnvVarValueFrom` and `validateVolumeSource` in Kubernetes' `pkg/apis/core`.
"""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api.structural import FieldError, invalid

Object = dict[str, Any]

VOLUME_TYPES: Final = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "flocker",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "storageos",
    "portworxVolume",
    "scaleIO",
    "projected",
    "photonPersistentDisk",
    "csi",
    "ephemeral",
    "image",
)
"""Sources of a volume, in the order in which kube-apiserver looks for them: it rejects each but the first."""


def source_errors(pod: Object, path: str) -> Iterator[FieldError]:
    for position, volume in enumerate(pod.get("volumes") or ()):
        yield from volume_errors(volume, f"{path}.volumes[{position}]")
    for field in ("initContainers", "containers"):
        for number, container in enumerate(pod.get(field) or ()):
            for position, variable in enumerate(container.get("env") or ()):
                yield from variable_errors(variable, f"{path}.{field}[{number}].env[{position}]")


def variable_errors(variable: Object, path: str) -> Iterator[FieldError]:
    """Yield the error of a variable that has not one source, or one beside a value."""
    sources = variable.get("valueFrom")
    if sources is None:
        return
    if not sources:
        known = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(f"{path}.valueFrom", "", known)
    elif variable.get("value"):
        yield invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")
    elif len(sources) > 1:
        yield invalid(f"{path}.valueFrom", "", "may not have more than one field specified at a time")


def volume_errors(volume: Object, path: str) -> Iterator[FieldError]:
    """Yield an error for each source of a volume but its first."""
    _, *others = [name for name in VOLUME_TYPES if volume.get(name) is not None] or [""]
    for name in others:
        detail = "Forbidden: may not specify more than 1 volume type"
        yield FieldError(f"{path}.{name}", "FieldValueForbidden", detail)
