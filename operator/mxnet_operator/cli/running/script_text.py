"""What a script's text shows before it runs: Python 2, imports that fail, no kvstore. Nothing of it is executed."""

import ast
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mxnet_operator.cli.running.removals import ASYNC, PYTHON_2, Removal, removal_of

_MOST_FILES: Final = 200
_MOST_BYTES: Final = 2**20
_NOT_READ: Final = frozenset({"node_modules", "__pycache__"})
_TEXTS: Final = (".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".conf", ".txt")
_PYTHON_2: Final = "the script is Python 2"
_BESIDE: Final = re.compile(r"""['"](\.\./[\w.-]*\w)(?=[/'"])""")
_IMPORT: Final = re.compile(
    r"import\s+(?P<names>[\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*[\w.]+(?:\s+as\s+\w+)?)*)|from\s+(?P<of>\w[\w.]*)\s+import"
)
_ADDED_PATH: Final = re.compile(r"""\bsys\.path\.(?:append|insert)\(.*['"]([\w./-]+)['"]""")
_OF_PYTHON_2: Final = frozenset({"xrange", "raw_input"})
_FOR_BOTH: Final = re.compile(r"except NameError|version_info|\bPY[23]\b|\bxrange\s+as\b|import \*")
"""What text has that runs in Python 2 and 3."""
_DISTRIBUTED: Final = re.compile("dist|horovod|byteps|hvd", re.IGNORECASE)

_SYNTAX: Final = (
    (PYTHON_2, r"Missing parentheses in call to '(?:print|exec)'", ""),
    (PYTHON_2, r"multiple exception types must be parenthesized", ""),
    (PYTHON_2, r"leading zeros in decimal integer literals", ""),
    (PYTHON_2, r"inconsistent use of tabs and spaces", ""),
    (PYTHON_2, r"(?:Function|Lambda expression) parameters cannot be parenthesized", ""),
    (PYTHON_2, r"invalid (?:decimal|hexadecimal) literal", r"\b(?:0[xX][0-9a-fA-F]+|\d+)[lL]\b"),
    (PYTHON_2, r"invalid syntax", r"<>|`[^`]+`|\braise\s+[\w.]+\s*,|\b[uU][rR]['\"]|\bexcept\b[^:]*,\s*\w+\s*:"),
    (ASYNC, r"invalid syntax", r"\basync\b(?!\s+(?:def|for|with)\b)"),
)
"""What the compiler says of text that an older Python takes, and what its line then has."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Line of a script that fails in the Python and the packages of today: `train.py, line 3: print loss`."""

    removal: Removal
    why: str
    place: str


@dataclass(frozen=True, slots=True)
class _Module:
    path: Path
    lines: tuple[str, ...]
    tree: ast.Module | None
    error: SyntaxError | None


def certain_failure(folder: Path, script: Path, bases: Sequence[Path]) -> Failure | None:
    """Find a line that fails whenever the script runs; None where none is certain.

    Read are the script and what it imports of its folder at the top of files: not within `try`, `if` or a function.
    Modules of the script lie in `bases`.
    """
    for module in _modules(script, bases):
        if (found := _failure(module, bases)) is not None:
            removal, why, line = found
            text = module.lines[line - 1].strip() if 0 < line <= len(module.lines) else ""
            name = module.path.relative_to(folder) if module.path.is_relative_to(folder) else module.path
            return Failure(removal, why, f"{name}, line {line}: {text}")
    return None


def imported_names(script: Path, bases: Sequence[Path]) -> set[str]:
    """Return what a script and its own modules import at the top of their files, as `mxnet.gluon.nn`; not its own."""
    modules = list(_modules(script, bases))
    added = {path for module in modules for path in _added_paths(module)}
    return {
        name
        for module in modules
        for name, level, _ in _imported(module)
        if not level and not any(_is_own(name, each) for each in {*bases, module.path.parent, *added})
    }


def named_beside(script: Path, folder: Path) -> list[str]:
    """Return the folders beside the script's own that it and its modules name and that exist, such as `../data`."""
    texts = ("\n".join(module.lines) for module in _modules(script, [script.parent, folder]))
    named = {match[1] for text in texts for match in _BESIDE.finditer(text)}
    return sorted(each for each in named if (folder / each).is_dir())


def names_python_2(script: Path, bases: Sequence[Path]) -> bool:
    """Whether the script or a module of its folder calls `xrange` or `raw_input`, and nothing defines them."""
    return any(_calls_python_2(module) for module in _modules(script, bases))


def _calls_python_2(module: _Module) -> bool:
    if module.tree is None or any(_FOR_BOTH.search(line) for line in module.lines):
        return False
    nodes = list(ast.walk(module.tree))
    called = {each.func.id for each in nodes if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}
    defined = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return bool(called & _OF_PYTHON_2 - defined - {name.rpartition(".")[2] for name, _, _ in _imported(module)})


def names_distributed_kvstore(folder: Path, words: str) -> bool:
    """Whether the folder's texts or `words` name a kvstore of several workers, or may do so unseen."""
    if _DISTRIBUTED.search(words):
        return True
    for number, path in enumerate(_texts(folder)):
        try:
            if number >= _MOST_FILES or path.stat().st_size > _MOST_BYTES:
                return True
            if _DISTRIBUTED.search(path.read_text("utf-8", "replace")):
                return True
        except OSError:
            return True
    return False


def _texts(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".") and each not in _NOT_READ]
        yield from (Path(at, name) for name in files if name.endswith(_TEXTS))


