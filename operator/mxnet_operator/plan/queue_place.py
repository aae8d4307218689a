"""Place of a waiting job in its queue: how many Workloads come before its own in its ClusterQueue.

Kueue's visibility API has the number: of Workloads of all kinds and namespaces, in the order in which Kueue tries them.
`docs/decisions/0107-kueue-is-asked-for-the-places-in-its-queues.md`.
"""

from typing import Final

import msgspec

from mxnet_operator.readers.waiting import before_in_queue

EXACT_BELOW: Final = 20
"""Number from which it is rounded down to its first digit.

One Workload that leaves a queue moves all behind it: of ten thousand jobs fewer than fifty then say another number.
"""


class QueuePlace(msgspec.Struct, frozen=True, gc=False):
    """Place of a job in its queue, as the job says it."""

    before: int
    is_exact: bool = True
    """Whether `before` is all of them, not the least that they are."""

    def __str__(self) -> str:
        """Return the words of a job's condition; empty for the first in its queue."""
        return before_in_queue(self.before, "workload", is_exact=self.is_exact)


def queue_place(before: int) -> QueuePlace:
    """Return the place of a job before whose Workload there are so many others."""
    if before < EXACT_BELOW:
        return QueuePlace(before)
    step = 10 ** (len(str(before)) - 1)
    return QueuePlace(before - before % step, is_exact=False)
