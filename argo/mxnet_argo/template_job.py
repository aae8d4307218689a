"""The manifest of the job that a template makes, checked as far as it can be before a workflow is submitted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mxnet_argo.durations import seconds
from mxnet_argo.inputs import parameters
from mxnet_argo.job import MXJobSpec, job_manifest
from mxnet_argo.job_name import check_prefix, example_name, job_name
from mxnet_argo.manifest import leaves, render, sampled
from mxnet_argo.values import Value
from mxnet_operator.api import names
from mxnet_operator.api.manifest_text import ManifestError, jsonable
from mxnet_operator.api.validation import template_errors, unknown_fields, validate

SHORTEST_TTL: Final = 300
"""Seconds that a finished job must stay, for a poller that was restarted to read how it ended."""
_LOAD: Final = "mxnet_operator.api.manifest_text.load() reads one as kubectl does"


@dataclass(frozen=True, kw_only=True)
class TemplateJob:
    """What a template is told about its job.

    Args:
        template: the template's name.
        spec: the job in a few words, or None.
        manifest: the whole job, or None.
        prefix: what its name begins with; None: the template's name.
        deadline: seconds for which it may be active, where the manifest doesn't say.
        timeout: of the template; a job that may be active for longer than that is of no use to it.
        delete_with_workflow: whether the controller deletes it when the workflow ends; or text of an input, "true".
        inputs: the template's.
    """

    template: str
    spec: MXJobSpec | None
    manifest: Any
    prefix: str | None
    deadline: int | Value
    timeout: str | None
    delete_with_workflow: bool | Value
    inputs: Any

    @classmethod
    def of(cls, template: Any) -> "TemplateJob":
        """What an `MXJobStep` or `MXJobRunner` says of its job, by fields of the same names."""
        return cls(
            template=template.name or "",
            spec=template.spec,
            manifest=template.manifest,
            prefix=template.prefix,
            deadline=template.deadline,
            timeout=template.timeout,
            delete_with_workflow=template.delete_with_workflow,
            inputs=template.inputs,
        )

    def given(self) -> dict[str, Any]:
        """The manifest without what ties it to its workflow.

        Raises:
            ValueError, TypeError: what Argo or the API server would refuse only once the workflow runs.
        """
        check_prefix(self._prefix)
        given = self._given()
        policy = given["spec"].setdefault("runPolicy", {})
        policy.setdefault("activeDeadlineSeconds", self._deadline())
        if self.delete_with_workflow:
            metadata = given["metadata"] = dict(given.get("metadata") or {})
            asked = "true" if self.delete_with_workflow is True else self.delete_with_workflow
            own = {names.DELETE_WITH_WORKFLOW_ANNOTATION: asked}
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **own}
        self._check(given)
        return given

    def text(self, given: Mapping[str, Any]) -> str:
        """The whole manifest as YAML with Argo's tags in it."""
        return render(job_manifest(given, job_name(self._prefix)))

    def _deadline(self) -> int | Value:
        try:
            limit = seconds(self.timeout)
        except ValueError as error:
            raise ValueError(f"{self.template}: {error}") from error
        return self.deadline if limit is None or isinstance(self.deadline, Value) else min(self.deadline, limit)

    @property
    def _prefix(self) -> str:
        return self.prefix or self.template

    def _given(self) -> dict[str, Any]:
        if (self.spec is None) == (self.manifest is None):
            raise ValueError(f"{self.template}: give either spec or manifest")
        if self.spec is not None:
            return {"spec": self.spec.to_dict()}
        if not isinstance(self.manifest, Mapping):
            raise TypeError(f"{self.template}: manifest is a mapping, not text; {_LOAD}")
        try:
            copied: dict[str, Any] = jsonable(self.manifest, keep=(Value,))
        except ManifestError as error:
            raise ValueError(f"{self.template}: {error}; {_LOAD}") from error
        metadata = copied.get("metadata") or {}
        for field in ("name", "generateName", "namespace"):
            if field in metadata:
                raise ValueError(
                    f"{self.template}: metadata.{field}: leave it out. The job is named by the run and the step, so"
                    " that a retry finds it, and is in the workflow's namespace, so that it goes with the workflow"
                )
        return copied

    def _check(self, given: Mapping[str, Any]) -> None:
        declared = parameters(self.inputs)
        used = {name for _, leaf in leaves(given) if isinstance(leaf, Value) for name in leaf.parameters}
        if missing := sorted(used - set(declared)):
            raise ValueError(f"{self.template}: the manifest uses {', '.join(missing)}: declare it in inputs")
        samples = {name: each.default for name, each in declared.items() if isinstance(each.default, str)}
        try:
            sample = job_manifest(sampled(given, samples), example_name(self._prefix))
        except ValueError as error:
            raise ValueError(
                f"{self.template}: the default of an input is not what its place takes: {error}"
            ) from error
        del sample["metadata"]["labels"], sample["metadata"]["ownerReferences"]
        problems = [*(validate(sample) or template_errors(sample)), *unknown_fields(sample)]
        if problems:
            raise ValueError(f"{self.template}: {'; '.join(problem.message for problem in problems)}")
        ttl = sample["spec"]["runPolicy"].get("ttlSecondsAfterFinished")
        if ttl is not None and ttl < SHORTEST_TTL:
            raise ValueError(
                f"{self.template}: ttlSecondsAfterFinished {ttl}: the job could be gone before the step has read how"
                f" it ended; {SHORTEST_TTL} at least"
            )


__all__ = ["TemplateJob"]
