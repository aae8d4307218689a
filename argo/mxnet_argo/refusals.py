"""Refusals of what Argo would reject too late, or would understand otherwise than it reads.

Argo parses a condition only after it has made the object: one that it can't read leaves an orphan behind, and its own
lint says nothing (`docs/facts/argo.md`, conditions).
"""

import math
import re
from typing import Any, Final

from hera.workflows import Artifact
from hera.workflows.models import Artifact as ModelArtifact

from mxnet_argo.inputs import as_list
from mxnet_operator.api.conditions import FAILED, SUCCEEDED
from mxnet_operator.readers.durations import seconds_of

OVER: Final = "status.state in (Succeeded,Failed)"
"""What a step waits for; its outputs then tell one from the other."""
_STATE: Final = "status.state"
_EXAMPLE: Final = f"{_STATE} in (Running,{SUCCEEDED})"

_SEGMENT = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"\s*(?:!\s*{_SEGMENT}|(?P<field>{_SEGMENT})(?:\s*(?P<compares>==|=|!=)\s*(?P<value>{_VALUE})|\s*[<>]\s*\d+"
    rf"|\s+(?P<among>in|notin)\s*\(\s*(?P<values>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*\))?)\s*"
)
_BETWEEN: Final = re.compile(r",(?![^(]*\))")
"""The comma between two requirements, which is none between the values of one."""
_OF_EVERY_END: Final = (_STATE, "status.completionTime")
"""Fields that every job has that is over."""
_PLACEMENT: Final = {
    "affinity": "affinity",
    "node_selector": "node_selector",
    "priority_class_name": "pod_priority_class_name",
    "scheduler_name": "scheduler_name",
    "tolerations": "tolerations",
}
"""Each field of a template and of an MXJobSpec, and what a Workflow calls it."""


def check_condition(field: str, condition: str) -> None:
    """Reject what Argo would reject too late, or understand otherwise than it reads.

    Raises:
        ValueError: with what to write instead.
    """
    requirements = _BETWEEN.split(condition) if field == "failure_condition" else [condition]
    if not all(map(_REQUIREMENT.fullmatch, requirements)):
        raise ValueError(
            f"{field}: Argo can't read {condition!r}: write one requirement on a field, as {_EXAMPLE!r}, with ==, !=,"
            " in (A,B), notin (A,B), or < and > before a whole number; an item of a list, quotes, spaces in a value and"
            " >= can't be written. Only a failure condition may have several, between commas: any of them is enough"
        )


def failure_condition(success: str, own: str | None) -> str | None:
    """Return the author's failure condition, with which a step that waits for `success` ends whenever its job is over.

    What it leaves out is added.
    """
    failures = _BETWEEN.split(own) if own else []
    # A condition on another field may become true as the job succeeds, and Argo looks at failures first.
    ends = (FAILED, SUCCEEDED) if _field(success) == _STATE else (FAILED,)
    left_out = [end for end in ends if not any(_holds_for(end, each) for each in (success, *failures))]
    return ",".join((*failures, *(f"{_STATE} == {end}" for end in left_out))) or None


def _holds_for(end: str, condition: str) -> bool:
    """Whether a requirement that Argo can read holds for every job that is over with this state."""
    found = _REQUIREMENT.fullmatch(condition)
    if found is None or found["field"] not in _OF_EVERY_END:
        return False
    if found["compares"] is None and found["among"] is None:
        return condition.strip() == found["field"]
    if found["field"] != _STATE:
        return False
    values = [found["value"]] if found["compares"] else re.split(r"\s*,\s*", found["values"])
    return (end in values) == ((found["compares"] or found["among"]) in ("==", "=", "in"))


def _field(condition: str) -> str | None:
    found = _REQUIREMENT.fullmatch(condition)
    return found["field"] if found is not None else None


def seconds(timeout: str | None) -> int | None:
    """Return the seconds of `2h`, `1h30m` or `90s`, rounded up; None without a limit, or where a tag of Argo's says it.

    Raises:
        ValueError: Argo can't read it, which it finds out only when the workflow is submitted.
    """
    if timeout is None or "{{" in timeout:
        return None
    try:
        return math.ceil(seconds_of(timeout, plain=False))
    except ValueError:
        raise ValueError(f"timeout: Argo can't read {timeout!r}: write 90s, 30m or 1h30m") from None


def refuse_what_is_the_jobs(template: Any) -> None:
    """Reject nodes, artifacts and a deadline of a step's own pod: who writes them there means the training's.

    Raises:
        ValueError: with where the job takes them, and where Argo's pods do.
    """
    for field, of_workflow in _PLACEMENT.items():
        if getattr(template, field, None):
            raise ValueError(
                f"{template.name}: {field} would place the pod that waits, not the job's: give it as"
                f" MXJobSpec({field}=...), beside a manifest, too; or, for all pods of Argo's, as"
                f" Workflow({of_workflow}=...)"
            )
    for each in (*as_list(template.inputs), *as_list(template.outputs)):
        if isinstance(each, Artifact | ModelArtifact):
            raise ValueError(  # noqa: TRY004 - as every refusal
                f"{template.name}: artifact {each.name}: Argo loads and saves artifacts in its own pods, not in the"
                " job's: keep the files in a PersistentVolumeClaim, which other steps mount, too:"
                ' MXJobSpec(volumes=[ExistingVolume(claim_name="data", mount_path="/data")])'
            )
    if template.active_deadline_seconds is not None:
        raise ValueError(
            f"{template.name}: active_deadline_seconds would end who waits, not the job: use deadline (the job's) or"
            " timeout (the step's)"
        )
