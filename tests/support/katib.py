"""Katib's pod webhook as far as it rewrites commands, written after pkg/webhook/v1beta1/pod/utils.go (v0.17).

`wrapWorkerContainer` for the StdOut collector, which is Katib's default: it knows nothing of quotes.
"""

from collections.abc import Mapping
from typing import Any

METRICS_FOLDER = "/var/log/katib"


def rewritten(
    container: Mapping[str, Any], *, entrypoint: tuple[str, ...] = (), folder: str = METRICS_FOLDER
) -> dict[str, Any]:
    """The container as the webhook leaves it; `entrypoint` is what it would find in the image's configuration.

    `folder` stands for the metrics' volume; `$$$$` is `$$`, the shell's process id, once a kubelet has read it.
    """
    words = [*(container.get("command") or entrypoint), *(container.get("args") or ())]
    command = ["sh", "-c"]
    if words[0] in {"sh", "bash"} and words[1] == "-c":
        command, words = words[:2], words[2:]
    script = " ".join([*words, f"1>{folder}/metrics.log 2>&1", "&&", f"echo completed > {folder}/$$$$.pid"])
    return {**container, "command": command, "args": [script]}
