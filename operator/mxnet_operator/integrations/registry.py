"""Registry of integrations: one row each. Without a row, and its folder, the controller works without that system."""

from collections.abc import Callable
from typing import Final

import msgspec

from mxnet_operator.integrations.argo import Argo
from mxnet_operator.integrations.gangs import gangs
from mxnet_operator.integrations.integration import Integration
from mxnet_operator.integrations.kueue import Kueue
from mxnet_operator.integrations.worker_logs import WorkerLogs


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the integrations, from the flags of `mxnet-operator run`."""

    gang_scheduling: str = "none"
    """Gang scheduler: a name, `auto` or `none`; `local` for the local cluster's."""
    gang_scheduler_name: str = ""
    """schedulerName of gang-scheduled pods whose template has none."""


ROWS: Final[tuple[Callable[[Settings], Integration], ...]] = (
    lambda _: Argo(),
    lambda _: Kueue(),
    lambda settings: gangs(settings.gang_scheduling, settings.gang_scheduler_name),
    lambda _: WorkerLogs(),
)


def integrations(settings: Settings | None = None) -> tuple[Integration, ...]:
    """Return the integrations, in the order in which `plan` asks them.

    Raises:
        ValueError: a setting names nothing that exists.
    """
    return tuple(row(settings or Settings()) for row in ROWS)
