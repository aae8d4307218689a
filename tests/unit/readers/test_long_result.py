"""A result above 4 KiB: what the hook writes at the end of a program, and what is read from it."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mxnet_operator.builders.fail_fast import HOOK
from mxnet_operator.readers.long_result import LONGEST, Reference, is_part, reference, text_of

RESULT = json.dumps({"losses": list(range(3000)), "name": "caf\u00e9"}, ensure_ascii=False)


def run(folder: Path, script: str, **env: str) -> tuple[int, str, str]:
    """A program with the hook in a Python of its own: its exit code, its termination message and its log."""
    message = folder / "termination-log"
    message.touch()
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(HOOK),
        "PYTHONUTF8": "1",
        "DMLC_ROLE": "worker",
        "MXJOB_RESULT_FILE": str(message),
        **env,
    }
    script = f"import os, sys; path = {str(message)!r}; result = {RESULT!r}\n{script}"
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, check=False)
    return done.returncode, message.read_text(errors="replace"), done.stdout.decode()


def read(message: str, log: str) -> str | None:
    wanted = reference(message)
    assert wanted is not None
    return text_of(wanted, log.splitlines()[-wanted.tail_lines :])


@pytest.mark.parametrize(
    "script",
    [
        "open(path, 'w').write(result)",
        "open(path, 'w').write(result); sys.stdout.write('a last word')",
        "open(path, 'w').write(result); sys.exit(0)",
        "import atexit; atexit.register(lambda: open(path, 'w').write(result))",
        "import subprocess; subprocess.run([sys.executable, '-c', 'print(1)']); open(path, 'w').write(result)",
        "open(path, 'w').write(result); os.fork() == 0 and sys.exit(0)",
        "os.execv(sys.executable, [sys.executable, '-c', f'open({path!r}, \"w\").write({result!r})'])",
    ],
)
def test_a_long_result_is_in_the_log_and_its_hash_in_the_message(tmp_path: Path, script: str) -> None:
    code, message, log = run(tmp_path, script)
    assert code == 0
    assert len(message) < 200
    assert read(message, log) == RESULT


def test_lines_with_a_kubelet_s_timestamps_and_of_others_between_them_are_read_as_well(tmp_path: Path) -> None:
    _, message, log = run(tmp_path, "open(path, 'w').write(result)")
    stamped = "".join(f"2026-11-21T12:00:00.1Z {line}\n2026-11-21T12:00:00.1Z else\n" for line in log.splitlines())
    assert read(message, stamped) == RESULT
    assert sum(map(is_part, stamped.splitlines())) == len(log.splitlines()) - 1


def test_a_log_that_lacks_a_part_has_no_result(tmp_path: Path) -> None:
    _, message, log = run(tmp_path, "open(path, 'w').write(result)")
    lines = log.splitlines()
    assert read(message, "\n".join(lines[:3] + lines[4:])) is None
    assert read(message, "") is None


def test_parts_whose_text_has_another_digest_are_no_result() -> None:
    wanted = Reference(6, hashlib.sha256(b"wanted").hexdigest())
    line = "mxjob-result {} 1/1 {}"
    for digest, text, found in (
        (wanted.sha256, b"wanted", "wanted"),
        (wanted.sha256, b"forged", None),
        (hashlib.sha256(b"forged").hexdigest(), b"wanted", None),
    ):
        assert text_of(wanted, [line.format(digest, base64.b64encode(text).decode())]) == found


@pytest.mark.parametrize(
    ("script", "env"),
    [
        ("open(path, 'w').write(result[:4000])", {}),
        ("pass", {}),
        ("os.remove(path); open(path, 'w').close()", {}),
        ("open(path, 'w').write(result); raise ValueError('why')", {}),
        ("open(path, 'w').write(result); sys.exit(3)", {}),
        ("open(path, 'w').write(result); sys.exit('why')", {}),
        ("open(path, 'w').write(result)", {"MXJOB_FAILFAST": "off"}),
        ("open(path, 'w').write(result)", {"DMLC_ROLE": "server"}),
    ],
)
def test_short_results_failures_and_other_roles_are_left_alone(
    tmp_path: Path, script: str, env: dict[str, str]
) -> None:
    _, message, log = run(tmp_path, script, **env)
    assert reference(message) is None
    assert not any(map(is_part, log.splitlines()))


def test_a_result_that_no_log_should_carry_is_told_by_its_length(tmp_path: Path) -> None:
    _, message, log = run(tmp_path, f"open(path, 'w').write('x' * {LONGEST + 10})")
    wanted = reference(message)
    assert wanted is not None
    assert wanted.bytes == LONGEST + 10
    assert "262144 is the most" in wanted.loss
    assert not any(map(is_part, log.splitlines()))


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "0.98",
        '{"accuracy": 0.9}',
        '{"mxjobResult": 5}',
        '{"mxjobResult": {"bytes": "x", "sha256": ""}}',
        '{"mxjobResult": {"bytes": 5}}',
        '{"mxjobResult": {"bytes": 5, "sha256": ""}, "accuracy": 1}',
        'mxjobResult {"',
    ],
)
def test_what_is_no_reference_is_a_result(text: str | None) -> None:
    assert reference(text) is None


@pytest.mark.parametrize("line", ["", "mxjob-result", "mxjob-result abc 1/2 QUJD", "mxjob-result " + "0" * 64 + " 1/2"])
def test_what_is_no_part_is_shown(line: str) -> None:
    assert not is_part(line)
