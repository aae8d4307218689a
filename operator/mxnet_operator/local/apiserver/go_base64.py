"""Base64 as Go's encoding/base64 reads it (StdEncoding): line ends don't matter, and a mistake has a place."""

import re
from typing import Final

_SOUND: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DIGITS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_ENDS: Final = frozenset(b"\r\n")
_PADDING: Final = ord("=")


def mistake_in(text: str) -> int | None:
    """Return the offset in bytes that Go's error names (its `decodeQuantum`); None if the text is sound."""
    if _SOUND.fullmatch(text.replace("\r", "").replace("\n", "")):
        return None
    data, digits = text.encode(), 0
    for place, byte in enumerate(data):
        if byte in _DIGITS:
            digits = (digits + 1) % 4
        elif byte == _PADDING and digits >= 2:
            return _mistake_in_padding(data, place, digits)
        elif byte not in _LINE_ENDS:
            return place
    return len(data) - digits


def _mistake_in_padding(data: bytes, place: int, digits: int) -> int | None:
    rest = _after_line_ends(data, place + 1)
    if digits == 2:
        if rest == len(data):
            return rest
        if data[rest] != _PADDING:
            return rest - 1
        rest = _after_line_ends(data, rest + 1)
    return rest if rest < len(data) else None


def _after_line_ends(data: bytes, place: int) -> int:
    while place < len(data) and data[place] in _LINE_ENDS:
        place += 1
    return place
