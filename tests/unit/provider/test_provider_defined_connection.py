"""Airflow says of a connection that it isn't defined, too, where it could not look: then nothing is concluded."""

import asyncio
import contextlib
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.cncf.kubernetes.hooks import kubernetes
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ConnectionResult, ErrorResponse
from asgiref.sync import sync_to_async
from kubernetes.client import Configuration

from mxnet_provider.exceptions import AirflowUnreachableError
from mxnet_provider.hooks import kube_configuration
from mxnet_provider.hooks.api_errors import is_transient
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook
from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger

UNDEFINED = ErrorResponse(error=ErrorType.CONNECTION_NOT_FOUND)
OUTAGES = [
    AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"message": "too many clients"})),
    ErrorResponse(error=ErrorType.GENERIC_ERROR),
    EOFError("Request socket closed before length"),
]
EXTRA = '{"in_cluster": true}'
DEFAULT, NAMED = "kubernetes_default", "cluster-1"


def connection(conn_id: str, extra: str | None = EXTRA) -> ConnectionResult:
    none = dict.fromkeys(("host", "schema", "login", "password", "port"))
    return ConnectionResult.model_validate({"conn_id": conn_id, "conn_type": "kubernetes", "extra": extra, **none})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the process that asks Airflow for this one answers, one after another and the last for ever."""
    script: list[Any] = []

    def send(question: Any) -> Any:
        assert type(question).__name__ in ("GetConnection", "MaskSecret")
        if type(question).__name__ == "MaskSecret":
            return None
        found = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(found, Exception):
            raise found
        return found

    async def asend(question: Any) -> Any:
        return send(question)

    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", SimpleNamespace(send=send, asend=asend), raising=False)
    monkeypatch.delenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", raising=False)
    return script


def by_worker(conn_id: str) -> Any:
    return MXNetJobHook(kubernetes_conn_id=conn_id).conn_extras


def by_trigger(conn_id: str) -> Any:
    return asyncio.run(MXNetJobAsyncHook(kubernetes_conn_id=conn_id)._connection_extra())


both = pytest.mark.parametrize("extras", [by_worker, by_trigger])
either = pytest.mark.parametrize("conn_id", [DEFAULT, NAMED])


@both
@either
@pytest.mark.parametrize("outage", OUTAGES, ids=["raised", "answered", "broken"])
def test_an_airflow_that_could_not_look_leaves_open_what_the_connection_is(
    answers: list[Any], extras: Any, conn_id: str, outage: Any
) -> None:
    answers += [outage]
    with pytest.raises(AirflowUnreachableError, match=conn_id) as caught:
        extras(conn_id)
    assert is_transient(caught.value)


@both
@either
def test_one_that_is_there_again_is_asked_anew(answers: list[Any], extras: Any, conn_id: str) -> None:
    answers += [OUTAGES[0], connection(conn_id)]
    with pytest.raises(AirflowUnreachableError, match=conn_id):
        extras(conn_id)
    assert extras(conn_id) == {"in_cluster": True}


def test_a_supervisor_that_only_answers_synchronously_is_asked_by_a_trigger_as_well(
    answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of `airflow dags test`."""
    answers += [UNDEFINED]
    monkeypatch.delattr(task_runner.SUPERVISOR_COMMS, "asend")
    assert by_trigger(DEFAULT) == {}


@both
def test_a_connection_that_is_not_defined_is_not(answers: list[Any], extras: Any) -> None:
    answers += [UNDEFINED]
    assert extras(DEFAULT) == {}  # the pod's service account, or kubectl's configuration
    with pytest.raises(AirflowNotFoundException):
        extras(NAMED)


@both
@either
def test_an_empty_connection_is_one(answers: list[Any], extras: Any, conn_id: str) -> None:
    answers += [connection(conn_id, extra=None)]
    assert extras(conn_id) == {}


@both
def test_where_there_is_nobody_to_ask_airflow_is_believed(monkeypatch: pytest.MonkeyPatch, extras: Any) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", raising=False)
    assert extras(DEFAULT) == {}


@pytest.mark.parametrize("hook", [MXNetJobHook, MXNetJobAsyncHook])
def test_a_connection_is_loaded_once_and_anew_once_its_credentials_are_rejected(
    monkeypatch: pytest.MonkeyPatch, hook: type[Any]
) -> None:
    stored, read = iter("ab"), []

    def load(extra: Any, **_: Any) -> Configuration:
        read.append(extra)
        return Configuration(host="http://127.0.0.1")

    monkeypatch.setattr(kube_configuration, "load", load)

    def connection(*_: Any) -> Any:
        return SimpleNamespace(extra_dejson={"namespace": next(stored)})

    async def aconnection(*_: Any) -> Any:
        return connection()

    monkeypatch.setattr(hook, "get_connection", connection)
    monkeypatch.setattr(kubernetes, "get_async_connection", aconnection)
    made = hook(kubernetes_conn_id=NAMED)
    client = made if isinstance(made, MXNetJobAsyncHook) else made.job_client()
    for anew in (False, False, True, False):
        asyncio.run(client._credentials(anew=anew))
    assert [each["namespace"] for each in read] == ["a", "b"], "a login program runs once"


def test_a_cancellation_meanwhile_keeps_the_word_by_which_airflow_knows_a_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def ask() -> dict[str, Any]:
        asked.set()
        answered.wait(10)
        return {}

    async def cancelled() -> Any:
        hook = MXNetJobAsyncHook()
        monkeypatch.setattr(hook, "get_conn_extras", sync_to_async(ask))
        reading = asyncio.create_task(hook._connection_extra())
        await asyncio.to_thread(asked.wait)
        reading.cancel("user-action")
        try:
            await reading
        except asyncio.CancelledError as e:
            return e.args
        finally:
            answered.set()

    assert asyncio.run(cancelled()) == ("user-action",)


class Hook(contextlib.AbstractAsyncContextManager[str]):
    """A hook that can't say where its cluster is for the first few times."""

    left = 0

    def __init__(self, **_: Any) -> None:
        pass

    async def __aenter__(self) -> str:
        if Hook.left:
            Hook.left -= 1
            raise AirflowUnreachableError("Airflow does not say")
        return "the hook"

    async def __aexit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("outage", "is_waited_out"), [(3, True), (1000, False)])
def test_a_trigger_waits_for_airflow_to_say_what_its_connection_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, outage: int, is_waited_out: bool
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(MXNetJobTrigger, "log", logging.getLogger("trigger"))
    Hook.left, clock = outage, [0.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    async def enter() -> str:
        trigger = MXNetJobTrigger(name="j", namespace="default", uid="u", kubernetes_conn_id=NAMED)
        async with trigger.connected() as hook:
            return str(hook)

    monkeypatch.setattr("mxnet_provider.hooks.mxnet_job_async.MXNetJobAsyncHook", Hook)
    monkeypatch.setattr("asyncio.sleep", sleep)
    monkeypatch.setattr("mxnet_operator.client.outage.time", SimpleNamespace(monotonic=lambda: clock[0]))
    if is_waited_out:
        assert asyncio.run(enter()) == "the hook"
        assert "Trying again" in caplog.text
    else:
        with pytest.raises(AirflowUnreachableError):
            asyncio.run(enter())
        assert 600 <= clock[0] < 610
