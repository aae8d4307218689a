"""The order of folders that CONTRIBUTING.md teaches is the one that `make lint` enforces."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "operator" / "mxnet_operator"


def taught() -> list[str]:
    """The folders of the operator in the order of the page's list."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    house = page.partition("    operator/mxnet_operator/\n")[2].partition("    mxnet_provider/")[0]
    return re.findall(r"^      (\w+)/", house, flags=re.MULTILINE)


def enforced() -> list[set[str]]:
    """The layers of the contract, the lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each["type"] == "layers"]
    return [{name.rpartition(".")[2] for name in re.split(r"\s*[|:]\s*", layer)} for layer in reversed(layers)]


def test_the_page_lists_every_folder_once() -> None:
    folders = {each.parent.name for each in PACKAGE.glob("*/__init__.py")}
    assert sorted(taught()) == sorted(folders)


def test_a_folder_is_listed_below_all_that_it_may_import() -> None:
    level = {name: number for number, layer in enumerate(enforced()) for name in layer}
    levels = [level[name] for name in taught()]
    assert levels == sorted(levels)
