"""Replicas of a running job on a terminal: a line for each while they are few, else a line per type."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from rich.text import Text

from mxnet_operator.api import names
from mxnet_operator.cli.output.replica_state import ReplicaState, first_failed, in_order, replica_state
from mxnet_operator.cli.output.tables import STYLES
from mxnet_operator.cli.output.times import since
from mxnet_operator.client.jobs import pods_of, replicas

_NO_POD = "no pod"


def replica_lines(
    job: dict[str, Any], pods: Iterable[dict[str, Any]], *, most: int, now: datetime | None = None
) -> list[Text]:
    """Format name, state, its duration, exit code and reason of each replica; count more than `most` by type."""
    states = in_order([replica_state(pod) for pod in pods_of(job, pods)])
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
