"""Metadata of a child of a job: its owner above all, by which it belongs to the job."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.kinds import kind_of
from mxnet_operator.readers.pods import Time, Wire


class Owner(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Wire, frozen=True):
    """Metadata without annotations: each kind of child reads its own."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[Owner] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


def job_of(meta: Meta) -> tuple[str, str] | None:
    """Return the key and the uid of the job that controls a child."""
    for owner in meta.owner_references or ():
        if owner.controller and (kind := _kind_of(owner.api_version, owner.kind)) is not None:
            return sys.intern(kind.job_key(f"{meta.namespace}/{owner.name}")), sys.intern(owner.uid)
    return None


_kind_of: Final = lru_cache(maxsize=64)(kind_of)


def has_watched_label(labels: Mapping[str, str] | None) -> bool:
    """Return whether an object with these labels has the one by which children are watched."""
    return (labels or {}).get(names.LABEL_OPERATOR_NAME) == names.OPERATOR_NAME
