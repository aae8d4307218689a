"""Kind-specific contents of a CustomResourceDefinition."""

import msgspec

from mxnet_operator.api.kind import Kind
from mxnet_operator.api.rules import Rule, TransitionRule
from mxnet_operator.api.types import ApiStruct


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
    refused_of_replica: type[ApiStruct]
    """Replica types whose fields are declared in `replicaSpecs` and rejected by a rule."""
    rules: tuple[Rule, ...]
    """Rules for a job."""
    transitions: tuple[TransitionRule, ...]
    """Rules for an update, between the stored job and its replacement."""
