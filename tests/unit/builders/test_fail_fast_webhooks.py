"""The fail-fast hook's wrap under webhooks and wrappers that rewrite commands: what runs is what runs without the hook.

Katib knows nothing of quotes, so an argument with a blank becomes two whether there is a hook or not. The measure is
therefore the same pod without the hook, under the same webhook, in the same shell.
"""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from builders import make_mxjob
from waiting import SECONDS

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod
from mxnet_operator.builders.fail_fast import DATA, MOUNT_PATH
from mxnet_operator.local.kubelet.environment import expand

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


SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
PROGRAM = """#!/bin/sh
{ for word; do printf '<%s>' "$word"; done; printf '\\001%s\\001%s\\002' "${PYTHONPATH-none}" "$$"; } >>"$REPORT"
echo accuracy=0.9
exit "${CODE:-0}"
"""


class Outcome(NamedTuple):
    """What a container came to: `told` is the arguments and the PYTHONPATH of each start of the program."""

    code: int
    told: list[tuple[str, str]]
    is_first: bool
    """Whether the program was the container's first process in the end."""
    metrics: str


class Node:
    """A folder in which containers run: the program `train` on PATH, one shell as `sh`, and the hook's files."""

    def __init__(self, root: Path, shell: str) -> None:
        self.root = root
        programs = root / "bin"
        for folder in (programs, root / "hook", root / "metrics"):
            folder.mkdir()
        for name in ("sh", *(("bash",) if shutil.which("bash") else ())):
            found = shutil.which(shell if name == "sh" else "bash")
            assert found
            (programs / name).symlink_to(found)
        (programs / "train").write_text(PROGRAM.replace("#!/bin/sh", f"#!{programs}/sh"))
        (programs / "train").chmod(0o755)
        (programs / "wrapper").write_text(f'#!{programs}/sh\n[ "$1" != -- ] || shift\nexec "$@"\n')
        (programs / "wrapper").chmod(0o755)
        for name, text in DATA.items():
            (root / "hook" / name).write_text(text)
        (root / "a.txt").touch()

    def run(self, container: dict[str, Any], **variables: str) -> Outcome:
        """Start the container's command as a kubelet does, and wait for it."""
        report, metrics = self.root / "report", self.root / "metrics" / "metrics.log"
        for file in (report, metrics):
            file.unlink(missing_ok=True)
        paths = {MOUNT_PATH: str(self.root / "hook"), METRICS_FOLDER: str(self.root / "metrics")}
        words = [expand(word, variables) for word in (*container["command"], *(container.get("args") or ()))]
        for inside, real in paths.items():
            words = [word.replace(inside, real) for word in words]
        environment = {"PATH": f"{self.root / 'bin'}:/usr/bin:/bin", "REPORT": str(report), **variables}
        process = subprocess.Popen(
            words,
            env=environment,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        process.communicate(timeout=SECONDS)
        starts = report.read_text().split("\2")[:-1] if report.exists() else []
        lines = [start.split("\1") for start in starts]
        return Outcome(
            process.returncode,
            [(said, path.replace(str(self.root / "hook"), MOUNT_PATH)) for said, path, _ in lines],
            [int(pid) for *_, pid in lines] == [process.pid],
            metrics.read_text() if metrics.exists() else "",
        )


@pytest.fixture(params=SHELLS)
def node(request: Any, tmp_path: Path) -> Node:
    """A node for each shell of this machine."""
    return Node(tmp_path, request.param)


def container(*, has_hook: bool, **given: Any) -> dict[str, Any]:
    job = with_defaults(make_mxjob().worker(1, **given).obj())
    (built,) = build_pod(job, "Worker", 0, 0, has_hook=has_hook)["spec"]["containers"]
    return {key: built[key] for key in ("command", "args") if key in built}


def both(node: Node, given: dict[str, Any], *, webhook: Any = lambda built: built, **variables: str) -> list[Outcome]:
    """The outcomes without and with the hook."""
    return [node.run(webhook(container(has_hook=has_hook, **given)), **variables) for has_hook in (False, True)]


def vault(built: dict[str, Any]) -> dict[str, Any]:
    """As vault-env's, dumb-init's and Argo's: a program before the words, that passes them on."""
    return {"command": ["wrapper"], "args": ["--", *built["command"], *built.get("args", [])]}


TEMPLATES = {
    "command": {"command": ["train", "--lr=0.1", "--epochs", "2"]},
    "command and args": {"command": ["train"], "args": ["--lr=0.1"]},
    "script": {"command": ["sh", "-c", "train --lr=0.1"]},
    "script of bash": {"command": ["bash", "-c", "train --lr=0.1"]},
    "script in args": {"command": ["sh", "-c"], "args": ["train --lr=0.1 'two words' \"$HOME\" *.txt"]},
    "script and its flag in args": {"command": ["sh"], "args": ["-c", "train"]},
    "script of several commands": {"command": ["bash", "-c", "train 1 && train 2; train 3"]},
    "script of several lines": {"command": ["sh", "-c", "set -e\ntrain 1 # one\ntrain 2"]},
    "script with a variable of the kubelet's": {"command": ["sh", "-c", 'train "$(NAME)"']},
    "script with a substitution": {"command": ["sh", "-c", "train $(echo a b) `echo c` $$(echo d)"]},
    "script with quotes": {"command": ["sh", "-c", """train "it's" 'a "b"' c\\ d"""]},
}
VARIABLES = {"HOME": "/home/of user", "NAME": "it's", "PYTHONPATH": "/image:/b"}
WEBHOOKS = {"none": lambda built: built, "Katib": rewritten, "wrapper": vault}


@pytest.mark.parametrize("webhook", WEBHOOKS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_command_runs_as_it_would_without_the_hook_which_is_first_on_the_path(
    node: Node, template: str, webhook: str
) -> None:
    for code in ("3", "0"):
        plain, hooked = both(node, TEMPLATES[template], webhook=WEBHOOKS[webhook], CODE=code, **VARIABLES)
        assert hooked.code == plain.code == int(code)
        assert plain.told
        assert hooked.told == [(said, f"{MOUNT_PATH}:{path}") for said, path in plain.told]
        if webhook == "Katib":
            assert "accuracy=0.9" in hooked.metrics
            assert len(list((node.root / "metrics").glob("*.pid"))) == (2 if code == "0" else 0), "one of each success"


def test_arguments_after_a_script_are_its_own(node: Node) -> None:
    plain, hooked = both(node, {"command": ["sh", "-c", 'train "$0" "$@"', "a b", "c", "*"]})
    assert [said for said, _ in hooked.told] == [said for said, _ in plain.told] == ["<a b><c><*>"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_program_of_a_simple_script_is_the_containers_first_process_if_it_is_without_the_hook(
    node: Node, shell: str
) -> None:
    plain, hooked = both(node, {"command": [shell, "-c", "train"]})
    assert hooked.is_first == plain.is_first


@pytest.mark.parametrize(("given", "expected"), [({}, MOUNT_PATH), ({"PYTHONPATH": ""}, MOUNT_PATH)])
def test_without_a_path_of_the_image_the_hooks_is_all(node: Node, given: dict[str, str], expected: str) -> None:
    assert both(node, TEMPLATES["command"], **given)[1].told[0][1] == expected
