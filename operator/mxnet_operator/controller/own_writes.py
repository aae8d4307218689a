"""Read-your-writes: a job is looked at again only once the caches have heard of all that was written for it.

Without this a second look, at a cache that lags behind, would create what exists and count what was counted. Versions
are integers that grow (KEP-5504); KEP-5647 does the same in Kubernetes' own controllers.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.resources import Resource

GIVE_UP_SECONDS: Final = 30.0
"""After so long the cache is believed again: the event may have been outside our selection, or the server restored."""


class OwnWrites:
    """The latest version written for each job and resource. `clock` gives seconds, monotonic."""

    def __init__(self, caches: Mapping[Resource, Indexer[Any]], clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing written yet."""
        self._caches = caches
        self._clock = clock
        self._written: dict[str, dict[Resource, tuple[int, float]]] = {}

    def record(self, job: str, resource: Resource, stored: Mapping[str, Any]) -> None:
        """Note the object that a write returned; a Status, which deletions return, has no version."""
        version = (stored.get("metadata") or {}).get("resourceVersion", "")
        if not version.isdecimal():
            return
        of_job = self._written.setdefault(job, {})
        before = of_job.get(resource, (0, 0.0))[0]
        of_job[resource] = (max(int(version), before), self._clock())

    def unseen(self, job: str) -> str:
        """What the caches have not heard of yet, in words; empty once they have heard of everything."""
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

    def forget(self, job: str) -> None:
        """The job is gone."""
        self._written.pop(job, None)
