"""What a try does with the job that its task has, in which order: what was remembered outlives what is deleted."""

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import Configuration
from msgspec import structs, to_builtins
from provider_fixtures import Try

from mxnet_operator.api import names
from mxnet_operator.client.job_client import Deletion, JobRef
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.hooks import kube_configuration
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.job import holder, task_labels
from mxnet_provider.job.event import Event
from mxnet_provider.job.task_memory import Record
from mxnet_provider.job.task_state import ABSENT, OVER
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
        asked = decide(running(BEFORE))
        self.did.append(type(asked).__name__)
        return SimpleNamespace(done=isinstance(asked, Deletion), why=getattr(asked, "why", ""))

    def set(self, _key: str, value: Any) -> None:
        self.did.append(f"remember {value['phase']}")


def task_job(hook: Any, ends: EndOptions, try_number: int, max_tries: int, *, retries: int, **context: Any) -> TaskJob:
    ti = Try("d", "t", "r", try_number=try_number, max_tries=max_tries, id="0192-2")  # type: ignore[arg-type]
    log: Any = logging.getLogger("task")
    options: Any = {"durable": True, "ends": ends, "waits": True, "reuse_succeeded": True, "lease": None}
    return TaskJob({"ti": ti, **context}, hook, log=log, retries=retries, **options)  # type: ignore[typeddict-item]


def task(hook: Hook, ends: EndOptions) -> TaskJob:
    made = task_job(hook, ends, 1, 0, retries=0, task_state_store=hook)
    made.known = REF
    return made


@pytest.mark.parametrize(("action", "asked"), [("delete", "Deletion"), ("suspend", "Deletion"), ("keep", "Leave")])
def test_a_cleared_task_ends_the_job_that_it_had_unless_jobs_are_to_be_kept(action: Any, asked: str) -> None:
    hook = Hook()
    task(hook, EndOptions(on_kill_action=action)).hold.replace(running(BEFORE))
    assert hook.did == [asked]


def test_a_cleared_task_leaves_a_job_that_a_later_try_waits_for() -> None:
    hook = Hook()
    with pytest.raises(MXNetJobError, match="try 2 of its task waits for it now"):
        task(hook, EndOptions()).hold.replace(running(holder.token_of_try(2, "0192-3")))
    assert hook.did == []


BY_A_USER = [*OVER, ABSENT, "restarting"]
STAYS = ["None", "scheduled", "queued", "running", "up_for_retry", "deferred", "nobody knows"]


@pytest.mark.parametrize("state", [*sorted(BY_A_USER), *STAYS])
def test_a_worker_that_is_ended_ends_its_job_only_where_a_user_ended_the_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    """A task that Airflow reset, as when its scheduler crashed, leaves its job to the next try."""

    def run_states(ti: Any, task_id: str, index: int | None) -> dict[str, str | None]:
        if state == "nobody knows":
            raise ConnectionResetError
        assert (task_id, index) == (ti.task_id, ti.map_index)
        return {} if state == ABSENT else {f"{ti.task_id}_{ti.map_index}": None if state == "None" else state}

    monkeypatch.setattr("mxnet_provider.airflow_versions._run_states", run_states)
    hook = Hook()
    made = task(hook, EndOptions())
    made._ti.task_id, made._ti.map_index = "train", 3
    made.hold.token = BEFORE
    made.worker_ends()
    assert made.killed.is_set()
    assert hook.did == (["Deletion"] if state in BY_A_USER else [])
    assert ("goes on, for the next try" in caplog.text) == (state in STAYS)


