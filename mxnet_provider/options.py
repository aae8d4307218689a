"""The options of an operator besides the job itself, checked when the DAG is parsed and not when the job has run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

from mxnet_operator.api import names
from mxnet_operator.api.conditions import CREATED, FAILED, RESTARTING, RUNNING, SUCCEEDED, SUSPENDED
from mxnet_operator.description.checks import unknown_names
from mxnet_provider.job import kill

DEFAULT_CONNECTION: Final = "kubernetes_default"
"""Airflow's own name for it; its hook can't be imported without the whole Kubernetes client."""

DEFAULT_LEASE: Final = 3600.0
"""Seconds. Longer than Airflow or the cluster is away for ordinary maintenance, and than `api_outage_tolerance`."""

STATES: Final = (CREATED, RUNNING, RESTARTING, SUSPENDED, SUCCEEDED, FAILED)
"""What a job's `status.state` may be."""

_WITHOUT_END: Final = {
    "api_outage_tolerance": "timedelta(days=365), which is as good as for ever",
    "lease": "None for a job without a lease",
}
"""What to write for a time without end, by option: no JSON of Airflow's says infinity."""

FinishAction = Literal["keep", "delete", "delete_succeeded"]
Propagation = Literal["Foreground", "Background"]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class WaitOptions:
    """Options of the wait for a job. Times in seconds, made of timedeltas too; None: without end."""

    poll_interval: float = 10.0
    startup_timeout: float | None = 600.0
    api_outage_tolerance: float = 600.0

    def __post_init__(self) -> None:
        _check(self, "poll_interval", in_seconds, lambda it: it is not None and it > 0, "a number above 0")
        _check(self, "startup_timeout", limit_in_seconds, lambda it: it is None or it > 0, "a number above 0, or None")
        _check(self, "api_outage_tolerance", in_seconds, lambda it: it is not None and it >= 0, "0 or more")


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Options of what appears of a job's logs in the task's log; replicas as pods are labelled, such as `worker-0`."""

    get_logs: bool = True
    log_replicas: Sequence[str] = ("worker-0",)
    log_tail_on_failure: int = 200
    log_events_on_failure: bool = True

    def __post_init__(self) -> None:
        wanted = self.log_replicas
        _require("log_replicas", wanted, not isinstance(wanted, str), "a list, such as ['worker-0']")
        object.__setattr__(self, "log_replicas", tuple(_replica(each) for each in wanted))
        _require("log_tail_on_failure", self.log_tail_on_failure, self.log_tail_on_failure >= 0, "0 or more")


@dataclass(frozen=True, kw_only=True)
class EndOptions:
    """Options of what is done with a job when it, or its task, has ended. Times in seconds, made of timedeltas too."""

    on_finish_action: FinishAction = "keep"
    on_kill_action: kill.Action = "delete"
    propagation_policy: Propagation = "Foreground"
    termination_grace_period: int | None = None
    lease: float | None = DEFAULT_LEASE

    def __post_init__(self) -> None:
        _require_one_of("on_finish_action", self.on_finish_action, ("keep", "delete", "delete_succeeded"))
        _require_one_of("on_kill_action", self.on_kill_action, kill.ACTIONS)
        _require_one_of("propagation_policy", self.propagation_policy, ("Foreground", "Background"))
        _check(self, "lease", in_seconds, lambda it: it is None or it >= 1, "None, or a number of seconds from 1 on")
        _check(self, "termination_grace_period", whole_seconds, lambda it: it is None or it >= 0, "0 or more, or None")


def from_attributes(kind: type[T], owner: object, **instead: Any) -> T:
    return kind(**{each.name: getattr(owner, each.name) for each in fields(kind)} | instead)  # type: ignore[arg-type]


def in_seconds(name: str, value: Any) -> Any:
    """Return the seconds of a finite number or of a timedelta; None stays None. Else ValueError."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not math.isfinite(value):
        instead = _WITHOUT_END.get(name)
        hint = f": write {instead}" if instead else ""
        raise ValueError(f"{name} must be a finite number of seconds, or a timedelta, not {value!r}{hint}")
    _require(name, value, value is None or is_number, "a number of seconds, or a timedelta")
    return value


def limit_in_seconds(name: str, value: Any) -> Any:
    """Convert to seconds as `in_seconds` does; infinity is None, which stands for no limit."""
    return None if value == math.inf else in_seconds(name, value)


def whole_seconds(name: str, value: Any) -> Any:
    seconds = in_seconds(name, value)
    return None if seconds is None else math.ceil(seconds)


def is_given(name: Any) -> bool:
    """Whether a name or uid says something: a template that found nothing renders as "None"."""
    return name not in (None, "", "None")


def require_result_from(value: Any) -> None:
    """Raise ValueError for a source of results that there is not."""
    _require("result_from", value, value in (None, "termination_message"), "'termination_message' or None")


def exit_codes(value: Any) -> frozenset[int]:
    """Return the exit codes of `skip_on_exit_code`: none, one or several, from 1 to 255. Else ValueError."""
    codes = () if value is None else value if isinstance(value, list | tuple | set | frozenset) else (value,)
    is_right = all(isinstance(code, int) and not isinstance(code, bool) and 0 < code < 256 for code in codes)
    _require("skip_on_exit_code", value, is_right, "an exit code from 1 to 255, or a list of them, as in [99]")
    return frozenset(codes)


def require_states(name: str, states: Any) -> None:
    """Raise ValueError for what no job is ever in, with the state that was meant: who waits for it waits for ever."""
    _require(name, states, not isinstance(states, str), f"a list, such as ['{STATES[-2]}']")
    for problem in unknown_names(states, STATES, name):
        raise ValueError(problem.message)


def _check(
    options: Any, name: str, convert: Callable[[str, Any], Any], holds: Callable[[Any], bool], wanted: str
) -> None:
    value = convert(name, getattr(options, name))
    object.__setattr__(options, name, value)
    _require(name, value, holds(value), wanted)


def _replica(given: Any) -> str:
    """Return a replica's short name as its pod has it, of one in whatever case and with whatever zeros."""
    kind, _, index = str(given).lower().rpartition("-")
    number = int(index) if index.isdecimal() else 0
    known = [f"{each.lower()}-{number}" for each in names.REPLICA_TYPES]
    name = f"{kind}-{number}" if index.isdecimal() else str(given).lower()
    for problem in unknown_names([name], known, "log_replicas"):
        raise ValueError(problem.message)
    return name


def _require_one_of(name: str, value: Any, choices: Sequence[str]) -> None:
    _require(name, value, value in choices, f"one of {', '.join(choices)}")


def _require(name: str, value: Any, holds: bool, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name} must be {wanted}, not {value!r}")
