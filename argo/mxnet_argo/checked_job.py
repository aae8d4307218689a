"""The manifest of the job that a template makes, checked as far as it can be before a workflow is submitted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from msgspec import structs

from mxnet_argo.inputs import parameters
from mxnet_argo.job import DIGEST, MXJobSpec, check_prefix, job_manifest, job_name
from mxnet_argo.manifest_input import AS_JSON, NEEDS_V1, PARTS, whole_job
from mxnet_argo.refusals import seconds
from mxnet_argo.rendering import blamed, leaves, render, sampled
from mxnet_argo.values import Value, parsed, switch, word
from mxnet_operator.api import names
from mxnet_operator.api.conversion import without_server_fields
from mxnet_operator.api.formats.mxjob import V1
from mxnet_operator.api.job_formats import format_of
from mxnet_operator.api.manifest_text import ManifestError, jsonable
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.validation import template_errors, unknown_fields, validate
from mxnet_operator.description import to_manifest
from mxnet_operator.description.older_formats import in_v1
from mxnet_operator.description.plain import plain

DEADLINE: Final = 24 * 3600
"""Seconds for which a job may be active, where nothing is said."""
SHORTEST_TTL: Final = 300
"""Seconds that a finished job must stay, for a poller that was restarted to read how it ended."""
_TAKEN: Final = ("labels", "annotations")
"""What a whole manifest's metadata is taken of it for, besides its name."""
_OF_TEXT: Final = 'integer("x"), or integer(expression("...")), makes a number of it, and data() what is JSON'
_LOAD: Final = "mxnet_operator.api.manifest_text.load() reads one as kubectl does"


_OBJECTS: Final = (
    ("metadata",),
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec",),
    ("spec", "runPolicy"),
    ("spec", "mxReplicaSpecs"),
)
"""Parts of a manifest that a step adds to, or looks into, before validation sees it."""


@dataclass(kw_only=True)
class JobTemplate:
    """Fields of a template that is a job, whether Argo's poller follows it or our own command line."""

    spec: MXJobSpec | None = None
    manifest: Mapping[str, Any] | Value | None = None
    prefix: str | None = None
    deadline: timedelta | int | Value | None = None
    delete_with_workflow: bool | Value | None = None
    allow_unknown_fields: bool | None = None