def test_a_worker_whose_airflow_does_not_answer_leaves_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal came in the middle of another question, whose lock its thread holds until the signal is handled."""
    lock, hook = threading.Lock(), Hook()
    monkeypatch.setattr("mxnet_provider.operators.job_hold._STATE_SECONDS", 0.1)
    monkeypatch.setattr("mxnet_provider.airflow_versions.state_of_task", lambda _ti: lock.acquire() and None)
    with lock:
        task(hook, EndOptions()).worker_ends()
        assert hook.did == []


def test_an_end_that_the_api_server_did_not_answer_is_asked_for_again_and_an_answered_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hook = Hook()
    made = task(hook, EndOptions())
    made.hold.token = BEFORE
    with monkeypatch.context() as away:
        away.setattr(hook, "end_job", lambda *_, **__: (_ for _ in ()).throw(ApiUnavailable("away")))
        made.kill("its task was interrupted")
    assert hook.did == []
    made.kill("its task was interrupted")
    made.kill("its task was interrupted")
    assert hook.did == ["Deletion"]


def test_an_end_is_remembered_before_its_job_is_deleted() -> None:
    """A worker that dies between the two would else leave a retry with nothing: it would train again."""
    hook = Hook()
    made = task(hook, EndOptions(on_finish_action="delete"))
    made.memory.record = Record(token=BEFORE, ref=REF, generation=0)
    ended = Event(status="succeeded", name="digits", namespace="default", uid="u", summary={"state": "Succeeded"})
    made.finished(ended)
    assert hook.did[0] == "remember finished"
    assert len(hook.did) == 2


@pytest.mark.parametrize(
    "error",
    [
        ApiError(403, "Forbidden", "no"),
        ApiError(401, "Unauthorized", "no"),
        ApiError(422, "Invalid", "no"),
        ApiError(503, "ServiceUnavailable", "no"),
        ApiUnavailable("away"),
        ConnectionResetError(),
    ],
    ids=lambda error: f"{type(error).__name__} {getattr(error, 'code', '')}",
)
def test_what_became_of_a_job_is_not_lost_where_it_can_not_be_deleted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    hook = Hook()
    made = task(hook, EndOptions(on_finish_action="delete"))
    made.memory.record = Record(token=BEFORE, ref=REF, generation=0)

    def end_job(*_arguments: Any, **_options: Any) -> Any:
        raise error

    monkeypatch.setattr(hook, "end_job", end_job)
    ended = Event(status="succeeded", name="digits", namespace="default", uid="u", summary={"state": "Succeeded"})
    made.finished(ended)
    assert hook.did == ["remember finished"]
    assert "could not be deleted" in caplog.text


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

    async def create(*_arguments: Any, **_options: Any) -> dict[str, Any]:
        did.append(answers[len(did)])
        if did[-1]:
            raise ApiError(409, did[-1], "m")
        return running(BEFORE)

    hook = MXNetJobHook(kubernetes_conn_id=None)
    monkeypatch.setattr(kube_configuration, "load", lambda *_, **__: Configuration())
    monkeypatch.setattr(Client, "create", create)
    manifest = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": "digits", "namespace": "d"}}
    if created:
        assert hook.create_job(manifest)["metadata"]["uid"] == "u"
    else:
        with pytest.raises(ApiError):
            hook.create_job(manifest)
    assert len(did) == asked


class Cluster(Hook):
    """A cluster with a task's jobs, and its task state store, unless the Airflow is one before 3.3."""

    def __init__(self, *jobs: dict[str, Any], record: Record | None = None) -> None:
        super().__init__()
        self.jobs = {job["metadata"]["name"]: job for job in jobs}
        self.record = None if record is None else to_builtins(record)
        self.holders: list[str] = []
        """Tokens that were written into jobs."""

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        self.record = value

    def get(self, _key: str) -> Any:
        return self.record

    def list_jobs(self, _namespace: str, _selector: str) -> list[dict[str, Any]]:
        return list(self.jobs.values())

    def get_job(self, ref: JobRef) -> dict[str, Any] | None:
        return self.jobs.get(ref.name)

    def may_patch(self, _ref: JobRef) -> bool:
        return True

    def patch_job(self, _ref: JobRef, patch: Any) -> bool:
        self.holders.append(patch["metadata"]["annotations"][names.HOLDER_ANNOTATION])
        return True

    def create_job(self, manifest: dict[str, Any]) -> dict[str, Any]:
        self.did.append("create")
        self.holders.append(manifest["metadata"]["annotations"][names.HOLDER_ANNOTATION])
        return {**manifest, "metadata": {**manifest["metadata"], "uid": "new"}}

    def end_job(self, ref: JobRef, decide: Any, **_options: Any) -> Any:
        job = self.jobs[ref.name]
        done = isinstance(decide(job), Deletion)
        if done:
            self.did.append(f"delete {ref.name}")
        return SimpleNamespace(done=done, why="")


