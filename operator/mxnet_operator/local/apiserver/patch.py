"""Patches of objects: JSON merge patch, JSON patch, and strategic merge patch for the built-in types."""

from collections.abc import Callable
from typing import Any

import jsonpatch
import jsonpointer

from mxnet_operator.api.strategic_merge import MergeKeyError, strategic_merge
from mxnet_operator.api.structural import clone
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.local.apiserver.statuses import StatusError, bad_request, unsupported_media_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


def patcher(resource: Resource, media_type: str) -> Callable[[Object, Any], Object]:
    """Return the function that applies a patch of that type, without changing its arguments.

    Raises:
        StatusError: 415 for a type that isn't served: server-side apply, and strategic merge of custom resources.
    """
    accepted: dict[str, Callable[[Object, Any], Object]] = {JSON_PATCH: _json_patch, MERGE_PATCH: _merge_patch}
    if not resource.custom:
        accepted[STRATEGIC_MERGE_PATCH] = _strategic_merge_patch
    if media_type not in accepted:
        raise unsupported_media_type(accepted)
    return accepted[media_type]


def _json_patch(obj: Object, patch: Any) -> Object:
    if not isinstance(patch, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    try:
        patched = jsonpatch.apply_patch(clone(obj), patch)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
        raise StatusError(
            422, "Invalid", "the server rejected our request due to an error in our request", {}
        ) from error
    return _object(patched)


def _merge_patch(obj: Object, patch: Any) -> Object:
    return _object(merge(obj, _object(patch)))


def _strategic_merge_patch(obj: Object, patch: Any) -> Object:
    try:
        return _object(strategic_merge(obj, _object(patch)))
    except MergeKeyError as error:
        raise bad_request(str(error)) from error


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    return value


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396): null removes, objects merge, other values replace."""
    if not isinstance(patch, dict):
        return clone(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result
