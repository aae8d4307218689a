"""What is converted means the same, and no status is lost in a format's words.

The jobs are the five documents' and the small gang that older_jobs.py has in each format.
"""

import copy
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, plan
from older_jobs import FORMATS as SAMPLES
from older_jobs import older_job
from seed_manifests import ALL, manifest

from mxnet_operator.api import conditions, job_formats
from mxnet_operator.api.conversion import convert
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.formats import FORMATS
from mxnet_operator.api.types import Condition, MXJobStatus, ReplicaStatus
from mxnet_operator.api.validation import decode, unknown_fields, validate
from mxnet_operator.builders.pods import build_pod
from mxnet_operator.plan import Observed

JOBS: dict[str, dict[str, Any]] = {
    **{name: older_job(name, "digits") for name in SAMPLES},
    **{name: manifest(text) for name, text in ALL.items()},
}
for _job in JOBS.values():
    _job.pop("status", None)
every_job = pytest.mark.parametrize("written", JOBS.values(), ids=JOBS)


def planned(given: dict[str, Any], metadata: dict[str, Any]) -> tuple[Any, list[Any]]:
    """What is done first for a manifest that was stored with this metadata: actions, events, and the pods built."""
    job = decode(job_formats.to_v1({**given, "metadata": {**metadata, "uid": "7f3a"}}))
    first = plan(job, Observed((), ()), NOW)
    pods = [
        build_pod(with_defaults(job), action.type, action.index, action.attempt)
        for action in first.actions
        if hasattr(action, "attempt")
    ]
    return first, pods


@every_job
def test_a_job_is_valid_in_its_format_and_in_v1(written: dict[str, Any]) -> None:
    assert job_formats.errors(written) == []
    assert unknown_fields(written) == []
    meant = job_formats.to_v1(written)
    assert validate(meant) == []
    assert unknown_fields(meant) == []


@every_job
def test_a_format_is_known_again_when_the_server_gives_it_back_in_the_stored_version(written: dict[str, Any]) -> None:
    job_format = job_formats.format_of(written)
    back = {**written, "apiVersion": job_format.kind.api_version}
    if job_format.name == "v1beta1":  # its definition's default
        back["spec"] = {"cleanPodPolicy": "All", **written["spec"]}
    assert job_formats.format_of(back) is job_format
    assert decode(job_formats.to_v1(back)) == decode(job_formats.to_v1(written))


@every_job
def test_what_is_converted_plans_the_same_pods(written: dict[str, Any]) -> None:
    conversion = convert(written)
    converted = written if conversion is None else conversion.manifest
    first, pods = planned(converted, written["metadata"])
    assert (first, pods) == planned(written, written["metadata"])
    assert pods


@every_job
def test_converting_twice_changes_nothing_and_converting_changes_no_input(written: dict[str, Any]) -> None:
    before = copy.deepcopy(written)
    conversion = convert(written)
    meant = job_formats.to_v1(written)
    assert written == before
    assert job_formats.to_v1(meant) == meant
    if conversion is not None:
        assert convert(conversion.manifest) is None
        assert job_formats.to_v1(conversion.manifest) == conversion.manifest


STATES = (
    conditions.CREATED,
    conditions.RUNNING,
    conditions.RESTARTING,
    conditions.SUSPENDED,
    conditions.SUCCEEDED,
    conditions.FAILED,
)


@pytest.mark.parametrize("job_format", FORMATS, ids=lambda job_format: job_format.name)
def test_a_status_comes_back_as_it_was_written(job_format: Any) -> None:
    for state in STATES:
        said = tuple(
            Condition(
                type=each,
                status="True" if each == state else "False",
                reason=conditions.reason(each),
                message="said so",
                last_update_time=NOW,
                last_transition_time=NOW,
            )
            for each in (*STATES, conditions.PODS_SCHEDULED)
        )
        status = MXJobStatus(
            state=conditions.state_of(said),
            ready="3/4",
            duration="1h5m",
            conditions=said,
            replica_statuses={"Worker": ReplicaStatus(active=1, succeeded=2, failed=3), "Server": ReplicaStatus()},
            completed_indexes={"Worker": "0-2,5"},
            restarts=4,
            restarts_count_towards_max=3,
            restarting_pods=("u", "v"),
            first_attempt=2,
            start_time=NOW,
            completion_time=NOW + timedelta(seconds=1),
        )
        for pods_left in (False, True):
            wire = job_formats.status_to_wire(job_format, {"metadata": {"uid": "7f3a"}}, status, pods_left=pods_left)
            stored = msgspec.json.decode(msgspec.json.encode(wire))
            assert job_formats.status_from_wire(job_format, stored) == status, (state, pods_left)
