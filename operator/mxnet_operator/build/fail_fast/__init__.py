"""How a worker's pod gets the hook that turns the hang of a failing worker into its exit code (`facts/failfast.md`).

The hook is a folder with one file, `sitecustomize.py`, that must come first in PYTHONPATH. A PYTHONPATH among the
pod's variables would replace the image's, and MXNet's images set one: so a shell prepends to whatever there is, and
then becomes the command. That needs a command in the template; an image's own is not known here.
"""

import hashlib
from pathlib import Path
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob

HOOK: Final = Path(__file__).parent / "hook"
"""The folder that belongs first in PYTHONPATH."""
_FILE: Final = "sitecustomize.py"
_SOURCE: Final = (HOOK / _FILE).read_text(encoding="utf-8")

CONFIG_MAP: Final = f"mxjob-failfast-{hashlib.sha256(_SOURCE.encode()).hexdigest()[:10]}"
"""Named by its content, so that pods of two releases never share one; one in each namespace that has jobs."""
DATA: Final = {_FILE: _SOURCE}
MOUNT_PATH: Final = "/var/run/mxjob/failfast"
_VOLUME: Final = "mxjob-failfast"
_PREPEND: Final = f'export PYTHONPATH={MOUNT_PATH}${{PYTHONPATH:+:$PYTHONPATH}}; exec "$@"'


def config_map(namespace: str) -> dict[str, Any]:
    """The manifest of the ConfigMap that holds the hook; it belongs to no job, and stays."""
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
    """Whether pods of this type of a job with defaults are to have the hook: workers, unless it is switched off."""
    return replica_type == names.WORKER and bool(job.spec.run_policy.fail_fast)


def can_take_hook(spec: dict[str, Any]) -> bool:
    """Whether a pod's template names the command of its `mxnet` container."""
    return any(container["name"] == names.CONTAINER and container.get("command") for container in spec["containers"])


def with_hook(spec: dict[str, Any]) -> dict[str, Any]:
    """The pod's spec with the hook mounted and its `mxnet` container's command wrapped.

    The volume is optional: without the ConfigMap the pod starts all the same, and fails as slowly as MXNet does.
    """
    volume = {"name": _VOLUME, "configMap": {"name": CONFIG_MAP, "optional": True}}
    return {
        **spec,
        "containers": [
            _wrapped(container) if container["name"] == names.CONTAINER else container
            for container in spec["containers"]
        ],
        "volumes": [*(spec.get("volumes") or ()), volume],
    }


def _wrapped(container: dict[str, Any]) -> dict[str, Any]:
    mount = {"name": _VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}
    return {
        **container,
        "command": ["sh", "-c", _PREPEND, "--", *container["command"]],
        "volumeMounts": [*(container.get("volumeMounts") or ()), mount],
    }
