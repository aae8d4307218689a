"""What a setup.py, setup.cfg or pyproject.toml beside a script asks for; read without running it."""

import ast
import configparser
import contextlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class SetupFile:
    """Versions of Python and requirement lines of a project; `python` is empty for any."""

    name: str
    python: str
    requirements: tuple[str, ...]


def read_setup_file(folder: Path) -> SetupFile | None:
    """Return what the first of the files in a folder asks for; None where none of them asks for anything readable."""
    for name, read in _READERS.items():
        with contextlib.suppress(OSError, ValueError, SyntaxError, configparser.Error):
            python, lines = read((folder / name).read_text("utf-8"))
            lines = lines.splitlines() if isinstance(lines, str) else lines if isinstance(lines, list | tuple) else ()
            asked = tuple(each.strip() for each in lines if isinstance(each, str) and each.strip())
            if asked or python:
                return SetupFile(name, python if isinstance(python, str) else "", asked)
    return None


def _setup_py(text: str) -> tuple[Any, Any]:
    tree = ast.parse(text)
    named = {
        target.id: each.value
        for each in tree.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    calls = (each for each in ast.walk(tree) if isinstance(each, ast.Call))
    given = {
        word.arg: word.value for each in calls if ast.unparse(each.func).endswith("setup") for word in each.keywords
    }

    def value(keyword: str) -> Any:
        node = given.get(keyword)
        with contextlib.suppress(ValueError):  # computed: only running it says what it is
            return ast.literal_eval(named.get(node.id, node) if isinstance(node, ast.Name) else node or "''")
        return ""

    return value("python_requires"), value("install_requires")


def _setup_cfg(text: str) -> tuple[Any, Any]:
    found = configparser.ConfigParser(interpolation=None)
    found.read_string(text)
    return found.get("options", "python_requires", fallback=""), found.get("options", "install_requires", fallback="")


def _pyproject(text: str) -> tuple[Any, Any]:
    project = tomllib.loads(text).get("project", {})
    return project.get("requires-python"), project.get("dependencies")


_READERS: Final[dict[str, Callable[[str], tuple[Any, Any]]]] = {
    "setup.py": _setup_py,
    "setup.cfg": _setup_cfg,
    "pyproject.toml": _pyproject,
}