def left(name: str, state: str, *, retries: int = 2, generation: int = 2, try_number: int = 1) -> dict[str, Any]:
    """A job of an earlier try."""
    labels = {
        task_labels.TOKEN_LABEL: "k",
        task_labels.GENERATION_LABEL: str(generation),
        task_labels.RETRIES_LABEL: str(retries),
        "try_number": str(try_number),
    }
    own = {"name": name, "namespace": "default", "uid": f"u-{name}", "resourceVersion": "7", "labels": labels}
    stamp = f"2026-11-2{try_number}T12:00:00Z"
    conditions = [{"type": state, "status": "True"}]
    return {
        "metadata": {**own, "creationTimestamp": stamp, "annotations": {names.HOLDER_ANNOTATION: BEFORE}},
        "status": {"state": state, "conditions": conditions},
    }


def begin(cluster: Cluster, *, stores: bool, retries: int, try_number: int = 2, **ends: Any) -> Any:
    """The job with which a try of a task begins whose `max_tries` is 2."""
    context = {"task_state_store": cluster} if stores else {}
    made = task_job(cluster, EndOptions(**ends), try_number, 2, retries=retries, **context)
    manifest = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": "new", "namespace": "default"},
    }
    return made.begin(lambda _: manifest, None, lambda: "default")


def record_of(job: dict[str, Any], retries: int) -> Record:
    return Record(ref=JobRef.of(job), token="k", generation=2, retries=retries, last_try=1, phase="submitted")


@pytest.mark.parametrize("found", [True, False], ids=["found", "created"])
def test_a_try_writes_its_token_into_the_job_that_it_waits_for_and_notes_that_the_job_is_its_own(found: bool) -> None:
    job = left("old", "Running")
    before = structs.replace(record_of(job, 2), redeferrals=3, waits_in="trigger")
    cluster = Cluster(*[job] * found, record=before)
    name = begin(cluster, stores=True, retries=2)["metadata"]["name"]
    assert (name, cluster.holders) == ("old" if found else "new", [holder.token_of_try(2, "0192-2")])
    kept = cluster.record
    assert kept is not None
    assert {key: kept[key] for key in ("phase", "last_try", "redeferrals", "waits_in")} == {
        "phase": "submitted",
        "last_try": 2,
        "redeferrals": 0,
        "waits_in": "worker",
    }
    assert f"name: {name}" in kept["manifest"]
    assert (kept["reattached_at"] is not None) is found


@pytest.mark.parametrize("stores", [True, False], ids=["3.3", "before 3.3"])
@pytest.mark.parametrize(("now", "warns"), [(1, True), (2, False)])
def test_who_goes_on_with_a_job_under_other_retries_is_warned_of_its_arguments(
    caplog: pytest.LogCaptureFixture, now: int, warns: bool, stores: bool
) -> None:
    job = left("old", "Running", retries=2)
    cluster = Cluster(job, record=record_of(job, 2) if stores else None)
    assert begin(cluster, stores=stores, retries=now)["metadata"]["name"] == "old"
    assert ("clear it once more" in caplog.text) is warns
    assert "create" not in cluster.did


@pytest.mark.parametrize(
    ("on_finish_action", "deleted"),
    [
        ("keep", []),
        ("delete", ["delete failed", "delete succeeded"]),
        ("delete_succeeded", ["delete succeeded"]),
    ],
)
def test_before_3_3_jobs_that_earlier_tries_left_finished_are_treated_as_on_finish_action_says(
    on_finish_action: Any, deleted: list[str]
) -> None:
    """Of the retries of this run of the task: a worker had died before it came to it."""
    cluster = Cluster(
        left("failed", "Failed"),
        left("succeeded", "Succeeded", retries=3),
        left("before a clear", "Failed", generation=1),
    )
    begin(cluster, stores=False, retries=2, try_number=3, on_finish_action=on_finish_action)
    assert [each for each in cluster.did if each != "create"] == deleted
    assert cluster.did[-1] == "create"


