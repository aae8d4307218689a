"""What a script's text shows before it runs: Python 2, imports that fail, no kvstore. Nothing of it is executed."""

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from mxnet_operator.cli.running.removals import ASYNC, PYTHON_2, Removal, removal_of
from mxnet_operator.local.projects import IN_THE_IMAGE, PROJECTS

_MOST_FILES: Final = 200
_MOST_BYTES: Final = 2**20
_NOT_READ: Final = frozenset({"node_modules", "__pycache__"})
_TEXTS: Final = (".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".conf", ".txt")
_PYTHON_2: Final = "the script is Python 2"
_BESIDE: Final = re.compile(r"""['"]((?:\.\./)+[\w.-]*\w)(?=[/'"])""")
_SAVES: Final = re.compile(
    r"""\b(?:\w*save\w*|export|imwrite|do_checkpoint)\([^"'#]*["'](?:\./)?([\w-][\w./-]*)/[^"'/]*["']"""
)
_MAKES: Final = re.compile(r"\b(?:makedirs?|mkdir)\b")
_IN_HOME: Final = re.compile(r"""['"](~/[\w.-]+)(?=[/'"])""")
_IMPORT: Final = re.compile(
    r"(?:from\s+(?P<of>\w[\w.]*)\s+)?import\b[\s(]*(?P<names>(?:[\w.*]+(?:\s+as\s+\w+)?(?:\s*,\s*)?)*)"
)
_ADDED_PATH: Final = re.compile(r"""\bsys\.path\.(?:append|insert)\(.*['"]([\w./-]+)['"]""")
_OF_PYTHON_2: Final = frozenset({"xrange", "raw_input", "unicode", "unichr", "execfile", "long", "reduce", "file"})
_METHODS_OF_PYTHON_2: Final = frozenset({"has_key", "iteritems", "iterkeys", "itervalues"})
_FOR_BOTH: Final = re.compile(r"except NameError|version_info|\bPY[23]\b|\bsix\b|\bxrange\s+as\b|import \*")
"""What text has that runs in Python 2 and 3."""
_COUNT: Final = re.compile(
    r"num_(?:args|classes|embed|epoch|examples|filter|group|hidden|layers?|outputs)|(?:batch|embed|hidden|kernel|vocab)_size"
)
"""Names of arguments that are whole numbers."""
_ELSEWHERE: Final = sys.stdlib_module_names | PROJECTS.keys() | IN_THE_IMAGE
"""Modules that a module of the same name beside the importing one doesn't hide in Python 3."""
_DATA_OF: Final = {
    "art": "~/.art",
    "dgl": "~/.dgl",
    "sklearn": "~/scikit_learn_data",
    **dict.fromkeys(("gluoncv", "gluonnlp", "gluonts"), "~/.mxnet"),
    **dict.fromkeys(("d2l", "d2lzh", "gluonbook"), "../data"),
}
"""Folders in which packages keep their data."""
_OF_GLUON: Final = re.compile(r"""\b(?:data\.vision|model_zoo)\b|['"/]\.mxnet\b""")
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


class Failure(NamedTuple):
    """Line of a script that fails in the Python and the packages of today, as `train.py, line 3: print loss`."""

    removal: Removal
    why: str
    place: str


class _Module(NamedTuple):
    path: Path
    lines: tuple[str, ...]
    tree: ast.Module | None
    error: SyntaxError | None


class ScriptText:
    """Script and the modules of its folder that it imports, also in functions; modules lie in `starts`.

    Without a script that Python runs there is no text, and nothing is found in it.
    """

    def __init__(self, folder: Path, script: Path | None, starts: Sequence[Path]) -> None:
        self._folder, self._script, self._starts = folder, script, starts
        self._modules = [] if script is None else list(_modules(script, starts, in_functions=True))
        self._added = {path for module in self._modules for path in _added_paths(module)}

    @cached_property
    def certain_failure(self) -> Failure | None:
        """A line that fails whenever the script runs: at the top of a file, not within `try`, `if` or a function."""
        for module in _modules(self._script, self._starts) if self._script is not None else ():
            if (found := self._failure(module)) is not None:
                removal, why, line = found
                text = module.lines[line - 1].strip() if 0 < line <= len(module.lines) else ""
                is_below = module.path.is_relative_to(self._folder)
                name = module.path.relative_to(self._folder) if is_below else module.path
                return Failure(removal, why, f"{name}, line {line}: {text}")
        return None

    @cached_property
    def imports(self) -> set[str]:
        """What the files import, as `mxnet.gluon.nn`, also in functions; not what a `try` does without."""
        return {
            name
            for module in self._modules
            for name, level, _ in _imported(module, in_functions=True)
            if not level and not _own(name, {*self._starts, module.path.parent, *self._added})
        }

    @cached_property
    def beside(self) -> dict[str, str]:
        """The folders outside the script's own that it reads and that exist, by the path where it looks.

        These are folders that the text names, as `../data` and `~/.art`, and targets of links, as `data`. Not the one
        of MXNet's sources: the package there has no library.
        """
        from mxnet_operator.local.images.snapshot import leads_out  # noqa: PLC0415

        named = {match for pattern in (_BESIDE, _IN_HOME) for match in self._matches(pattern)}
        named |= {_DATA_OF[each] for each in _DATA_OF.keys() & {name.partition(".")[0] for name in self.imports}}
        if self.has(_OF_GLUON):
            named.add("~/.mxnet")
        found = {}
        for each in named:
            folder = self._folder / Path(each).expanduser()
            if folder.is_dir() and not (folder / "mxnet" / "base.py").exists():
                found[each] = each
        for link in self._folder.iterdir() if self._modules else ():
            if link.is_symlink() and link.is_dir() and leads_out(self._folder, link):
                found[link.name] = os.path.relpath(link.resolve())
        return dict(sorted(found.items()))

    @cached_property
    def above(self) -> Path | None:
        """A folder above the script's own that it adds to its path, by `..`, and imports a module of."""
        names = {name for module in self._modules for name, level, _ in _imported(module) if not level}
        found = (each.resolve() for each in self._added if any(_own(name, [each]) for name in names))
        return next((each for each in found if each in self._folder.resolve().parents), None)

    @cached_property
    def saved_into(self) -> set[str]:
        """Folders below the script's own that a line saves into by a literal path; none where the script makes some."""
        return set() if self.has(_MAKES) else set(self._matches(_SAVES))

    @cached_property
    def is_python_2(self) -> bool:
        """Whether the text parses in Python 3 and runs in Python 2 only, by what it calls, divides or imports."""
        return not self.is_python_3 and any(
            _runs_in_2_only(module) or self._imports_relatively(module) for module in self._modules
        )

    @cached_property
    def is_python_3(self) -> bool:
        """Whether the text has what Python 2 can't parse."""
        trees = [module.tree for module in self._modules if module.tree is not None]
        return any(_needs_python_3(node) for tree in trees for node in ast.walk(tree))

    def has(self, pattern: re.Pattern[str]) -> bool:
        return any(self._matches(pattern))

    def _matches(self, pattern: re.Pattern[str]) -> Iterator[str]:
        lines = (line for module in self._modules for line in module.lines)
        return (match[match.lastindex or 0] for line in lines for match in pattern.finditer(line))

    def _failure(self, module: _Module) -> tuple[Removal, str, int] | None:
        if (error := module.error) is not None:
            for removal, message, pattern in _SYNTAX:
                if re.search(message, error.msg) and re.search(pattern, error.text or ""):
                    why = _PYTHON_2 if removal is PYTHON_2 else f"{removal.release} {removal.what}"
                    return removal, why, error.lineno or 0
            return None
        for name, level, line in _imported(module):
            if level == 0 and not _own(name, self._starts) and (found := removal_of(name)) is not None:
                return *found, line
        for each in ast.walk(module.tree) if module.tree is not None else ():
            if isinstance(each, ast.Expr) and _prints_to_file(each.value):
                return PYTHON_2, _PYTHON_2, each.lineno
        return None

    def _imports_relatively(self, module: _Module) -> bool:
        """Whether a module imports one beside it by its name alone, which no folder on Python 3's path has."""
        here, elsewhere = [module.path.parent], {*self._starts, *self._added}
        names = {name for name, level, _ in _imported(module, in_functions=True) if not level}
        return not {module.path.parent, "__future__.absolute_import"} & {*elsewhere, *names} and any(
            name.partition(".")[0] not in _ELSEWHERE and _own(name, here) and not _own(name, elsewhere)
            for name in names
        )


def _runs_in_2_only(module: _Module) -> bool:
    nodes = list(ast.walk(module.tree)) if module.tree is not None else []
    imported = {name for name, _, _ in _imported(module)}
    if "__future__.division" not in imported and any(map(_counts_by_division, nodes)):
        return True
    calls = [each.func for each in nodes if isinstance(each, ast.Call)]
    called = {each.id for each in calls if isinstance(each, ast.Name)} & _OF_PYTHON_2
    if "pandas" not in imported:
        called |= {each.attr for each in calls if isinstance(each, ast.Attribute)} & _METHODS_OF_PYTHON_2
    defined = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    defined |= {each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    return bool(called - defined - {name.rpartition(".")[2] for name in imported}) and not any(
        _FOR_BOTH.search(line) for line in module.lines
    )


def _counts_by_division(node: ast.AST) -> bool:
    """Whether a division stands for a whole number: `range(n / 2)`, `a[: n / 2]`, `f(batch_size=n / 2)`."""
    counts: Sequence[ast.expr | None] = ()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        counts = node.args
    elif isinstance(node, ast.Slice):
        counts = (node.lower, node.upper)
    elif isinstance(node, ast.keyword) and _COUNT.fullmatch(node.arg or ""):
        counts = (node.value,)
    return any(map(_divides, counts))


def _divides(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.BinOp):
        return False
    return isinstance(value.op, ast.Div) or _divides(value.left) or _divides(value.right)


def _needs_python_3(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        arguments = (*node.args.args, *node.args.kwonlyargs)
        return bool(node.returns or node.args.kwonlyargs or any(each.annotation for each in arguments))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "super" and not node.args
    return isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.AsyncFunctionDef | ast.Nonlocal)


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


def _modules(script: Path, starts: Sequence[Path], *, in_functions: bool = False) -> Iterator[_Module]:
    """Yield the script and the modules of its folder that it imports, each once."""
    left, seen, added = [script], {script}, list[Path]()
    while left and len(seen) <= _MOST_FILES:
        module = _read(left.pop(0))
        if module is None:
            continue
        yield module
        added += _added_paths(module)
        for name, level, _ in _imported(module, in_functions=in_functions):
            for path in _own(
                name, [module.path.parents[level - 1]] if level else [*starts, module.path.parent, *added]
            ):
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


def _imported(module: _Module, *, in_functions: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield what is imported at the top of a file: its dotted name, the level of a relative import, and the line.

    With `in_functions` what functions import too. Of text that no Python 3 parses, the lines that look like imports.
    """
    if module.tree is None:
        for number, line in enumerate(module.lines, 1):
            if match := _IMPORT.match(line):
                prefix, names = f"{match['of']}." if match["of"] else "", match["names"].split(",")
                dotted = ((prefix + name.strip().partition(" ")[0]).strip(".") for name in names)
                yield from ((name, 0, number) for name in dotted if name)
        return
    for node in _certain(module.tree.body, in_functions=in_functions):
        if isinstance(node, ast.Import):
            yield from ((each.name, 0, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            yield from ((f"{prefix}{each.name}", node.level, node.lineno) for each in node.names)


def _certain(body: Sequence[ast.stmt], *, in_functions: bool) -> Iterator[ast.stmt]:
    """Yield the statements of a file that must succeed: of a `try`, those whose failure is raised in other words."""
    for node in body:
        if not isinstance(node, ast.Try):
            yield node
            if in_functions and isinstance(node, ast.FunctionDef | ast.ClassDef | ast.With):
                yield from _certain(node.body, in_functions=True)
        elif all(isinstance(each.body[-1], ast.Raise) for each in node.handlers):
            yield from node.body


def _own(name: str, bases: Iterable[Path]) -> list[Path]:
    """Return what importing a dotted name reads below the first of `bases` that has it.

    It is the folder of a package without `__init__.py`, and empty where the module is another's.
    """
    for base in bases:
        found, place = [], base
        for part in name.split("."):
            place /= part
            files = (place.with_name(f"{part}.py"), place / "__init__.py")
            found += [each for each in files if each.is_file()] or ([place] if place.is_dir() else [])
            if not place.is_dir():
                break
        if found:
            return found
    return []


def _prints_to_file(value: ast.expr) -> bool:
    """Whether this is `print >>file, text`, which Python 3 takes for a shift."""
    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
    return (
        isinstance(first, ast.BinOp)
        and isinstance(first.op, ast.RShift)
        and isinstance(first.left, ast.Name)
        and first.left.id == "print"
    )
