"""What a form of job is: one way of writing one, with defaults and status words of its own."""

from collections.abc import Callable
from typing import Any

import msgspec

from mxnet_operator.api.kinds import Kind
from mxnet_operator.api.structural import FieldError

Spec = dict[str, Any]
Manifest = dict[str, Any]


class Form(msgspec.Struct, frozen=True):
    """One form; the functions take what the API server's own checks have let through."""

    name: str
    """As `status.form` records it."""
    kind: Kind
    errors: Callable[[Manifest], list[FieldError]]
    """What is wrong with a manifest that the schema and its rules can't say."""
    has_phases: bool
    """Whether its status tells phases, the last of which needs a write when the clean-up is over."""
    spec_to_v1: Callable[[Spec], Spec]
    """The v1 spec with this form's defaults written out."""
