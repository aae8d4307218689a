"""Loopback network of a node: the addresses of pods, and a replacement for cluster DNS.

Names of Services and pods in a container's environment become addresses. A headless Service's name stands for the pods
that its selector matches, and `<hostname>.<subdomain>` for one pod of the Service of that name (Kubernetes' "DNS for
Services and Pods").
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mxnet_operator.api import names as api_names
from mxnet_operator.local.kubelet.environment import Variable, expand

ADDRESSES = 254 * 254
"""Number of addresses in a subnet."""


class AddressesExhausted(Exception):  # noqa: N818 - the name of a state, as in ipaddress
    """Every address of the subnet is held by a pod that still exists."""


class Addresses:
    """Pool of the addresses `<subnet>.1.1` to `<subnet>.254.254`, held by pods' uids.

    They are handed out in turn, so that a freed one rests as long as possible: connections of its last holder may
    linger in TIME_WAIT.
    """

    def __init__(self, subnet: str) -> None:
        self._subnet = subnet
        self._held: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 0

    def take(self, uid: str) -> str:
        """Take an address for this pod, the same one for every call until `free`.

        Raises:
            AddressesExhausted: there is none left.
        """
        if uid in self._held:
            return self._held[uid]
        for _ in range(ADDRESSES):
            address = f"{self._subnet}.{self._next // 254 + 1}.{self._next % 254 + 1}"
            self._next = (self._next + 1) % ADDRESSES
            if address not in self._taken:
                self._held[uid] = address
                self._taken.add(address)
                return address
        raise AddressesExhausted(f"all addresses of {self._subnet}.0.0/16 are in use")

    def free(self, uid: str) -> None:
        self._taken.discard(self._held.pop(uid, ""))


Object = Mapping[str, Any]
Term = tuple[str, str, str]
"""Namespace, key and value of a label; for a host name under a subdomain the key is empty."""

# A host name inside a value ends where no other part of a host name, path or file name goes on; a slash may only
# come before it as part of "//", so that paths and image names are left alone.
_HOST = re.compile(
    r"(?<![\w./-])(?P<plain>[a-z0-9][a-z0-9.-]*[a-z0-9])(?![\w./-])"
    r"|(?<=//)(?P<url>[a-z0-9][a-z0-9.-]*[a-z0-9])(?![\w.-])"
)
_OF_ALL = "MX_CONFIG"
"""Variable that lists every pod of a job, for scripts to read."""
_SLASHES_WITH_MINIMUM = 3
"""In `attempt-0/9/2026-11-22T13:44:00Z/3`, as `plan.gang_member` writes it."""
_NOT_NAMES = frozenset({"DMLC_ROLE", "POD_NAME", "HOSTNAME"})


@dataclass(frozen=True, slots=True)
class Pending:
    """Name without an address yet; `exists` tells whether a pod that will have it exists."""

    name: str
    exists: bool
    may_come_later: bool = False
    """Whether its job runs without it: only MX_CONFIG lists it, and it is one of more pods than `minAvailable`."""


@dataclass(frozen=True, slots=True)
class Adapted:
    """Environment of a container with addresses for names, and the names that have none yet."""

    values: dict[str, str]
    pending: tuple[Pending, ...]


class PodIndex:
    """Pods by namespace and label and by host name, kept up to date change by change.

    Every container of a job looks up every pod of it, so a search through all pods would be cubic in a job's size.
    """

    def __init__(self) -> None:
        self._pods: dict[Term, dict[str, Object]] = {}

    def change(self, old: Object | None, new: Object | None) -> None:
        """Replace a pod; None where it is new or has gone."""
        if old is not None:
            for term in _terms(old):
                found = self._pods[term]
                del found[old["metadata"]["name"]]
                if not found:
                    del self._pods[term]
        if new is not None:
            for term in _terms(new):
                self._pods.setdefault(term, {})[new["metadata"]["name"]] = new

    def selected(self, service: Object, hostname: str = "") -> list[Object]:
        """List the pods that a Service selects, or those of them that have this host name under it."""
        metadata = service["metadata"]
        namespace, selector = metadata["namespace"], service["spec"].get("selector")
        if not selector:
            return []
        terms = [(namespace, *pair) for pair in selector.items()]
        if hostname:
            terms.append((namespace, "", f"{hostname}.{metadata['name']}"))
        smallest, *others = sorted((self._pods.get(term, {}) for term in terms), key=len)
        return [pod for name, pod in smallest.items() if all(name in other for other in others)]


class Names:
    """DNS names that the pods of one namespace can look up; `service` finds a Service of it by name."""

    def __init__(self, namespace: str, service: Callable[[str], Object | None], pods: PodIndex) -> None:
        self._suffixes = (f".{namespace}.svc.cluster.local", f".{namespace}.svc", f".{namespace}")
        self._service = service
        self._pods = pods

    def look_up(self, name: str) -> str | Pending | None:
        """Look up the address of a host name; None if it is not a name of this namespace."""
        labels = self._local_part(name)
        if labels is None:
            return None
        service = self._service(labels[-1])
        if service is None or service["spec"].get("clusterIP") != "None":
            return None
        members = self._pods.selected(service, labels[0] if len(labels) == 2 else "")
        # A pod that is going away may share its names with the one that replaces it.
        members.sort(key=lambda pod: ("deletionTimestamp" in pod["metadata"], pod["metadata"]["name"]))
        for pod in members:
            if address := (pod.get("status") or {}).get("podIP"):
                return str(address)
        may_come_later = bool(members) and all(_may_come_later(pod) for pod in members)
        return Pending(name, exists=bool(members), may_come_later=may_come_later)

    def _local_part(self, name: str) -> list[str] | None:
        suffix = next((each for each in self._suffixes if name.endswith(each)), "")
        name = name.removesuffix(suffix)
        labels = name.split(".")
        return labels if len(labels) <= 2 else None


def adapt(variables: Iterable[tuple[str, Variable]], names: Names, pod_ip: str) -> Adapted:
    """Expand the variables, put addresses where names are, and set what ps-lite and OpenMP need on one machine.

    A name without an address stays in its value; the caller decides whether to wait. `docs/facts/mxnet.md` says why:
    threads (OMP_NUM_THREADS), names (DMLC_NODE_HOST, DMLC_USE_KUBERNETES).
    """
    values: dict[str, str] = {}
    pending: dict[str, dict[str, Pending]] = {}
    replaced: set[str] = set()
    for variable, given in variables:
        replaced.discard(variable)
        pending[variable] = {}  # what an earlier value of this name waited for is not needed any more
        value = expand(given.value, values) if given.literal else given.value
        if given.literal and variable not in _NOT_NAMES:

            def address(match: re.Match[str], variable: str = variable) -> str:
                found = names.look_up(match[0])
                if isinstance(found, Pending):
                    pending[variable][found.name] = found
                if not isinstance(found, str):
                    return match[0]
                replaced.add(variable)
                return found

            value = _HOST.sub(address, value)
        values[variable] = value
    missing = pending.pop(_OF_ALL, {})
    for each in itertools.chain.from_iterable(found.values() for found in pending.values()):
        missing[each.name] = Pending(each.name, each.exists)
    if "DMLC_PS_ROOT_URI" in replaced:
        # With it the scheduler binds 0.0.0.0, and jobs of one machine clash.
        values.pop("DMLC_USE_KUBERNETES", None)
    if "DMLC_ROLE" in values:
        values.setdefault("DMLC_NODE_HOST", pod_ip)
    values.setdefault("OMP_NUM_THREADS", "1")
    return Adapted(values, tuple(missing.values()))


def _may_come_later(pod: Object) -> bool:
    """Return whether a gang that begins with fewer pods has begun, or is about to, without this one."""
    gang = (pod["metadata"].get("annotations") or {}).get(api_names.GANG_MEMBER_ANNOTATION) or ""
    reported = (pod.get("status") or {}).get("conditions") or ()
    has_no_room = any((each["type"], each["status"]) == ("PodScheduled", "False") for each in reported)
    return has_no_room and gang.count("/") == _SLASHES_WITH_MINIMUM


def _terms(pod: Object) -> list[Term]:
    metadata, spec = pod["metadata"], pod["spec"]
    namespace = metadata["namespace"]
    terms = [(namespace, *pair) for pair in (metadata.get("labels") or {}).items()]
    if subdomain := spec.get("subdomain"):
        terms.append((namespace, "", f"{spec.get('hostname') or metadata['name']}.{subdomain}"))
    return terms
