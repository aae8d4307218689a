"""The life of a job whose manifest has mistakes: rejected, or run by the real controller until it comes to rest."""

import random
from typing import Any

import msgspec
from simulator.api import JOB, NAMESPACE, Api, Object
from simulator.clock import Clock
from simulator.controller import Controller
from simulator.kubelet import Kubelet
from simulator.lives import Lives
from simulator.schedule import pod_name

from mxnet_operator.api.conditions import job_state
from mxnet_operator.local.apiserver.builtin_types import DecodeError
from mxnet_operator.local.apiserver.statuses import StatusError

ROUNDS = 120
_OTHER_ENDS = ("active longer than specified deadline", "made no progress", "exited with code", "backoff limit")
"""Ends that a well-formed job comes to as well: of a deadline, or of the exit that an edit is followed by."""
_INVALID = "MXJobFailedValidation"
_RESTS = {"Running", "Succeeded", "Failed", "Suspended"}


class End(msgspec.Struct, frozen=True):
    """How it ended, in which words, and what is wrong with that, if anything.

    It is `rejected`, in a state, `invalid` while its pods run, or `gone`.
    """

    how: str
    words: str = ""
    wrong: str = ""


class MutantLife:
    """One job in an API server of its own, with a controller and a kubelet that keep it going."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.api = Api(self.clock)
        self.kubelet = Kubelet(self.api, self.clock, Lives())
        self.controller = Controller("a", self.api, self.clock, lambda _: None)

    async def create(self, manifest: Object) -> End:
        """What becomes of a manifest that is created."""
        try:
            self.api.store.create(self.api.jobs, NAMESPACE, manifest)
        except (StatusError, DecodeError) as error:
            return _rejected(error)
        await self._rest()
        return await self._end()

    async def edit(self, manifest: Object) -> End:
        """What becomes of the job after its manifest is replaced, and a pod of it has to be made again."""
        stored: Any = self.api.job
        changed = {**stored, "spec": manifest["spec"]}
        try:
            self.api.store.update(self.api.jobs, NAMESPACE, JOB, changed)
        except (StatusError, DecodeError) as error:
            return _rejected(error)
        await self._rest()
        self.kubelet.exit(pod_name("worker-0"), 137)
        await self._rest()
        return await self._end()

    async def _rest(self, *, beyond_the_end: bool = False) -> None:
        """Go on until the job is over, or nothing moves and the controller has nothing to do for some minutes."""
        until = self.clock.seconds + 120
        for _ in range(ROUNDS):
            self.controller.hear()
            if not beyond_the_end and job_state(self.api.job or {}) in ("Failed", "Succeeded"):
                return
            if self.controller.is_due:
                await self.controller.look()
            elif sum(self.kubelet.go_on(pod["metadata"]["name"]) for pod in self.api.pods()):
                self.clock.seconds += 1
            elif self.controller.due is not None and self.controller.due <= until:
                self.clock.seconds = max(self.controller.due, self.clock.seconds)
            else:
                return

    async def _end(self) -> End:
        end = self._reached()
        await self._rest(beyond_the_end=True)
        if end.how not in ("Failed", "Succeeded") or end.wrong:
            return end
        phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.api.pods()}
        running = [name for name, phase in phases.items() if phase in ("Pending", "Running")]
        return End(end.how, end.words, f"it is over, and these run: {running}" if running else "")

    def _reached(self) -> End:
        job = self.api.job
        if job is None:
            return End("gone")
        state = job_state(job)
        conditions = (job.get("status") or {}).get("conditions") or []
        words = next((c["message"] for c in conditions if c["type"] == state), "")
        for error in (c for c in conditions if c["type"] == "ReconcileError"):
            if error["reason"] != _INVALID:
                return End(state, words, f"the controller failed at it: {error['message']}")
            if error["status"] == "True":  # Its pods run on, and it waits for a correction.
                return End("invalid", error["message"], "" if _says_where(error["message"]) else "it names no path")
        if state not in _RESTS:  # Nothing outside of the manifest keeps a job from running here.
            return End(state, words, f"it is {state!r} for ever: {conditions}")
        if state == "Failed" and not _says_where(words):
            return End(state, words, "its end names no path")
        return End(state, words)


def _rejected(error: StatusError | DecodeError) -> End:
    if isinstance(error, DecodeError):
        return End("rejected", str(error))
    causes = (error.status.get("details") or {}).get("causes") or []
    words = "; ".join(f"{cause.get('field')}: {cause['message']}" for cause in causes) or error.status["message"]
    return End("rejected", words, "" if _says_where(words) else "its rejection names no path")


def _says_where(words: str) -> bool:
    # Go's decoder says of a quantity what it must look like, and not where it is
    return any(part in words for part in ("spec", "metadata", "quantities must match", *_OTHER_ENDS))


async def end_of(seed: int, manifests: list[Object], mutate: Any) -> tuple[End, str]:
    """How the mutant of a seed ends, and what it is: created, or put in the place of a running job."""
    rng = random.Random(seed)
    original = rng.choice(manifests)
    mutant, said = mutate(rng, original)
    life = MutantLife()
    if rng.random() < 0.6:
        return await life.create(mutant), f"create: {said}"
    await life.create(original)
    return await life.edit(mutant), f"edit: {said}"
