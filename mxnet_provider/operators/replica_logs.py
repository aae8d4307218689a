"""The logs of a job's replicas, shown in the log of the task that waits for it."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Self

from mxnet_operator.readers.log_lines import LogCursor, split_lines
from mxnet_operator.readers.long_result import is_part
from mxnet_operator.readers.pods import has_log, is_log_complete, label_of
from mxnet_provider.hooks.api_errors import message
from mxnet_provider.job import replicas
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.log_budget import LogBudget, notice
from mxnet_provider.job.logs import LogFollower
from mxnet_provider.job.metrics import Metrics

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook

_SHOW_SECONDS: Final = 10.0
"""How long the rest of a log is shown as it is read; what is left then is read for its figures first."""
_DRAIN_SECONDS: Final = 50.0
_STOP_SECONDS: Final = 5.0
_TAIL_LINES: Final = 1000
_AT_ONCE: Final = 10_000
_PER_SECOND: Final = 200.0
"""A worker is its task's alone: it shows more than a trigger does."""


class ReplicaLogs:
    """Follows the chosen replicas, each pod of each attempt in a thread of its own.

    Leaving the context stops the threads. Nothing that goes wrong with a log is more than a warning.
    """

    def __init__(
        self,
        hook: "MXNetJobHook",
        ref: JobRef,
        labels: Sequence[str],
        log: "Logger",
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._hook = hook
        self._ref = ref
        self._labels = tuple(labels)
        self._log = log
        self._metrics = metrics
        self._label_of: dict[str, str] = {}
        self._followers: dict[str, LogFollower] = {}
        self._budgets: dict[str, LogBudget] = {}
        self._pods: dict[str, tuple[str, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for follower in self._followers.values():
            follower.stop()

    def follow(self) -> None:
        """Begin to follow the chosen replicas that have started since the last call."""
        if not self._labels:
            return
        try:
            pods = self._hook.replica_pods(self._ref)
        except Exception as e:
            self._log.warning("Could not list the pods of the job to show their logs: %s", e)
            return
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if label_of(pod) in self._labels and uid not in self._followers and has_log(pod):
                self._label_of[uid] = label_of(pod)
                self._followers[uid] = self._start(pod)

    def drain(self) -> None:
        """Read the rest of the logs of replicas that have ended, a minute at most each, and show the last lines."""
        for uid, follower in self._followers.items():
            follower.join(_SHOW_SECONDS)
            if follower.is_alive():
                self._budgets[uid].hold_back()
                follower.join(_DRAIN_SECONDS)
            if follower.is_alive():
                follower.stop()
                follower.join(_STOP_SECONDS)
                self._show_tail(uid)
            else:
                self._show(self._budgets[uid].finish())

    def _show_tail(self, uid: str) -> None:
        """Show the last lines alone, and take their figures, where reading all lines took too long."""
        label, (pod, namespace) = self._label_of[uid], self._pods[uid]
        self._log.warning(
            "[%s] The log was not read whole within a minute, and figures from its middle may be missing. All of it, "
            "while the pod is there: kubectl logs -n %s %s. Its last lines:",
            label,
            namespace,
            pod,
        )
        try:
            stream = self._hook.open_log(pod, namespace, tail_lines=_TAIL_LINES)
            if stream is None:
                return
            cursor = LogCursor()
            with stream as chunks:
                for line in split_lines(chunks):
                    text = cursor.take(line) or ""
                    self._read_figures(label, text)
                    if not is_part(text):
                        self._log.info("[%s] %s", label, text)
        except Exception as e:
            self._log.warning("[%s] Could not read the end of the log either: %s", label, message(e))

    def _read_figures(self, label: str, text: str) -> None:
        if label == self._labels[0]:
            self._metrics.read(text)

    def complete(self) -> list[str]:
        """Return the replicas whose whole log has been shown."""
        shown = {label for label, follower in self._by_label() if follower.complete}
        return sorted(shown - {label for label, follower in self._by_label() if not follower.complete})

    def _by_label(self) -> list[tuple[str, LogFollower]]:
        return [(self._label_of[uid], follower) for uid, follower in self._followers.items()]

    def _start(self, pod: replicas.Pod) -> LogFollower:
        label, metadata = label_of(pod), pod["metadata"]
        name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]

        def open_log(since: str | None) -> AbstractContextManager[Iterable[bytes]] | None:
            return self._hook.open_log(name, namespace, follow=True, since=since)

        def has_ended() -> bool:
            current = self._hook.get_replica_pod(name, namespace)
            return current is None or current["metadata"]["uid"] != uid or is_log_complete(current)

        self._pods[uid] = name, namespace
        budget = self._budgets[uid] = LogBudget(
            at_once=_AT_ONCE, per_second=_PER_SECOND, notice=notice(label, name, namespace), clock=self._clock
        )

        def emit(text: str) -> None:
            self._read_figures(label, text)
            if not is_part(text):
                self._show(budget.take(f"[{label}] {text}"))

        follower = LogFollower(
            label,
            open_log,
            has_ended,
            emit=emit,
            warn=lambda text: self._log.warning("[%s] %s", label, text),
            pause=lambda: self._show(budget.release()),
        )
        follower.start()
        return follower

    def _show(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._log.info("%s", line)
