"""Fail-fast hook of a pod, which turns the hang of a failing worker into its exit code (`docs/facts/mxnet.md`).

The hook is a folder. Its `sitecustomize.py` must come first in PYTHONPATH; a PYTHONPATH among the pod's
variables would replace the image's, and MXNet's images set one: so a shell script, `run.sh`, prepends to whatever
there is, and then becomes the command. That needs a command in the template; an image's own is not known here.

Admission webhooks rewrite commands in their turn. Katib joins the words of command and args with blanks and has
`sh -c` run the outcome; a command that begins with `sh -c` or `bash -c` it takes for a script, and appends to that.
The words put before a command stay whole under such a rule, and a script stays one
(`docs/decisions/restarts.md`).
"""

import hashlib
import re
import shlex
from pathlib import Path
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob

HOOK: Final = Path(__file__).parent / "hook"
"""Folder that belongs first in PYTHONPATH."""

_FILES: Final = (
    "run.sh",
    "sitecustomize.py",
    "mxjob_place.py",
    "mxjob_resume.py",
    "mxjob_stall.py",
    "mxjob_divergence.py",
)
DATA: Final = {name: (HOOK / name).read_text(encoding="utf-8") for name in _FILES}
CONFIG_MAP: Final = f"mxjob-failfast-{hashlib.sha256(''.join(DATA.values()).encode()).hexdigest()[:10]}"
"""Name of the ConfigMap, by its content, so that two releases never share one; one in each namespace that has jobs."""
MOUNT_PATH: Final = "/var/run/mxjob/failfast"
_VOLUME: Final = "mxjob-failfast"
_RESULT_FILE: Final = "MXJOB_RESULT_FILE"
_RUN: Final = ("sh", f"{MOUNT_PATH}/run.sh")
_SCRIPTS: Final = (["sh", "-c"], ["bash", "-c"])
"""Prefix of a command whose next word webhooks take for a script."""
_REFERENCE: Final = re.compile(r"\$\([^()\s]+\)")
"""Pattern of what the kubelet may replace by a variable's value, which may hold any character."""
_PREPEND: Final = f"export PYTHONPATH={MOUNT_PATH}${{PYTHONPATH:+:$PYTHONPATH}}"


def config_map(namespace: str) -> dict[str, Any]:
    """Return the manifest of the ConfigMap that holds the hook; it belongs to no job, and stays."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": CONFIG_MAP,
            "namespace": namespace,
            "labels": {names.LABEL_OPERATOR_NAME: names.OPERATOR_NAME},
        },
        "data": DATA,
        "immutable": True,
    }


def wants_hook(job: MXJob, replica_type: str) -> bool:
    """Return whether pods of this type get the hook: MXNet's types, unless the job switches it off.

    Schedulers and servers have it for SIGTERM alone, which as process 1 they would ignore
    (`docs/decisions/restarts.md`).
    """
    return bool(TYPES[replica_type].ps_role) and bool(job.spec.run_policy.fail_fast)


def can_take_hook(spec: dict[str, Any]) -> bool:
    return bool(names.main_container(spec["containers"]).get("command"))


def with_hook(spec: dict[str, Any], *, reports_result: bool = False) -> dict[str, Any]:
    """Return the pod's spec with the hook mounted and its `mxnet` container's command wrapped.

    Where the replica `reports_result`, a variable tells the hook where the program writes it. A ConfigMap that is
    deleted meanwhile keeps the pod waiting until the next attempt, or job, makes it again: were the volume optional,
    the command would not be found, and its exit code 127 would end the job.
    """
    volume = {"name": _VOLUME, "configMap": {"name": CONFIG_MAP}}
    return {
        **spec,
        "containers": [
            _wrapped(container, reports_result) if container["name"] == names.CONTAINER else container
            for container in spec["containers"]
        ],
        "volumes": [*(spec.get("volumes") or ()), volume],
    }


def _wrapped(container: dict[str, Any], reports_result: bool) -> dict[str, Any]:
    mount = {"name": _VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}
    words = [*container["command"], *(container.get("args") or ())]
    size = len(container["command"])
    if words[:2] in _SCRIPTS and len(words) > 2:
        words[2] = _script(words)
    else:
        words, size = [*_RUN, *words], size + len(_RUN)
    result_file = {"name": _RESULT_FILE, "value": container.get("terminationMessagePath") or "/dev/termination-log"}
    return {
        **container,
        **({"env": [*(container.get("env") or ()), result_file]} if reports_result else {}),
        "command": words[:size],
        **({"args": words[size:]} if words[size:] else {}),
        "volumeMounts": [*(container.get("volumeMounts") or ()), mount],
    }


def _script(words: list[str]) -> str:
    """Return the script of `sh -c SCRIPT [ARGUMENT...]`, with the hook for all that it starts."""
    shell, _, script, *arguments = words
    if _REFERENCE.search(script):  # no quotes are safe around a value that is put in later
        return f"{_PREPEND}; {script}"
    # One simple command, which shells become instead of waiting for it: a Python that ends it is process 1 then, as
    # without the hook, and not the child of a shell that ignores SIGTERM.
    passed_on = ' "$0" "$@"' if arguments else ""
    return f"{' '.join(_RUN)} {shell} -c {shlex.quote(script)}{passed_on}"
