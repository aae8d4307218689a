"""Reader of a pod's volumes: which claims it needs, and where what it writes outlives it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

CLAIM: Final = "claim"
_SOURCES: Final = {"persistentVolumeClaim": (CLAIM, "claimName"), "hostPath": ("folder", "path")}
"""What messages call a source, and its field that names it."""
_NOT_KEPT: Final = frozenset(
    {"emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image", "gitRepo"}
)
"""Sources that go with their pod, or that it can't write to."""

NOTHING_KEPT: Final = "nothing was kept, as no volume of the job outlives its pods"


class KeptVolume(NamedTuple):
    """A volume that outlives its pod, where a container may write to it."""

    source: str
    """`claim`, `folder`, or the field's name in the volume."""
    name: str
    path: str
    """Path in the container."""

    def __str__(self) -> str:
        return f"{self.source} {self.name} at {self.path}"


def claims_needed(spec: Mapping[str, Any]) -> set[str]:
    claims = (volume.get("persistentVolumeClaim") for volume in spec.get("volumes") or [])
    return {claim["claimName"] for claim in claims if claim}


def kept_volumes(job: Mapping[str, Any]) -> list[KeptVolume]:
    """Return the volumes that outlive the pods of a v1 job, in the manifest's order and each path once."""
    specs = (job.get("spec", {}).get("mxReplicaSpecs") or {}).values()
    pods = (each["template"]["spec"] for each in specs)
    kept = (volume for pod in pods for each in pod["containers"] for _, volume in kept_mounts(pod, each))
    return list(dict.fromkeys(kept))


def kept_mounts(
    spec: Mapping[str, Any], container: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], KeptVolume]]:
    """Yield the mounts of a container of a pod that outlive it, each with what it is."""
    sources = {volume["name"]: _source(volume) for volume in spec.get("volumes") or []}
    for mount in container.get("volumeMounts") or []:
        if not mount.get("readOnly") and (source := sources.get(mount["name"])):
            yield mount, KeptVolume(*source, mount["mountPath"])


def _source(volume: Mapping[str, Any]) -> tuple[str, str] | None:
    # Kubernetes makes an emptyDir of a volume without a source.
    key = next((each for each in volume if each != "name" and volume[each] is not None), "emptyDir")
    if key in _NOT_KEPT or volume[key].get("readOnly"):
        return None
    word, field = _SOURCES.get(key, (key, ""))
    return word, volume[key].get(field, volume["name"])
