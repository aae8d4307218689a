"""A workflow step that is one MXJob, followed by our command line: a live log, and `argo terminate` ends the job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from hera.shared import BaseMixin
from hera.workflows import Container, EmptyDirVolume, FieldEnv, NoneArchiveStrategy, Parameter, RawArtifact
from hera.workflows.models import Capabilities, Inputs, SeccompProfile, SecurityContext, ValueFrom

from mxnet_argo.inputs import as_list, refuse_artifacts
from mxnet_argo.job import WORKFLOW_UID_LABEL, MXJobSpec
from mxnet_argo.placement import refuse_placement
from mxnet_argo.retries import refuse_retry_strategy, retry_unless
from mxnet_argo.step import OUTPUTS, own_outputs
from mxnet_argo.template_job import TemplateJob
from mxnet_argo.values import Value

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
_RETRY_TIMEOUT: Final = "10m"


@dataclass(kw_only=True)
class MXJobRunner(Container):
    """A template whose step runs `mxjob run` for an MXJob: what `MXJobStep` does, and more, by an image of ours.

    The step's log is that of Worker 0 while it trains, and its message says why the job failed. A workflow that is
    stopped or terminated, and a step whose `timeout` is over, delete the job; a runner that is evicted or killed leaves
    it to the next one. The outputs `job`, `state`, `message` and `result` are there after a failure, too.

    Job, name, inputs and checks are those of `MXJobStep`.

    Args:
        image: with `mxjob` on its PATH: that of operator/Dockerfile. A literal, or "{{inputs.parameters.x}}".
        spec: image, command, numbers of replicas and the like.
        manifest: an MXJob without name and namespace, instead of `spec`; beside one, `spec` is merged over it. One of
            an older format becomes the v1 job that it means. Or `data(...)` of an input, as a step's.
        prefix: what the job's name begins with, a DNS label.
        deadline: seconds (or a timedelta) for which the job may be active, and no more than `timeout` says; where the
            job itself has activeDeadlineSeconds that stands, whatever `timeout` says. None: a day.
        timeout: how long an attempt at the step may take, in Argo's notation (`2h`), waiting in queues included; a new
            runner has as long again. None: no limit.
        delete_with_workflow: as a step's: for what no runner notices, between two attempts. It does, unless False.
        allow_unknown_fields: as a step's; `mxjob run` is asked for the same.
        options: further ones of `mxjob run`: `["--replica", "server-0"]`.
        service_account_name: an account with the rights of `mxjob-runner` in argo/templates/rbac.yaml, which it is by
            default, whatever the workflow runs as.

    Raises:
        ValueError: what Argo or the API server would reject only once the workflow runs.
    """

    spec: MXJobSpec | None = None
    manifest: Mapping[str, Any] | Value | None = None
    prefix: str | None = None
    deadline: timedelta | int | Value | None = None
    delete_with_workflow: bool | Value | None = None
    allow_unknown_fields: bool | None = None
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
            *(self.options or ()),
        ]
        self.outputs = [*map(_output, OUTPUTS), *own_outputs(str(self.name), self.outputs)]
        self.env = [*as_list(self.env), FieldEnv(name="POD_NAME", field_path="metadata.name")]
        # A volume, so that they outlive the container, and nothing else has to be writable.
        self.volumes = [*as_list(self.volumes), EmptyDirVolume(name="mxjob-outputs", mount_path=_OUTPUTS)]
        self.security_context = self.security_context or _restricted()
        codes = [str(code) for code in FINAL_CODES]
        self.retry_strategy = retry_unless(
            f"lastRetry.exitCode in {codes} or lastRetry.message matches '{FINAL_MESSAGES}'"
        )

    def _manifest(self) -> str:
        job = TemplateJob.of(self)
        whole = job.whole()
        return job.text(job.given()) if whole is None else whole

    def _build_inputs(self) -> Inputs:
        """Return the template's inputs, and the manifest as a file."""
        inputs = super()._build_inputs() or Inputs()
        file = RawArtifact(name="mxjob", path=_MANIFEST, data=self._manifest(), archive=NoneArchiveStrategy())
        inputs.artifacts = [*(inputs.artifacts or []), file._build_artifact()]
        return inputs

    def _refuse_what_breaks_the_step(self) -> None:
        refuse_retry_strategy(str(self.name), self.retry_strategy)
        refuse_placement(self)
        refuse_artifacts(str(self.name), self.inputs, self.outputs)
        if not self.image:
            raise ValueError(f"{self.name}: image: give one with mxjob in it, which operator/Dockerfile makes")
        if self.command is not None or self.args is not None:
            raise ValueError(f"{self.name}: the command is mxjob run: give its further options as options")
        if self.active_deadline_seconds is not None:
            raise ValueError(
                f"{self.name}: active_deadline_seconds would end the runner once, not the step: use deadline (the"
                " job's) or timeout (the step's)"
            )


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


__all__ = ["RUNNER_ACCOUNT", "MXJobRunner"]
