"""Expectations: a job is reconciled again only once the caches have seen every write made for it.

Without this a second reconciliation, from a cache that lags behind, would create what exists and count what was
counted. Versions are integers that grow (KEP-5504); KEP-5647 does the same in Kubernetes' own controllers.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.resources import Resource

GIVE_UP_SECONDS: Final = 30.0
"""Seconds until the cache is trusted again: the event may be outside our selection, or the server restored."""


class OwnWrites:
    """Latest version written for each job and resource. `clock` gives seconds, monotonic."""

    def __init__(self, caches: Mapping[Resource, Indexer[Any]], clock: Callable[[], float] = time.monotonic) -> None:
        self._caches = caches
        self._clock = clock
        self._written: dict[str, dict[Resource, tuple[int, float]]] = {}

    def record(self, job: str, resource: Resource, version: str) -> None:
        """Record the version of the object that a write returned; empty for a Status, which deletions return."""
        if not version.isdecimal():
            return
        of_job = self._written.setdefault(job, {})
        before = of_job.get(resource, (0, 0.0))[0]
        of_job[resource] = (max(int(version), before), self._clock())

    def unseen(self, job: str) -> str:
        """Return a description of the writes that the caches have not seen yet; empty once they have seen all."""
        pending = self._written.get(job)
        if not pending:
            return ""
        now = self._clock()
        for resource, (version, at) in list(pending.items()):
            if self._caches[resource].resource_version >= version or now - at > GIVE_UP_SECONDS:
                del pending[resource]
            else:
                return f"{resource} at version {version}"
        del self._written[job]
        return ""
