"""Argo's own evaluation of expressions, as a process that is asked line by line."""

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubernetes_programs import programs_or_skip

_TAG = re.compile(r"\{\{=(.*?)\}\}")


class Expressions:
    """What the workflow-controller makes of expressions of a template's outputs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def of(
        self,
        expressions: Mapping[str, str],
        scope: Mapping[str, Any],
        outputs: Mapping[str, Mapping[str, Sequence[str]]],
    ) -> dict[str, Any]:
        """The value of each, by its name; `outputs` are a loop's, which Argo gathers before."""
        asked = {"expressions": dict(expressions), "scope": dict(scope), "outputs": outputs}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        assert said["errors"] == {}
        values: dict[str, Any] = said["values"]
        return values

    def filled_in(self, manifest: str, scope: Mapping[str, Any]) -> str:
        """The manifest of a resource template with its tags evaluated, each without an error."""
        tags = dict(enumerate(_TAG.findall(manifest)))
        values = self.of({str(number): source for number, source in tags.items()}, scope, {})
        answers = iter(str(values[str(number)]) for number in tags)
        return _TAG.sub(lambda _: next(answers), manifest)


@contextlib.contextmanager
def argo_expressions() -> Iterator[Expressions]:
    """Argo's evaluation, until the context ends."""
    program = programs_or_skip(["argo-evaluate"])["argo-evaluate"]
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Expressions(process)
        assert process.stdin is not None
        process.stdin.close()
