"""Results that are longer than a termination message may be: they travel in the log, and a reference takes their place.

The fail-fast hook of the replica that reports the result writes both when its program ends
(`docs/decisions/status.md`). The whole text is in lines of its log,
`mxjob-result <digest> <i>/<n> <base64>`, which are the last ones of the program; the termination message, and so the
job's `status.result`, is `{"mxjobResult": {"bytes": ..., "sha256": ...}}`.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from mxnet_operator.api.storable import LONGEST_JSON

LONGEST: Final = LONGEST_JSON
"""Bytes of the longest result that is written to a log; the hook has the same number."""
PART: Final = 768
"""Bytes of it in one line, whose base64 is 1 KiB; the hook has the same number."""
_OTHER_LINES: Final = 200
"""Lines that others may have written after it: what else runs in the container."""
_LINE: Final = re.compile(r"mxjob-result ([0-9a-f]{64}) (\d{1,4})/(\d{1,4}) ([A-Za-z0-9+/=]{1,1024})\s*$")


class Reference(msgspec.Struct, frozen=True):
    """Reference to the text of a result: its length in bytes, and its SHA-256 in hexadecimal digits."""

    bytes: int
    sha256: str

    @property
    def tail_lines(self) -> int:
        """Number of the log's last lines to read for it."""
        return -(-self.bytes // PART) + _OTHER_LINES

    @property
    def loss(self) -> str:
        """Sentence for a text that isn't in the log."""
        if self.bytes > LONGEST:
            return f"The result has {self.bytes} bytes; {LONGEST} is the most that a job's log carries."
        return f"The result has {self.bytes} bytes, and the log that has them is gone or incomplete."


class _Holder(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    mxjob_result: Reference


def reference(result: str | None) -> Reference | None:
    """Find the reference that stands in place of a result; None where the result is there itself."""
    if not result or "mxjobResult" not in result:
        return None
    try:
        return msgspec.json.decode(result, type=_Holder).mxjob_result
    except (msgspec.MsgspecError, ValueError):
        return None


def reference_in(job: Mapping[str, Any]) -> Reference | None:
    return reference((job.get("status") or {}).get("result"))


def is_part(line: str) -> bool:
    """Whether a log line carries a part of a result, and is for no human."""
    return "mxjob-result " in line and _LINE.search(line) is not None


def text_of(wanted: Reference, lines: Iterable[str]) -> str | None:
    """Assemble the result from the lines of a log, in any order; None where they lack a part of it."""
    parts: dict[int, bytes] = {}
    for line in lines:
        found = _LINE.search(line) if "mxjob-result " in line else None
        if found is not None and found[1] == wanted.sha256:
            try:
                parts[int(found[2])] = base64.b64decode(found[4], validate=True)
            except binascii.Error:
                continue
    whole = b"".join(parts[number] for number in sorted(parts))
    return whole.decode("utf-8", "replace") if hashlib.sha256(whole).hexdigest() == wanted.sha256 else None


def with_result(job: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**job, "status": {**(job.get("status") or {}), "result": text}}
