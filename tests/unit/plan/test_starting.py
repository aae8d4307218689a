"""Containers that can't start: what the job's condition says, and what the deadline adds."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.types import Condition, MXJob, MXJobStatus

SECOND = timedelta(seconds=1)
NO_IMAGE = {"waiting_container": "mxnet", "waiting_reason": "ErrImagePull", "waiting_message": "no such image"}


def look(job: MXJob, seconds: int = 0, **worker: Any) -> MXJobStatus:
    pod = make_pod(job, "Worker").set(scheduled_at=NOW, **worker)
    scheduler = make_pod(job, "Scheduler").running().set(scheduled_at=NOW)
    answer = plan(job, observe(job, scheduler, pod), NOW + seconds * SECOND)
    return job.status if answer.status is None else answer.status


def started(status: MXJobStatus) -> Condition | None:
    return next((c for c in status.conditions if c.type == "PodsStarted"), None)


def new_job(**run_policy: Any) -> MXJob:
    job = make_mxjob().scheduler().worker(1).run_policy(**run_policy).condition("Created").obj()
    begun = msgspec.structs.replace(job.status, started_replicas={"Scheduler": 1, "Worker": 1}, created_attempts=1)
    return msgspec.structs.replace(job, status=begun)


@pytest.mark.parametrize("reason", ["ErrImagePull", "CreateContainerConfigError", "InvalidImageName"])
def test_a_container_that_can_not_start_is_named_with_the_kubelets_words(reason: str) -> None:
    condition = started(look(new_job(), **NO_IMAGE | {"waiting_reason": reason}))
    assert (condition.status, condition.reason) == ("False", reason)
    assert condition.message == f"worker-0 can't start: container mxnet: {reason}: no such image"


def test_a_kubelet_that_tries_again_and_again_is_quoted_once() -> None:
    job = new_job()
    job = msgspec.structs.replace(job, status=look(job, **NO_IMAGE))
    assert look(job, **NO_IMAGE | {"waiting_reason": "ImagePullBackOff"}) == job.status


@pytest.mark.parametrize("reason", ["", "ContainerCreating", "PodInitializing"])
def test_a_pod_that_starts_as_it_should_is_not_worth_a_word(reason: str) -> None:
    job = new_job()
    assert look(job, waiting_container="mxnet", waiting_reason=reason) == job.status


def test_it_is_over_once_every_replica_runs() -> None:
    job = new_job()
    job = msgspec.structs.replace(job, status=look(job, **NO_IMAGE))
    assert look(job) == job.status
    status = look(job, phase="Running", started_at=NOW)
    condition = started(status)
    assert (condition.status, status.state) == ("True", "Running")


def test_a_sidecar_that_fails_beside_a_running_program_is_its_own_affair() -> None:
    job = new_job()
    crashing = {"waiting_container": "proxy", "waiting_reason": "CrashLoopBackOff"}
    assert started(look(job, phase="Running", started_at=NOW, **crashing)) is None


def test_the_progress_deadline_says_which_container_did_not_start_and_why() -> None:
    job = new_job(progressDeadlineSeconds=60)
    waits = NO_IMAGE | {"waiting_container": "fetch"}
    assert look(job, seconds=60, **waits).state == "Created", "its times are cut to whole seconds"
    status = look(job, seconds=61, **waits)
    assert status.state == "Failed"
    assert "worker-0 did not start (container fetch: ErrImagePull: no such image)" in status.conditions[-1].message


def test_the_kubelets_error_is_told_in_place_of_its_silence() -> None:
    job = new_job()
    job = msgspec.structs.replace(job, status=look(job, seconds=60))
    silent = started(job.status)
    assert silent.reason == "KubeletNotReporting"
    condition = started(look(job, seconds=61, **NO_IMAGE))
    assert (condition.reason, condition.message) == (
        "ErrImagePull",
        "worker-0 can't start: container mxnet: ErrImagePull: no such image",
    )
