"""A workflow step that is one MXJob: applied under a name of its own, waited for, and never doubled or orphaned."""

import json
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

from hera.workflows import Parameter, Resource
from hera.workflows.models import ValueFrom

from mxnet_argo.checked_job import CheckedJob, JobTemplate
from mxnet_argo.inputs import as_list, parameters
from mxnet_argo.refusals import OVER, check_condition, failure_condition, refuse_what_is_the_jobs
from mxnet_argo.retries import refuse_retry_strategy, retry_unless

FINAL_MESSAGES: Final = (
    "MXJob [a-z0-9-]+ failed:|failure condition|has been deleted|[(]NotFound[)]|failed to parse|error parsing"
    "|exceeded its deadline|longer than the specified deadline|is invalid"
    "|[(]BadRequest[)]|denied the request"
    "|[(]exit code 64[)]: (error: output |(error: )?error executing jsonpath |unexpected token |unterminated string "
    "|invalid (token|escape sequence) |input[(]s[)]/0 is not |halt error|[a-z]+ not defined: )"
)
"""What the step says when another attempt would end the same way. A create that the API server gave up on ("context
deadline exceeded") is not among them: the job may exist, and the next attempt finds it by its name. The last line is
that of filters: of one that fails, as `_named_by_its_errors` has it, and of one that gojq can't read."""
_FORBIDDEN: Final = "lastRetry.message contains 'is forbidden' && not (lastRetry.message contains 'exceeded quota')"
"""A missing right is final; a quota is waited for, by as many attempts as a killed poller has."""

_CONFLICT: Final = "lastRetry.message contains 'Apply failed with'"
_CREATE_OR_FOLLOW: Final = (
    "--field-manager=argo-mxjob-{{retries}}",
    f"--server-side={{{{=retries != '0' && not ({_CONFLICT})}}}}",
    f"--dry-run={{{{={_CONFLICT} ? 'client' : 'none'}}}}",
)
"""kubectl's flags by which a new poller leaves the job as it is. By a field manager of its own it can't change a field
that differs: the API server answers with a conflict, after which the next poller only follows the job. Where no poller
before has created the job, the new one does."""

_TOLD: Final = '[.status.conditions[]? | select(.type == "Failed") | .message] | last // "it tells no reason"'
_FILES: Final = (
    "[.spec.mxReplicaSpecs[]?.template.spec | .volumes as $volumes | .containers[].volumeMounts[]? | . as $mount"
    " | select(.readOnly | not) | $volumes[]? | select(.name == $mount.name)"
    " | if .persistentVolumeClaim and (.persistentVolumeClaim.readOnly | not)"
    ' then "claim \\(.persistentVolumeClaim.claimName)"'
    ' elif .hostPath then "folder \\(.hostPath.path)" elif .nfs and (.nfs.readOnly | not) then "nfs \\(.name)"'
    ' else empty end | "\\(.) at \\($mount.mountPath)"] | unique | join(", ")'
)
"""The volumes that outlive the pods of the job, as `mxjob run` names them."""
OUTPUTS: Final = {
    # Argo's own words for a condition that isn't met have nothing of the job in them; those of a filter's error do.
    "job": f'if .status.state == "Failed" then error("MXJob \\(.metadata.name) failed: \\({_TOLD})") else'
    " .metadata.name end",
    "state": ".status.state",
    "message": '[.status.conditions[]? | select(.type == "Succeeded") | .message] | last // ""',
    "result": '.status.result // ""',
    "files": _FILES,
}
"""The step's output parameters: jq filters of the finished job, in order. The first fails where the job has failed, so
that the step fails with the job's own words as its message
(docs/decisions/argo.md)."""

_RESTART_IF_KILLED: Final = {
    "containers": [
        {
            "name": "main",
            "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [137]}}],
        }
    ]
}
"""The patch of a poller's pod by which the kubelet restarts it after a SIGKILL, and after nothing else."""


