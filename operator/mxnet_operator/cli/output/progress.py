"""Progress of a job and its replicas: redrawn lines on a terminal, one line per change in a pipe."""

import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from mxnet_operator.api import names
from mxnet_operator.api.conditions import job_state
from mxnet_operator.api.printable import printable_lines
from mxnet_operator.cli.output.replica_state import ReplicaState, first_failed, replica_state
from mxnet_operator.cli.output.tables import STYLES
from mxnet_operator.cli.output.terminal import message_console, write_log
from mxnet_operator.cli.output.times import since
from mxnet_operator.client.jobs import pods_of, ready_counts, replicas
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.log_figures import SPEED, TIME_COST
from mxnet_operator.readers.pods import in_order
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.waiting import waiting_reasons

_MOST_REPLICA_LINES = 8
"""Most replicas that get a line each; more are counted by type, to leave the terminal to the log."""

_IMAGE_REASON: Final = re.compile(r"^.*?\b(ErrImagePull|ImagePullBackOff): ")
_COUNTED: Final = " replica(s) failed (restart "
"""What precedes the number of a restart in its message; the end of the attempt follows after the bracket."""
_SAME_END: Final = "this attempt ended like the one before; to give up sooner next time: --backoff-limit 1"
_REDRAW = 0.2
"""Seconds between two redraws of the replicas' lines."""
_NO_POD = "no pod"
_PROGRESS_FILE: Final = "ARGO_PROGRESS_FILE"

_NAME_AND_STATE = 24
"""Width in characters of the job's name and state at the start of the progress line."""


def replicas_text(job: dict[str, Any]) -> str:
    """Format the replicas that run or have succeeded, of those wanted: `scheduler 1/1, worker 0/2`."""
    return ", ".join(f"{kind.lower()} {ready}/{wanted}" for kind, (ready, wanted) in ready_counts(job).items())


def training_text(log: TrainingLog) -> str:
    """Format where a training is: `epoch 3 of 10, about 5m left  batch 40  1234 samples/s`; may be empty."""
    last = log.last
    if last is None or log.stall:
        return log.stall
    if last.batch is None:
        return "  ".join([log.where(), *_figures(log, last.number)])
    parts = [log.where(), f"batch {last.batch}"]
    parts += [f"{last.values[SPEED]:.4g} samples/s"] if SPEED in last.values else []
    named = {name: value for name, value in last.values.items() if name not in {SPEED, TIME_COST}}
    return "  ".join([*parts, *(f"{name} {value:.4g}" for name, value in named.items())])


def epoch_text(log: TrainingLog, epoch: int) -> str:
    """Format an epoch's figures, if any: `epoch 3 of 10  1234 samples/s  Train-accuracy 0.97  about 3m7s left`."""
    figures = _figures(log, epoch)
    return "  ".join(filter(None, [log.of_all(epoch, log.unit), *figures, log.time_left()])) if figures else ""


def _figures(log: TrainingLog, epoch: int) -> list[str]:
    speed = log.samples_per_second(epoch)
    figures = [f"{name} {value:.4g}" for name, value in log.figures(epoch).items() if name != TIME_COST]
    return [*([f"{speed:.4g} samples/s"] if speed is not None else []), *figures]


def _detail(reason: str) -> str:
    """Return why an image can't be had, which container, job and back-off each say again; else the whole reason."""
    return _IMAGE_REASON.sub("", reason)


