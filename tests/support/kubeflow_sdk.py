"""The kubeflow-training 1.8.1 SDK in an environment of its own: it needs a Kubernetes client older than ours."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from guarded_program import GuardedProgram
from kubernetes_programs import MissingProgramError, source_of
from locked_python import locked_python
from waiting import SECONDS

from mxnet_operator.local.images.uv_process import clean_environment

SDK_SOURCE = "sdk/python"
FOLDER = Path(__file__).resolve().parents[1] / "tools" / "kubeflow-training"


def life_of_a_job(kubeconfig: Path, *args: str) -> dict[str, Any]:
    """What the SDK saw of a job from its creation to its deletion; the arguments are life_of_a_job.py's."""
    environment = clean_environment(os.environ) | {"KUBECONFIG": str(kubeconfig)}
    script = [str(locked_python("kubeflow-training")), str(FOLDER / "life_of_a_job.py"), *args]
    with GuardedProgram(script, env=environment, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    seen: dict[str, Any] = json.loads(output.splitlines()[-1])
    return seen


def official_gang_test(kubeconfig: Path, namespace: str, scheduler: str) -> None:
    """Run training-operator 1.8.1's own test of gang scheduling; `scheduler` is as official_gang.py has it.

    Where its source can't be had, the test is skipped, or fails in CI.
    """
    try:
        source = source_of("training-operator") / SDK_SOURCE
    except MissingProgramError as error:
        pytest.fail(str(error), pytrace=False) if os.environ.get("CI") else pytest.skip(str(error))
    environment = clean_environment(os.environ) | {"KUBECONFIG": str(kubeconfig)}
    script = [str(locked_python("kubeflow-training")), str(FOLDER / "official_gang.py")]
    done = subprocess.run(
        [*script, str(source), namespace, scheduler],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
