"""The same description through every door: the same manifest, or the same refusal."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import airflow_home  # noqa: F401 - before anything imports Airflow
import pytest
import yaml
from descriptions import COMMON, MEANT, REFUSED, at

from mxnet_argo import MXJobSpec, MXJobStep
from mxnet_operator.client import AsyncMXJobClient
from mxnet_operator.description import MXJobDescription, to_manifest

Door = Callable[..., dict[str, Any]]


def described(**fields: Any) -> dict[str, Any]:
    return to_manifest(MXJobDescription(**fields))


def operator(**fields: Any) -> dict[str, Any]:
    from mxnet_provider.operators.mxnet_job import MXNetJobOperator

    return MXNetJobOperator(task_id="train", **fields).given_manifest()


def step(**fields: Any) -> dict[str, Any]:
    text = MXJobStep(name="train", spec=MXJobSpec(**fields), delete_with_workflow=False)._build_manifest()
    manifest: dict[str, Any] = yaml.safe_load(text.replace("{{=", "'{{=").replace("}}", "}}'"))
    # What every step adds to every job.
    if "activeDeadlineSeconds" not in str(fields) and "active_deadline_seconds" not in fields:
        del manifest["spec"]["runPolicy"]["activeDeadlineSeconds"]
    return manifest


def client(**fields: Any) -> dict[str, Any]:
    return AsyncMXJobClient().manifest(MXJobDescription(**fields))


DOORS: dict[str, Door] = {"description": described, "operator": operator, "step": step, "client": client}


@pytest.mark.parametrize("case", MEANT)
def test_every_door_makes_the_same_job(case: str) -> None:
    fields, meant = MEANT[case]
    for door, make in DOORS.items():
        manifest = make(**{**COMMON, **fields})
        assert {path: at(manifest, path) for path in meant} == meant, door


@pytest.mark.parametrize("case", REFUSED)
def test_every_door_refuses_in_the_same_words(case: str) -> None:
    fields, words = REFUSED[case]
    said = {door: refusal(make, {**COMMON, **fields}) for door, make in DOORS.items()}
    assert [door for door, text in said.items() if words not in text] == [], said


def refusal(make: Door, fields: dict[str, Any]) -> str:
    try:
        make(**fields)
    except Exception as error:
        return str(error)
    return "taken"


LEASE = {
    "mxjob.kubeflow.org/lease-renew-time": "2026-11-26T00:00:00Z",
    "mxjob.kubeflow.org/holder": "1:7f3a",
    "mxjob.kubeflow.org/stop": "true",
}
PRINTED = {
    **described(**COMMON),
    "metadata": {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 1,
        "managedFields": [],
        "labels": {"a": "b"},
        "annotations": {**LEASE, "team": "vision"},
    },
    "status": {"state": "Failed"},
}
WITH_MANIFEST: dict[str, Door] = {
    "description": lambda manifest: to_manifest(MXJobDescription(), manifest),
    "operator": lambda manifest: operator(manifest=manifest),
    "step": lambda manifest: yaml.safe_load(
        MXJobStep(name="train", manifest=manifest)._build_manifest().replace("{{=", "'{{=").replace("}}", "}}'")
    ),
    "client": lambda manifest: AsyncMXJobClient().manifest(manifest=manifest),
}


@pytest.mark.parametrize("door", WITH_MANIFEST)
def test_every_door_leaves_out_what_the_server_sets(door: str) -> None:
    made = WITH_MANIFEST[door](PRINTED)
    assert "status" not in made
    assert not {"uid", "resourceVersion", "generation", "managedFields"} & made["metadata"].keys()
    assert at(made, "metadata.labels.a") == "b"
    assert made["metadata"]["annotations"]["team"] == "vision"
    assert not LEASE.keys() & made["metadata"]["annotations"].keys()  # its task would not renew it for the copy


def test_a_description_costs_no_framework() -> None:
    code = (
        "import sys, mxnet_operator.description; print({'airflow', 'hera', 'kubernetes', 'aiohttp'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
