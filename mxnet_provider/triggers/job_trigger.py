"""The base of triggers that wait for a job: arguments that Airflow stores, the hook, and errors that Airflow stores."""

import asyncio
import contextlib
import dataclasses
import importlib
import traceback
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from airflow.triggers.base import BaseTrigger

from mxnet_operator.api import names
from mxnet_operator.api.storable import storable_text
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.outage import Outage, Retries
from mxnet_provider.cluster import connection_of
from mxnet_provider.exceptions import AirflowUnreachableError, MXNetJobError
from mxnet_provider.hooks.api_errors import message
from mxnet_provider.job.polling import JITTER
from mxnet_provider.options import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

_PAUSE: Final = 5.0


@dataclass(kw_only=True, eq=False, repr=False)
class JobTrigger(BaseTrigger):
    """Wait for a job.

    Arguments are references, never credentials. Those that a later release adds have defaults, none is ever taken
    away, and no default ever changes, since each release reads its own into the gap.
    """

    name: str
    namespace: str
    api_version: str = names.API_VERSION
    kind: str = names.KIND
    plural: str = names.PLURAL
    kubernetes_conn_id: str | None = DEFAULT_CONNECTION
    """Connection of type `kubernetes`, which the triggerer must be able to use too."""
    in_cluster: bool | None = None
    """Whether to use the service account of the triggerer's pod."""
    config_file: str | None = None
    """Path of a kubeconfig on the triggerer."""
    cluster_context: str | None = None
    poll_interval: float = 10.0
    """Seconds between two polls of the job while it just runs, give or take a fifth."""
    api_outage_tolerance: float = 600.0
    """Seconds for which the API server may be away."""

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def ref(self) -> JobRef:
        return msgspec.convert(self, JobRef, from_attributes=True)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class, and its arguments that differ from their defaults.

        A triggerer of an earlier release lacks arguments that came later, and makes no trigger of one that is named.
        """
        held, fields = vars(self) | connection_of(self), dataclasses.fields(self)
        arguments = {each.name: held[each.name] for each in fields if held[each.name] != _default(each)}
        return f"{type(self).__module__}.{type(self).__name__}", arguments

    @contextlib.asynccontextmanager
    async def connected(self) -> "AsyncIterator[MXNetJobAsyncHook]":
        """Return an entered hook.

        Airflow imports triggers on its event loop, and the hook imports the Kubernetes clients: seconds, in which no
        other trigger would run. So that is done in a thread, by the first trigger.
        """
        module = await asyncio.to_thread(importlib.import_module, "mxnet_provider.hooks.mxnet_job_async")
        retries = Retries(Outage(self.api_outage_tolerance), first=_PAUSE, longest=_PAUSE, jitter=JITTER)
        async with contextlib.AsyncExitStack() as held:
            while True:
                made = module.MXNetJobAsyncHook(say=self.log.info, **connection_of(self))
                try:
                    hook = await held.enter_async_context(made)
                    break
                except AirflowUnreachableError as e:
                    self.log.info("%s. Trying again.", e)
                    await retries.pause_or_raise(e)
            yield hook

    @contextlib.contextmanager
    def _storable_errors(self) -> Iterator[None]:
        """Fail only with what Airflow's database takes: it stores the whole traceback, causes included.

        Where it rejects that, the triggerer ends, and with it every trigger of every DAG.
        """
        try:
            yield
        except Exception as e:
            told = storable_text(traceback.format_exc())
            self.log.error("The trigger failed: %s", told)  # noqa: TRY400 - a log is a file too
            raise MXNetJobError(storable_text(message(e))) from None


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
