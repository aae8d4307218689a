"""Kinds of custom resource in which a job can be written: MXJob, and those of its predecessors.

Two of them are called MXJob and have the plural `mxjobs`, as it was; the group tells them apart.
"""

from typing import Final

from mxnet_operator.api.formats import FORMATS
from mxnet_operator.api.formats.mxjob import MXJOB
from mxnet_operator.api.kind import Kind

__all__ = ["ALL", "LEGACY", "MXJOB", "Kind", "kind_of"]

ALL: Final = tuple(dict.fromkeys(each.kind for each in FORMATS))
LEGACY: Final = tuple(kind for kind in ALL if kind.is_legacy)


def kind_of(api_version: str, kind: str) -> Kind | None:
    """Return the kind that a manifest's header names in a served version, or None."""
    group, _, version = api_version.partition("/")
    return next((k for k in ALL if (k.group, k.kind) == (group, kind) and version in k.versions), None)
