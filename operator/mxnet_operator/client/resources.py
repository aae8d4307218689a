"""Resources of jobs in the API, one for each kind, and the keys that tell their objects apart."""

from functools import cache
from typing import Final

from mxnet_operator.api.kinds import MXJOB, Kind
from mxnet_operator.kube.resources import Resource


@cache
def resource_of(kind: Kind) -> Resource:
    """Return the resource of a kind, in the version in which it is stored: nothing is converted then."""
    return Resource(kind.group, kind.stored, kind.plural)


MXJOBS: Final = resource_of(MXJOB)


def parts_of(key: str) -> tuple[str, str]:
    """Split a key into the resource, as kubectl writes it, and the `namespace/name` of a key."""
    resource, _, job = key.partition("/")
    return resource, job
