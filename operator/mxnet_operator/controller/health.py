"""Readiness and liveness of the controller, for a kubelet's probes.

An API server that is away fails readiness and never liveness: restarting us would not bring it back, and would lose
warm caches. Liveness fails on what a restart may cure.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from mxnet_operator.controller.controller import Controller
from mxnet_operator.kube.answers import SILENCE_SECONDS as IDLE_SECONDS
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError

SILENCE_SECONDS: Final = 2 * IDLE_SECONDS
"""Silence of a watch in seconds that fails liveness: it is restarted after IDLE_SECONDS, and was silent once more."""
STUCK_SECONDS: Final = 900.0
"""Maximum seconds of one reconciliation: some requests, each tried four times within a minute, and its waits."""
DISTRUST_SECONDS: Final = 600.0
"""Seconds of failed TLS verification that fail liveness, though certificates are read again every 10 s."""
_REACHABLE_SECONDS: Final = 2.0


@dataclass
class Health:
    """Health checks of a controller; each returns what is wrong, or the empty string."""

    controller: Controller
    client: Client
    stuck: float = STUCK_SECONDS

    async def readiness(self) -> str:
        """Return why no namespace's caches are synced, a CRD is too old, or the API server doesn't answer.

        A standby is as ready as the leader, but that only the leader learns of an old CRD.
        """
        if waits_for := self.controller.waits_for():
            return waits_for
        if trouble := self.controller.statuses.trouble():
            return trouble
        try:
            async with asyncio.timeout(_REACHABLE_SECONDS):
                await self.client.get_bytes("/version")
        except ApiError:
            return ""  # It answers.
        except TimeoutError:
            return f"the API server did not answer within {_REACHABLE_SECONDS:g} s"
        except KubeError as error:
            return f"the API server can't be reached: {error}"
        return ""

    async def liveness(self) -> str:
        """Return why watches, workers or TLS are stuck; a stuck event loop doesn't answer at all."""
        wrong = [
            f"the watch of {reflector.resource} is connected and has been silent for {silent:.0f} s"
            for reflector in self.controller.reflectors
            if (silent := reflector.seconds_of_silence()) > SILENCE_SECONDS
        ]
        if (worked := self.controller.queue.longest_work()) > self.stuck:
            wrong.append(f"a worker has had the same job for {worked:.0f} s")
        if (distrusted := self.client.seconds_of_distrust()) > DISTRUST_SECONDS:
            wrong.append(
                f"TLS verification between the API server and this process has failed for {distrusted:.0f} s, though"
                " the certificates were read again all the time"
            )
        return "; ".join(wrong)
