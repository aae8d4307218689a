"""Identity of a job: what ties an MXJob to one Airflow task, and what another try of the task makes of that.

A name finds a job and never says whose it is. Before a job is created, an intent with a random token is written to
Airflow's task state store; the job carries the token as a label. A try that finds the intent looks for the job: what
has the token is ours, at whatever moment the try before ended.
"""

import hashlib
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.conditions import FAILED, SUCCEEDED, job_state
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.kill import is_suspended_by_airflow

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

TOKEN_LABEL: Final = "mxjob.kubeflow.org/airflow-token"  # noqa: S105
"""The random token of one intent; it alone says "this job is mine"."""

GENERATION_LABEL: Final = "mxjob.kubeflow.org/airflow-generation"

STORE_KEY: Final = "mxnet_job"
"""Renaming it would cut running tasks off from their jobs."""

_SUFFIX_LENGTH: Final = 8


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a task's job in the task state store, from before its creation to its end.

    Fields that a later release adds have defaults, and none is ever taken away: tasks outlive upgrades.
    """

    ref: JobRef
    token: str
    generation: int
    """The task's `max_tries`, which Airflow raises when a task is cleared, and not when it retries by itself."""
    phase: Literal["submitting", "submitted", "finished"] = "submitting"
    try_number: int = 1
    deadline: float | None = None
    """When the try that waits for it runs out of time, in seconds since the epoch."""
    redeferrals: int = 0
    outcome: dict[str, Any] | None = None
    """The event with which the waiting ended."""
    v: int = 1


def load(stored: Any) -> Record | None:
    """Return the record that the store holds; None for none. Raises MXNetJobError for one that can't be read."""
    if stored is None:
        return None
    try:
        return msgspec.convert(stored, Record)
    except msgspec.ValidationError as e:
        raise MXNetJobError(
            f"Airflow's task state store holds something else than an MXJob's record under {STORE_KEY!r} ({e}). "
            "To start anew, delete that key in the task's page, after making sure that no job of it runs."
        ) from e


Decision = Literal["create", "create_same", "replace", "reattach", "resume", "reuse"]


def decide(
    record: Record | None,
    generation: int,
    found: Mapping[str, Any] | None,
    *,
    reuse_succeeded: bool,
) -> Decision:
    """Return what a try begins with: pure.

    Args:
        record: What an earlier try has left in the store.
        generation: The task's `max_tries` now.
        found: What has the record's name on the cluster; None for nothing.
        reuse_succeeded: Whether a job that has succeeded does for a retry.

    Returns:
        `create`: a new job, nothing of an older one is of use. `create_same`: the job that was intended, and never
        made. `replace`: as `create`, and the older job is to go first. `reattach`: wait for the older one. `resume`: as
        `reattach`, after undoing our own suspension. `reuse`: the older one's result is the result.
    """
    if record is None:
        return "create"
    ours = found is not None and is_ours(found, record)
    if record.generation != generation:
        return "replace" if ours else "create"
    if record.phase == "finished":
        succeeded = (record.outcome or {}).get("status") == "succeeded"
        return "reuse" if succeeded and reuse_succeeded else "create"
    if found is None:
        return "create_same" if record.phase == "submitting" else "create"
    if not ours:  # somebody else's
        return "create"
    if found["metadata"].get("deletionTimestamp") or job_state(found) == FAILED:
        return "create"
    if job_state(found) == SUCCEEDED:
        return "reattach" if reuse_succeeded else "create"
    return "resume" if is_suspended_by_airflow(found) else "reattach"


def is_ours(job: Mapping[str, Any], record: Record) -> bool:
    """Whether the job is the one that the record is about."""
    metadata = job.get("metadata") or {}
    if record.ref.uid and metadata.get("uid") != record.ref.uid:
        return False
    return bool((metadata.get("labels") or {}).get(TOKEN_LABEL) == record.token)


def new_token() -> str:
    """Return a token that no other job has."""
    return secrets.token_hex(16)


def labels(ti: "RuntimeTaskInstanceProtocol", token: str) -> dict[str, str]:
    """Labels for the job, under the keys of Airflow's KubernetesPodOperator, so that its selectors work here."""
    return {
        **_task_labels(ti),
        "try_number": str(ti.try_number),
        TOKEN_LABEL: token,
        GENERATION_LABEL: str(generation(ti)),
    }


def selector(ti: "RuntimeTaskInstanceProtocol") -> str:
    """Find the jobs of this task instance, of all its generations, where there is no state store to ask."""
    return ",".join(f"{key}={value}" for key, value in _task_labels(ti).items())


def generation_of(job: Mapping[str, Any]) -> int:
    """Return the generation of the task that created the job; one above all others where it says none."""
    found = _label(job, GENERATION_LABEL)
    return int(found) if found.isdecimal() else sys.maxsize


def token_of(job: Mapping[str, Any]) -> str:
    """Return the token with which the job was created; empty for none."""
    return _label(job, TOKEN_LABEL)


def try_that_made(job: Mapping[str, Any]) -> str:
    """Return the number of the try that created the job, for messages."""
    return _label(job, "try_number") or "?"


def newest(jobs: Sequence[Mapping[str, Any]], *, reuse_succeeded: bool) -> Mapping[str, Any] | None:
    """Return the one of several jobs to reattach to: one that has not failed and stays, the youngest, then by name."""
    useless = {FAILED} if reuse_succeeded else {FAILED, SUCCEEDED}
    usable = [j for j in jobs if not j["metadata"].get("deletionTimestamp") and job_state(j) not in useless]
    return max(usable, key=lambda j: (j["metadata"]["creationTimestamp"], j["metadata"]["name"]), default=None)


def generation(ti: "RuntimeTaskInstanceProtocol") -> int:
    """Return what tells a task that was cleared from one that retries."""
    return int(ti.max_tries)


def job_name(base: str, replicas: Mapping[str, int], token: str) -> str:
    """`<base>-<beginning of the token>`.

    The base is cut so that the name of the longest replica (`<name>-tunertracker-0`) stays within the 63
    characters of a DNS label; `replicas` says how many of each type there are.
    """
    longest = max((len(names.replica_name("", t, max(n - 1, 0))) for t, n in replicas.items()), default=0)
    room = names.MAX_NAME - longest - _SUFFIX_LENGTH - 1
    return f"{base[:room].rstrip('-')}-{token[:_SUFFIX_LENGTH]}"


def base_name(task_id: str) -> str:
    """Return a task's id as the beginning of a DNS-1035 name."""
    slug = re.sub(r"[^a-z0-9]+", "-", task_id.lower()).strip("-")
    return slug if re.match("[a-z]", slug) else f"mxjob-{slug}".rstrip("-")


def safe_label(value: str) -> str:
    """Make a label's value of a text as KubernetesPodOperator does: cut and hashed where it is none already.

    Its own function can't be imported without the whole Kubernetes client, which would slow down the parsing of DAGs.
    """
    safe = re.sub(r"^[^a-z0-9A-Z]*|[^a-zA-Z0-9_\-\.]|[^a-z0-9A-Z]*$", "", value)
    if len(safe) > names.MAX_NAME or value != safe:
        digest = hashlib.md5(value.encode(), usedforsecurity=False).hexdigest()[:9]
        # Of a text without any letter of ASCII that function makes a value that Kubernetes rejects.
        safe = f"{safe[: names.MAX_NAME - len(digest) - 1]}-{digest}".removeprefix("-")
    return safe


def _label(job: Mapping[str, Any], name: str) -> str:
    return str(((job.get("metadata") or {}).get("labels") or {}).get(name) or "")


def _task_labels(ti: "RuntimeTaskInstanceProtocol") -> dict[str, str]:
    return {
        "dag_id": safe_label(ti.dag_id),
        "task_id": safe_label(ti.task_id),
        "run_id": safe_label(ti.run_id),
        "map_index": safe_label(str(-1 if ti.map_index is None else ti.map_index)),
    }