class CheckedJob:
    """Job of an `MXJobStep` or `MXJobRunner`, as far as the template knows it; another manifest may take its place."""

    def __init__(self, step: Any, *, manifest: Mapping[str, Any] | None = None, prefix: str | None = None) -> None:
        self.template: str = step.name or ""
        self.spec: MXJobSpec | None = step.spec
        self.manifest: Any = step.manifest if manifest is None else manifest
        self.prefix: str = prefix or step.prefix or self.template
        self.deadline: timedelta | int | Value = DEADLINE if step.deadline is None else step.deadline
        self.timeout: str | None = step.timeout
        self.delete_with_workflow: bool | Value = step.delete_with_workflow is None or step.delete_with_workflow
        self.inputs = step.inputs
        self.allow_unknown_fields = bool(step.allow_unknown_fields)
        self._step = step

    def given(self) -> dict[str, Any]:
        """Return the manifest without what ties it to its workflow.

        Raises:
            ValueError, TypeError: what Argo or the API server would reject only once the workflow runs.
        """
        check_prefix(self.prefix)
        given = self._given()
        spec = given["spec"] = dict(given.get("spec") or {})
        policy = spec["runPolicy"] = dict(spec.get("runPolicy") or {})
        if policy.get("activeDeadlineSeconds") is None:
            policy["activeDeadlineSeconds"] = self._deadline()
        if self.delete_with_workflow:
            metadata = given["metadata"] = dict(given.get("metadata") or {})
            asked = "true" if self.delete_with_workflow is True else switch(self.delete_with_workflow)
            own = {names.DELETE_WITH_WORKFLOW_ANNOTATION: asked}
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **own}
        self._refuse_undeclared(*(leaf for _, leaf in leaves(given)))
        self._sample(given, {})
        return given

    def check(self, arguments: Mapping[str, str]) -> None:
        """Check the job that it would be with these texts for inputs; what has tags of Argo's in it is left to Argo.

        Raises:
            ValueError: an argument isn't what its place takes, with its name.
        """
        if isinstance(self.manifest, Value):
            self._check_whole(self.manifest, arguments)
            return
        self._sample(self.given(), arguments)

    def text(self, *, may_suspend: bool) -> str:
        """Return the whole manifest as YAML with Argo's tags in it.

        Raises:
            ValueError, TypeError: what Argo or the API server would reject only once the workflow runs.
        """
        if isinstance(self.manifest, Value):
            return self._whole(self.manifest)
        given = self.given()
        if not may_suspend and given["spec"]["runPolicy"].get("suspend") is not None:
            raise ValueError(
                f"{self.template}: spec.runPolicy.suspend: leave it out: a poller that is replaced applies the manifest"
                " again, and would suspend the job anew, or resume it; an MXJobRunner doesn't"
            )
        return render(job_manifest(given, job_name(self.prefix)))

    def _whole(self, manifest: Value) -> str:
        check_prefix(self.prefix)
        if self.spec is not None:
            raise ValueError(f"{self.template}: spec: an input has the whole manifest, which nothing is merged over")
        asked = self.delete_with_workflow
        if not isinstance(asked, Value):
            asked = word('"true"' if asked else '"false"')
        deadline = self._deadline()
        self._refuse_undeclared(manifest, asked, deadline)
        return whole_job(manifest, prefix=self.prefix, deadline=deadline, asked=asked)

    def _check_whole(self, manifest: Value, arguments: Mapping[str, str]) -> None:
        (name,) = manifest.parameters
        text = arguments.get(name)
        if text is None or "{{" in text:
            return
        try:
            given = parsed(text)
        except ValueError as error:
            raise ValueError(f"{self.template}: input {name}: {error}; {AS_JSON} makes it") from error
        parts = _without_nulls(given) if isinstance(given, Mapping) else {}
        spec, metadata = parts.get("spec"), _without_nulls(parts.get("metadata", {}))
        if not all(isinstance(each, Mapping) for each in (spec, metadata)):
            raise ValueError(f"{self.template}: input {name}: it is no MXJob")
        if unknown := unknown_fields({**given, "spec": {}, "status": {}}):
            raise ValueError(f"{self.template}: input {name}: {'; '.join(each.message for each in unknown)}")
        if isinstance(policy := parts["spec"].get("runPolicy"), Mapping) and policy.get("suspend") is not None:
            raise ValueError(
                f"{self.template}: input {name}: spec.runPolicy.suspend: leave it out: a new poller would set it again"
            )
        texts = ((field, metadata.get(field)) for field in ("name", "namespace"))
        if no_text := [each for each in texts if each[1] is not None and not isinstance(each[1], str)]:
            field, value = no_text[0]
            raise ValueError(f"{self.template}: input {name}: metadata.{field}: must be text, is {value!r}")
        prefix = metadata.get("name")
        job = {key: parts[key] for key in ("apiVersion", "kind", "spec") if key in parts}
        if (written := format_of({"apiVersion": names.API_VERSION, "kind": names.KIND, **job})) is not V1:
            raise ValueError(f"{self.template}: input {name}: it is of the format {written.name}, but {NEEDS_V1}")
        taken = {key: _without_nulls(each) for key, each in metadata.items() if key in _TAKEN}
        others = {key: each for key, each in arguments.items() if key != name}
        checked = CheckedJob(self._step, manifest={**job, "metadata": taken}, prefix=prefix)
        checked._sample(checked.given(), others)

    def _deadline(self) -> int | Value:
        try:
            limit = seconds(self.timeout)
        except ValueError as error:
            raise ValueError(f"{self.template}: {error}") from error
        given = self.deadline
        if isinstance(given, timedelta):
            given = math.ceil(given.total_seconds())
        if isinstance(given, Value):
            return given
        if type(given) is int:
            return given if limit is None else min(given, limit)
        raise ValueError(f"{self.template}: deadline: must be seconds, a whole number or a timedelta, is {given!r}")

    def _given(self) -> dict[str, Any]:
        if self.spec is None and self.manifest is None:
            raise ValueError(f"{self.template}: give spec or manifest")
        base = None if self.manifest is None else self._given_manifest()
        if self.spec is None:
            return base or {}
        try:
            given = to_manifest(self.spec, base)
        except ValueError as error:
            raise ValueError(f"{self.template}: {error}") from error
        self._refuse_place(given)
        return given

    def _given_manifest(self) -> dict[str, Any]:
        if not isinstance(self.manifest, Mapping):
            raise TypeError(f"{self.template}: manifest is a mapping, not text; {_LOAD}")
        try:
            copied: dict[str, Any] = jsonable(plain(self.manifest), keep=(Value,))
        except ManifestError as error:
            raise ValueError(f"{self.template}: {error}; {_LOAD}") from error
        if unknown := unknown_fields({key: each for key, each in copied.items() if key not in PARTS}):
            raise ValueError(f"{self.template}: {'; '.join(each.message for each in unknown)}")
        copied = _without_nulls(copied)
        for path in _OBJECTS:
            _check_object(self.template, copied, path)
        self._refuse_place(copied)
        try:
            return without_server_fields(in_v1(copied))
        except ValueError as error:
            raise ValueError(f"{self.template}: {error}") from error

    def _refuse_place(self, given: Mapping[str, Any]) -> None:
        metadata = given.get("metadata") or {}
        for field in ("name", "generateName", "namespace"):
            if metadata.get(field) not in (None, ""):
                raise ValueError(
                    f"{self.template}: metadata.{field}: leave it out. The job is named by the run and the step, so"
                    " that a retry finds it, and is in the workflow's namespace, so that it goes with the workflow"
                )

    def _refuse_undeclared(self, *values: Any) -> None:
        used = {name for each in values if isinstance(each, Value) for name in each.parameters}
        if missing := sorted(used - set(parameters(self.inputs))):
            raise ValueError(f"{self.template}: the manifest uses {', '.join(missing)}: declare it in inputs")

    def _sample(self, given: Mapping[str, Any], arguments: Mapping[str, str]) -> dict[str, Any]:
        """Return the job with these arguments, the inputs' defaults, and examples for what has neither.

        An example is judged by nobody but the API server, once the workflow runs and there is a value.
        """
        declared = parameters(self.inputs)
        defaults = {name: each.default for name, each in declared.items() if isinstance(each.default, str)}
        texts = {name: text for name, text in {**defaults, **arguments}.items() if "{{" not in text}
        try:
            filled = sampled(given, texts, arguments)
            metadata = dict(filled.get("metadata") or {})
            labels = metadata.pop("labels", None)
            sample = job_manifest({**filled, "metadata": metadata}, f"{self.prefix}-{'0' * DIGEST}")
        except ValueError as error:
            raise ValueError(f"{self.template}: {error}") from error
        del sample["metadata"]["ownerReferences"]
        sample["metadata"]["labels"] = labels
        values = {path: leaf for path, leaf in leaves(given) if isinstance(leaf, Value)}
        examples = [path for path, leaf in values.items() if leaf.known_text(texts) is None]
        problems = _but_in(examples, validate(sample)) or _but_in(examples, template_errors(sample))
        problems = problems or _mistyped([each for each in examples if values[each].is_text], sample)
        if not self.allow_unknown_fields:
            problems += _but_in(examples, unknown_fields(sample))
        if problems := problems or _but_in(examples, _ttl_errors(sample)):
            by = {path: blamed(sorted(leaf.parameters), arguments) for path, leaf in values.items()}
            raise ValueError(f"{self.template}: {'; '.join(_named(each, by) for each in problems)}")
        return sample


