"""Whose job it is: the name and the labels that tie an MXJob to one try of one Airflow task."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from airflow.providers.cncf.kubernetes.pod_generator import make_safe_label_value
from airflow.sdk.types import RuntimeTaskInstanceProtocol

from mxnet_operator.api import names

TRY_LABEL: Final = "mxjob.kubeflow.org/airflow-try"
"""The id that Airflow gives one try of a task instance; it alone says "this job is mine"."""

_SUFFIX_LENGTH: Final = 8


def labels(ti: RuntimeTaskInstanceProtocol) -> dict[str, str]:
    """Labels for the job, under the keys of Airflow's KubernetesPodOperator, so that its selectors work here."""
    return {
        "dag_id": make_safe_label_value(ti.dag_id),
        "task_id": make_safe_label_value(ti.task_id),
        "run_id": make_safe_label_value(ti.run_id),
        "map_index": make_safe_label_value(str(_map_index(ti))),
        "try_number": str(ti.try_number),
        TRY_LABEL: str(ti.id),
    }


def job_name(base: str, replicas: Mapping[str, int], ti: RuntimeTaskInstanceProtocol) -> str:
    """`<base>-<suffix>`: the same for the same try, another for every other try, run and mapped task.

    The base is cut so that the name of the longest replica (`<name>-tunertracker-0`) stays within the 63
    characters of a DNS label; `replicas` says how many of each type there are.
    """
    longest = max((len(names.replica_name("", t, max(n - 1, 0))) for t, n in replicas.items()), default=0)
    room = names.MAX_NAME - longest - _SUFFIX_LENGTH - 1
    return f"{base[:room].rstrip('-')}-{_suffix(ti)}"


def base_name(task_id: str) -> str:
    """A task's id as the beginning of a DNS-1035 name."""
    slug = re.sub(r"[^a-z0-9]+", "-", task_id.lower()).strip("-")
    return slug if re.match("[a-z]", slug) else f"mxjob-{slug}".rstrip("-")


def is_ours(job: Mapping[str, Any], ti_labels: Mapping[str, str]) -> bool:
    """Whether the job was created by the try that these labels are of."""
    found = (job.get("metadata") or {}).get("labels") or {}
    return bool(found.get(TRY_LABEL) == ti_labels[TRY_LABEL])


def _suffix(ti: RuntimeTaskInstanceProtocol) -> str:
    key = "/".join((ti.dag_id, ti.run_id, ti.task_id, str(_map_index(ti)), str(ti.id)))
    return hashlib.sha256(key.encode()).hexdigest()[:_SUFFIX_LENGTH]


def _map_index(ti: RuntimeTaskInstanceProtocol) -> int:
    return -1 if ti.map_index is None else ti.map_index
