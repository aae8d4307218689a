"""Manifests with mistakes at any path: each verb that reads them says what is wrong, and never more than that."""

import io
import json
import sys

import pytest
from manifest_mutations import fresh_mutants, seeds

from mxnet_operator.cli.mxjob import main

COUNT = 150


@pytest.mark.sampled
@pytest.mark.parametrize(
    "verb",
    [
        ["validate", "-"],
        ["convert", "-"],
        ["run", "--dry-run", "-f", "-"],
        ["run", "--dry-run", "-f", "-", "--workers", "3", "--env", "A=b", "--gpus-per-worker", "1"],
    ],
    ids=lambda verb: " ".join(verb[:2]) + (" over it" if len(verb) > 4 else ""),
)
def test_any_mistake_is_told_in_a_line_by_fresh_seeds(verb, monkeypatch, capsys):
    codes = set()
    for mutant, where in fresh_mutants(COUNT, seeds()):
        monkeypatch.setattr(sys, "argv", ["mxjob", *verb])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(mutant).encode())))
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert left.value.code in (0, 2), f"{where}: {out}{err}"
        assert "Traceback" not in out + err, where
        codes.add(left.value.code)
    assert codes == {0, 2}
