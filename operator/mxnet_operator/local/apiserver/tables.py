"""Tables for `kubectl get` (meta.k8s.io/v1 Table), with the printer columns of our CRDs."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.readers.durations import short


def age(since: str | None, now: datetime) -> str:
    """Format the age of a timestamp; `<unknown>` where there is none."""
    return short((now - datetime.fromisoformat(since)).total_seconds()) if since else "<unknown>"


_NONE = "<none>"


@dataclass(frozen=True)
class Column:
    """Column of a Table: heading, function from object to cell, and priority (above 0: only with -o wide)."""

    name: str
    cell: Callable[[Object, datetime], Any]
    priority: int = 0
    type: str = "string"

    def definition(self) -> Object:
        apart = {"format": "", "description": self.name}
        return {"name": self.name, "type": self.type, "priority": self.priority, **apart}


def wants_table(headers: Mapping[str, str]) -> bool:
    """Whether a request prefers a Table to plain JSON, as `kubectl get` does."""
    preferred = headers.get("Accept", "").partition(",")[0].replace(" ", "").split(";")
    return {"application/json", "as=Table", "v=v1", "g=meta.k8s.io"} == set(preferred)


def table(
    resource: Resource, objects: Sequence[Object], now: datetime, metadata: Object, *, headings: bool = True
) -> Object:
    """Build a Table of objects, each row with its whole object; in a watch only the first one has `headings`."""
    columns = _columns(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns] if headings else None,
        "rows": [{"cells": [column.cell(obj, now) for column in columns], "object": obj} for obj in objects],
    }


def _columns(resource: Resource) -> Sequence[Column]:
    if resource.custom:
        declared = [_declared(column) for column in resource.columns]
        return [_NAME, *(declared or [_AGE])]
    return _BUILT_IN.get(resource.plural, (_NAME, _AGE))


def _declared(column: Any) -> Column:
    kind, path = column["type"], column["jsonPath"].lstrip(".").split(".")  # our CRDs name plain fields only

    def cell(obj: Object, now: datetime) -> Any:
        found = at(obj, *path)
        return age(found, now) if kind == "date" else found

    return Column(column["name"], cell, column.get("priority", 0), kind)


def _at(*path: str | int, default: Any = _NONE) -> Callable[[Object, datetime], Any]:
    return lambda obj, _: at(obj, *path, default=default)


_NAME = Column("Name", _at("metadata", "name"))
_AGE = Column("Age", lambda obj, now: age(at(obj, "metadata", "creationTimestamp"), now))


def _pod_ready(pod: Object, _: datetime) -> str:
    ready = sum(bool(each.get("ready")) for each in at(pod, "status", "containerStatuses", default=[]))
    return f"{ready}/{len(at(pod, 'spec', 'containers', default=[]))}"


def _end(terminated: Object) -> str:
    return terminated.get("reason") or f"ExitCode:{terminated.get('exitCode')}"


def _pod_status(pod: Object, _: datetime) -> str:
    """Format a pod's STATUS as kubectl's printPod: the pod's or a container's reason, else the phase."""
    shown: str = at(pod, "status", "reason") or at(pod, "status", "phase", default="Unknown")
    for position, status in enumerate(at(pod, "status", "initContainerStatuses", default=[])):
        ended, waiting = at(status, "state", "terminated"), at(status, "state", "waiting", "reason", default="")
        if ended and ended.get("exitCode") == 0:
            continue
        if ended:
            return f"Init:{_end(ended)}"
        if waiting not in ("", "PodInitializing"):
            return f"Init:{waiting}"
        return f"Init:{position}/{len(pod['spec'].get('initContainers', []))}"
    running = False
    for status in reversed(at(pod, "status", "containerStatuses", default=[])):
        ended, waiting = at(status, "state", "terminated"), at(status, "state", "waiting", "reason")
        if waiting:
            shown = waiting
        elif ended:
            shown = _end(ended)
        elif status.get("ready"):
            running = True
    if shown == "Completed" and running:
        shown = "Running"
    return "Terminating" if at(pod, "metadata", "deletionTimestamp") else shown


def _pod_restarts(pod: Object, _: datetime) -> str:
    return str(sum(each.get("restartCount", 0) for each in at(pod, "status", "containerStatuses", default=[])))


def _service_ports(service: Object, _: datetime) -> str:
    ports = at(service, "spec", "ports", default=[])
    return ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports) or _NONE


def _event_last_seen(event: Object, now: datetime) -> str:
    return age(event.get("lastTimestamp") or event.get("eventTime"), now)


def _event_object(event: Object, _: datetime) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _node_status(node: Object, _: datetime) -> str:
    conditions = {each["type"]: each["status"] for each in at(node, "status", "conditions", default=[])}
    ready = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    return ready + (",SchedulingDisabled" if at(node, "spec", "unschedulable") else "")


def _number_of_keys(obj: Object, _: datetime) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _claim_status(claim: Object, _: datetime) -> str:
    terminating = "deletionTimestamp" in claim["metadata"]
    return "Terminating" if terminating else str(at(claim, "status", "phase", default=""))


_BUILT_IN: dict[str, tuple[Column, ...]] = {
    builtin.PODS.plural: (
        _NAME,
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _pod_restarts),
        _AGE,
        Column("IP", _at("status", "podIP"), 1),
        Column("Node", _at("spec", "nodeName"), 1),
    ),
    builtin.SERVICES.plural: (
        _NAME,
        Column("Type", _at("spec", "type")),
        Column("Cluster-IP", _at("spec", "clusterIP")),
        Column("Port(s)", _service_ports),
        _AGE,
    ),
    builtin.EVENTS.plural: (
        Column("Last Seen", _event_last_seen),
        Column("Type", _at("type")),
        Column("Reason", _at("reason")),
        Column("Object", _event_object),
        Column("Message", lambda event, _: re.sub(r"\s*\n\s*", " ", at(event, "message", default="")).strip()),
        Column("Count", _at("count", default=1), 1, "integer"),
        Column("Name", _at("metadata", "name"), 1),
    ),
    builtin.NODES.plural: (
        _NAME,
        Column("Status", _node_status),
        _AGE,
        Column("Version", _at("status", "nodeInfo", "kubeletVersion", default="<unknown>")),
    ),
    builtin.NAMESPACES.plural: (_NAME, Column("Status", _at("status", "phase")), _AGE),
    builtin.CONFIG_MAPS.plural: (_NAME, Column("Data", _number_of_keys, type="integer"), _AGE),
    builtin.SECRETS.plural: (_NAME, Column("Type", _at("type")), Column("Data", _number_of_keys, type="integer"), _AGE),
    builtin.PERSISTENT_VOLUME_CLAIMS.plural: (
        _NAME,
        Column("Status", _claim_status),
        Column("Capacity", _at("status", "capacity", "storage", default="")),
        _AGE,
    ),
}
