"""What a user asked of a real API server, from its audit log, in the words of RBAC's rules."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LOG, POLICY = "audit.log", "audit-policy.yaml"


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


def audit_flags(folder: Path, users: Iterable[str]) -> dict[str, object]:
    """kube-apiserver's flags that make it log what these users ask."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": "Metadata", "users": sorted(users)}, {"level": "None"}],
    }
    (folder / POLICY).write_text(yaml.safe_dump(policy))
    return {"audit_policy_file": folder / POLICY, "audit_log_path": folder / LOG}


def requests_of(folder: Path, user: str) -> list[Request]:
    """What the user has asked until now of the API's objects."""
    events = (json.loads(line) for line in (folder / LOG).read_text().splitlines())
    return [_request(event) for event in events if event["user"]["username"] == user and "objectRef" in event]


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
