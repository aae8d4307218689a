"""Error responses, word for word as kube-apiserver gives them (`docs/facts/kubernetes.md`)."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from mxnet_operator.api.structural import FieldError
from mxnet_operator.local.apiserver.resources import Resource

STALE = "the object has been modified; please apply your changes to the latest version and try again"


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def forbidden_field(field: str, detail: str) -> FieldError:
    """Build the error for a field that may not be set, or not now."""
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


def unsupported(field: str, value: object, supported: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{each}"' for each in supported)
    shown = json.dumps(value)
    return FieldError(field, "FieldValueNotSupported", f"Unsupported value: {shown}: supported values: {listed}")


class StatusError(Exception):
    """Rejected request; `status` is the body of the response."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": code,
        }
        if reason:
            self.status["reason"] = reason
        if details is not None:
            self.status["details"] = details


def _details(name: str, resource: Resource, kind: str) -> dict[str, Any]:
    details = {"name": name, "group": resource.group, "kind": kind}
    return {key: value for key, value in details.items() if value}


def _causes(errors: Sequence[FieldError]) -> list[dict[str, str]]:
    return [{"reason": error.reason, "message": error.detail, "field": error.path} for error in errors]


def success(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """Build the Status of a completed deletion."""
    details = _details(name, resource, resource.plural) | {"uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def not_found(resource: Resource, name: str) -> StatusError:
    details = _details(name, resource, resource.plural)
    return StatusError(404, "NotFound", f'{resource.qualified_name} "{name}" not found', details)


def already_exists(resource: Resource, name: str) -> StatusError:
    details = _details(name, resource, resource.plural)
    return StatusError(409, "AlreadyExists", f'{resource.qualified_name} "{name}" already exists', details)


def conflict(resource: Resource, name: str, why: str = STALE, *, kind: bool = False) -> StatusError:
    """Build a 409: a precondition doesn't hold. Delete preconditions name the kind instead of the resource (`kind`)."""
    what = resource.qualified_kind if kind else resource.qualified_name
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    details = _details(name, resource, resource.kind if kind else resource.plural)
    return StatusError(409, "Conflict", message, details)


def invalid(resource: Resource, name: str, causes: Sequence[FieldError]) -> StatusError:
    """Build a 422: the object is understood and wrong."""
    listed = causes[0].message if len(causes) == 1 else "[" + ", ".join(c.message for c in causes) + "]"
    details = _details(name, resource, resource.kind)
    details["causes"] = _causes(causes)
    return StatusError(422, "Invalid", f'{resource.qualified_kind} "{name}" is invalid: {listed}', details)


def invalid_patch(patched: Any, why: str) -> StatusError:
    """Build a 422: what a patch makes of an object can't be read as one."""
    text = json.dumps(patched, separators=(",", ":"))
    cause = FieldError("patch", "FieldValueInvalid", f"Invalid value: {json.dumps(text)}: {why}")
    return StatusError(422, "Invalid", f' "" is invalid: {cause.message}', {"causes": _causes([cause])})


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str) -> StatusError:
    message = f'{resource.qualified_name} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, _details(name, resource, resource.plural))


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> StatusError:
    """Build a 504: a list asked for a moment that hasn't come."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    listed = ", ".join(accepted)
    return StatusError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {listed}",
    )
