"""Protobuf bodies of creations and deletions, as kubectl 1.32 and newer send them for a few kinds (`kubectl drain`).

The envelope is that of apimachinery's pkg/runtime/serializer/protobuf; field numbers are those of the `generated.proto`
of k8s.io/api and k8s.io/apimachinery 0.36, which may only grow. A field whose value is zero is left out, as Go's JSON
does, but for the one that tells zero from absent: a deletion's grace period.
"""

import base64
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final

from mxnet_operator.local.apiserver.json_values import Object

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\0"
_VARINT, _BYTES = 0, 2
"""Wire types."""


class ProtobufError(Exception):
    """The bytes aren't a message, or that of a kind which isn't read in this encoding."""


class _Type(Enum):
    TEXT = auto()
    TEXTS = auto()
    TEXT_BY_KEY = auto()
    BYTES = auto()
    BYTES_BY_KEY = auto()
    """In JSON base64, by key."""
    INT = auto()


_Message = Mapping[int, tuple[str, "_Type | _Message"]]
"""Fields of a message by number: the name in JSON, and the type."""


def read_object(body: bytes) -> Object:
    """Decode an object with its apiVersion and kind.

    Raises:
        ProtobufError: it can't be decoded.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body is not an object in Kubernetes' protobuf encoding")
    try:
        envelope = _decoded(_ENVELOPE, body[len(_MAGIC) :])
        header = envelope.get("typeMeta") or {}
        api_version, kind = header.get("apiVersion", ""), header.get("kind", "")
        message = _DELETE_OPTIONS if kind == "DeleteOptions" else _KINDS.get((api_version, kind))
        if message is None or envelope.get("contentEncoding"):
            raise ProtobufError(f"{api_version} {kind} is not read in Kubernetes' protobuf encoding")
        return {**header, **_decoded(message, envelope.get("raw", b""))}
    except (ValueError, IndexError) as error:
        raise ProtobufError(str(error)) from error


def _decoded(message: _Message, data: bytes) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        if number not in message:
            continue
        name, kind = message[number]
        if isinstance(value, int) is not (kind is _Type.INT):
            raise ValueError(f"{name} has the wrong wire type")
        match kind:
            case _Type.BYTES:
                found[name] = value
            case _Type.INT:
                found[name] = int.from_bytes(value.to_bytes(8), signed=True)
            case _Type.TEXT:
                if value:
                    found[name] = value.decode()
            case _Type.TEXTS:
                found.setdefault(name, []).append(value.decode())
            case _Type.TEXT_BY_KEY | _Type.BYTES_BY_KEY:
                entry = {place: content for place, content in _fields(value) if isinstance(content, bytes)}
                content = entry.get(2, b"")
                text = content if kind is _Type.TEXT_BY_KEY else base64.b64encode(content)
                found.setdefault(name, {})[entry.get(1, b"").decode()] = text.decode()
            case _ if inner := _decoded(kind, value):
                found[name] = inner
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field: a whole number, or bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, value
            continue
        if wire_type != _BYTES:
            raise ValueError(f"a field has the wire type {wire_type}")
        length, position = _varint(data, position)
        if position + length > len(data):
            raise ValueError("the body ends within a field")
        yield tag >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[position]) & 0x80:
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
    return (value | byte << shift) & (2**64 - 1), position + 1


_ENVELOPE: Final[_Message] = {
    1: ("typeMeta", {1: ("apiVersion", _Type.TEXT), 2: ("kind", _Type.TEXT)}),
    2: ("raw", _Type.BYTES),
    3: ("contentEncoding", _Type.TEXT),
}
_METADATA: Final = (
    "metadata",
    {
        1: ("name", _Type.TEXT),
        2: ("generateName", _Type.TEXT),
        3: ("namespace", _Type.TEXT),
        11: ("labels", _Type.TEXT_BY_KEY),
        12: ("annotations", _Type.TEXT_BY_KEY),
    },
)
_DELETE_OPTIONS: Final[_Message] = {
    1: ("gracePeriodSeconds", _Type.INT),
    2: ("preconditions", {1: ("uid", _Type.TEXT), 2: ("resourceVersion", _Type.TEXT)}),
    4: ("propagationPolicy", _Type.TEXT),
    5: ("dryRun", _Type.TEXTS),
}
_KINDS: Final[Mapping[tuple[str, str], _Message]] = {
    ("v1", "Namespace"): {1: _METADATA},
    ("v1", "ConfigMap"): {
        1: _METADATA,
        2: ("data", _Type.TEXT_BY_KEY),
        3: ("binaryData", _Type.BYTES_BY_KEY),
    },
    ("v1", "Secret"): {
        1: _METADATA,
        2: ("data", _Type.BYTES_BY_KEY),
        3: ("type", _Type.TEXT),
        4: ("stringData", _Type.TEXT_BY_KEY),
    },
}
