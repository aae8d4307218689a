"""Names in a sentence, the first of them where there are many."""

from collections.abc import Sequence


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names, at most so many, and how many more there are: `worker-0, worker-1 and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
