"""Discovery documents of groups, versions and resources, in the plain and the aggregated format."""

from collections.abc import Iterable

from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Catalog, Resource

GIT_VERSION = "v1.33.0+mxjob-local"
_SUBRESOURCES = {
    "status": ("", ("get", "patch", "update")),
    "log": ("", ("get",)),
    "binding": ("Binding", ("create",)),
}


def version() -> Object:
    """Build the body of /version."""
    major, minor, _ = GIT_VERSION.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "linux/amd64",
    }


def core_versions() -> Object:
    """Build the body of /api."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(catalog: Catalog) -> Object:
    """Build the body of /apis."""
    groups = [group(catalog, name) for name in catalog.groups() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(catalog: Catalog, name: str) -> Object:
    """Build the body of /apis/<group>."""
    versions = [{"groupVersion": f"{name}/{each}", "version": each} for each in catalog.groups()[name]]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(catalog: Catalog, group_name: str, version_name: str) -> Object:
    """Build the body of /api/v1 and /apis/<group>/<version>."""
    listed: list[Object] = []
    for resource in catalog.served(group_name, version_name):
        names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
        listed.append(
            {
                "name": resource.plural,
                "singularName": resource.singular,
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": sorted(resource.verbs),
            }
            | {key: value for key, value in names.items() if value}
        )
        for subresource in sorted(resource.subresources):
            kind, verbs = _SUBRESOURCES[subresource]
            listed.append(
                {
                    "name": f"{resource.plural}/{subresource}",
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    "kind": kind or resource.kind,
                    "verbs": list(verbs),
                }
            )
    group_version = f"{group_name}/{version_name}" if group_name else version_name
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def aggregated(catalog: Catalog, groups: Iterable[str], api_version: str) -> Object:
    """Build the aggregated discovery of those groups (apidiscovery.k8s.io, `api_version` v2 or v2beta1)."""
    served = catalog.groups()
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
            "versions": [
                {
                    "version": each,
                    "freshness": "Current",
                    "resources": [_aggregated_resource(r) for r in catalog.served(name, each)],
                }
                for each in served[name]
            ],
        }
        for name in groups
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{api_version}",
        "metadata": {},
        "items": items,
    }


def _aggregated_resource(resource: Resource) -> Object:
    def kind(name: str) -> Object:
        return {"group": resource.group, "version": resource.version, "kind": name}

    found: Object = {
        "resource": resource.plural,
        "responseKind": kind(resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": sorted(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [
            {
                "subresource": each,
                "responseKind": kind(_SUBRESOURCES[each][0] or resource.kind),
                "verbs": list(_SUBRESOURCES[each][1]),
            }
            for each in sorted(resource.subresources)
        ]
    return found
