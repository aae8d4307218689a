"""Whether the controller is ready and alive, in the answers that a kubelet's probes read.

An API server that is away fails readiness and never liveness: restarting us would not bring it back, and would lose
warm caches. Liveness fails on what a restart may cure.
"""

import asyncio
from typing import Final

from mxnet_operator.controller.controller import Controller
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.reflector import IDLE_SECONDS

SILENCE_SECONDS: Final = 2 * IDLE_SECONDS
"""A watch is left when it has been silent for IDLE_SECONDS; one that is silent again after that will stay so."""
STUCK_SECONDS: Final = 900.0
"""How long a worker may have one job: some requests, each tried four times within a minute, and what it waits for."""
DISTRUST_SECONDS: Final = 600.0
"""How long certificates may not be trusted, though they are read anew every 10 s: a restart may find other files."""
_REACHABLE_SECONDS: Final = 2.0


class Health:
    """Checks of a controller; each answers with what is wrong, in words, or the empty string."""

    def __init__(
        self,
        controller: Controller,
        client: Client,
        *,
        silence: float = SILENCE_SECONDS,
        stuck: float = STUCK_SECONDS,
        distrust: float = DISTRUST_SECONDS,
    ) -> None:
        """Limits are in seconds."""
        self._controller = controller
        self._client = client
        self._silence = silence
        self._stuck = stuck
        self._distrust = distrust

    async def readiness(self) -> str:
        """Whether the caches are filled and the API server answers; a standby is as ready as the one that leads."""
        waiting = [
            f"no list of {reflector.resource} yet"
            for reflector in self._controller.needed
            if not reflector.synced.is_set()
        ]
        if waiting:
            return "; ".join(waiting)
        try:
            async with asyncio.timeout(_REACHABLE_SECONDS):
                await self._client.get_bytes("/version")
        except ApiError:
            return ""  # It answers.
        except TimeoutError:
            return f"the API server did not answer within {_REACHABLE_SECONDS:g} s"
        except KubeError as error:
            return f"the API server can't be reached: {error}"
        return ""

    async def liveness(self) -> str:
        """Whether the watches hear something, the workers get on, and TLS works; a stuck loop doesn't answer."""
        wrong = [
            f"the watch of {reflector.resource} is connected and has been silent for {silent:.0f} s"
            for reflector in self._controller.reflectors
            if (silent := reflector.seconds_of_silence()) > self._silence
        ]
        if (worked := self._controller.queue.longest_work()) > self._stuck:
            wrong.append(f"a worker has had the same job for {worked:.0f} s")
        if (distrusted := self._client.seconds_of_distrust()) > self._distrust:
            wrong.append(
                f"for {distrusted:.0f} s there is no trust between the API server and this process, though the"
                " certificates were read anew all the time"
            )
        return "; ".join(wrong)
