"""What `kubectl explain` says of a field: a sentence about it, in the words of the Kubernetes API conventions."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from mxnet_operator.api import types
from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.formats import older_types
from mxnet_operator.api.kinds import ALL, MXJOB, Kind

HEADER = ("apiVersion", "kind", "metadata")
"""Described by the API server itself."""
TYPES = {
    name
    for module in (types, older_types)
    for name, each in vars(module).items()
    if isinstance(each, type) and issubclass(each, msgspec.Struct)
}
OURS = re.compile(r"\b(ours|whoever|becomes? of|came of|told|tells|forms?|refused?|looks? at|going)\b", re.IGNORECASE)
"""Words for which Kubernetes has others."""


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field below an object, but for a pod template's, which are Kubernetes' own."""
    for name, field in schema.get("properties", {}).items():
        if not path and name in HEADER:
            continue
        yield f"{path}.{name}", field
        if name != "template":
            yield from fields(field, f"{path}.{name}")
    for key, below in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key], path + below)


def served(kind: Kind) -> dict[str, dict[str, Any]]:
    versions = custom_resource_definition(kind)["spec"]["versions"]
    return {version["name"]: version["schema"]["openAPIV3Schema"] for version in versions}


def wrong(path: str, text: str) -> bool:
    """Whether a field's description is none of its own, or not in the field's words."""
    subject, _, rest = text.partition(" ")
    return subject not in {path.rpartition(".")[2]} | TYPES or not rest.endswith(".") or bool(OURS.search(rest))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_description_is_a_sentence_that_begins_with_the_fields_or_the_types_name(kind):
    schema = served(kind)[kind.stored]
    texts = {path: field.get("description", "") for path, field in [("", schema), *fields(schema)]}
    assert len(texts) > 30
    assert {path: text for path, text in texts.items() if wrong(path, text)} == {}


def test_an_older_version_of_a_kind_says_where_its_fields_are_described():
    stored, *others = served(MXJOB).items()
    assert stored[0] == MXJOB.stored
    assert len(others) == 2
    for version, schema in others:
        assert "--api-version=kubeflow.org/v1" in schema["description"]
        assert version in schema["description"]
        assert [path for path, field in fields(schema) if "description" in field] == []
