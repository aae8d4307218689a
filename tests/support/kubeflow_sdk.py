"""The kubeflow-training 1.8.1 SDK in an environment of its own: it needs a Kubernetes client older than ours."""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from waiting import SECONDS

from mxnet_operator.local.images.uv_process import clean_environment, uv_program

FOLDER = Path(__file__).resolve().parents[1] / "tools" / "kubeflow-training"
LOCK = FOLDER / "requirements.txt"


def life_of_a_job(kubeconfig: Path, *args: str, when_running: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """What the SDK saw of a job from its creation to its deletion; the arguments are life_of_a_job.py's."""
    environment = clean_environment(os.environ) | {"KUBECONFIG": str(kubeconfig)}
    script = [str(_python()), str(FOLDER / "life_of_a_job.py"), *args]
    with subprocess.Popen(script, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while (line := process.stdout.readline()) not in ("running\n", ""):
            pass
        if line:
            when_running()
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    seen: dict[str, Any] = json.loads(output.splitlines()[-1])
    return seen


@functools.cache
def _python() -> Path:
    """The Python that has the SDK, installed into the user's cache if need be; skips the test where it can't be had."""
    key = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = Path(platformdirs.user_cache_dir("mxjob")) / "tools" / f"sdk-{key}"
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        for command in (
            ["venv", "--python", sys.executable, str(folder)],
            ["pip", "sync", "--python", str(python), "--require-hashes", str(LOCK)],
        ):
            done = subprocess.run(
                [uv_program(), *command], env=clean_environment(os.environ), capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                why = f"the kubeflow-training SDK could not be installed: {done.stderr[-2000:]}"
                pytest.fail(why, pytrace=False) if os.environ.get("CI") else pytest.skip(why)
        complete.touch()
    return python
