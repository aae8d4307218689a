"""Labels, and the name made of them, that tie an MXJob to one Airflow task.

A name finds a job and never says whose it is; the random token does, which the job carries as a label. What a retry
makes of that is in `reattach`.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api import names

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

TOKEN_LABEL: Final = "mxjob.kubeflow.org/airflow-token"  # noqa: S105
"""The random token of one intent; it alone says "this job is mine"."""

GENERATION_LABEL: Final = "mxjob.kubeflow.org/airflow-generation"
RETRIES_LABEL: Final = "mxjob.kubeflow.org/airflow-retries"

_SUFFIX_LENGTH: Final = 8


def new_token() -> str:
    return secrets.token_hex(16)


def labels(ti: "RuntimeTaskInstanceProtocol", token: str, retries: int) -> dict[str, str]:
    """Labels for the job, under the keys of Airflow's KubernetesPodOperator, so that its selectors work here."""
    return {
        **_task_labels(ti),
        "try_number": str(ti.try_number),
        TOKEN_LABEL: token,
        GENERATION_LABEL: str(generation(ti)),
        RETRIES_LABEL: str(retries),
    }


def selector(ti: "RuntimeTaskInstanceProtocol") -> str:
    """Find the jobs of this task instance, of all its generations, where there is no state store to ask."""
    return ",".join(f"{key}={value}" for key, value in _task_labels(ti).items())


def generation_of(job: Mapping[str, Any]) -> int | None:
    """Return the generation of the task that created the job; None where its label is gone."""
    return _number(job, GENERATION_LABEL)


def retries_of(job: Mapping[str, Any]) -> int | None:
    """Return the `retries` of the task when it created the job; None where an earlier release did."""
    return _number(job, RETRIES_LABEL)


def token_of(job: Mapping[str, Any]) -> str:
    """Return the token with which the job was created; empty for none."""
    return _label(job, TOKEN_LABEL)


def try_that_made(job: Mapping[str, Any]) -> int | None:
    """Return the number of the try that created the job; None where its label is gone."""
    return _number(job, "try_number")


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


def base_name(text: str) -> str:
    """Return a text, such as a task's id, as the beginning of a DNS-1035 name."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
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


def _number(job: Mapping[str, Any], name: str) -> int | None:
    found = _label(job, name)
    return int(found) if found.isdecimal() else None


def _task_labels(ti: "RuntimeTaskInstanceProtocol") -> dict[str, str]:
    return {
        "dag_id": safe_label(ti.dag_id),
        "task_id": safe_label(ti.task_id),
        "run_id": safe_label(ti.run_id),
        "map_index": safe_label(str(-1 if ti.map_index is None else ti.map_index)),
    }