class _Waits:
    """Waiting reasons of a job that have not been shown yet."""

    def __init__(self) -> None:
        self._said: tuple[str, ...] = ()
        self._container = ""
        self._restart = ""

    def new(self, job: dict[str, Any]) -> list[str]:
        """Return a line for each reason that the previous version of the job didn't have."""
        before, self._said = self._said, waiting_reasons(job)
        known = {_detail(self._container), *map(_detail, before)}
        new = [reason for reason in self._said if _detail(reason) not in known]
        return [line for reason in new for line in (f"waiting: {reason}", *self._same_end(reason))]

    def _same_end(self, reason: str) -> list[str]:
        """Return a notice where the attempt that ended did so like the one before."""
        _, counted, end = reason.partition(_COUNTED)
        if not counted:
            return []
        before, self._restart = self._restart, end.partition(")")[2].partition(":")[0]
        return [_SAME_END] if before == self._restart else []

    def is_new(self, why: str) -> bool:
        """Whether a container's reason differs from its last one, and from those of the job."""
        known = {_detail(self._container), *map(_detail, self._said)}
        self._container = why
        return bool(why) and _detail(why) not in known


class Progress:
    """Progress in plain lines: one on stderr per change of state or replica counts, log lines to stdout.

    Where the log isn't shown, one line for each epoch of it.
    """

    def __init__(self, console: Console, *, show_log: bool) -> None:
        self._console = console
        self._show_log = show_log
        self._last = ""
        self._waits = _Waits()
        self.training = TrainingLog(time.monotonic)
        """Training figures read from the log lines so far."""
        self._start = time.monotonic()

    def job(self, job: dict[str, Any]) -> None:
        """Write the state and replica counts if they differ from the last line."""
        text = f"{job['metadata']['name']}: {job_state(job) or 'new'} ({replicas_text(job)})"
        if text != self._last:
            self._last = text
            self._console.print(f"{text} after {short(time.monotonic() - self._start)}", markup=False)
        for line in self._waits.new(job):
            self.note(line)

    def log_line(self, line: str) -> None:
        """Write the log line, or the figures of the epoch that it ends."""
        before = self.training.position
        for warning in self.training.new_warnings(line):
            self.note(warning)
        if self._show_log:
            write_log(line)
        elif before is not None and before != self.training.position:
            self._note_epoch(before)

    def waiting(self, why: str) -> None:
        if self._waits.is_new(why):
            self._console.print(f"waiting: {why}", markup=False)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.training.position is not None and not self._show_log:
            self._note_epoch(self.training.position)

    def _note_epoch(self, epoch: int) -> None:
        if text := epoch_text(self.training, epoch):
            self.note(text)


