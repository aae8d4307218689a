"""What a try does with the job that its task has, in which order: what was remembered outlives what is deleted."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import MaxRetryError

from mxnet_operator.api import names
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.job import holder
from mxnet_provider.job.event import Event
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.reattach import Record
from mxnet_provider.operators.task_job import TaskJob
from mxnet_provider.options import EndOptions

REF = JobRef(name="digits", namespace="default", uid="u")
BEFORE = holder.token_of_try(1, "0192-1")


def running(standing: str) -> dict[str, Any]:
    own = {"name": "digits", "namespace": "default", "uid": "u", "resourceVersion": "7"}
    annotations = {names.HOLDER_ANNOTATION: standing}
    return {"metadata": {**own, "annotations": annotations}, "status": {"conditions": [{"type": "Running"}]}}


class Hook:
    """Notes what is asked of the cluster and what is remembered, in their order."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def end_job(self, _ref: JobRef, decide: Any, **_options: Any) -> Any:
        self.did.append(type(decide(running(BEFORE))).__name__)
        return SimpleNamespace(done=True, why="")

    def set(self, _key: str, value: Any) -> None:
        self.did.append(f"remember {value['phase']}")


def task(hook: Hook, ends: EndOptions) -> TaskJob:
    context: Any = {"ti": SimpleNamespace(try_number=1, max_tries=0, id="0192-2"), "task_state_store": hook}
    log: Any = logging.getLogger("task")
    made = TaskJob(
        context,
        hook,
        log=log,
        plural=names.PLURAL,
        durable=True,
        ends=ends,
        waits=True,
        api_outage_tolerance=0,
        retries=0,
        lease=None,  # type: ignore[arg-type]
    )
    made.known = REF
    return made


@pytest.mark.parametrize(("action", "asked"), [("delete", "Deletion"), ("suspend", "Deletion"), ("keep", "Leave")])
def test_a_cleared_task_ends_the_job_that_it_had_unless_jobs_are_to_be_kept(action: Any, asked: str) -> None:
    hook = Hook()
    task(hook, EndOptions(on_kill_action=action))._replace(running(BEFORE), REF)
    assert hook.did == [asked]


def test_an_end_is_remembered_before_its_job_is_deleted() -> None:
    """A worker that dies between the two would else leave a retry with nothing: it would train again."""
    hook = Hook()
    made = task(hook, EndOptions(on_finish_action="delete"))
    made._record = Record(token=BEFORE, ref=REF, generation=0)
    ended = Event(status="succeeded", name="digits", namespace="default", uid="u", summary={"state": "Succeeded"})
    made.finished(ended)
    assert hook.did[0] == "remember finished"
    assert len(hook.did) == 2


@pytest.mark.parametrize(
    "error",
    [
        ApiException(status=403),
        ApiException(status=401),
        ApiException(status=422),
        ApiException(status=503),
        MaxRetryError(None, "/apis", None),  # type: ignore[arg-type]
        ConnectionResetError(),
    ],
    ids=lambda error: f"{type(error).__name__} {getattr(error, 'status', '')}",
)
def test_what_became_of_a_job_is_not_lost_where_it_can_not_be_deleted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    hook = Hook()
    made = task(hook, EndOptions(on_finish_action="delete"))
    made._record = Record(token=BEFORE, ref=REF, generation=0)

    def end_job(*_arguments: Any, **_options: Any) -> Any:
        raise error

    monkeypatch.setattr(hook, "end_job", end_job)
    ended = Event(status="succeeded", name="digits", namespace="default", uid="u", summary={"state": "Succeeded"})
    made.finished(ended)
    assert hook.did == ["remember finished"]
    assert "could not be deleted" in caplog.text


def refusal(reason: str) -> ApiException:
    error = ApiException(status=409)
    error.body = f'{{"reason": "{reason}", "message": "m"}}'
    return error


@pytest.mark.parametrize(
    ("answers", "created", "asked"),
    [
        (["Conflict", "Conflict", ""], True, 3),
        (["AlreadyExists", ""], False, 1),
        (["Conflict"] * 9, False, 5),
    ],
    ids=["a quota that is being counted", "a name that is taken", "a quota without end"],
)
def test_a_creation_that_met_a_quota_being_counted_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, answers: list[str], created: bool, asked: int
) -> None:
    did: list[str] = []

    def create(*_arguments: Any, **_options: Any) -> dict[str, Any]:
        did.append(answers[len(did)])
        if did[-1]:
            raise refusal(did[-1])
        return running(BEFORE)

    hook = MXNetJobHook()
    api = SimpleNamespace(create_namespaced_custom_object=create)
    monkeypatch.setattr(MXNetJobHook, "custom_object_client", api)
    monkeypatch.setattr("mxnet_provider.hooks.mxnet_job.time", SimpleNamespace(sleep=lambda _: None))
    manifest = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": "digits", "namespace": "d"}}
    if created:
        assert hook.create_job(manifest)["metadata"]["uid"] == "u"
    else:
        with pytest.raises(ApiException):
            hook.create_job(manifest)
    assert len(did) == asked
