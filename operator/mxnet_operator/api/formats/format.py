"""Format of a job: one way of writing it, with its own defaults and status fields."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mxnet_operator.api.formats.definition import Definition
from mxnet_operator.api.kind import Kind
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.types import MXJobStatus

Spec = dict[str, Any]
Status = dict[str, Any]
Path = tuple[str, ...]
Note = Callable[[Path, str], None]
"""Callback for each field of a converted spec that differs from what the user wrote, with the reason."""


class Format(msgspec.Struct, frozen=True):
    """Format of a job; its functions expect manifests that the API server's own checks accept."""

    name: str
    """Name in `status.form`."""
    definition: Definition
    """Definition of its kind, which several formats may share."""
    title: str
    """Name for people."""
    spec_to_v1: Callable[[Spec, Note], Spec]
    """Function that returns the v1 spec with this format's defaults written out."""
    conflicts: Callable[[Spec], Iterator[FieldError]]
    """Function that returns the errors of a spec that the schema and its rules can't express."""
    words: Callable[[MXJobStatus, bool], dict[str, Any]]
    """Function that returns the status fields besides or instead of v1's, given whether pods are left to delete."""
    read: Callable[[Status], Status]
    """Inverse of the status function, also for what the format's first operator wrote; keeps unknown fields."""
    has_runtime_id: bool = False
    has_phases: bool = False
    """Whether its status has phases, the last of which needs a write when the clean-up is complete."""

    @property
    def kind(self) -> Kind:
        """Kind of its jobs."""
        return self.definition.kind


def no_words(_status: MXJobStatus, _pods_left: bool) -> dict[str, Any]:
    """Return a status unchanged: for a format whose status is v1's."""
    return {}


def no_conflicts(_spec: Spec) -> Iterator[FieldError]:
    """Return no errors: for a format that schema and rules cover completely."""
    return iter(())