class LiveProgress(Progress):
    """Progress at the foot of a terminal: the job and its replicas; log lines go above, or to a redirected stdout."""

    def __init__(self, console: Console, *, show_log: bool) -> None:
        super().__init__(console, show_log=show_log)
        self._stdout_is_terminal = sys.stdout.isatty()
        self._job: dict[str, Any] | None = None
        self._pods: list[dict[str, Any]] | None = None
        self._replicas: list[Text] = []
        self._drawn = -_REDRAW
        self._wait = ""
        self._spinner = Spinner("dots")
        self._live = Live(
            get_renderable=self._view,
            console=console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def job(self, job: dict[str, Any]) -> None:
        """Redraw the job; write each waiting reason once and in full above it."""
        self._job = job
        for line in self._waits.new(job):
            self.note(line)

    def pods(self, pods: list[dict[str, Any]]) -> None:
        """Redraw the replicas at the next refresh."""
        self._pods = pods

    def log_line(self, line: str) -> None:
        """Write the log line above the progress line, which shows its figures."""
        for warning in self.training.new_warnings(line):
            self.note(warning)
        if self._show_log and self._stdout_is_terminal:
            for shown in printable_lines(line):
                self._console.print(Text(shown))
        elif self._show_log:
            write_log(line)

    def waiting(self, why: str) -> None:
        """Draw the reason in place of figures; write it in full above if the line would cut it."""
        if self._waits.is_new(why) and len(why) > self._console.width - _NAME_AND_STATE:
            self.note(f"waiting: {why}")
        self._wait = why

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _view(self) -> Group:
        # Called for every log line too: thousands of replicas are too many to format each time.
        now = time.monotonic()
        if self._job is not None and self._pods is not None and now - self._drawn >= _REDRAW:
            most = min(_MOST_REPLICA_LINES, self._console.height // 3)
            self._replicas, self._drawn = replica_lines(self._job, self._pods, most=most), now
        return Group(self._line(), *self._replicas)

    def _line(self) -> Spinner:
        text = Text(overflow="ellipsis", no_wrap=True)
        if self._job is not None:
            figures = self._wait or training_text(self.training)
            parts = [short(time.monotonic() - self._start), figures, replicas_text(self._job)]
            text.append(self._job["metadata"]["name"], style="bold")
            text.append(f"  {job_state(self._job) or 'new'}", style="cyan")
            text.append("  " + "  ".join(filter(None, parts)))
        self._spinner.update(text=text)
        return self._spinner


def progress(*, show_log: bool) -> Progress:
    """Create the display that suits stderr: redrawn on a terminal, else plain lines."""
    console = message_console()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveProgress(console, show_log=show_log)
    return Progress(console, show_log=show_log)


def replica_lines(
    job: dict[str, Any], pods: Iterable[dict[str, Any]], *, most: int, now: datetime | None = None
) -> list[Text]:
    """Format name, state, its duration, exit code and reason of each replica; count more than `most` by type."""
    states = [replica_state(pod) for pod in in_order(pods_of(job, pods))]
    wanted = replicas(job)
    if max(len(wanted), len(states)) > most:
        return list(_by_type(wanted, states, now))
    found = {one.replica: one for one in states}
    width = max(map(len, [*wanted, *found]), default=0)
    state_width = max((len(one.state) for one in states), default=0)
    lines = []
    for name in dict.fromkeys([*wanted, *found]):
        line = _line(name, width)
        if one := found.get(name):
            line.append(f"{one.state:<{state_width}}", style=STYLES.get(one.state, ""))
            line.append(f"  {since(one.since, now)}")
            line.append(f"  {one.end}" if one.end else "", style="red" if one.has_failed else "")
            line.append(f"  {one.summary}" if one.summary else "", style="dim")
        else:
            line.append(_NO_POD, style="dim")
        lines.append(line)
    return lines


def _by_type(wanted: list[str], states: list[ReplicaState], now: datetime | None) -> Iterator[Text]:
    asked = Counter(name.rpartition("-")[0] for name in wanted)
    kinds = [kind.lower() for kind in names.REPLICA_TYPES if asked[kind.lower()]]
    width = max(map(len, kinds))
    for kind in kinds:
        here = [one for one in states if one.replica.rpartition("-")[0] == kind]
        counts = Counter(one.state for one in here)
        if missing := asked[kind] - len(here):
            counts[_NO_POD] = missing
        line = _line(kind, width)
        for position, (state, count) in enumerate(counts.most_common()):
            line.append(", " if position else "").append(f"{count} {state}", style=STYLES.get(state, ""))
        if here:
            line.append(f"  {since(max(one.since for one in here), now)}")
        if failed := first_failed(here):
            line.append(f"  {failed.replica} {failed.end}", style="red")
        yield line


def _line(name: str, width: int) -> Text:
    return Text(f"  {name:<{width}}  ", overflow="ellipsis", no_wrap=True)


class ProgressFile:
    """File from which Argo's executor reads a step's progress: the epochs that have ended, of all, as `3/20`.

    Argo names it in the container's `environment`; without a name, nothing is written.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = environment.get(_PROGRESS_FILE)
        self._written = ""

    def update(self, training: TrainingLog) -> None:
        """Write the progress if it has changed and the number of epochs is known; Argo does without it."""
        ended, epochs = training.epochs_ended(), training.epochs_wanted
        if not self._path or ended is None or not epochs:
            return
        text = f"{max(0, min(ended, epochs))}/{epochs}"
        if text != self._written:
            self._written = text
            with contextlib.suppress(OSError):
                Path(self._path).write_text(f"{text}\n", encoding="utf-8")