def _modules(script: Path, starts: Sequence[Path]) -> Iterator[_Module]:
    """Yield the script and the modules of its folder that it imports, each once."""
    left, seen, added = [script], {script}, list[Path]()
    while left and len(seen) <= _MOST_FILES:
        module = _read(left.pop(0))
        if module is None:
            continue
        yield module
        added += _added_paths(module)
        for name, level, _ in _imported(module):
            bases = [module.path.parents[level - 1]] if level else [*starts, module.path.parent, *added]
            for path in next(filter(None, (_own(name, each) for each in bases)), ()):
                if path not in seen:
                    seen.add(path)
                    left.append(path)


def _added_paths(module: _Module) -> list[Path]:
    """Return the folders that a file adds to `sys.path`, as `os.path.join(here, "common")`."""
    return [module.path.parent / match[1] for line in module.lines if (match := _ADDED_PATH.search(line))]


def _read(path: Path) -> _Module | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    lines = tuple(content.decode("utf-8", "replace").splitlines())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _Module(path, lines, ast.parse(content), None)
        except SyntaxError as error:
            return _Module(path, lines, None, error)
        except (ValueError, RecursionError, MemoryError):  # null bytes; an expression too deep
            return None


def _imported(module: _Module) -> Iterator[tuple[str, int, int]]:
    """Yield what is imported at the top of a file: its dotted name, the level of a relative import, and the line.

    Of text that no Python 3 parses, the lines that look like imports.
    """
    if module.tree is None:
        for number, line in enumerate(module.lines, 1):
            if match := _IMPORT.match(line):
                names = match["names"].split(",") if match["names"] else [match["of"]]
                yield from ((name.split()[0], 0, number) for name in names if name.strip())
        return
    for node in _certain(module.tree.body):
        if isinstance(node, ast.Import):
            yield from ((each.name, 0, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            yield from ((f"{prefix}{each.name}", node.level, node.lineno) for each in node.names)


def _certain(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a file that must succeed: of a `try`, those whose failure is raised in other words."""
    for node in body:
        if not isinstance(node, ast.Try):
            yield node
        elif all(isinstance(each.body[-1], ast.Raise) for each in node.handlers):
            yield from node.body


def _own(name: str, base: Path) -> list[Path]:
    """Return the files below `base` that importing a dotted name reads; empty where the module is another's."""
    found, place = [], base
    for part in name.split("."):
        place /= part
        files = (place.with_name(f"{part}.py"), place / "__init__.py")
        found += [each for each in files if each.is_file()]
        if not place.is_dir():
            break
    return found


def _failure(module: _Module, bases: Sequence[Path]) -> tuple[Removal, str, int] | None:
    if module.error is not None:
        return _syntax(module.error)
    for name, level, line in _imported(module):
        if level == 0 and not any(_is_own(name, each) for each in bases) and (found := removal_of(name)) is not None:
            return *found, line
    for each in ast.walk(module.tree) if module.tree is not None else ():
        if isinstance(each, ast.Expr) and _prints_to_file(each.value):
            return PYTHON_2, _PYTHON_2, each.lineno
    return None


def _is_own(name: str, base: Path) -> bool:
    top = base / name.partition(".")[0]
    return top.is_dir() or top.with_name(f"{top.name}.py").is_file()


def _prints_to_file(value: ast.expr) -> bool:
    """Whether this is `print >>file, text`, which Python 3 takes for a shift."""
    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
    return (
        isinstance(first, ast.BinOp)
        and isinstance(first.op, ast.RShift)
        and isinstance(first.left, ast.Name)
        and first.left.id == "print"
    )


def _syntax(error: SyntaxError) -> tuple[Removal, str, int] | None:
    for removal, message, line in _SYNTAX:
        if re.search(message, error.msg) and re.search(line, error.text or ""):
            return removal, _PYTHON_2 if removal is PYTHON_2 else f"{removal.release} {removal.what}", error.lineno or 0
    return None
