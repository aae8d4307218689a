"""Writes of a job's status, and CRDs that are older than this controller, under which the server would drop fields.

`helm install` keeps a CRD that exists, and an upgrade may leave it out. Without `restarts` no attempt is ever counted,
without `state` no client sees an end: jobs would wait for ever, and nothing would say why. So the server is asked to
reject fields that it doesn't know: what would be stored in part is not stored.
"""

import re
from typing import Any, Final

from mxnet_operator.api.types import MXJobStatus
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import Resource

_INFORMATIVE: Final = frozenset({"ready", "duration", "progress", "url", "result"})
"""Fields on which no decision rests: a job runs without them."""
DECISIVE: Final = frozenset(MXJobStatus.__struct_encode_fields__) - _INFORMATIVE | {"form"}
"""Fields of a status that a server has to store; `form` is the format of a job in an older one."""
_STRICT: Final = {"fieldValidation": "Strict"}
_REJECTION: Final = "strict decoding error: "
_UNKNOWN: Final = re.compile(r'unknown field "status\.(\w+)')


class OutdatedCRDError(KubeError):
    """The API server doesn't know fields of a status on which decisions rest; nothing was stored."""


class StatusWriter:
    """Writer of statuses, with a record of the CRDs that are too old for them; shared by all reconcilers."""

    def __init__(self) -> None:
        """Create a writer that knows of no old CRD."""
        self._unknown: dict[Resource, dict[str, tuple[str, ...]]] = {}  # By kind and path, the fields that it lacks.

    async def patch(self, client: Client, resource: Resource, path: str, body: dict[str, Any]) -> Stored:
        """Patch the status at a path and return the job as it is stored; fields that only inform may be dropped.

        Raises:
            OutdatedCRDError: the CRD lacks fields on which decisions rest.
            KubeError: the server doesn't answer, or rejects the patch for another reason.
        """
        try:
            stored = await client.patch_as(path, body, Stored, _STRICT)
        except ApiError as error:
            _, is_strict, fields = error.message.rpartition(_REJECTION)
            if not is_strict:
                raise
            if unknown := tuple(sorted(DECISIVE.intersection(_UNKNOWN.findall(fields)))):
                self._unknown.setdefault(resource, {})[path] = unknown
                raise OutdatedCRDError(_words(resource, unknown)) from error
            return await client.patch_as(path, body, Stored)
        self._unknown.pop(resource, None)
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


def _words(resource: Resource, unknown: tuple[str, ...]) -> str:
    fields = ", ".join(f"status.{field}" for field in unknown)
    return (
        f"the CRD {resource.plural}.{resource.group} is older than this controller and lacks {fields}: no job of it can"
        " be run until this release's is applied (kubectl apply --server-side --force-conflicts -f"
        " operator/manifests/base/crd.yaml)"
    )
