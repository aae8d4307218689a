"""Bounds on the texts of a status and on a status as a whole: whatever a node or a program writes, a job stays small.

A message keeps its beginning, which says what happened, and more of its end: the last line of an exception says why.
MXNet's errors say it before a stack of C++, which is left out first.
"""

import re
from typing import Final

import msgspec

from mxnet_operator.api.types import MXJobStatus

LONGEST_MESSAGE: Final = 1024
"""Maximum bytes of a condition's message; of an Event's the API server accepts as many characters."""
LONGEST_STATUS: Final = 32 * 1024
"""Maximum bytes of a status as JSON."""
_CPP_STACK: Final = re.compile(r"\n *\[bt\] \(\d+\)[^\n]*")
_SHORT_MESSAGES: Final = (128, 64)
"""Bytes of each message of a status that would be longer than that; in JSON a control character takes six."""
_SHORT_RESULTS: Final = (LONGEST_MESSAGE, 64)
"""Bytes of the result of a status that would be too long."""


def shortened(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """Return the text in at most `limit` (64 or more) bytes of UTF-8; a longer one loses its middle, and says so."""
    data = text.encode("utf-8", "replace")  # a lone surrogate becomes a question mark
    if len(data) > limit:
        data = _CPP_STACK.sub("", data.decode()).encode()
    if len(data) <= limit:
        return data.decode()
    mark = f" [... {len(data)} bytes, cut ...] "
    left = limit - len(mark)
    head = data[: left // 3].decode("utf-8", "ignore")
    tail = data[len(data) - (left - left // 3) :].decode("utf-8", "ignore")
    return f"{head}{mark}{tail}"


def is_same_message(stored: str, message: str) -> bool:
    """Return whether a stored message is this one, whole or shortened."""
    whole = shortened(message)
    return stored == whole or any(stored == shortened(whole, limit) for limit in _SHORT_MESSAGES)


def within_bounds(status: MXJobStatus) -> MXJobStatus:
    """Return the status with its parts shortened where it would be too long: training, messages, at last its result.

    Fields that a job continues from (replicas that are finished or being replaced) are never cut.
    """
    result = status.result
    if status.training is not None and not _fits(status):
        few = msgspec.structs.replace(status.training, metrics=(), warnings=(), slow_workers=(), stalled=())
        status = msgspec.structs.replace(status, training=few)
    for message_limit, result_limit in zip(_SHORT_MESSAGES, _SHORT_RESULTS, strict=True):
        if _fits(status):
            return status
        short = tuple(
            msgspec.structs.replace(each, message=shortened(each.message, message_limit)) for each in status.conditions
        )
        status = msgspec.structs.replace(status, conditions=short)
        if _fits(status):
            return status
        status = msgspec.structs.replace(status, result=shortened(result, result_limit))
    return status


def _fits(status: MXJobStatus) -> bool:
    return len(msgspec.json.encode(status)) <= LONGEST_STATUS
