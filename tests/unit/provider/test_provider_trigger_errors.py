"""What a trigger fails with: Airflow stores the whole traceback in its database, causes included."""

import asyncio
import logging
import traceback

import pytest

from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.triggers import ending
from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger


@pytest.mark.parametrize("said", ["a\0b", "\ud800", "x" * 10**6], ids=["NUL", "surrogate", "long"])
def test_a_trigger_fails_with_nothing_that_a_database_refuses(said, caplog, monkeypatch):
    monkeypatch.setattr(MXNetJobTrigger, "log", logging.getLogger("trigger"))
    failure = RuntimeError(said)
    failure.__cause__ = ValueError(said)
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(MXNetJobError, match="RuntimeError: ") as caught,
        MXNetJobTrigger(name="j", namespace="default", uid="u")._storable_errors(),
    ):
        raise failure

    stored = "".join(traceback.format_exception(caught.value))
    assert "\0" not in stored
    assert len(stored) < 40_000
    stored.encode()
    assert "ValueError" in caplog.text


async def test_the_first_trigger_of_a_triggerer_asks_airflow_early_and_waits_for_no_answer(monkeypatch):
    """Airflow's triggerer has no heartbeat while it builds what answers: else that came as a user ended a task."""
    asked, answered = [], asyncio.Event()

    async def ask(ti):
        asked.append(ti)
        await answered.wait()
        raise OSError("nobody needs this answer")

    monkeypatch.setattr(ending, "_asked_early", False)
    monkeypatch.setattr("mxnet_provider.airflow_versions.IS_AIRFLOW_2", False)
    monkeypatch.setattr(ending, "_ask_airflow", ask)
    for ti in (None, "first", "second"):
        ending.ask_early(ti)
    await asyncio.sleep(0)
    assert asked == ["first"]
    answered.set()
    await asyncio.gather(*ending._running)
