"""What make generate writes of the documentation is up to date, and leaves nothing out."""

import re
import runpy
from pathlib import Path

import msgspec
import pytest

from mxnet_operator.api import types
from mxnet_operator.cli import mxjob, mxnet_operator
from mxnet_operator.cli.verbs import local

ROOT = Path(__file__).resolve().parents[3]
PAGES = {
    "mxjob_reference.py": "mxjob-reference.md",
    "cli_reference.py": "cli-reference.md",
    "description_reference.py": "description-reference.md",
}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("tool", "written"), PAGES.items())
def test_the_reference_is_up_to_date(tool, written):
    made = runpy.run_path(str(ROOT / "tools" / tool))["reference"]()
    assert page(written) == made, "run: make generate"


def test_make_generate_runs_every_tool_that_writes_something():
    recipe = (ROOT / "Makefile").read_text().partition("\ngenerate:")[2].partition("\n.PHONY")[0]
    written = re.compile(r"^TARGET\b", re.MULTILINE)
    tools = {path.name for path in (ROOT / "tools").glob("*.py") if written.search(path.read_text(encoding="utf-8"))}
    assert tools > set(PAGES)
    assert set(re.findall(r"tools/(\w+\.py)", recipe)) == tools


STRUCTS = [
    types.MXJobSpec,
    types.ReplicaSpec,
    types.RunPolicy,
    types.SchedulingPolicy,
    types.ExitCodes,
    types.MXJobStatus,
    types.Condition,
    types.ReplicaStatus,
]


@pytest.mark.parametrize("of", STRUCTS, ids=lambda of: of.__name__)
def test_every_field_of_an_mxjob_has_its_row(of):
    tables = page("mxjob-reference.md").split("\n## ")
    rows = [re.findall(r"^\| `(\w+)`.*\| .+\. \|$", table, flags=re.MULTILINE) for table in tables]
    assert [field.encode_name for field in msgspec.structs.fields(of)] in rows


def test_every_command_has_its_section():
    def names(app, prefix):
        return [f"{prefix} {each.name or each.callback.__name__}" for each in app.registered_commands]

    headings = set(re.findall(r"^#+ (.+)$", page("cli-reference.md"), flags=re.MULTILINE))
    commands = [
        *names(mxjob.app, "mxjob"),
        *names(local.app, "mxjob local"),
        *names(mxnet_operator.app, "mxnet-operator"),
    ]
    assert len(commands) > 12
    assert [each for each in commands if each not in headings] == []


def test_no_markup_of_the_terminal_is_left():
    outside_code = re.sub(r"```.*?```|`[^`\n]*`", "", page("cli-reference.md"), flags=re.DOTALL)
    assert re.findall(r"\[/?(?:bold|dim|red|green)?\](?!\()", outside_code) == []
