"""The gang schedulers that jobs may be placed by, and which of them are asked for."""

from collections.abc import Callable, Mapping
from typing import Final

from mxnet_operator.controller.gangs import coscheduling, native, volcano
from mxnet_operator.controller.gangs.backend import GangBackend
from mxnet_operator.controller.gangs.kinds import child_kinds

AUTO: Final = "auto"
NONE: Final = "none"
_BY_NAME: Final[Mapping[str, Callable[[str], tuple[GangBackend, ...]]]] = {
    native.NAME: lambda _: native.BACKENDS,
    coscheduling.NAME: lambda scheduler: (coscheduling.backend(scheduler),),
    volcano.NAME: lambda scheduler: (volcano.backend(scheduler),),
    NONE: lambda _: (),
    # Never Volcano: it would move every pod to another scheduler because a CRD is there.
    AUTO: lambda scheduler: (*native.BACKENDS, coscheduling.backend(scheduler)),
}
NAMES: Final = (AUTO, native.NAME, coscheduling.NAME, volcano.NAME, NONE)


def backends_of(name: str, scheduler: str = "") -> tuple[GangBackend, ...]:
    """Return the back ends that a name of `NAMES` stands for, best first: the first that is served is used.

    Pods whose template names no scheduler get `scheduler`, where the back end has one of its own.
    """
    return _BY_NAME[name](scheduler)


__all__ = ["AUTO", "NAMES", "NONE", "GangBackend", "backends_of", "child_kinds"]
