"""The logs of a job's replicas, shown in the log of the task that waits for it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Self

from mxnet_provider import replicas
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.logs import LogCursor, LogFollower, split_lines

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

_DRAIN_SECONDS: Final = 30.0


class ReplicaLogs:
    """Follows the chosen replicas, each pod of each attempt in a thread of its own.

    Leaving the context stops the threads. Nothing that goes wrong with a log is more than a warning.
    """

    def __init__(self, hook: MXNetJobHook, labels: Sequence[str], log: "Logger") -> None:
        self._hook = hook
        self._labels = frozenset(labels)
        self._log = log
        self._followers: dict[str, LogFollower] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for follower in self._followers.values():
            follower.stop()

    def follow(self, job: Mapping[str, Any]) -> None:
        """Begin to follow the chosen replicas that have started since the last call."""
        if not self._labels:
            return
        try:
            pods = self._hook.replica_pods(job)
        except Exception as e:
            self._log.warning("Could not list the pods of the job to show their logs: %s", e)
            return
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if replicas.label(pod) in self._labels and uid not in self._followers and replicas.has_started(pod):
                self._followers[uid] = self._start(pod)

    def drain(self) -> None:
        """Wait for the last lines of replicas that have ended; half a minute at most."""
        for follower in self._followers.values():
            follower.join(_DRAIN_SECONDS)

    def show_failed(self, job: Mapping[str, Any], *, tail_lines: int) -> None:
        """Show the end of the log of each failed replica that was not shown while it ran."""
        try:
            failed = [pod for pod in self._hook.replica_pods(job) if replicas.has_failed(pod)]
            for pod in failed:
                follower = self._followers.get(pod["metadata"]["uid"])
                if follower is None or not follower.complete:
                    self._show_tail(pod, tail_lines)
        except Exception as e:
            self._log.warning("Could not show the logs of the failed replicas: %s", e)

    def _show_tail(self, pod: replicas.Pod, tail_lines: int) -> None:
        label, metadata = replicas.label(pod), pod["metadata"]
        stream = self._hook.open_log(metadata["name"], metadata["namespace"], tail_lines=tail_lines)
        if stream is None:
            return
        cursor = LogCursor()
        with stream as chunks:
            for number, line in enumerate(split_lines(chunks)):
                if number == 0:
                    self._log.info("The last lines of %s:", label)
                self._log.info("[%s] %s", label, cursor.take(line))

    def _start(self, pod: replicas.Pod) -> LogFollower:
        label, metadata = replicas.label(pod), pod["metadata"]
        name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]

        def open_log(since: str | None) -> AbstractContextManager[Iterable[bytes]] | None:
            return self._hook.open_log(name, namespace, follow=True, since=since)

        def has_ended() -> bool:
            current = self._hook.get_replica_pod(name, namespace)
            return current is None or current["metadata"]["uid"] != uid or replicas.has_ended(current)

        follower = LogFollower(
            label,
            open_log,
            has_ended,
            emit=lambda text: self._log.info("[%s] %s", label, text),
            warn=lambda text: self._log.warning("[%s] %s", label, text),
        )
        follower.start()
        return follower
