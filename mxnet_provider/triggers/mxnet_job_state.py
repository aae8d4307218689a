"""The trigger that waits until an MXJob of a given name is in one of some states; it owns nothing and ends nothing."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from airflow.triggers.base import TriggerEvent

from mxnet_operator.client.outage import OF_THE_SERVER
from mxnet_provider.job.polling import retries_of_polls, until_next_poll
from mxnet_provider.job.sensor_state import SensorEvent, settled
from mxnet_provider.job.state_log import StateLog
from mxnet_provider.triggers.job_trigger import JobTrigger

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.job_client import AsyncJobClient


@dataclass(kw_only=True, eq=False, repr=False)
class MXNetJobStateTrigger(JobTrigger):
    """Wait until the MXJob of a name is in one of some states."""

    target_states: Sequence[str]
    fail_states: Sequence[str] = field(default_factory=list)
    """States in which there is nothing to wait for."""
    missing_ok: bool = False
    """Whether a job that is not there is waited for too."""
    poll_interval: float = 60.0

    async def run(self) -> AsyncIterator[TriggerEvent]:
        with self._storable_errors():
            async with self.connected() as hook:
                decision = await self.watch(hook, self.log)
        yield TriggerEvent(decision.payload())  # type: ignore[no-untyped-call]

    async def watch(self, client: "AsyncJobClient", log: "Logger") -> SensorEvent:
        """Wait for the job, in a triggerer or in a worker, or until the API server was away for too long."""
        states = StateLog(self.ref)
        retries = retries_of_polls(self.poll_interval, self.api_outage_tolerance, warn=log.warning)
        while True:
            try:
                job = await retries.until_answered(partial(client.get_job, self.ref))
            except OF_THE_SERVER as e:
                return SensorEvent.of_error(e)
            decision = settled(
                job, target_states=self.target_states, fail_states=self.fail_states, missing_ok=self.missing_ok
            )
            if decision is not None:
                return decision
            if job is not None:
                states.report(job, log)
            await asyncio.sleep(until_next_poll(job, self.poll_interval))
