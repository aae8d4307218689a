"""Writes of a job's status, and CRDs that are older than this controller, under which the server would drop fields.

`helm install` keeps a CRD that exists, and an upgrade may leave it out. Without `restarts` no attempt is ever counted,
without `state` no client sees an end: jobs would wait for ever, and nothing would say why. So the server is asked to
reject fields that it doesn't know: what would be stored in part is not stored. Fields that only inform are left out
then; the log says so once.
"""

import logging
import re
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mxnet_operator.api.types import MXJobStatus
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import Resource

_INFORMATIVE: Final = frozenset({"ready", "duration", "training", "url", "result"})
"""Fields on which no decision rests: a job runs without them."""
DECISIVE: Final = frozenset(MXJobStatus.__struct_encode_fields__) - _INFORMATIVE | {"form"}
"""Fields of a status that a server has to store; `form` is the format of a job in an older one."""
_STRICT: Final = {"fieldValidation": "Strict"}
_REJECTION: Final = "strict decoding error: "
_UNKNOWN: Final = re.compile(r'unknown field "status\.(\w+)')
_TRIED_AGAIN_AFTER: Final = 600.0
"""Seconds after which fields that a CRD lacked are written again: it may have been replaced."""

log = logging.getLogger(__name__)


class OutdatedCRDError(KubeError):
    """The API server doesn't know fields of a status on which decisions rest; nothing was stored."""


class _LeftOut(msgspec.Struct):
    fields: frozenset[str]
    until: float
    """Time on the writer's clock."""


class StatusWriter:
    """Writer of statuses, with a record of the CRDs that are too old for them; shared by all reconcilers.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unknown: dict[Resource, dict[str, tuple[str, ...]]] = {}  # By kind and path, the fields that it lacks.
        self._left_out: dict[Resource, _LeftOut] = {}

    async def patch(self, client: Client, resource: Resource, path: str, body: dict[str, Any]) -> Stored:
        """Patch the status at a path and return the job as it is stored, without fields that the CRD lacks.

        Raises:
            OutdatedCRDError: the CRD lacks fields on which decisions rest.
            KubeError: the server doesn't answer, or rejects the patch for another reason.
        """
        left_out = self._left_out.get(resource)
        tries_all = left_out is None or self._clock() >= left_out.until
        known = body if left_out is None or tries_all else _without(body, left_out.fields)
        try:
            stored = await client.patch_as(path, known, Stored, _STRICT)
        except ApiError as error:
            _, is_strict, fields = error.message.rpartition(_REJECTION)
            if not is_strict:
                raise
            lacks = frozenset(_UNKNOWN.findall(fields))
            if unknown := tuple(sorted(DECISIVE & lacks)):
                self._unknown.setdefault(resource, {})[path] = unknown
                raise OutdatedCRDError(_words(resource, unknown)) from error
            if left_out is None or not lacks <= left_out.fields:
                log.warning("%s", _words(resource, tuple(sorted(lacks)), _ONLY_INFORM))
            before = left_out.fields if left_out is not None and not tries_all else frozenset()
            self._left_out[resource] = _LeftOut(before | lacks, self._clock() + _TRIED_AGAIN_AFTER)
            return await client.patch_as(path, _without(known, lacks), Stored)
        self._unknown.pop(resource, None)
        if left_out is not None and tries_all and left_out.fields & body["status"].keys():
            del self._left_out[resource]
        return stored

    def forget_job(self, resource: Resource, path: str) -> None:
        """Drop what was met at the path of a status: the job is gone, or has nothing to write any more."""
        if met := self._unknown.get(resource):
            met.pop(path, None)

    def forget(self) -> None:
        """Drop the record: another process leads, and writes."""
        self._unknown.clear()

    def trouble(self) -> str:
        """Return which CRDs are too old, and the remedy; empty where none is known to be."""
        lacks = {
            resource: sorted({each for unknown in met.values() for each in unknown})
            for resource, met in self._unknown.items()
        }
        return "; ".join(_words(resource, tuple(unknown)) for resource, unknown in lacks.items() if unknown)


_CAN_NOT_RUN: Final = "no job of it can be run until"
_ONLY_INFORM: Final = "jobs run without these until"


def _without(body: dict[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    return {**body, "status": {name: value for name, value in body["status"].items() if name not in fields}}


def _words(resource: Resource, unknown: tuple[str, ...], what: str = _CAN_NOT_RUN) -> str:
    fields = ", ".join(f"status.{field}" for field in unknown)
    return (
        f"the CRD {resource.plural}.{resource.group} is older than this controller and lacks {fields}: {what}"
        " this release's is applied (kubectl apply --server-side --force-conflicts -f operator/manifests/base/crd.yaml)"
    )
