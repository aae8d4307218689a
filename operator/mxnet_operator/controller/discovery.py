"""Discovery of an integration's child kinds: of several sets the first that the server serves is watched."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from mxnet_operator.controller.informers import WatchedChildren
from mxnet_operator.integrations.child_kinds import ChildKind, KindsState
from mxnet_operator.kube.answers import AnyList
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.discovery import is_served, until_gone
from mxnet_operator.kube.errors import ApiError, InvalidAnswerError, KubeError
from mxnet_operator.kube.supervision import keep_running

Choice = tuple[ChildKind, ...]
SYNC_SECONDS: Final = 10.0
_ASK_AGAIN: Final = 1.0
"""Seconds until discovery is retried that failed before any work began."""
_FORBIDDEN: Final = 403

log = logging.getLogger(__name__)


@dataclass
class Discovery:
    """Keeps the caches of the first choice filled that is served, while it is served."""

    name: str
    choices: Sequence[Choice]
    client: Client
    children: Sequence[WatchedChildren]
    interval: float
    """Seconds after which the server is asked again."""
    changed: Callable[[], None]
    """Called when every job is to be reconciled."""
    on_crash: Callable[[str], None]

    def __post_init__(self) -> None:
        self.known = asyncio.Event()
        """Whether it is known what is served, and its objects are listed."""
        self._choice: Choice = ()
        self._is_absent = not self.choices
        self._error: KubeError | None = None
        """Why the server didn't say what it serves, when it was last asked."""
        if not self.choices:
            self.known.set()

    def state(self, children: WatchedChildren) -> KindsState:
        """Return what is known now, where these children are watched."""
        if self._is_absent:
            return KindsState("Absent")
        reflectors = [children.optional.get(kind) for kind in self._choice]
        if not reflectors or None in reflectors:
            return KindsState("Unknown", str(self._error or ""))
        waits = next((each for each in reflectors if each is not None and not each.synced.is_set()), None)
        return KindsState("Served") if waits is None else KindsState("Unknown", waits.trouble)

    async def run(self) -> None:
        """Look for a choice that is served, and watch it while it is, until cancelled."""
        while self.choices:
            choice = await self._served()
            if choice is None:
                await asyncio.sleep(self.interval if self.known.is_set() else _ASK_AGAIN)
                continue
            known_in_time = asyncio.get_running_loop().call_later(SYNC_SECONDS, self._give_up_on, choice)
            try:
                await self._watch_while_served(choice)
            finally:
                known_in_time.cancel()

    async def wait(self) -> None:
        """Wait until it is known what is served; go on without where the server answers and doesn't say.

        While it doesn't answer at all, no job can be run either.
        """
        while not self.known.is_set():
            try:
                async with asyncio.timeout(SYNC_SECONDS):
                    await self.known.wait()
            except TimeoutError:
                error = self._error
                if isinstance(error, ApiError | InvalidAnswerError):
                    log.warning("whether %s is served is unknown, and jobs go without: %s", self.name, error)
                    self.known.set()
                elif error is not None:
                    log.warning("still waiting for the server to say whether it has %s: %s", self.name, error)

    async def _served(self) -> Choice | None:
        """Return the first choice all of whose kinds are served, rather one whose objects may be listed."""
        forbidden: Choice | None = None
        try:
            for choice in self.choices:
                if await self._are_served(choice):
                    if len(self.choices) == 1 or await self._may_list(choice):
                        return self._found(choice)
                    forbidden = forbidden or choice
        except KubeError as error:
            log.debug("whether %s is served: %s", self.name, error)
            self._error = error
            return None
        return self._found(forbidden)

    def _found(self, choice: Choice | None) -> Choice | None:
        """Record what is served; the jobs are reconciled where that is news."""
        self._error = None
        is_news = self._is_absent != (choice is None)
        self._is_absent = choice is None
        if choice is None:
            self.known.set()
        if is_news:
            self.changed()
        return choice

    async def _are_served(self, choice: Choice) -> bool:
        for kind in choice:
            if not await is_served(self.client, kind.resource):
                return False
        return True

    async def _may_list(self, choice: Choice) -> bool:
        """Return whether this controller has the right to list the objects of these kinds."""
        for path in (kind.resource.path(children.namespace) for kind in choice for children in self.children):
            try:
                await self.client.get(path, {"limit": 1}, shape=AnyList)
            except ApiError as error:
                if error.code == _FORBIDDEN:
                    log.info("%s: another choice is looked for: %s", self.name, error)
                    return False
        return True

    def _give_up_on(self, choice: Choice) -> None:
        """Start work without objects that can't be listed."""
        if not self.known.is_set():
            log.warning(
                "%s can't be listed, and jobs get none until they can: may this controller list and watch them?",
                _named(choice),
            )
            self.known.set()

    async def _watch_while_served(self, choice: Choice) -> None:
        log.info("%s: %s are served: jobs get them", self.name, _named(choice))
        self._choice = choice
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = [tasks.create_task(self._watch(of, choice)) for of in self.children]
                await until_gone(partial(self._are_served, choice), self.interval)
                for task in watching:
                    task.cancel()
        finally:
            self._choice = ()
            for children in self.children:
                for kind in choice:
                    children.end(kind)
        log.info("%s are no longer served: jobs get none", _named(choice))

    async def _watch(self, children: WatchedChildren, choice: Choice) -> None:
        """Fill the caches of served kinds, and reconcile jobs with them once they have synced."""
        reflectors = [children.begin(kind) for kind in choice]
        async with asyncio.TaskGroup() as tasks:
            for reflector in reflectors:
                name = f"reflector {reflector.resource}"
                tasks.create_task(keep_running(name, reflector.run, on_crash=self.on_crash), name=name)
            for reflector in reflectors:
                await reflector.synced.wait()
            for kind in choice:
                children.caches.serve(kind, served=True)
            if all(kind in each.caches.served() for each in self.children for kind in choice):
                self.known.set()
            self.changed()


def _named(choice: Choice) -> str:
    return ", ".join(f"{kind.resource} ({kind.resource.version})" for kind in choice)
