"""Answers of pure functions that a million schedules ask the same of, remembered by all that they are asked with.

The manifest of the one job of a schedule is validated by the API server and read by each controller that starts: a
fifth of the time of a simulation went there. The functions are the product's own.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from mxnet_operator.api import job_formats
from mxnet_operator.api.structural import FieldError
from mxnet_operator.local.apiserver import validation

_LIMIT = 4096
Errors = Callable[..., list[FieldError]]


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """Remember the answers meanwhile; afterwards the product is as it was, for the other tests of this process."""
    before = [(holder, name, getattr(holder, name)) for holder, name in _PLACES]
    for holder, name, found in before:
        setattr(holder, name, _remembering_all(found) if isinstance(found, Mapping) else _once(found))
    try:
        yield
    finally:
        for holder, name, found in before:
            setattr(holder, name, found)


_PLACES = ((job_formats, "validate"), (job_formats, "template_errors"), (validation, "RULES"))


@cache
def _once(errors: Errors) -> Errors:
    return remembered(errors)


def _remembering_all(rules: Mapping[Any, Errors]) -> Mapping[Any, Errors]:
    return {kind: _once(each) for kind, each in rules.items()}


def remembered(errors: Errors) -> Errors:
    """The same function, which asks only once about manifests that differ in status and resourceVersion alone.

    Not for a manifest with a status: what is wrong with that is answered anew each time.
    """
    answers: dict[tuple[bytes, tuple[tuple[str, bool], ...]], list[FieldError]] = {}

    def ask(manifest: Any, **options: bool) -> list[FieldError]:
        if "status" in manifest:
            return errors(manifest, **options)
        metadata = {name: value for name, value in manifest["metadata"].items() if name != "resourceVersion"}
        key = msgspec.json.encode({**manifest, "metadata": metadata}), tuple(sorted(options.items()))
        if key not in answers:
            if len(answers) >= _LIMIT:
                answers.clear()
            answers[key] = errors(manifest, **options)
        return answers[key]

    return ask
