"""What the logs of a job's workers show together: where each stands still, and which are slower than the others."""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from mxnet_operator.api.types import SlowWorker, StalledWorker
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.enumeration import first_names

STALL: Final = "mxjob: stalled for "
"""Beginning of the line by which the fail-fast hook reports a worker that stands still (`mxjob_stall.py`)."""
_PLACE: Final = re.compile(
    r"stalled for (?P<seconds>\d+) s, without CPU or output, at (?P<place>.+), in "
    r"(?:(?P<mxnet>MXNet's )(?P<call>\w+):.*|(?P<function>\S+))"
)
_CREATES: Final = "in MXNet's create at "
"""How a worker waits until all replicas have joined the gang."""
MOST_WORKERS: Final = 16
"""Maximum number of workers of a job whose logs are read to compare them: the first ones."""
_MOST_NAMES: Final = 4
_LONGEST_PLACE: Final = 128
_LONGEST_FUNCTION: Final = 128
_SLOW: Final = 70
"""Percent of the median speed below which a worker is slow."""


def stall_in(line: str) -> str:
    """Return where the worker that wrote a line stands still; empty where the line doesn't say so."""
    return line.strip().removeprefix("mxjob: ") if line.startswith(STALL) else ""


def stalled_workers(stalls: Mapping[str, str]) -> tuple[StalledWorker, ...]:
    """Return where each worker stands, by the `stall_in` of its last line; empty where none stands still."""
    workers = tuple(_stalled(worker, stall) for worker, stall in stalls.items())
    return workers if any(each.place for each in workers) else ()


def _stalled(worker: str, stall: str) -> StalledWorker:
    found = _PLACE.fullmatch(stall)
    if found is None:
        return StalledWorker(name=worker)
    return StalledWorker(
        name=worker,
        seconds=min(int(found["seconds"]), 2**31 - 1),
        place=found["place"][-_LONGEST_PLACE:],
        function=(found["call"] or found["function"])[:_LONGEST_FUNCTION],
        in_mxnet=found["mxnet"] is not None,
    )


def stall_text(stalled: Sequence[StalledWorker]) -> str:
    """Return in one sentence where all workers stand; empty where none does.

    Workers that stand outside of MXNet come first: they are the likely cause.
    """
    causes: dict[str, list[str]] = {}
    waits: dict[str, list[str]] = {}
    others = [each.name for each in stalled if not each.place]
    for each in stalled:
        place = each.place.rpartition("/")[2]
        if each.in_mxnet:
            waits.setdefault(f"in MXNet's {each.function} at {place}", []).append(each.name)
        elif place:
            causes.setdefault(place if each.function == "<module>" else f"{place} in {each.function}", []).append(
                each.name
            )
    seconds = max((each.seconds for each in stalled), default=0)
    if not seconds:
        return ""
    parts = [f"{_names(workers)} {_verb('stand', workers)} at {place}" for place, workers in causes.items()]
    parts += [f"{_names(workers)} {_verb('wait', workers)} {call}" for call, workers in waits.items()]
    parts += [f"but not {_names(others)}"] if others else []
    if not causes and all(call.startswith(_CREATES) for call in waits):
        joined = ", ".join(f"{_names(workers)} at {call.removeprefix(_CREATES)}" for call, workers in waits.items())
        missing = _names(others) if others else "a server, the scheduler, or a worker that sets DMLC_* itself"
        return f"waits for the gang for {short(seconds)}: joined by {joined}, but not by {missing}"
    hint = "" if causes else " (uneven batches?)"
    return f"stalled for {short(seconds)}: {', '.join(parts)}{hint}"


def slow_workers(speeds: Mapping[str, float], nodes: Mapping[str, str]) -> tuple[SlowWorker, ...]:
    """Return which workers train below 70 % of the median speed, in samples per second, and where.

    Where all workers wait for each other in every batch, they are equally fast.
    """
    median = statistics.median_high(speeds.values()) if speeds else 0  # of two, the faster one
    return tuple(
        SlowWorker(name=worker, node=nodes.get(worker, ""), percent=int(100 * speed / median))
        for worker, speed in speeds.items()
        if 0 <= 100 * speed < _SLOW * median
    )


def slow_text(slow: Sequence[SlowWorker]) -> str:
    """Return in a sentence which workers are slow; empty where none is."""
    if not slow:
        return ""
    each = [f"{worker.name} on node {worker.node or '?'} ({worker.percent} %)" for worker in slow]
    return f"Below {_SLOW} % of the workers' median speed: {_names(each)}."


def _names(workers: Sequence[str]) -> str:
    return first_names(workers, _MOST_NAMES)


def _verb(word: str, workers: list[str]) -> str:
    return word if len(workers) > 1 else f"{word}s"
