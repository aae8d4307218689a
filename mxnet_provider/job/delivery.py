"""Ending a job through an outage: the API server is asked again until it answers, or for as long as that is borne."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from mxnet_provider.hooks.api_errors import is_transient
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.kill import Decide, Ending

if TYPE_CHECKING:
    from mxnet_provider.hooks.job_client import AsyncJobClient

FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 10.0


async def deliver(
    ref: JobRef,
    decide: Decide,
    connect: "Callable[[], AbstractAsyncContextManager[AsyncJobClient]]",
    *,
    propagation_policy: str,
    seconds: float,
) -> Ending | None:
    """Return what ending the job came to; None where the API server did not answer for so many seconds.

    Raises:
        Exception: what is no outage: a rejection, or a connection that leads nowhere.
    """
    pause = FIRST_PAUSE
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    async with connect() as client:
                        return await client.end_job(ref, decide, propagation_policy=propagation_policy)
                except Exception as e:
                    if not is_transient(e):
                        raise
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
    except TimeoutError:
        return None
