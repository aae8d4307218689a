"""Protobuf bodies of creations and deletions, as kubectl 1.32 and newer send them for a few kinds (`kubectl drain`).

The envelope is that of apimachinery's pkg/runtime/serializer/protobuf; field numbers are those of the `generated.proto`
of k8s.io/api and k8s.io/apimachinery 0.36, which may only grow. A field whose value is zero is left out, as Go's JSON
does, but for the one that tells zero from absent: a deletion's grace period.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mxnet_operator.local.apiserver.json_values import Object

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types."""

_Add = Callable[[Object, str, Any], None]
_Field = tuple[str, int, _Add]
"""Field of a message: its name in JSON, its wire type, and how a value is added to the object."""
_Message = Mapping[int, _Field]


class ProtobufError(Exception):
    """The bytes aren't a message."""


class UnsupportedKindError(Exception):
    """The message is an object of a kind that isn't read in this encoding."""


def read_object(body: bytes) -> Object:
    """Decode an object with its apiVersion and kind.

    Raises:
        ProtobufError: with what is wrong.
        UnsupportedKindError: it is of another kind.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body is not an object in Kubernetes' protobuf encoding")
    envelope = _decoded(_ENVELOPE, memoryview(body)[len(_MAGIC) :])
    header = envelope.get("typeMeta") or {}
    message = _message(header.get("apiVersion", ""), header.get("kind", ""))
    if message is None or envelope.get("contentEncoding"):
        raise UnsupportedKindError(header)
    return {**header, **_decoded(message, memoryview(envelope.get("raw", b"")))}


def _message(api_version: str, kind: str) -> _Message | None:
    """Find the message of a kind; DeleteOptions are the same in every API version."""
    return _DELETE_OPTIONS if kind == "DeleteOptions" else _KINDS.get((api_version, kind))


def _decoded(message: _Message, data: memoryview) -> Object:
    found: Object = {}
    for number, wire_type, value in _fields(data):
        if number not in message:
            continue
        name, wanted, add = message[number]
        if wire_type != wanted:
            raise ProtobufError(f"{name} has wire type {wire_type}")
        add(found, name, value)
    return found


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field: a whole number, or bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, wire_type, value
            continue
        if wire_type == _BYTES:
            length, position = _varint(data, position)
        elif wire_type in (_FIXED32, _FIXED64):
            length = 4 if wire_type == _FIXED32 else 8
        else:
            raise ProtobufError(f"wire type {wire_type} is not in use")
        if position + length > len(data):
            raise ProtobufError("the body ends within a field")
        yield tag >> 3, wire_type, data[position : position + length]
        position += length


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position == len(data):
            raise ProtobufError("the body ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position
    raise ProtobufError("a number has more than 64 bits")


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise ProtobufError("a text is not UTF-8") from error


def _set_text(obj: Object, name: str, data: memoryview) -> None:
    if data:
        obj[name] = _text(data)


def _set_bool(obj: Object, name: str, value: int) -> None:
    if value:
        obj[name] = True


def _set_int(obj: Object, name: str, value: int) -> None:
    if value:
        _set_pointer_to_int(obj, name, value)


def _set_pointer_to_int(obj: Object, name: str, value: int) -> None:
    obj[name] = value - 2**64 if value >= 2**63 else value


def _set_raw(obj: Object, name: str, data: memoryview) -> None:
    obj[name] = bytes(data)


def _add_text(obj: Object, name: str, data: memoryview) -> None:
    obj.setdefault(name, []).append(_text(data))


def _set_message(message: _Message) -> _Add:
    def add(obj: Object, name: str, data: memoryview) -> None:
        if found := _decoded(message, data):
            obj[name] = obj.get(name, {}) | found

    return add


def _add_message(message: _Message) -> _Add:
    return lambda obj, name, data: obj.setdefault(name, []).append(_decoded(message, data))


def _add_entry(read: Callable[[memoryview], str]) -> _Add:
    """Add an entry of a map: a message of a key and a value, each empty where it is left out."""

    def add(obj: Object, name: str, data: memoryview) -> None:
        entry = {number: value for number, wire_type, value in _fields(data) if wire_type == _BYTES}
        key = _text(entry.get(1, memoryview(b"")))
        obj.setdefault(name, {})[key] = read(entry.get(2, memoryview(b"")))

    return add


def _field_of_text(name: str) -> _Field:
    return name, _BYTES, _set_text


def _field_of_bool(name: str) -> _Field:
    return name, _VARINT, _set_bool


def _field_of_texts(name: str) -> _Field:
    return name, _BYTES, _add_text


def _field_of_map(name: str) -> _Field:
    return name, _BYTES, _add_entry(_text)


def _field_of_bytes_map(name: str) -> _Field:
    return name, _BYTES, _add_entry(lambda data: base64.b64encode(data).decode())


_ENVELOPE: Final[_Message] = {
    1: ("typeMeta", _BYTES, _set_message({1: _field_of_text("apiVersion"), 2: _field_of_text("kind")})),
    2: ("raw", _BYTES, _set_raw),
    3: _field_of_text("contentEncoding"),
}
_OWNER: Final[_Message] = {
    1: _field_of_text("kind"),
    3: _field_of_text("name"),
    4: _field_of_text("uid"),
    5: _field_of_text("apiVersion"),
    6: _field_of_bool("controller"),
    7: _field_of_bool("blockOwnerDeletion"),
}
_METADATA: Final[_Field] = (
    "metadata",
    _BYTES,
    _set_message(
        {
            1: _field_of_text("name"),
            2: _field_of_text("generateName"),
            3: _field_of_text("namespace"),
            5: _field_of_text("uid"),
            6: _field_of_text("resourceVersion"),
            11: _field_of_map("labels"),
            12: _field_of_map("annotations"),
            13: ("ownerReferences", _BYTES, _add_message(_OWNER)),
            14: _field_of_texts("finalizers"),
        }
    ),
)
_DELETE_OPTIONS: Final[_Message] = {
    1: ("gracePeriodSeconds", _VARINT, _set_pointer_to_int),
    2: ("preconditions", _BYTES, _set_message({1: _field_of_text("uid"), 2: _field_of_text("resourceVersion")})),
    4: _field_of_text("propagationPolicy"),
    5: _field_of_texts("dryRun"),
}
_ACCESS_REVIEW: Final[_Message] = {
    1: (
        "resourceAttributes",
        _BYTES,
        _set_message(
            {
                1: _field_of_text("namespace"),
                2: _field_of_text("verb"),
                3: _field_of_text("group"),
                4: _field_of_text("version"),
                5: _field_of_text("resource"),
                6: _field_of_text("subresource"),
                7: _field_of_text("name"),
            }
        ),
    ),
    2: ("nonResourceAttributes", _BYTES, _set_message({1: _field_of_text("path"), 2: _field_of_text("verb")})),
}
_KINDS: Final[Mapping[tuple[str, str], _Message]] = {
    ("v1", "Namespace"): {1: _METADATA},
    ("v1", "ConfigMap"): {
        1: _METADATA,
        2: _field_of_map("data"),
        3: _field_of_bytes_map("binaryData"),
        4: _field_of_bool("immutable"),
    },
    ("v1", "Secret"): {
        1: _METADATA,
        2: _field_of_bytes_map("data"),
        3: _field_of_text("type"),
        4: _field_of_map("stringData"),
        5: _field_of_bool("immutable"),
    },
    ("scheduling.k8s.io/v1", "PriorityClass"): {
        1: _METADATA,
        2: ("value", _VARINT, _set_int),
        3: _field_of_bool("globalDefault"),
        4: _field_of_text("description"),
        5: _field_of_text("preemptionPolicy"),
    },
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        1: _METADATA,
        2: ("spec", _BYTES, _set_message(_ACCESS_REVIEW)),
    },
}
