"""What an MXJobRunner becomes, and what it refuses before a workflow is submitted."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hera.workflows import Parameter, RetryStrategy

from mxnet_argo import MXJobRunner, MXJobSpec, MXJobStep, text
from mxnet_argo.runner import FINAL_CODES
from mxnet_operator.cli.errors import Exit

SPEC = MXJobSpec(image="a:1", command=["python", "train.py"])
MANIFEST = {"spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {}}}


def runner(**fields: Any) -> MXJobRunner:
    return MXJobRunner(**{"name": "train", "image": "mxjob:1", "spec": SPEC, **fields})


def template(**fields: Any) -> dict[str, Any]:
    built: dict[str, Any] = runner(**fields)._build_template().model_dump(by_alias=True, exclude_none=True, mode="json")
    return built


def test_its_job_is_the_one_that_a_step_would_make() -> None:
    """Its name included: who changes from one to the other finds the job of a workflow that is retried."""
    inputs = [Parameter(name="lr")]
    spec = MXJobSpec(image="a", command=["python"], args=["--lr=" + text("lr")])
    (artifact,) = template(spec=spec, inputs=inputs)["inputs"]["artifacts"]
    assert artifact["raw"]["data"] == MXJobStep(name="train", spec=spec, inputs=inputs)._build_manifest()


def test_its_command_line_is_one_that_mxjob_takes() -> None:
    container = template(allow_unknown_fields=True)["container"]
    _, *command = [*container["command"], *container["args"]]
    mxjob = Path(sys.executable).with_name("mxjob")
    done = subprocess.run([mxjob, *command, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_its_report_is_an_artifact_on_request_that_may_be_missing() -> None:
    assert "artifacts" not in template()["outputs"]
    made = template(report=True)
    (report,) = made["outputs"]["artifacts"]
    assert report == {
        "name": "report",
        "path": "/mxjob/outputs/report.html",
        "archive": {"none": {}},
        "optional": True,
    }
    command = made["container"]["args"]
    assert command[command.index("--report") + 1] == report["path"]


def test_it_is_tried_again_unless_the_exit_code_says_that_it_would_end_the_same_way() -> None:
    again = {Exit.TRY_AGAIN, Exit.INTERNAL, Exit.TERMINATED, Exit.INTERRUPTED, Exit.CLOSED_PIPE}
    assert set(FINAL_CODES) == set(Exit) - again - {Exit.OK}
    expression = template()["retryStrategy"]["expression"]
    assert all(f"'{int(code)}'" in expression for code in FINAL_CODES)


def test_its_pod_is_fit_for_a_restricted_namespace() -> None:
    security = template()["container"]["securityContext"]
    assert security["runAsNonRoot"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}


def test_its_pod_has_an_account_of_its_own_unless_told_otherwise() -> None:
    assert template()["serviceAccountName"] == "mxjob-runner"
    assert template(service_account_name="mine")["serviceAccountName"] == "mine"


def test_its_job_is_not_active_for_longer_than_it_waits() -> None:
    (artifact,) = template(timeout="1h")["inputs"]["artifacts"]
    assert "activeDeadlineSeconds: 3600" in artifact["raw"]["data"]


def test_what_lies_on_the_job_does_not_lie_on_its_pod() -> None:
    labelled = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}}, "spec": SPEC.to_dict()}
    made = template(spec=None, manifest=labelled)
    assert "queue-name: gpu" in made["inputs"]["artifacts"][0]["raw"]["data"]
    assert "metadata" not in made


def test_a_suspended_job_is_taken_since_nobody_applies_it_again() -> None:
    spec = MXJobSpec(image="a", command=["python"], run_policy={"suspend": True})
    (artifact,) = template(spec=spec)["inputs"]["artifacts"]
    assert "suspend: true" in artifact["raw"]["data"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"image": None}, "image: give one with mxjob in it"),
        ({"command": ["sh"]}, "the command is mxjob run"),
        ({"args": ["--no-logs"]}, "give its further options as options"),
        ({"timeout": "60"}, "Argo can't read '60'"),
        ({"active_deadline_seconds": 5}, "would end who waits, not the job"),
        ({"spec": None}, "give spec or manifest"),
        ({"retry_strategy": RetryStrategy(limit=2)}, "find the same failed job. .*backoffLimit"),
        ({"outputs": [Parameter(name="result")]}, "output result: the step has one of that name already"),
        ({"prefix": "Train_1"}, "can't begin the name of an MXJob"),
        ({"spec": MXJobSpec(image="{{x}}", command=["a"])}, "use mxnet_argo.text"),
        ({"spec": MXJobSpec(image="a", command=["a"], run_policy={"ttlSecondsAfterFinished": 10})}, "300 at least"),
        (
            {"spec": MXJobSpec(image="a", command=["a"], args=[text("lr")])},
            "the manifest uses lr: declare it in inputs",
        ),
        ({"spec": None, "manifest": {"metadata": {"generateName": "x-"}, **MANIFEST}}, "generateName: leave it out"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_would_break_the_step_is_refused_when_it_is_built(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        runner(**fields)
