"""What the logs of a job's workers show together: where each stands still, and which are slower than the others."""

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

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
_SLOW: Final = 0.7
"""Share of the median speed below which a worker is slow."""


def stall_in(line: str) -> str:
    """Return where the worker that wrote a line stands still; empty where the line doesn't say so."""
    return line.strip().removeprefix("mxjob: ") if line.startswith(STALL) else ""


def gang_stall(stalls: Mapping[str, str]) -> str:
    """Return in one sentence where all workers stand, by the `stall_in` of each one's last line; empty where none does.

    Workers that stand outside of MXNet come first: they are the likely cause.
    """
    causes: dict[str, list[str]] = {}
    waits: dict[str, list[str]] = {}
    others, seconds = [], 0
    for worker, stall in stalls.items():
        found = _PLACE.fullmatch(stall)
        if found is None:
            others.append(worker)
            continue
        seconds = max(seconds, int(found["seconds"]))
        place = found["place"].rpartition("/")[2]
        if found["mxnet"]:
            waits.setdefault(f"in MXNet's {found['call']} at {place}", []).append(worker)
        else:
            function = found["function"]
            causes.setdefault(place if function == "<module>" else f"{place} in {function}", []).append(worker)
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


def slow_workers(speeds: Mapping[str, float], nodes: Mapping[str, str]) -> str:
    """Return in a sentence which workers train below 70 % of the median speed, in samples per second, and where.

    Empty where none does. Where all workers wait for each other in every batch, they are equally fast.
    """
    median = statistics.median_high(speeds.values()) if speeds else 0  # of two, the faster one
    slow = [worker for worker, speed in speeds.items() if speed < _SLOW * median]
    if not slow:
        return ""
    each = [f"{worker} on node {nodes.get(worker) or '?'} ({speeds[worker]:.4g})" for worker in slow]
    return f"Below 70 % of the workers' median speed ({median:.4g} samples/s): {_names(each)}."


def _names(workers: Sequence[str]) -> str:
    return first_names(workers, _MOST_NAMES)


def _verb(word: str, workers: list[str]) -> str:
    return word if len(workers) > 1 else f"{word}s"
