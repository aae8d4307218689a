"""End of a trigger's job when a user ended the task: only if that is so.

Airflow calls `on_kill` as well for triggers that another triggerer has taken over, when this one comes back from a
pause (apache/airflow#73454), and before 3.3 it calls `cleanup` at every end of a trigger. So Airflow is asked how the
task stands, and the job who holds it.
"""

import asyncio
import contextlib
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from asgiref.sync import sync_to_async

from mxnet_operator.client.job_client import Ending
from mxnet_operator.client.outage import OF_THE_SERVER, Outage, Retries
from mxnet_provider import airflow_versions
from mxnet_provider.hooks.api_errors import message
from mxnet_provider.job import holder, kill
from mxnet_provider.job.task_state import ABSENT, OVER, UNANSWERED

if TYPE_CHECKING:
    from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger

_STAYS: Final = frozenset({"deferred", UNANSWERED})
_PAUSE: Final = 1.0
_KILL_SECONDS: Final = 20.0
"""How long the API server is asked again; Airflow gives `on_kill` thirty seconds."""
_ASK_SECONDS: Final = 300.0
"""The first question to a triggerer that has just started takes ten seconds, and a minute on a busy machine."""

_running: Final[set[asyncio.Task[None]]] = set()
"""Endings under way; an event loop alone keeps no task alive."""


_asked_early = False


def ask_early(ti: Any) -> None:
    """Ask Airflow how the task stands once in a triggerer's life, as it begins, and wait for no answer.

    Airflow's triggerer builds what answers with the first question, and has no heartbeat meanwhile: for ten seconds,
    and a minute on a busy machine. Asked only when a user ends a task, its triggers would go to another triggerer.
    """
    global _asked_early  # noqa: PLW0603 - a triggerer is a process
    if _asked_early or ti is None or airflow_versions.IS_AIRFLOW_2:
        return
    _asked_early = True
    task = asyncio.create_task(_ask(ti))
    _running.add(task)
    task.add_done_callback(_running.discard)


async def _ask(ti: Any) -> None:
    with contextlib.suppress(Exception):
        await _ask_airflow(ti)


async def _ask_airflow(ti: Any) -> str | None:
    # Airflow's own way off the loop: its answers come over it.
    return await sync_to_async(airflow_versions.state_of_task)(ti)


def who_may_end(state: str | None) -> Literal["nobody", "try", "run"]:
    """Return who may end the job of a task in this state, when Airflow has cancelled its trigger.

    Returns:
        `nobody`: the task still waits, and its trigger is another triggerer's now; or it is not known. `try`: the task
        is over, so whichever trigger of it does it is right. `run`: the task was cleared, or goes on in a worker after
        an event that another trigger sent; only the trigger that holds the job itself knows that it was the former.
    """
    if state in _STAYS:
        return "nobody"
    return "try" if state in OVER or state == ABSENT else "run"


async def state_of(ti: Any) -> str | None:
    """Return the state of a task instance as Airflow gives it within five minutes, else ABSENT or UNANSWERED."""
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            while True:
                try:
                    return await _ask_airflow(ti)
                except Exception:
                    await asyncio.sleep(_PAUSE)
    except TimeoutError:
        return UNANSWERED


async def end_job(trigger: "MXNetJobTrigger", ti: Any) -> None:
    """End the job, if the task no longer waits for it; `ti` is None where there is no triggerer, nor anybody else.

    Airflow's triggerer cancels a trigger anew with each of its rounds, one a second, until the trigger has ended, and
    that would cut short what takes longer than a round. So the job is seen to in a task of its own.
    """
    if trigger.on_kill_action == "keep":
        trigger.log.info("%s is kept, as on_kill_action says.", trigger.ref.title)
        return
    task = asyncio.create_task(_end(trigger, ti))
    _running.add(task)
    task.add_done_callback(_running.discard)
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    task.result()


async def _end(trigger: "MXNetJobTrigger", ti: Any) -> None:
    ref, log, action, of_try = trigger.ref, trigger.log, trigger.on_kill_action, trigger.holder
    state = None if ti is None else await state_of(ti)
    who = "try" if ti is None else who_may_end(state)
    if who == "nobody":
        said = "Airflow does not say how its task stands" if state == UNANSWERED else f"its task is {state}"
        log.warning("%s is left alone, though this trigger was cancelled: %s.", ref.title, said)
        return
    run = None if trigger.renewer is None else trigger.renewer.token
    holds = holder.held_by_try(of_try) if who == "try" else holder.held_exactly_by(of_try, run)
    decide = partial(kill.request, uid=ref.uid, action=action, holds=holds, is_cleared=who == "run")

    async def end() -> Ending:
        async with trigger.connected() as hook:
            return await hook.end_job(ref, decide, propagation_policy=trigger.propagation_policy)

    try:
        async with asyncio.timeout(_KILL_SECONDS):
            ended = await Retries(Outage(math.inf), first=_PAUSE, longest=_PAUSE).until_answered(end)
    except OF_THE_SERVER as e:
        log.error("%s", kill.not_ended(ref.title, message(e), trigger.lease, ref.namespace))  # noqa: TRY400
        return
    if ended.done:
        did = "Deleted" if action == "delete" else "Suspended"
        log.info("%s %s, because a user ended the task.", did, ref.title)
    elif ended.why:
        log.warning("%s is left alone, though this trigger was cancelled: %s.", ref.title, ended.why)
