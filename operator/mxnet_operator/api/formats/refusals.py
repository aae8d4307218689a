"""Rules that reject a misplaced field, each with the spelling that was probably meant."""

from collections.abc import Mapping
from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.rules import Rule

SPEC: Final = ("spec",)
LIST: Final = ("spec", "replicaSpecs")
ENTRY: Final = (*LIST, "*")
ONLY_V1: Final = f"a list of replicas has none: `mxjob convert` makes it {names.API_VERSION}, which does"


def no_field(field: str, why: str, *, at: tuple[str, ...] = SPEC, versions: tuple[str, ...] = ()) -> Rule:
    """Return the rule that there is no such field in the value at a path.

    It stands at the field: the API server evaluates it only where somebody wrote that.
    """
    return Rule(at=(*at, field), cel="false", message=why, versions=versions, holds=lambda _: False)


def none_beside(other: str, words: Mapping[str, str], versions: tuple[str, ...], *, served: bool = True) -> Rule:
    """Return the rule that a spec has none of some fields beside another, in versions; `words` say what to write.

    The API server leaves it to others where not even mode and replicas are there besides.
    """
    fewest = len({"jobMode", "mxReplicaSpecs", other}) + 1 if served else 0
    present = " || ".join(f"has(self.{field})" for field in words)
    return Rule(
        at=SPEC,
        # A copy of the spec's schema is what each `has` costs; the size of the spec costs nothing.
        cel=f"size(dyn(self)) < {fewest} || !({present}) || !has(self.{other})" if served else "",
        message=f"these fields belong to another format than {other}:",
        words=words,
        versions=versions,
        holds=lambda spec: len(spec) < fewest or other not in spec or not any(field in spec for field in words),
    )
