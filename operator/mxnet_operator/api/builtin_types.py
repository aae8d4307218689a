"""Fields of Kubernetes' built-in types: which exist, the type of each, and which are required.

`builtin_types.json` lists them as `{type: {field: type}}`, with `[T]` for lists, `{T}` for maps, and a `!` after what
is required. `tools/builtin_types.py` makes it from the models of the official Python client, which cost 100 MB to
import; they are generated from Kubernetes' OpenAPI document, (c) The Kubernetes Authors, Apache-2.0.
"""

import functools
from importlib import resources
from typing import Final

import msgspec

POD_TEMPLATE: Final = "PodTemplateSpec"


@functools.cache
def types() -> dict[str, dict[str, str]]:
    return {name: {field: word.rstrip("!") for field, word in fields.items()} for name, fields in _table().items()}


@functools.cache
def required() -> dict[str, tuple[str, ...]]:
    return {name: tuple(f for f, word in fields.items() if word.endswith("!")) for name, fields in _table().items()}


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    file = resources.files("mxnet_operator.api").joinpath("builtin_types.json")
    return msgspec.json.decode(file.read_bytes(), type=dict[str, dict[str, str]])
