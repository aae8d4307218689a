"""Manifests of older formats as the v1 jobs that they mean, so that something can be added to them."""

from collections.abc import Mapping
from typing import Any

from mxnet_operator.api import names
from mxnet_operator.api.conversion import convert
from mxnet_operator.api.formats.mxjob import V1
from mxnet_operator.api.job_formats import errors, format_of
from mxnet_operator.api.structural import FieldError
from mxnet_operator.description.checks import DescriptionError
from mxnet_operator.description.pods import Placeholder

Object = dict[str, Any]


def in_v1(manifest: Object) -> Object:
    """Return the v1 job that a manifest means, which may lack a name and images.

    A manifest of v1 is returned as it is, right or wrong.

    Raises:
        DescriptionError: a manifest of an older format has mistakes, in the words of that format, or values that a
            framework fills in later.
    """
    header = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    job_format = format_of({**header, **manifest})
    if job_format is V1:
        return manifest
    if _has_placeholder(manifest):
        detail = (
            f"values that are filled in later need a manifest of {names.API_VERSION}, but this one is of the format"
            f" {job_format.name}: convert it first: mxjob convert -f FILE"
        )
        raise DescriptionError([FieldError("", "FieldValueInvalid", detail)])
    metadata = {} if manifest.get("metadata") is None else manifest["metadata"]
    named = {**header, **manifest, "metadata": {"name": "job", **metadata} if isinstance(metadata, dict) else metadata}
    if found := errors(_with_images(named)):
        raise DescriptionError(found)
    conversion = convert(named)
    meant = manifest if conversion is None else conversion.manifest
    return {**meant, "metadata": {name: each for name, each in meant["metadata"].items() if name in metadata}}


def _with_images(node: Any) -> Any:
    """Return a manifest in which each container names an image: the description may have a missing image."""
    if isinstance(node, list):
        return [_with_images(each) for each in node]
    if not isinstance(node, dict):
        return node
    copied = {name: _with_images(each) for name, each in node.items()}
    containers = copied.get("containers")
    for each in containers if isinstance(containers, list) else ():
        if isinstance(each, dict) and each.get("image") is None:
            each["image"] = names.CONTAINER
    return copied


def _has_placeholder(node: Any) -> bool:
    if isinstance(node, Mapping):
        return any(map(_has_placeholder, node.values()))
    return any(map(_has_placeholder, node)) if isinstance(node, list) else isinstance(node, Placeholder)
