"""Rules that reject a misplaced field, each with the spelling that was probably meant."""

from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.rules import Rule

SPEC: Final = ("spec",)
LIST: Final = ("spec", "replicaSpecs")
ENTRY: Final = (*LIST, "*")
ONLY_V1: Final = f"a list of replicas has none: `mxjob convert` makes it {names.API_VERSION}, which does"


def no_field(field: str, why: str, *, at: tuple[str, ...] = SPEC) -> Rule:
    """Return the rule that there is no such field in the value at a path."""
    return Rule(
        at=at, field=f".{field}", cel=f"!has(self.{field})", message=why, holds=lambda value: field not in value
    )


def not_in(api_version: str, field: str, why: str) -> Rule:
    """Return the rule that a field of the spec is not written in a version."""
    return Rule(
        at=(),
        field=f".spec.{field}",
        cel=f"self.apiVersion != '{api_version}' || !has(self.spec.{field})",
        message=why,
        holds=lambda job: job.get("apiVersion") != api_version or field not in job["spec"],
    )
