"""Sets of replica indexes as a status stores them, in the notation of a Job's completedIndexes: `0-2,5`."""

from collections.abc import Iterable
from itertools import groupby


def parse_indexes(text: str) -> frozenset[int]:
    """The indexes that the text lists. Raises ValueError for text that isn't in the notation."""
    indexes: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return frozenset(indexes)


def format_indexes(indexes: Iterable[int]) -> str:
    """The shortest text for a set of indexes."""
    runs = groupby(enumerate(sorted(set(indexes))), key=lambda pair: pair[1] - pair[0])
    spans = ([index for _, index in run] for _, run in runs)
    return ",".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)
