"""Answers of pure functions that a million schedules ask the same of, remembered by all that they are asked with.

The manifest of the one job of a schedule is validated by the API server and read by each controller that starts: a
fifth of the time of a simulation went there. The functions are the product's own.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from mxnet_operator.api import forms
from mxnet_operator.api.structural import FieldError
from mxnet_operator.local.apiserver import validation

_LIMIT = 4096
Errors = Callable[[Any], list[FieldError]]


@cache
def install() -> None:
    """Remember the answers in this process from now on."""
    forms.validate = remembered(forms.validate)  # type: ignore[attr-defined]
    forms.template_errors = remembered(forms.template_errors)  # type: ignore[attr-defined]
    validation.RULES = {kind: remembered(rules) for kind, rules in validation.RULES.items()}  # type: ignore[misc]


def remembered(errors: Errors) -> Errors:
    """The same function, which asks only once about manifests that differ in status and resourceVersion alone.

    Not for a manifest with a status: what is wrong with that is answered anew each time.
    """
    answers: dict[bytes, list[FieldError]] = {}

    def ask(manifest: Any) -> list[FieldError]:
        if "status" in manifest:
            return errors(manifest)
        metadata = {name: value for name, value in manifest["metadata"].items() if name != "resourceVersion"}
        key = msgspec.json.encode({**manifest, "metadata": metadata})
        if key not in answers:
            if len(answers) >= _LIMIT:
                answers.clear()
            answers[key] = errors(manifest)
        return answers[key]

    return ask