def test_before_3_3_a_result_that_is_returned_is_not_deleted_first() -> None:
    cluster = Cluster(left("failed", "Failed"), left("succeeded", "Succeeded", try_number=2))
    job = begin(cluster, stores=False, retries=2, try_number=3, on_finish_action="delete")
    assert (job["metadata"]["name"], cluster.did) == ("succeeded", ["delete failed"])


PAGE = "https://jobs.example.com/default/digits"


class LookedAt(Hook):
    """A cluster whose job gets its first status at one of the looks at it, and Airflow's XComs."""

    def __init__(self, *looks: Any) -> None:
        super().__init__()
        self.looks = list(looks)
        self.pages: list[str] = []
        self.xcoms: dict[str, Any] = {}

    def end_job(self, _ref: JobRef, decide: Any, **_options: Any) -> Any:
        self.did.append(type(decide(running(holder.token_of_try(1, "0192-2")))).__name__)
        return SimpleNamespace(done=True, why="")

    def get_job_once(self, _ref: JobRef, *, timeout: float) -> Any:
        assert timeout > 0
        self.did.append("look")
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        return look

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        self.pages.append(value["page"])

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value


def new(url: str = "", state: str = "", uid: str = "u") -> dict[str, Any]:
    return {"metadata": {"name": "digits", "namespace": "default", "uid": uid}, "status": {"state": state, "url": url}}


def waiting_for_its_page(hook: LookedAt) -> TaskJob:
    made = task(hook, EndOptions())
    made._ti.xcom_push = hook.xcom_push
    made.memory.record = Record(token=BEFORE, ref=REF, generation=0)
    return made


def test_a_task_learns_its_jobs_page_from_the_first_status_before_it_leaves_the_job() -> None:
    hook = LookedAt(new(), new(PAGE, "Created"))
    made = waiting_for_its_page(hook)
    made.await_page(new())
    assert made.memory.page == PAGE
    assert hook.did == ["look", "look", "remember submitting"]
    assert hook.pages == [PAGE]
    assert hook.xcoms == {"job_url": PAGE}
    again = task(hook, EndOptions())
    again.memory._store = SimpleNamespace(get=lambda _key: to_builtins(made.memory.record), set=lambda *_: None)
    again.recall()
    assert again.memory.page == PAGE


@pytest.mark.parametrize(
    "look",
    [
        new("", "Created"),
        None,
        new(PAGE, "Created", uid="another"),
        ApiError(403, "Forbidden", "no"),
        ConnectionError(),
    ],
)
def test_a_task_whose_job_names_no_page_goes_on_at_once(look: Any) -> None:
    hook = LookedAt(look)
    made = waiting_for_its_page(hook)
    made.await_page(new())
    assert (made.memory.page, hook.did, hook.xcoms) == ("", ["look"], {})


def test_a_controller_that_is_away_holds_a_task_up_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mxnet_provider.operators.task_job._PAGE_SECONDS", 0.2)
    hook = LookedAt(*[new()] * 10)
    made = waiting_for_its_page(hook)
    made.await_page(new())
    assert made.memory.page == ""
    assert 1 <= hook.did.count("look") < 10


def test_a_task_whose_airflow_has_a_template_waits_for_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__MXNET__JOB_URL_TEMPLATE", "http://mine/{name}")
    hook = LookedAt()
    made = waiting_for_its_page(hook)
    made.await_page(new())
    made.note_page(new(PAGE))
    assert (made.memory.page, hook.did, hook.xcoms) == ("", [], {})


def test_a_task_that_is_killed_while_it_waits_for_the_page_leaves_no_job() -> None:
    hook = LookedAt()
    made = waiting_for_its_page(hook)
    made.killed.set()
    with pytest.raises(MXNetJobError, match="killed"):
        made.await_page(new())
    assert hook.did == ["Deletion"]
