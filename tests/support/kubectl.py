"""Where tests find kubectl: on PATH if it is new enough, else built once with Go from the pinned module.

The built program is kept outside the work tree, in the user's cache, under the hash of go.sum. Where neither can be had
a test is skipped with the reason, or fails where CI is set.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import platformdirs
import pytest

OLDEST = (1, 32)
MODULE = Path(__file__).resolve().parents[1] / "tools" / "kubernetes"
BUILT = (1, 36, 3)
BUILD_SECONDS = 1800


def kubectl() -> str:
    """The path of a kubectl of version 1.32 or newer; skips or fails the test where there is none."""
    program, why_not = _find()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(why_not, pytrace=False)
        pytest.skip(why_not)
    return program


@functools.cache
def _find() -> tuple[str | None, str]:
    on_path = shutil.which("kubectl")
    if on_path and _version(on_path) >= OLDEST:
        return on_path, ""
    if shutil.which("go") is None:
        return None, f"no kubectl of version {OLDEST[0]}.{OLDEST[1]} or newer on PATH, and no Go to build one with"
    return _built()


def _version(program: str) -> tuple[int, int]:
    answer = subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, check=False)
    try:
        text = json.loads(answer.stdout)["clientVersion"]["gitVersion"]
    except (ValueError, KeyError):
        return (0, 0)
    found = re.match(r"v(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _built() -> tuple[str | None, str]:
    key = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:16]
    program = Path(platformdirs.user_cache_dir("mxjob")) / "tools" / key / "kubectl"
    if program.exists():
        return str(program), ""
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_name(f"kubectl.{os.getpid()}")
    major, minor, patch = BUILT
    stamps = {"gitVersion": f"v{major}.{minor}.{patch}", "gitMajor": major, "gitMinor": minor}
    version = (f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())
    flags = " ".join(["-s", "-w", *version])
    command = ["go", "build", "-o", str(unfinished), "-ldflags", flags, "k8s.io/kubernetes/cmd/kubectl"]
    done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if done.returncode != 0:
        return None, f"kubectl could not be built: {done.stderr[-2000:]}"
    unfinished.replace(program)
    return str(program), ""
