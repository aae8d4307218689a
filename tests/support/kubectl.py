"""Which kubectl tests use: the one on PATH if it is new enough, else the pinned one of kubernetes_programs."""

import functools
import json
import re
import shutil
import subprocess

from kubernetes_programs import programs_or_skip

OLDEST = (1, 32)


def kubectl() -> str:
    """The path of a kubectl of version 1.32 or newer; skips or fails the test where there is none."""
    return kubectl_on_path() or programs_or_skip(["kubectl"])["kubectl"]


@functools.cache
def kubectl_on_path() -> str | None:
    """The path of the one on PATH, if it is new enough."""
    found = shutil.which("kubectl")
    return found if found and _version(found) >= OLDEST else None


def _version(program: str) -> tuple[int, int]:
    answer = subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, check=False)
    try:
        text = json.loads(answer.stdout)["clientVersion"]["gitVersion"]
    except (ValueError, KeyError):
        return (0, 0)
    found = re.match(r"v(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
