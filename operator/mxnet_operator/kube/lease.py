"""Leader election by a Lease: one of several processes leads and renews it; the others stand by.

client-go's protocol (tools/leaderelection), so any client's `kubectl get lease` shows who leads. Three things differ:

- Every deadline is on this process's own clock. The times in the record are for people: a wait begins when a change of
  the record is observed, so no clock of another machine matters, nor does setting one.
- That clock goes on while the machine is suspended, so a leader that wakes up knows that its time is over.
- Losing the lease ends the term, not the process: it joins again, with its caches warm.

A Lease can't fence a request that is under way: what a leader does late must be harmless by its own preconditions.
"""

import asyncio
import logging
import random
import socket
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mxnet_operator.kube import answers
from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, InvalidAnswerError, KubeError
from mxnet_operator.kube.resources import LEASES

LEASE_NAME: Final = "mxnet-operator"
"""Default name of the Lease."""
_JITTER: Final = 0.2
"""Jitter of pauses: each is longer by up to this fraction, so that standbys don't all retry at once."""
_AFTER_FAILURES: Final = Backoff(first=2.0, longest=30.0)
"""Back-off after a failed request, which may be shorter than a long retry period."""
_RELEASE_SECONDS: Final = 2.0
"""Time limit for releasing the Lease when stopping; without it a standby takes over a little later."""

