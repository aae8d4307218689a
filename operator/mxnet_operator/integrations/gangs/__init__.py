"""Gang schedulers, which place the pods of a job at once or not at all: a new one is a file beside this and a row."""

from collections.abc import Callable, Mapping
from typing import Final

from mxnet_operator.integrations.gangs import coscheduling, native, volcano
from mxnet_operator.integrations.gangs.backend import GangBackend, child_kinds
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.integrations.integration import Integration

AUTO: Final = "auto"
NONE: Final = "none"
LOCAL: Final = "local"
"""The local cluster's own scheduler, which has no pod groups."""
SCHEDULERS: Final[Mapping[str, Callable[[str], tuple[GangBackend, ...]]]] = {
    native.NAME: lambda _: native.BACKENDS,
    coscheduling.NAME: lambda scheduler: (coscheduling.backend(scheduler),),
    volcano.NAME: lambda scheduler: (volcano.backend(scheduler),),
}
_PREFERRED: Final = (native.NAME, coscheduling.NAME)
"""Schedulers of AUTO. Never Volcano: it would move every pod to another scheduler because a CRD is there."""


def backends_of(name: str, scheduler: str = "") -> tuple[GangBackend, ...]:
    """Return the back ends that a name stands for, best first: the first that is served is used.

    Pods whose template names no scheduler get `scheduler`, where the back end has one of its own.

    Raises:
        ValueError: there is no gang scheduler of this name.
    """
    if name in {NONE, LOCAL}:
        return ()
    named = _PREFERRED if name == AUTO else (name,)
    unknown = next((each for each in named if each not in SCHEDULERS), None)
    if unknown is not None:
        known = ", ".join((AUTO, *SCHEDULERS, NONE))
        raise ValueError(f"there is no gang scheduler {unknown!r}: choose one of {known}")
    return tuple(backend for each in named for backend in SCHEDULERS[each](scheduler))


class Gangs(Integration):
    """Integration of the gang schedulers of a cluster, of which one is used."""

    name = "gang scheduling"
    is_awaited = True

    def __init__(self, backends: tuple[GangBackend, ...] = (), policy: GangPolicy | None = None) -> None:
        self.policy = policy or GangPolicy()
        self.choices = tuple(child_kinds(backend) for backend in backends)


def gangs(name: str, scheduler: str = "") -> Gangs:
    """Return the integration for a name of `--gang-scheduling` and a name of `--gang-scheduler-name`.

    Raises:
        ValueError: there is no gang scheduler of this name.
    """
    return Gangs(backends_of(name, scheduler), GangPolicy(is_local=name == LOCAL))
