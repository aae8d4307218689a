"""Every pod that the jobs of a namespace have had, and which pods were there beside it: the server's own words."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from controller_fixtures import PODS, ControllerWorld
from waiting import SECONDS

from mxnet_operator.api import names


class PodHistory:
    """Pods in the order in which they were made, from a watch that begins anew wherever it breaks."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, int]] = []
        """Each pod's (job, name, attempt)."""
        self.beside_older: list[tuple[str, str, int]] = []
        """Those of `made` that came while the job still had a pod of an earlier attempt."""
        self._present: dict[str, tuple[str, int]] = {}
        self._known: set[str] = set()

    def of(self, job: str) -> Counter[tuple[str, int]]:
        """How many pods the job has had, by name and attempt."""
        return Counter((name, attempt) for each, name, attempt in self.made if each == job)

    def assert_once_each(self, job: str, allowed: set[tuple[str, int]], needed: set[tuple[str, int]]) -> None:
        """Raise unless each pod that the job has had was made once, was `allowed` and they were all that it `needed`.

        An attempt needs what failed in it, or all where it ended well: it may fail before its scheduler is made, which
        comes last, where creating takes longer than a fake node's failure (a slow machine, an API server that crashed).
        """
        made = self.of(job)
        assert set(made.values()) == {1}, made
        assert needed <= set(made) <= allowed, (made, needed - set(made), set(made) - allowed)

    def note(self, event: str, pod: dict[str, Any]) -> None:
        """Take in one event of a watch."""
        metadata = pod["metadata"]
        labels, uid = metadata["labels"], metadata["uid"]
        job = labels[names.LABEL_JOB_NAME]
        attempt = int(labels.get(names.LABEL_ATTEMPT, "0"))
        if uid not in self._known:
            self._known.add(uid)
            self.made.append((job, metadata["name"], attempt))
            if any((other, older < attempt) == (job, True) for other, older in self._present.values()):
                self.beside_older.append((job, metadata["name"], attempt))
        if event == "DELETED":
            self._present.pop(uid, None)
        else:
            self._present[uid] = (job, attempt)

    async def follow(self, world: ControllerWorld, begun: asyncio.Event) -> None:
        """Watch until cancelled; `begun` is set once nothing is missed any more."""
        query: dict[str, Any] = {"labelSelector": names.LABEL_JOB_NAME}
        while True:
            try:
                listed = (await world.api.get(world.path(PODS), **query)).ok()
                found = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
                for uid in set(self._present) - set(found):
                    del self._present[uid]
                for pod in sorted(found.values(), key=lambda pod: pod["metadata"]["creationTimestamp"]):
                    self.note("ADDED", pod)
                version = listed["metadata"]["resourceVersion"]
                async with world.api.watch(world.path(PODS), resourceVersion=version, **query) as events:
                    begun.set()
                    while event := await events.next():
                        if event["type"] == "ERROR":
                            break
                        self.note(event["type"], event["object"])
            except (OSError, aiohttp.ClientError, AssertionError):  # the server is away, or has forgotten the version
                await asyncio.sleep(0.1)


@asynccontextmanager
async def pod_history(world: ControllerWorld) -> AsyncIterator[PodHistory]:
    """The history of a world's pods from now on."""
    history, begun = PodHistory(), asyncio.Event()
    task = asyncio.create_task(history.follow(world, begun))
    async with asyncio.timeout(SECONDS):
        await begun.wait()
    try:
        yield history
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