log = logging.getLogger(__name__)

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Times of a leader election, in seconds.

    A leader that dies is replaced `duration` after its last renewal was seen, which is at most 1.2 x `retry_period`
    after it was made; one that stops in order, within 1.2 x `retry_period`. A leader stops leading `renew_deadline`
    after it sent its last successful renewal. client-go's defaults (15, 10, 2) are longer, since losing the lease ends
    its processes.
    """

    duration: int = 5
    """Lease duration in whole seconds, as the Lease records it."""
    renew_deadline: float = 3.5
    retry_period: float = 1.0

    def __post_init__(self) -> None:
        """Reject times that can't work together.

        Raises:
            ValueError: names the times and the rule that they break.
        """
        if self.duration < 1 or self.retry_period <= 0:
            raise ValueError("the lease duration must be at least 1 s, and the retry period more than 0")
        if self.renew_deadline >= self.duration:
            raise ValueError(
                f"the renew deadline ({self.renew_deadline:g} s) must be less than the lease duration"
                f" ({self.duration} s), or two would lead at once"
            )
        if self.retry_period * (1 + _JITTER) >= self.renew_deadline:
            raise ValueError(
                f"the renew deadline ({self.renew_deadline:g} s) must be more than {1 + _JITTER:g} times the retry"
                f" period ({self.retry_period:g} s), or there is no time to renew"
            )


def boot_clock() -> float:
    """Read a monotonic clock, in seconds, which where possible goes on while the machine is suspended."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def own_identity(name: str | None = None) -> str:
    """Make a holder identity for the Lease: a name and a suffix that is unique to this process.

    By default the name is the host's, which in a pod is the pod's (but not with `hostNetwork`).
    """
    return f"{name or socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    """Candidate in the leader election by one Lease."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        identity: str | None = None,
        times: LeaseTimes = LeaseTimes(),
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """Create a candidate, which makes no request before `run`; `identity` must be unique to this process."""
        self.identity = identity or own_identity()
        self.name = name
        self._client = client
        self._namespace = namespace
        self._times = times
        self._clock = clock
        self._lease: dict[str, Any] | None = None
        """The Lease as last written by this process; None while it is another's, or a write's outcome is unknown."""
        self._took_it = False
        self._leads_until = float("-inf")
        self._observed: Spec = {}
        self._observed_at = float("-inf")

    @property
    def leads(self) -> bool:
        """Whether this process leads now; false as soon as the renew deadline has passed."""
        return self._clock() < self._leads_until

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Take part until cancelled: `lead` runs while this process holds the Lease, and is cancelled when it is lost.

        The Lease is released at the end. An exception of `lead` ends the election.
        """
        try:
            while True:
                await self._acquire()
                await self._lead(lead)
        finally:
            await self._release()

    async def _acquire(self) -> None:
        failures = 0
        while True:
            try:
                async with asyncio.timeout(self._times.renew_deadline):
                    if await self._attempt():
                        log.info("leading: this process holds the lease %s/%s", self._namespace, self.name)
                        return
                failures = 0
            except (KubeError, TimeoutError) as error:
                failures += 1
                level = logging.WARNING if failures in {3, 30} or failures % 300 == 0 else logging.DEBUG
                log.log(level, "the lease %s/%s can't be taken: %s", self._namespace, self.name, _in_words(error))
            pause = min(self._pause(), _AFTER_FAILURES.delay(failures)) if failures else self._pause()
            left = self._free_at() - self._clock()
            await asyncio.sleep(min(pause, left) if left > 0 else pause)

    async def _lead(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        term = asyncio.create_task(lead(), name="term")
        renewing = asyncio.create_task(self._renew(), name="lease renewal")
        try:
            await asyncio.wait({term, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leads_until = float("-inf")
            for task in (term, renewing):
                task.cancel()
            results = await asyncio.gather(term, renewing, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _renew(self) -> None:
        """Renew the Lease until it is lost."""
        why = "the process stood still for longer than that"
        while (left := self._leads_until - self._clock()) > 0:
            await asyncio.sleep(min(self._pause(), left))
            left = self._leads_until - self._clock()
            if left <= 0:
                break
            try:
                # Half the deadline at most: a request that got lost leaves time for another.
                async with asyncio.timeout(min(left, self._times.renew_deadline / 2)):
                    if not await self._attempt(only_while_leading=True):
                        why = f"{self._observed.get('holderIdentity')} has it now"
                        break
            except (KubeError, TimeoutError) as error:
                why = _in_words(error)
                log.info("the lease %s/%s was not renewed: %s", self._namespace, self.name, why)
        log.warning(
            "lost the lease %s/%s, no renewal within %g s: %s; waiting for it again",
            self._namespace,
            self.name,
            self._times.renew_deadline,
            why,
        )

    async def _attempt(self, *, only_while_leading: bool = False) -> bool:
        """Acquire or renew the Lease; false where another process holds it."""
        path = LEASES.path(self._namespace, self.name)
        sent = self._clock()
        lease, self._lease = self._lease, None  # What becomes of the write is unknown until it is answered.
        if lease is None:
            try:
                lease = await self._client.get(path, shape=answers.Lease)
            except ApiError as error:
                if error.code != 404:
                    raise
                lease = {"metadata": {"name": self.name, "namespace": self._namespace}}
            if not self._is_free(lease.get("spec") or {}):
                return False
        wanted = {**lease, "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": self._ours(lease)}
        if "resourceVersion" in lease["metadata"]:
            stored = await self._client.replace(path, wanted)  # 409 where somebody was faster
        else:
            stored = await self._client.create(LEASES.path(self._namespace), wanted)
        spec = stored.get("spec")
        if not isinstance(spec, dict) or spec.get("holderIdentity") != self.identity:
            raise InvalidAnswerError("what the server says it has stored is not the lease that was written")
        self._lease, self._observed, self._took_it = stored, spec, True
        if self.leads or not only_while_leading:  # A term that is over by the clock stays over.
            self._leads_until = sent + self._times.renew_deadline
        return True

    def _is_free(self, spec: Spec) -> bool:
        """Whether the Lease can be acquired: no holder, this process, or a holder that was observed not to renew it."""
        if spec != self._observed:
            if spec.get("holderIdentity") not in {None, "", self.identity, self._observed.get("holderIdentity")}:
                log.info("standing by: %s leads", spec["holderIdentity"])
            self._observed, self._observed_at = spec, self._clock()
        if spec.get("holderIdentity") in {None, "", self.identity}:
            return True
        return self._clock() >= self._free_at()

    def _free_at(self) -> float:
        """Return when the Lease may be acquired, unless its record changes until then."""
        return self._observed_at + (self._observed.get("leaseDurationSeconds") or self._times.duration)

    def _ours(self, lease: dict[str, Any]) -> Spec:
        """Build the record that names this process as the holder."""
        old: Spec = lease.get("spec") or {}
        now = _timestamp()
        same = old.get("holderIdentity") == self.identity
        transitions = old.get("leaseTransitions") or 0
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._times.duration,
            "acquireTime": old.get("acquireTime", now) if same else now,
            "renewTime": now,
            "leaseTransitions": transitions + (1 if old and not same else 0),
        }

    async def _release(self) -> None:
        """Release the Lease, so that a standby need not wait for its expiry."""
        if not self._took_it:
            return
        path = LEASES.path(self._namespace, self.name)
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                lease = self._lease or await self._client.get(path, shape=answers.Lease)
                spec = lease.get("spec") or {}
                if spec.get("holderIdentity") == self.identity:
                    await self._client.replace(path, {**lease, "spec": _released(spec)})
        except (KubeError, TimeoutError) as error:
            log.info("the lease %s/%s was not given back: %s", self._namespace, self.name, _in_words(error))

    def _pause(self) -> float:
        """Return the seconds until the next attempt."""
        return self._times.retry_period * random.uniform(1.0, 1.0 + _JITTER)  # noqa: S311 - jitter is no secret


def _released(spec: Spec) -> Spec:
    """Build the record of a released Lease, which has no holder field, where client-go writes an empty one."""
    now = _timestamp()
    return {
        "leaseDurationSeconds": 1,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": spec.get("leaseTransitions") or 0,
    }


def _timestamp() -> str:
    """Format the current time as a MicroTime, for readers of the record."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _in_words(error: Exception) -> str:
    return str(error) or "no answer in time"
