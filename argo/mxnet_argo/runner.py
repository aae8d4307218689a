"""A workflow step that is one MXJob, followed by our command line: a live log, and `argo terminate` ends the job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hera.shared import BaseMixin
from hera.workflows import Artifact, Container, EmptyDirVolume, FieldEnv, NoneArchiveStrategy, Parameter, RawArtifact
from hera.workflows.models import Capabilities, Inputs, SeccompProfile, SecurityContext, ValueFrom

from mxnet_argo.checked_job import CheckedJob, JobTemplate
from mxnet_argo.inputs import as_list
from mxnet_argo.job import WORKFLOW_UID_LABEL
from mxnet_argo.refusals import refuse_what_is_the_jobs
from mxnet_argo.retries import refuse_retry_strategy, retry_unless
from mxnet_argo.step import OUTPUTS, own_outputs

RUNNER_ACCOUNT: Final = "mxjob-runner"
"""What the pods of runners run as, which read pods and workflows besides: argo/templates/rbac.yaml makes it."""
FINAL_CODES: Final = (1, 2, 3, 4, 124)
"""The exit codes of `mxjob run` after which another attempt would end the same way: the job Failed, isn't valid, is
rejected, was deleted by somebody, or the step's time is over. Whatever else ends a runner, the next finds the job."""
FINAL_MESSAGES: Final = "exceeded its deadline|longer than the specified deadline|configmaps .*is forbidden"
"""What Argo, or the kubelet, says of a step whose time is over before the runner can, and of one whose outputs it may
not memoize."""

_MANIFEST: Final = "/mxjob/job.yaml"
_OUTPUTS: Final = "/mxjob/outputs"
_REPORT: Final = f"{_OUTPUTS}/report.html"
_RETRY_TIMEOUT: Final = "10m"


@dataclass(kw_only=True)
class MXJobRunner(JobTemplate, Container):
    """Template whose step runs `mxjob run` in a pod: an `MXJobStep` with the training's log.

    The step's log is that of Worker 0, its progress the epochs that have ended, and its message says why the job
    failed. The outputs `job`, `state`, `message`
    and `result` exist after a failure too. Stopping or terminating the workflow, and the step's `timeout`, delete the
    job. A runner that is evicted or killed leaves the job to the next one.

    The job is given as for an `MXJobStep`: `spec`, `manifest`, `prefix`, `deadline`, `timeout`, `delete_with_workflow`
    and `allow_unknown_fields`.

    Args:
        image: Image with `mxjob` on its PATH, built by operator/Dockerfile. A literal, or "{{inputs.parameters.x}}".
        report: Give the step an output artifact `report`, an HTML page with the job's curves and logs. For Argo with an
            artifact repository. Default: False.
        options: Further options of `mxjob run`, such as `["--replica", "server-0"]`.
        service_account_name: Account with the rights of `mxjob-runner` in argo/templates/rbac.yaml. Default:
            `mxjob-runner`, whatever the workflow runs as.

    Raises:
        ValueError: Argo or the API server would reject the step once the workflow runs.
    """

    report: bool | None = None
    options: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Build the command and check what is given; the manifest is built with the template."""
        BaseMixin.__post_init__(self)  # type: ignore[no-untyped-call]  # the defaults that the class was given
        self._refuse_what_breaks_the_step()  # before Hera gives it an image of Python's
        super().__post_init__()  # type: ignore[no-untyped-call]
        self.service_account_name = self.service_account_name or RUNNER_ACCOUNT
        self._manifest()  # what is wrong is told where it is written
        self.command = ["mxjob", "run"]
        self.args = [
            *("--filename", _MANIFEST),
            *("--adopt", WORKFLOW_UID_LABEL),
            *(("--allow-unknown-fields",) if self.allow_unknown_fields else ()),
            *("--workflow", "{{workflow.name}}"),
            *("--retry-timeout", _RETRY_TIMEOUT),
            *("--output-dir", _OUTPUTS),
            *("--message-file", "/dev/termination-log"),
            *(("--report", _REPORT) if self.report else ()),
            *(self.options or ()),
        ]
        self.outputs = [*map(_output, OUTPUTS), *own_outputs(str(self.name), self.outputs)]
        if self.report:
            # A runner that was killed has left none.
            self.outputs.append(Artifact(name="report", path=_REPORT, archive=NoneArchiveStrategy(), optional=True))
        self.env = [*as_list(self.env), FieldEnv(name="POD_NAME", field_path="metadata.name")]
        # A volume, so that they outlive the container, and nothing else has to be writable.
        self.volumes = [*as_list(self.volumes), EmptyDirVolume(name="mxjob-outputs", mount_path=_OUTPUTS)]
        self.security_context = self.security_context or _restricted()
        codes = [str(code) for code in FINAL_CODES]
        self.retry_strategy = retry_unless(
            f"lastRetry.exitCode in {codes} or lastRetry.message matches '{FINAL_MESSAGES}'"
        )

    def _manifest(self) -> str:
        return CheckedJob(self).text(may_suspend=True)

    def _build_inputs(self) -> Inputs:
        """Return the template's inputs, and the manifest as a file."""
        inputs = super()._build_inputs() or Inputs()
        file = RawArtifact(name="mxjob", path=_MANIFEST, data=self._manifest(), archive=NoneArchiveStrategy())
        inputs.artifacts = [*(inputs.artifacts or []), file._build_artifact()]
        return inputs

    def _refuse_what_breaks_the_step(self) -> None:
        refuse_retry_strategy(str(self.name), self.retry_strategy)
        refuse_what_is_the_jobs(self)
        if not self.image:
            raise ValueError(f"{self.name}: image: give one with mxjob in it, which operator/Dockerfile makes")
        if self.command is not None or self.args is not None:
            raise ValueError(f"{self.name}: the command is mxjob run: give its further options as options")


def _output(name: str) -> Parameter:
    """Tell of nothing where a killed runner has left nothing, without an error of Argo's about it."""
    return Parameter(name=name, value_from=ValueFrom(path=f"{_OUTPUTS}/{name}", default=""))


def _restricted() -> SecurityContext:
    """Return what Pod Security's level `restricted` asks for."""
    return SecurityContext(
        allow_privilege_escalation=False,
        capabilities=Capabilities(drop=["ALL"]),
        read_only_root_filesystem=True,
        run_as_non_root=True,
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )
