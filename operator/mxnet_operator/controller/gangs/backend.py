"""Back end of a gang scheduler: the objects before the pods, the marks on these; each is one file beside this one."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.metadata import job_labels, owner_reference
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import ChildRule
from mxnet_operator.plan.gang import PODGROUPS, Gang, fingerprint


class GangBackend(msgspec.Struct, frozen=True, kw_only=True):
    """Gang scheduler by which the pods of a job are placed at once or not at all."""

    name: str
    """Value of `--gang-scheduling`; several that differ in the API version only share one."""
    resources: tuple[Resource, ...]
    """The kinds of its objects in the order of their creation, the pod group last; served where all of them are."""
    objects: Callable[[MXJob, Gang], tuple[dict[str, Any], ...]]
    """Function that builds the manifests of its objects, one of each kind."""
    decorate: Callable[[MXJob, Gang, dict[str, Any]], dict[str, Any]]
    """Function that adds what the gang scheduler needs to a pod's manifest."""
    ready_for_pods: Callable[[dict[str, Any]], bool] = lambda _: True
    """Whether pods may be created, by the status of their group."""
    describe: Callable[[dict[str, Any]], str] = lambda _: ""
    """The scheduler's words for why the group waits, by its status; empty where it says nothing."""
    dropped: Callable[[MXJob, Gang, dict[str, Any]], str] = lambda *_: ""
    """Function that describes in a sentence what the server dropped in silence from an object as it was stored."""
    dropped_of_pod: Callable[[dict[str, Any]], str] = lambda _: ""
    """Function that describes in a sentence what the server dropped in silence from a decorated pod; empty where it is
    whole.
    """
    rule: ChildRule = PODGROUPS


def group_metadata(job: MXJob, gang: Gang, name: str = "") -> dict[str, Any]:
    """Build the metadata of every object of a gang: it is named as its job where it has no `name`, and goes with it."""
    return {
        "name": name or job.metadata.name,
        "namespace": job.metadata.namespace,
        "labels": job_labels(job),
        "annotations": {names.GANG_ANNOTATION: fingerprint(gang)},
        "ownerReferences": [owner_reference(job)],
    }


def pod_group(
    resource: Resource,
    job: MXJob,
    gang: Gang,
    spec: dict[str, Any],
    min_resources: Mapping[str, str],
    *,
    name: str = "",
) -> dict[str, Any]:
    """Build the manifest of a PodGroup, with these minResources if there are any; named as its job without a `name`."""
    return {
        "apiVersion": f"{resource.group}/{resource.version}",
        "kind": "PodGroup",
        "metadata": group_metadata(job, gang, name),
        "spec": {**spec, **({"minResources": dict(min_resources)} if min_resources else {})},
    }


def condition_message(group: dict[str, Any], types: Collection[str], status: str) -> str:
    """Return the message of the first condition of these types that has this status; empty where there is none."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    found = (c for c in conditions if c.get("type") in types and c.get("status") == status)
    return next((str(c.get("message") or "") for c in found), "")


def with_priority_class(spec: dict[str, Any], gang: Gang) -> dict[str, Any]:
    """Return a pod's spec with the gang's priority class, where it has none of its own."""
    if not gang.priority_class or spec.get("priorityClassName"):
        return spec
    return {**spec, "priorityClassName": gang.priority_class}


def with_scheduler(spec: dict[str, Any], scheduler: str) -> dict[str, Any]:
    """Return a pod's spec with this scheduler's name, where it has none of its own."""
    return spec if not scheduler or spec.get("schedulerName") else {**spec, "schedulerName": scheduler}
