"""Resources of the API server: built-in ones, and those of CustomResourceDefinitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

READ = frozenset({"get", "list", "watch"})
WRITE = READ | {"create", "update", "patch", "delete"}

Key = tuple[str, str]
"""Identity of a resource in the store, common to all of its versions: (group, plural)."""


@dataclass(frozen=True, eq=False)
class Resource:
    """Resource in one version of its group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    verbs: frozenset[str] = WRITE
    custom: bool = False
    stored: bool = True
    schema: Mapping[str, Any] | None = None
    columns: Sequence[Mapping[str, Any]] = ()
    fields: tuple[str, ...] = ()
    """Fields that a field selector may use, besides metadata.name and metadata.namespace."""

    @property
    def key(self) -> Key:
        return (self.group, self.plural)

    @property
    def api_version(self) -> str:
        """API version as in manifests: `v1`, `kubeflow.org/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_name(self) -> str:
        """Name of the resource in error messages: `pods`, `mxjobs.kubeflow.org`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """Kind in error messages about objects: `Pod`, `MXJob.kubeflow.org`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def present(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Convert `obj` to this version of the resource; versions differ only in apiVersion."""
        return obj if obj.get("apiVersion") == self.api_version else {**obj, "apiVersion": self.api_version}


_POD_FIELDS = ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase", "status.podIP")
_EVENT_FIELDS = (
    *(
        f"involvedObject.{part}"
        for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    ),
    "reason",
    "type",
)
_STATUS = frozenset({"status"})

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, ("ns",), (), _STATUS, fields=("status.phase",))
NODES = Resource("", "v1", "nodes", "Node", False, ("no",), (), _STATUS)
PODS = Resource(
    "", "v1", "pods", "Pod", True, ("po",), ("all",), frozenset({"status", "log", "binding"}), fields=_POD_FIELDS
)
SERVICES = Resource(
    "", "v1", "services", "Service", True, ("svc",), ("all",), _STATUS, fields=("spec.clusterIP", "spec.type")
)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True, ("cm",))
SECRETS = Resource("", "v1", "secrets", "Secret", True, fields=("type",))
PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",), (), _STATUS
)
EVENTS = Resource("", "v1", "events", "Event", True, ("ev",), fields=_EVENT_FIELDS)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    False,
    ("crd", "crds"),
    ("api-extensions",),
    verbs=READ,
)
BUILT_IN = (
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    CONFIG_MAPS,
    SECRETS,
    PERSISTENT_VOLUME_CLAIMS,
    EVENTS,
    LEASES,
    CUSTOM_RESOURCE_DEFINITIONS,
)


def from_definition(crd: Mapping[str, Any]) -> list[Resource]:
    spec, names = crd["spec"], crd["spec"]["names"]
    return [
        Resource(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            spec["scope"] == "Namespaced",
            tuple(names.get("shortNames", ())),
            tuple(names.get("categories", ())),
            frozenset(version.get("subresources", {})) & _STATUS,
            custom=True,
            stored=version["storage"],
            schema=version["schema"]["openAPIV3Schema"],
            columns=tuple(version.get("additionalPrinterColumns", ())),
            fields=tuple(each["jsonPath"].lstrip(".") for each in version.get("selectableFields", ())),
        )
        for version in spec["versions"]
        if version["served"]
    ]


class Catalog:
    """Catalog of the served resources: the built-in ones, and those of CustomResourceDefinitions."""

    def __init__(self, crds: Iterable[Mapping[str, Any]]) -> None:
        self.definitions = tuple(crds)
        self.resources = (*BUILT_IN, *(each for crd in self.definitions for each in from_definition(crd)))
        self._by_path = {(r.group, r.version, r.plural): r for r in self.resources}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return next((r for r in self.resources if (r.api_version, r.kind) == (api_version, kind)), None)

    def groups(self) -> dict[str, list[str]]:
        """List the versions of each group in the order of its definitions; the core group has the empty name.

        The groups of CRDs are sorted by name, as on the real server: clients resolve a plural name that several groups
        have to the first of them.
        """
        groups: dict[str, dict[str, None]] = {}
        for resource in self.resources:
            groups.setdefault(resource.group, {})[resource.version] = None
        custom = sorted({resource.group for resource in self.resources if resource.custom})
        ordered = [*(name for name in groups if name not in custom), *custom]
        return {name: list(groups[name]) for name in ordered}

    def served(self, group: str, version: str) -> list[Resource]:
        return [r for r in self.resources if (r.group, r.version) == (group, version)]
