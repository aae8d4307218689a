"""What a form of job is: one way of writing one, with defaults and status words of its own."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mxnet_operator.api.kinds import Kind
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.types import MXJobStatus

Spec = dict[str, Any]
Status = dict[str, Any]
Path = tuple[str, ...]
Note = Callable[[Path, str], None]
"""Told, while a spec is turned into v1's, of each field of the result that is not what the user wrote, and why."""


class Form(msgspec.Struct, frozen=True):
    """One form; its functions take what the API server's own checks have let through."""

    name: str
    """As `status.form` records it."""
    kind: Kind
    title: str
    """As people call it."""
    spec_to_v1: Callable[[Spec, Note], Spec]
    """The v1 spec with this form's defaults written out."""
    conflicts: Callable[[Spec], Iterator[FieldError]]
    """What is wrong with a spec that the schema and its rules can't say."""
    words: Callable[[MXJobStatus, bool], dict[str, Any]]
    """What the status says besides v1's fields, or in their place; told whether pods are left to be deleted."""
    read: Callable[[Status], Status]
    """Their inverse, also of what the form's first operator wrote: v1's words, and whatever else was there."""
    has_runtime_id: bool = False
    has_phases: bool = False
    """Whether its status tells phases, the last of which needs a write when the clean-up is over."""


def no_words(_status: MXJobStatus, _pods_left: bool) -> dict[str, Any]:
    """The words of a form whose status is v1's."""
    return {}


def no_conflicts(_spec: Spec) -> Iterator[FieldError]:
    """Those of a form of which schema and rules say everything."""
    return iter(())
