"""Protobuf bodies: what kubectl sends is in tests/local/apiserver; here is what nobody should send."""

import pytest

from mxnet_operator.local.apiserver.protobuf import ProtobufError, read_object


def varint(value):
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    return varint(number << 3 | 2) + varint(len(value)) + value


def text(number, value):
    return field(number, value.encode())


def entry(number, key, value):
    return field(number, text(1, key) + field(2, value))


def envelope(kind, raw, api_version="v1", more=b""):
    return b"k8s\0" + field(1, text(1, api_version) + text(2, kind)) + field(2, raw) + more


SECRET = (
    field(1, text(1, "s3") + text(2, "") + field(7, 0) + field(8, b"") + entry(11, "a", b""))
    + entry(2, "raw", b"\xff\0")
    + entry(2, "empty", b"")
    + text(3, "Opaque")
    + field(5, 0)
)


def test_what_is_not_zero_is_read_and_what_is_unknown_is_left_out():
    assert read_object(envelope("Secret", SECRET)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s3", "labels": {"a": ""}},
        "data": {"raw": "/wA=", "empty": ""},
        "type": "Opaque",
    }


@pytest.mark.parametrize("api_version", ["v1", "meta.k8s.io/v1", "kubeflow.org/v1"])
@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"", {}),
        (field(1, 0), {"gracePeriodSeconds": 0}),
        (field(1, -1), {"gracePeriodSeconds": -1}),
        (
            field(1, 30) + field(2, text(1, "u") + text(2, "7")) + text(4, "Foreground") + text(5, "All"),
            {
                "gracePeriodSeconds": 30,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "propagationPolicy": "Foreground",
                "dryRun": ["All"],
            },
        ),
    ],
)
def test_options_of_a_deletion_are_those_of_any_api_version_and_tell_0_from_nothing(api_version, raw, found):
    body = envelope("DeleteOptions", raw, api_version)
    assert read_object(body) == {"apiVersion": api_version, "kind": "DeleteOptions", **found}


@pytest.mark.parametrize("body", [envelope("Pod", b""), envelope("Secret", b"", more=text(3, "gzip")), b"k8s\0"])
def test_other_kinds_are_not_read(body):
    with pytest.raises(ProtobufError):
        read_object(body)


@pytest.mark.parametrize("body", [b"", b"k8s", b"k8s\0\x0a", b"k8s\0\x0a\x05ab", b"{}", b"k8s\0" + b"\xff" * 11])
def test_what_is_no_message_is_said(body):
    with pytest.raises(ProtobufError):
        read_object(body)
