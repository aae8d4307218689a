"""Rules that many fields of a pod share: one of some values, a number in a range, a path, a port, an IP address."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.statuses import required, unsupported

_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_LARGEST_ID: Final = 2**31 - 1


def choice_errors(path: str, obj: Object, field: str, allowed: Iterable[str]) -> Iterator[FieldError]:
    """Validate a field that has one of some values where it is set."""
    if (value := obj.get(field)) is not None and value not in allowed:
        yield unsupported(f"{path}.{field}", value, allowed)


def range_errors(path: str, number: int, smallest: int, largest: int) -> Iterator[FieldError]:
    """Validate a number between two others."""
    if not smallest <= number <= largest:
        yield invalid(path, number, f"must be between {smallest} and {largest}, inclusive")


def id_errors(path: str, obj: Object, *fields: str) -> Iterator[FieldError]:
    """Validate the numbers of users and groups in these fields."""
    for field in fields:
        if (number := obj.get(field)) is not None:
            yield from range_errors(f"{path}.{field}", number, 0, _LARGEST_ID)


def mode_errors(path: str, obj: Object, field: str) -> Iterator[FieldError]:
    """Validate the access mode of a file."""
    if (mode := obj.get(field)) is not None and not 0 <= mode <= 0o777:
        yield invalid(f"{path}.{field}", mode, "must be a number between 0 and 0777 (octal), both inclusive")


def no_backstep_errors(path: str, value: str) -> Iterator[FieldError]:
    """Validate a path that leads out of no folder."""
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def relative_path_errors(path: str, value: str) -> Iterator[FieldError]:
    """Validate a path below some folder."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from no_backstep_errors(path, value)


def file_name_errors(path: str, value: str) -> Iterator[FieldError]:
    """Validate the path of a file in a volume, in which the kubelet keeps names with two dots for itself."""
    if not value:
        yield required(path)
    yield from relative_path_errors(path, value)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def port_errors(path: str, port: int | None) -> Iterator[FieldError]:
    """Validate a port that has to be there."""
    if port is None:
        yield required(path)
    else:
        yield from range_errors(path, port, 1, 65535)


def port_name_errors(path: str, name: str) -> Iterator[FieldError]:
    """Validate the name of a port."""
    if len(name) > 15:
        yield invalid(path, name, "must be no more than 15 bytes")
    if not _PORT_NAME.fullmatch(name):
        yield invalid(path, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in name):
        yield invalid(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield invalid(path, name, "must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        yield invalid(path, name, "must not begin or end with a hyphen")


def address_errors(path: str, value: str) -> Iterator[FieldError]:
    """Validate an IP address."""
    address: Any = None
    if "%" not in value:
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            address = None
    if address is None:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    elif getattr(address, "ipv4_mapped", None):
        yield invalid(path, value, "must not be an IPv4-mapped IPv6 address")
