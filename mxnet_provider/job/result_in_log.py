"""A result that is too long for the job's status, found in the log of the replica that reports it: the pure part."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from mxnet_operator.readers.long_result import Reference, reference, text_of, with_result
from mxnet_operator.readers.pods import label_of
from mxnet_provider.job import replicas

UNREADABLE: Final = "The log of %s, which has the job's result, could not be read: %s"
"""What a task's log says, with the pod and the error."""
LOST: Final = "%s The task returns none."
"""What a task's log says where a result is gone, with what is lost."""


class ResultInLog(msgspec.Struct, frozen=True):
    """Reference to the result's text, and the pod whose log has it; no pod where that is gone."""

    wanted: Reference
    pod: str | None

    def completed(self, job: Mapping[str, Any], lines: Iterable[bytes]) -> dict[str, Any] | None:
        """Return the job with the whole result, from the lines of the log; None where they lack a part of it."""
        text = text_of(self.wanted, (line.decode("utf-8", "replace") for line in lines))
        return None if text is None else with_result(job, text)


def result_in_log(job: Mapping[str, Any], pods: Iterable[replicas.Pod], result_of: str | None) -> ResultInLog | None:
    """Find the log with the result of a finished job; None where none is needed or wanted, or there is none."""
    if result_of is None:
        return None
    pods = list(pods)
    wanted = reference((job.get("status") or {}).get("result") or replicas.result_text(pods, result_of))
    if wanted is None:
        return None
    return ResultInLog(wanted, next((p["metadata"]["name"] for p in pods if label_of(p) == result_of), None))
