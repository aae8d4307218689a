"""Adapts a container's environment to a machine without cluster DNS: names of Services and pods become addresses.

A headless Service's name stands for the pods that its selector matches, and `<hostname>.<subdomain>` for one pod of
the Service of that name (Kubernetes' "DNS for Services and Pods").
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.kubelet.environment import Variable, expand

Object = Mapping[str, Any]

# A host name inside a value ends where no other part of a host name, path or file name goes on; a slash may only
# come before it as part of "//", so that paths and image names are left alone.
_HOST = re.compile(
    r"(?<![\w./-])(?P<plain>[a-z0-9][a-z0-9.-]*[a-z0-9])(?![\w./-])"
    r"|(?<=//)(?P<url>[a-z0-9][a-z0-9.-]*[a-z0-9])(?![\w.-])"
)
_NOT_NAMES = frozenset({"DMLC_ROLE", "POD_NAME", "HOSTNAME"})


@dataclass(frozen=True, slots=True)
class Pending:
    """A name that has no address yet; `exists` says whether a pod that will have it is there."""

    name: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Adapted:
    """A container's environment with addresses, and the names in it that have none yet."""

    values: dict[str, str]
    pending: tuple[Pending, ...]


class Names:
    """The names that the pods of one namespace can look up."""

    def __init__(self, namespace: str, services: Iterable[Object], pods: Iterable[Object]) -> None:
        self._namespace = namespace
        self._services = {
            each["metadata"]["name"]: each
            for each in services
            if each["metadata"].get("namespace") == namespace and each["spec"].get("clusterIP") == "None"
        }
        self._pods = [each for each in pods if each["metadata"].get("namespace") == namespace]
        # A pod that is going away may share its names with the one that replaces it.
        self._pods.sort(key=lambda pod: ("deletionTimestamp" in pod["metadata"], pod["metadata"]["name"]))
        self._members: dict[str, dict[str, list[Object]]] = {}

    def look_up(self, name: str) -> str | Pending | None:
        """The address that a host name stands for; None: it is no name of this namespace."""
        labels = self._local_part(name)
        if labels is None:
            return None
        if labels[-1] not in self._services:
            return None
        members = self._members_of(labels[-1]).get(labels[0] if len(labels) == 2 else "", [])
        for pod in members:
            if address := (pod.get("status") or {}).get("podIP"):
                return str(address)
        return Pending(name, exists=bool(members))

    def _members_of(self, service: str) -> dict[str, list[Object]]:
        """The pods of a Service, all of them under the empty name, and those of each host name."""
        if service not in self._members:
            found: dict[str, list[Object]] = {}
            for pod in self._pods:
                if _selects(self._services[service], pod):
                    found.setdefault("", []).append(pod)
                    if pod["spec"].get("subdomain") == service:
                        found.setdefault(_hostname(pod), []).append(pod)
            self._members[service] = found
        return self._members[service]

    def _local_part(self, name: str) -> list[str] | None:
        for suffix in (f".{self._namespace}.svc.cluster.local", f".{self._namespace}.svc", f".{self._namespace}"):
            if name.endswith(suffix):
                name = name.removesuffix(suffix)
                break
        labels = name.split(".")
        return labels if len(labels) <= 2 else None


def adapt(variables: Mapping[str, Variable], names: Names, pod_ip: str) -> Adapted:
    """Expand the variables, put addresses where names are, and set what ps-lite and OpenMP need on one machine.

    A name without an address stays in its value; the caller decides whether to wait. `docs/facts/mxnet.md` says why:
    threads (OMP_NUM_THREADS), names (DMLC_NODE_HOST, DMLC_USE_KUBERNETES).
    """
    values: dict[str, str] = {}
    pending: dict[str, Pending] = {}
    replaced: set[str] = set()
    for variable, given in variables.items():
        value = expand(given.value, values) if given.literal else given.value
        if given.literal and variable not in _NOT_NAMES:

            def address(match: re.Match[str], variable: str = variable) -> str:
                found = names.look_up(match[0])
                if isinstance(found, Pending):
                    pending[found.name] = found
                if not isinstance(found, str):
                    return match[0]
                replaced.add(variable)
                return found

            value = _HOST.sub(address, value)
        values[variable] = value
    if "DMLC_PS_ROOT_URI" in replaced:
        # With it the scheduler binds 0.0.0.0, and jobs of one machine clash.
        values.pop("DMLC_USE_KUBERNETES", None)
    if "DMLC_ROLE" in values:
        values.setdefault("DMLC_NODE_HOST", pod_ip)
    values.setdefault("OMP_NUM_THREADS", "1")
    return Adapted(values, tuple(pending.values()))


def _selects(service: Object, pod: Object) -> bool:
    selector = service["spec"].get("selector") or {}
    labels = pod["metadata"].get("labels") or {}
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def _hostname(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])
