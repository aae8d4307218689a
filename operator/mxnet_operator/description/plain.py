"""Conversion of Kubernetes client models and mappings to plain JSON values."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

DEEPEST: Final = 100
"""Levels that are converted, as the reader of manifests has it; checks reject a value that contains itself."""


def plain(value: Any, depth: int = 0) -> Any:
    """Convert every client model in a value to JSON as the API server takes it, and every sequence to a list.

    Sequences are also what frameworks make of many results, such as Airflow's of a mapped task. Other values are kept.
    Models are those of `kubernetes.client` and `kubernetes_asyncio.client`, which name their fields in
    `attribute_map` as `ApiClient.sanitize_for_serialization` reads them, and those of pydantic, as Hera's are.
    """
    if depth > DEEPEST:
        return value
    below = depth + 1
    if isinstance(value, Mapping):
        return {key: plain(each, below) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return [plain(each, below) for each in value]
    kind = type(value)
    if isinstance(getattr(kind, "attribute_map", None), Mapping) and hasattr(kind, "openapi_types"):
        fields = ((name, getattr(value, attribute)) for attribute, name in kind.attribute_map.items())
        return {
            name: each.isoformat() if isinstance(each, date) else plain(each, below)
            for name, each in fields
            if each is not None
        }
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value
