"""A workflow step that is one MXJob: applied under a name of its own, waited for, and never doubled or orphaned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hera.workflows import Parameter, Resource, RetryStrategy
from hera.workflows.models import Backoff, ValueFrom
from hera.workflows.models.io.k8s.apimachinery.pkg.util.intstr import IntOrString

from mxnet_argo.conditions import FAILED, SUCCEEDED, check_condition
from mxnet_argo.inputs import parameters
from mxnet_argo.job import MXJobSpec, job_manifest
from mxnet_argo.job_name import check_prefix, example_name, job_name
from mxnet_argo.manifest import leaves, render, sampled
from mxnet_argo.values import Value
from mxnet_operator.api.validation import unknown_fields, validate

FINAL_MESSAGES: Final = (
    "failure condition|has been deleted|failed to parse|exceeded its deadline|longer than the specified deadline"
    "|is forbidden|is invalid|Apply failed with"
)
"""What the step says when another attempt would end the same way. A create that the API server gave up on ("context
deadline exceeded") is not among them: the job may exist, and the next attempt finds it by its name."""
SHORTEST_TTL: Final = 300
"""Seconds that a finished job must stay, for a poller that was restarted to read how it ended."""

OUTPUTS: Final = {
    "job": ".metadata.name",
    "state": ".status.state",
    "message": '[.status.conditions[]? | select(.type == "Succeeded") | .message] | last // ""',
    "result": '.status.result // ""',
}
"""The step's output parameters: jq filters of the finished job. Argo reads them after a success only."""


@dataclass(kw_only=True)
class MXJobStep(Resource):
    """A template whose step applies an MXJob, waits until it is over, and reports how it ended.

    Give `spec` for a job in a few words, or `manifest` for a whole MXJob as a mapping; in both, values may be those of
    `mxnet_argo.values` (`text("image")`, `integer("workers")`), which Argo fills in from `inputs`. The job's name is
    `prefix` (the template's name, if there is none) and a hash of the run and the step.

    If whoever polls for it is killed, the next attempt finds the same job. A job that failed is not tried again here:
    that is what its own `backoffLimit` is for. The job is deleted with its workflow.

    Args:
        spec: image, command, numbers of replicas and the like.
        manifest: a kubeflow.org/v1 MXJob without name and namespace, instead of `spec`.
        prefix: what the job's name begins with, a DNS label.
        deadline: seconds for which the job may be active; where the manifest has activeDeadlineSeconds that stands.
            A workflow that is terminated leaves its job running until then.
        timeout: how long the step may take, in Argo's notation (`2h`), waiting in queues included. None: no limit.

    Raises:
        ValueError: what Argo or the API server would refuse only once the workflow runs.
    """

    action: str = "apply"
    spec: MXJobSpec | None = None
    manifest: Mapping[str, Any] | str | None = None  # type: ignore[assignment]
    prefix: str | None = None
    deadline: int | Value = 24 * 3600
    success_condition: str | None = SUCCEEDED
    failure_condition: str | None = FAILED

    def __post_init__(self) -> None:
        """Build the manifest and check it."""
        super().__post_init__()
        self._refuse_what_breaks_the_step()
        prefix = self.prefix or self.name or ""
        check_prefix(prefix)
        given = self._given()
        policy = given["spec"].setdefault("runPolicy", {})
        policy.setdefault("activeDeadlineSeconds", self.deadline)
        self._check(given, example_name(prefix))
        self.manifest = render(job_manifest(given, job_name(prefix)))
        self.retry_strategy = self.retry_strategy or _retry_strategy()
        self.outputs = [*_list(self.outputs), *_outputs()]

    def _given(self) -> dict[str, Any]:
        if (self.spec is None) == (self.manifest is None):
            raise ValueError(f"{self.name}: give either spec or manifest")
        if self.spec is not None:
            return {"spec": self.spec.to_dict()}
        if not isinstance(self.manifest, Mapping):
            raise TypeError(f"{self.name}: manifest is a mapping, not text: yaml.safe_load() makes one of a file")
        copied: dict[str, Any] = _copied(self.manifest)
        metadata = copied.get("metadata") or {}
        for field in ("name", "generateName", "namespace"):
            if field in metadata:
                raise ValueError(
                    f"{self.name}: metadata.{field}: leave it out. The job is named by the run and the step, so that a"
                    " retry finds it, and is in the workflow's namespace, so that it goes with the workflow"
                )
        return copied

    def _refuse_what_breaks_the_step(self) -> None:
        if self.action != "apply":
            raise ValueError(f"{self.name}: the action is apply: create would fail, or make a second job, on a retry")
        if self.manifest_from is not None:
            raise ValueError(f"{self.name}: what comes by manifestFrom can't be checked: give manifest")
        if self.set_owner_reference:
            raise ValueError(f"{self.name}: leave set_owner_reference out: the manifest names the workflow as owner")
        if self.active_deadline_seconds is not None:
            raise ValueError(
                f"{self.name}: active_deadline_seconds would end who waits, not the job: use deadline (the job's) or"
                " timeout (the step's)"
            )
        check_condition("success_condition", self.success_condition or "")
        check_condition("failure_condition", self.failure_condition or "")

    def _check(self, manifest: Mapping[str, Any], name: str) -> None:
        declared = parameters(self.inputs)
        used = {name for _, leaf in leaves(manifest) if isinstance(leaf, Value) for name in leaf.parameters}
        if missing := sorted(used - set(declared)):
            raise ValueError(f"{self.name}: the manifest uses {', '.join(missing)}: declare it in inputs")
        samples = {name: each.default for name, each in declared.items() if isinstance(each.default, str)}
        try:
            sample = job_manifest(sampled(manifest, samples), name)
        except ValueError as error:
            raise ValueError(f"{self.name}: the default of an input is not what its place takes: {error}") from error
        del sample["metadata"]["labels"], sample["metadata"]["ownerReferences"]
        problems = [*validate(sample), *unknown_fields(sample)]
        if problems:
            raise ValueError(f"{self.name}: {'; '.join(problem.message for problem in problems)}")
        policy = sample["spec"]["runPolicy"]
        if "suspend" in policy:
            raise ValueError(
                f"{self.name}: spec.runPolicy.suspend: leave it out: a poller that is replaced applies the manifest"
                " again, and would undo what a queue, or somebody, has done with it since"
            )
        ttl = policy.get("ttlSecondsAfterFinished")
        if ttl is not None and ttl < SHORTEST_TTL:
            raise ValueError(
                f"{self.name}: ttlSecondsAfterFinished {ttl}: the job could be gone before the step has read how it"
                f" ended; {SHORTEST_TTL} at least"
            )


def _retry_strategy() -> RetryStrategy:
    """No maxDuration: it would end the new poller that long after the first one began, however long the job takes."""
    return RetryStrategy(
        limit=10,
        backoff=Backoff(duration="5s", factor=IntOrString(root=2), cap="10m"),
        expression=f"not (lastRetry.message matches '{FINAL_MESSAGES}')",
    )


def _outputs() -> list[Parameter]:
    return [Parameter(name=name, value_from=ValueFrom(jq_filter=jq)) for name, jq in OUTPUTS.items()]


def _list(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _copied(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(value) for value in node] if isinstance(node, list | tuple) else node


__all__ = ["MXJobStep"]
