"""Routing of URLs such as /api/v1/namespaces/a/pods/b/log to resources."""

from dataclasses import dataclass

from mxnet_operator.local.apiserver.resources import NAMESPACES, Catalog, Resource
from mxnet_operator.local.apiserver.statuses import StatusError, not_found, nothing_there


@dataclass(frozen=True)
class Target:
    """Target of a request: a resource, one of its objects, or a subresource of the object."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def find_target(catalog: Catalog, path: str, method: str = "GET") -> Target | None:
    """Find the target of a path; None where there is none, also for this method."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    namespace = ""
    if rest[:1] == ["namespaces"] and (group or (len(rest) > 2 and rest[2] not in NAMESPACES.subresources)):
        namespace, rest = "/".join(rest[1:2]), rest[2:]
    if not rest or len(rest) > 3 or not all(rest):
        return None
    resource = catalog.find(group, version, rest[0])
    if resource is None:
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if subresource and subresource not in resource.subresources:
        return None
    if resource.namespaced != bool(namespace) and (namespace or name):
        return None
    if resource.custom and resource.namespaced and not namespace and method != "GET":
        return None  # of all namespaces together there are only lists and watches
    return Target(resource, namespace, name, subresource)


def no_target(catalog: Catalog, path: str) -> StatusError | None:
    """Build the error for a path without a target; None where its group is unknown."""
    match path.strip("/").split("/"):
        case ["api", version, _, *_]:
            group = ""
        case ["apis", group, version, _, *_]:
            pass
        case _:
            return None
    served = catalog.served(group, version)
    if not served:
        return None
    if not served[0].custom:
        return nothing_there()
    match path.strip("/").split("/")[3:]:
        case ["namespaces", _, plural, name, _] if resource := catalog.find(group, version, plural):
            return not_found(resource, name)
    return None