def _without_nulls(given: Any) -> Any:
    """Return a mapping without its fields that are null; what is none is left to others."""
    return {key: each for key, each in given.items() if each is not None} if isinstance(given, Mapping) else given


def _check_object(template: str, given: Mapping[str, Any], path: tuple[str, ...]) -> None:
    """Reject a part of the manifest that something is added to, and that is no mapping."""
    found: Any = given
    for field in path:
        found = found.get(field) if found else None
    if found is None or isinstance(found, Mapping):
        return
    of_inputs = isinstance(found, Value)
    why = "an input can't have all of it: give its fields values of inputs" if of_inputs else "must be an object"
    raise ValueError(f"{template}: {'.'.join(path)}: Invalid value: {why}")


def _ttl_errors(job: Mapping[str, Any]) -> list[FieldError]:
    ttl = job["spec"]["runPolicy"].get("ttlSecondsAfterFinished")
    if not isinstance(ttl, int) or ttl >= SHORTEST_TTL:  # of another type is only an input's example
        return []
    gone = f"the job could be gone before the step has read how it ended; {SHORTEST_TTL} at least"
    path = "spec.runPolicy.ttlSecondsAfterFinished"
    return [FieldError(path, "FieldValueInvalid", f"ttlSecondsAfterFinished {ttl}: {gone}")]


def _but_in(paths: Sequence[str], problems: Sequence[FieldError]) -> list[FieldError]:
    return [each for each in problems if not any(_is_in(path, each) for path in paths)]


def _mistyped(texts: Sequence[str], sample: Mapping[str, Any]) -> list[FieldError]:
    """Return the mistakes at places that get a text and take none, whatever it says."""
    found = dict.fromkeys([*validate(sample), *template_errors(dict(sample))])
    told = [each for each in found if each.path in texts and each.reason == "FieldValueTypeInvalid"]
    return [structs.replace(each, detail=f"{each.detail}: text: {_OF_TEXT}") for each in told]


def _is_in(path: str, problem: FieldError) -> bool:
    return problem.path == path or problem.path.startswith((f"{path}.", f"{path}["))


def _named(problem: FieldError, inputs: Mapping[str, Sequence[str]]) -> str:
    """Return a mistake, with the input that the value comes from."""
    of = next((names for path, names in inputs.items() if _is_in(path, problem) and names), ())
    return f"input {', '.join(of)}: {problem.message}" if of else problem.message
