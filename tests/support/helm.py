"""Helm, and what it makes of the project's chart."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from deployment import OPERATOR
from kubernetes_programs import programs_or_skip

CHART = OPERATOR / "charts" / "mxnet-operator"


def helm(*arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run helm to its end; it keeps nothing outside the environment that it is given."""
    command = [programs_or_skip(["helm"])["helm"], *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={"HOME": "/nonexistent"} | environment
    )


def templated(folder: Path, values: Mapping[str, Any], *options: str) -> list[dict[str, Any]]:
    """The objects of the chart with these values, which are written into the folder."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    done = helm("template", "mxnet-operator", CHART, "--namespace=mxnet-operator", f"--values={file}", *options)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]
