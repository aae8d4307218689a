"""What a user asked of a real API server, from its audit log, in the words of RBAC's rules."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from control_plane import Server


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one kind of object: what a rule grants and a request needs."""

    group: str
    resource: str
    """With its subresource: `mxjobs/status`."""
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


@dataclass(frozen=True)
class Request:
    """One request and the code of its answer."""

    right: Right
    namespace: str
    name: str
    code: int


def requests_of(server: Server, user: str) -> list[Request]:
    """What the user has asked of the API's objects until now."""
    return [_request(event) for event in server.requests(user) if "objectRef" in event]


def granted(roles: Iterable[dict[str, Any]]) -> set[Right]:
    """What the rules of Roles and ClusterRoles allow."""
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _request(event: dict[str, Any]) -> Request:
    about = event["objectRef"]
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    right = Right(about.get("apiGroup", ""), resource, event["verb"])
    return Request(right, about.get("namespace", ""), about.get("name", ""), event["responseStatus"]["code"])
