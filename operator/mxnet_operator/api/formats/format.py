"""Format of a job: one way of writing it, with its own defaults and status fields; and what its kind's CRD has."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mxnet_operator.api.kind import Kind
from mxnet_operator.api.rules import Rule, TransitionRule
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.types import ApiStruct, MXJobStatus


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """Types and rules of one kind: types for the schema (`api/schemas.py`), rules in CEL and in Python.

    A schema also declares the fields of related formats, which are easily mixed up with its own: a declared field
    reaches the rule that rejects it, where an unknown one would be pruned without a message.
    """

    kind: Kind
    spec: type[ApiStruct] | None = None
    """Type of the spec; None for v1's."""
    required: tuple[str, ...] | None = None
    """Required fields of the spec; None for the type's own."""
    also: tuple[type[ApiStruct], ...] = ()
    """Specs of other formats of the kind, whose fields its spec has too."""
    also_of_replica: type[ApiStruct] | None = None
    """Replica types of other formats of the kind, whose fields an entry of `mxReplicaSpecs` has too."""
    refused: tuple[type[ApiStruct], ...] = ()
    """Specs whose fields are declared and rejected by a rule."""
    rules: tuple[Rule, ...]
    """Rules for a job."""
    transitions: tuple[TransitionRule, ...]
    """Rules for an update, between the stored job and its replacement."""


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
    spec_to_v1: Callable[[Spec, Note], Spec]
    """Function that returns the v1 spec with this format's defaults written out."""
    read: Callable[[Status], Status]
    """Inverse of `words`, also for what the format's first operator wrote; keeps unknown fields."""
    words: Callable[[MXJobStatus, bool], dict[str, Any]] = lambda *_: {}
    """Function that returns the status fields besides or instead of v1's, given whether pods are left to delete."""
    conflicts: Callable[[Spec], Iterator[FieldError]] = lambda _: iter(())
    """Function that returns the errors of a spec that the schema and its rules can't express."""
    has_runtime_id: bool = False
    has_phases: bool = False
    """Whether its status has phases, the last of which needs a write when the clean-up is complete."""

    @property
    def kind(self) -> Kind:
        return self.definition.kind
