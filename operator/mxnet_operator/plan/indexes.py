"""Sets of replica indexes as a status stores them: `0-2,5`, the notation of a Job's completedIndexes.

Where that would be longer than LONGEST bytes, the set is a hexadecimal number, `0x27`: bit i is 1 for index i. So what
a job goes on from has room in a status whatever its size and whichever of its replicas are done
(docs/decisions/status.md).
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

LONGEST: Final = 4096
"""Longest set in bytes in a Job's notation; as a number the longest set, of 10,000 replicas, has 2,502."""
_NUMBER: Final = "0x"


def parse_indexes(text: str) -> frozenset[int]:
    """Return the indexes that the text lists. Raises ValueError for text that is in neither notation."""
    if text.startswith(_NUMBER):
        bits = f"{int(text, 16):b}"
        return frozenset(index for index, bit in enumerate(reversed(bits)) if bit == "1")
    indexes: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return frozenset(indexes)


def format_indexes(indexes: Iterable[int]) -> str:
    """Return the shortest text for a set of indexes in a Job's notation, or a hexadecimal number if too long."""
    there = sorted(set(indexes))
    runs = groupby(enumerate(there), key=lambda pair: pair[1] - pair[0])
    spans = ([index for _, index in run] for _, run in runs)
    text = ",".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)
    if len(text) <= LONGEST:
        return text
    bits = bytearray(b"0" * (there[-1] + 1))
    for index in there:
        bits[-1 - index] = ord("1")
    return hex(int(bits.decode(), 2))