@dataclass(kw_only=True)
class MXJobStep(JobTemplate, Resource):  # type: ignore[misc]  # the type of manifest
    """Template whose step creates an MXJob, waits until it has finished, and returns its result as an output.

    The job is given by `spec`, by `manifest`, or by both. Values from inputs are those of `mxnet_argo.values`:
    `text("image")`, `integer("workers")`. The job is named `prefix` and a hash of the run and the step.

    A step whose poller is killed finds the same job again. A failed job fails the step, with the job's message; the
    job's own `backoffLimit` retries the training. The job is deleted with its workflow.

    Args:
        spec: Description of the job: image, command, numbers of replicas and so on.
        manifest: A whole MXJob as a mapping without name and namespace, or `data(...)` of an input that has one as
            JSON. `spec` beside it is merged over it. An older format is converted to v1.
        prefix: Beginning of the job's name, a DNS label. Default: the template's name.
        deadline: Seconds, or a timedelta, for which the job may be active; at most `timeout`. An
            `activeDeadlineSeconds` of the job itself replaces it. Default: a day.
        timeout: Time limit of an attempt at the step, in Argo's notation (`2h`), including the wait in queues. Each
            new poller has it again. Default: no limit.
        delete_with_workflow: Delete the unfinished job once the workflow is over, also by `argo terminate`. Of a value
            such as `text(...)` the text must be `true` or `false`. Default: True.
        allow_unknown_fields: Accept fields that this release doesn't know, such as those of a newer Kubernetes.
        restart_killed_poller: Let the kubelet restart a killed poller (exit code 137) in its pod. For Argo 4 on
            Kubernetes 1.35 or newer, where the controller lacks its component for Argo. Kubernetes 1.33 and 1.34
            drop the rule, older versions reject the pod.

    Raises:
        ValueError: Argo or the API server would reject the step once the workflow runs.
    """

    action: str = "apply"
    restart_killed_poller: bool | None = None

    def __post_init__(self) -> None:
        """Check what is given; the manifest is built with the template, from what the fields say then."""
        super().__post_init__()
        refuse_retry_strategy(str(self.name), self.retry_strategy)
        self.success_condition = OVER if self.success_condition is None else self.success_condition
        self._build_manifest()  # what is wrong is told where it is written
        self.failure_condition = failure_condition(self.success_condition, self.failure_condition)
        self.flags = [*_CREATE_OR_FOLLOW, *(self.flags or ())]
        self.retry_strategy = retry_unless(f"lastRetry.message matches '{FINAL_MESSAGES}' || {_FORBIDDEN}")
        # argoexec reads them in order, up to the first that fails.
        ours = [Parameter(name=name, value_from=ValueFrom(jq_filter=jq)) for name, jq in OUTPUTS.items()]
        self.outputs = [*ours, *map(_named_by_its_errors, own_outputs(str(self.name), self.outputs))]
        if self.restart_killed_poller:
            if self.pod_spec_patch is not None:
                raise ValueError(f"{self.name}: restart_killed_poller is a pod_spec_patch: give one of them")
            self.pod_spec_patch = json.dumps(_RESTART_IF_KILLED)

    def _build_manifest(self) -> str:
        refuse_what_is_the_jobs(self)
        if self.action != "apply":
            raise ValueError(f"{self.name}: the action is apply: create would fail, or make a second job, on a retry")
        if self.manifest_from is not None:
            raise ValueError(f"{self.name}: what comes by manifestFrom can't be checked: give manifest")
        if self.set_owner_reference:
            raise ValueError(f"{self.name}: leave set_owner_reference out: the manifest names the workflow as owner")
        check_condition("success_condition", self.success_condition or "")
        if self.failure_condition is not None:
            check_condition("failure_condition", self.failure_condition)
        return CheckedJob(self).text(may_suspend=False)


def own_outputs(template: str, given: Any) -> list[Any]:
    """Return the outputs that a template is given besides ours.

    Raises:
        ValueError: one has the name of one of ours.
    """
    if taken := [name for name in parameters(given) if name in OUTPUTS]:
        raise ValueError(f"{template}: output {taken[0]}: the step has one of that name already: give it another")
    return as_list(given)


def _named_by_its_errors(output: Any) -> Any:
    """Return an output of the author's whose jq filter, if it has one, fails with the output's name."""
    source = getattr(output, "value_from", None)
    if source is None or source.jq_filter is None:
        return output
    named, its_source = copy(output), copy(source)
    # A comment ends with its line.
    its_source.jq_filter = f'try ({source.jq_filter}\n) catch error("output {output.name}: \\(.)")'
    named.value_from = its_source
    return named
