"""End of a trigger's job when a user ended the task: only if that is so, and for as long as it takes.

Airflow calls `on_kill` as well for triggers that another triggerer has taken over, when this one comes back from a
pause (apache/airflow#73454), and before 3.3 it calls `cleanup` at every end of a trigger. So Airflow is asked how the
task stands, and the job who holds it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from mxnet_provider import airflow_versions
from mxnet_provider.job import holder, kill
from mxnet_provider.job.delivery import FIRST_PAUSE, deliver
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.task_state import ABSENT, OVER, UNANSWERED, state_in

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

_STAYS: Final = frozenset({"deferred", UNANSWERED})
_ASK_SECONDS: Final = 60.0
"""The first question to a triggerer that has just started takes it 3 CPU seconds, ten seconds on a busy machine."""

_running: Final[set[asyncio.Task[None]]] = set()
"""Endings that go on when `on_kill` has returned; an event loop alone keeps no task alive."""


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
    """Return the state of a task instance as Airflow gives it within a minute, else ABSENT or UNANSWERED."""
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            while True:
                try:
                    return state_in(await airflow_versions.states_of(ti), ti)
                except Exception:
                    await asyncio.sleep(FIRST_PAUSE)
    except TimeoutError:
        return UNANSWERED


class JobEnd(msgspec.Struct, frozen=True):
    """Request to end a job: what is to be done, and by whom."""

    ref: JobRef
    action: kill.Action
    propagation_policy: str
    of_try: str | None
    """The token of the task's try; None in triggers of earlier releases."""
    run: str | None
    """The token that this run of the trigger has written; None if it has not."""
    tolerance: float
    """For how many seconds an API server that doesn't answer is asked again."""
    wait: float
    """For how many seconds the caller is kept waiting for that."""


async def end_job(
    end: JobEnd,
    ti: Any,
    connect: "Callable[[], AbstractAsyncContextManager[MXNetJobAsyncHook]]",
    log: "Logger",
) -> None:
    """End the job, if the task no longer waits for it; what takes long goes on when this returns.

    Args:
        end: What is to be done.
        ti: The task instance; None where there is no triggerer, and so nobody else.
        connect: Makes the hook.
        log: The trigger's.
    """
    if end.action == "keep":
        log.info("%s is kept, as on_kill_action says.", end.ref.title)
        return
    await _see_through(_end(end, ti, connect, log), end, log)


async def _see_through(ending: Coroutine[Any, Any, None], end: JobEnd, log: "Logger") -> None:
    """Wait for an ending, for some seconds, and leave it to itself then.

    Airflow's triggerer cancels a trigger anew with each of its rounds, one a second, until the trigger has ended, and
    that would cut short what takes longer than a round. So the job is seen to in a task of its own.
    """
    task = asyncio.create_task(ending)
    _running.add(task)
    task.add_done_callback(_running.discard)
    loop = asyncio.get_running_loop()
    until = loop.time() + end.wait
    while not task.done() and (left := until - loop.time()) > 0:
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:
            continue
    if task.done():
        task.result()
        return
    log.error(
        "%s may still be running: the API server, or Airflow, did not answer for %.0f s. It is asked for up to %.0f s "
        "more, while this triggerer runs; after that the job's lease ends it, if it has one. To delete it: "
        "kubectl delete %s.%s -n %s %s",
        end.ref.title,
        end.wait,
        end.tolerance,
        end.ref.plural,
        end.ref.group,
        end.ref.namespace,
        end.ref.name,
    )


async def _end(
    end: JobEnd,
    ti: Any,
    connect: "Callable[[], AbstractAsyncContextManager[MXNetJobAsyncHook]]",
    log: "Logger",
) -> None:
    title = end.ref.title
    state = None if ti is None else await state_of(ti)
    who = "try" if ti is None else who_may_end(state)
    if who == "nobody":
        said = "Airflow does not say how its task stands" if state == UNANSWERED else f"its task is {state}"
        log.warning("%s is left alone, though this trigger was cancelled: %s.", title, said)
        return
    holds = holder.held_by_try(end.of_try) if who == "try" else holder.held_exactly_by(end.of_try, end.run)
    decide = partial(kill.request, uid=end.ref.uid, action=end.action, holds=holds)
    ended = await deliver(
        end.ref, decide, connect, propagation_policy=end.propagation_policy, seconds=max(end.tolerance, end.wait)
    )
    if ended is None:
        log.error("%s could not be ended: the API server did not answer for %.0f s.", title, end.tolerance)
    elif ended.done:
        log.info("%s %s, because a user ended the task.", "Deleted" if end.action == "delete" else "Suspended", title)
    elif ended.why:
        log.warning("%s is left alone, though this trigger was cancelled: %s.", title, ended.why)
