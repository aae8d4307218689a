"""A script as `mxjob run train.py` takes it: its folder and command, and a Dockerfile for another cluster."""

import difflib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import mxnet_operator
from mxnet_operator.cli.errors import CommandError, UsageError
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.running.dockerfile import write_dockerfile
from mxnet_operator.cli.running.given_command import given_command
from mxnet_operator.cli.running.images import EnvironmentOptions, image_name, image_store
from mxnet_operator.cli.running.script_text import ScriptText
from mxnet_operator.readers.enumeration import first_names

_SHELLS: Final = frozenset({"bash", "sh"})
_PYTHON: Final = re.compile(r"python[\d.]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*=")
_WITH_VALUE: Final = frozenset({"-W", "-X", "-o", "-O", "+O"})
"""Options of Python and shells whose value is the next word."""
_CODE: Final = re.compile(r"-[A-Za-z]*[cm]")
"""Options after which no script follows: Python's `-c` and `-m`, a shell's `-c` and `-lc`."""
_MODULE: Final = 3
"""Words of `python -m MODULE`."""
_MANIFESTS: Final = (".yaml", ".yml", ".json")
_SHOWN: Final = 5
_STEM_LENGTH: Final = 30
_IMAGES: Final = Path(mxnet_operator.__file__).parent / "local" / "images"
"""Folder of the Dockerfiles of the built-in images."""
_BUILT_ON: Final = "mxjob/mxnet:1.9.1"


@dataclass(frozen=True)
class Script:
    """Command that runs in a folder: the current one, or that of a script which lies elsewhere.

    `file` is the script that the command runs; None where it runs a module, or code among its words. `interpreter` is
    the Python of this machine that was named; `command` has the image's in its place. `modules` are further folders
    whose modules it imports.
    """

    folder: Path
    command: tuple[str, ...]
    file: Path | None = None
    interpreter: str = ""
    modules: tuple[Path, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str]) -> "Script":
        """Read the words of a command line.

        Raises:
            CommandError: the script doesn't exist, or nothing says what runs it (exit code 2).
        """
        first, here = words[0], Path.cwd()
        if first.endswith(_MANIFESTS):
            raise UsageError(f"{first} is a manifest", f"give it with -f: mxjob run -f {shlex.quote(first)}")
        if first.endswith(".ipynb"):
            made = shlex.quote(first.removesuffix(".ipynb") + ".py")
            how = f"make a script of it: jupyter nbconvert --to script {shlex.quote(first)}; then: mxjob run {made}"
            raise UsageError(f"{first} is a notebook", how)
        if Path(first).is_dir():
            raise UsageError(f"{first} is a folder, where a script is expected", _scripts_in(Path(first), "train.py"))
        if _VARIABLE.match(first) and len(words) > 1:
            raise UsageError(
                f"{first} is a variable, which only a shell takes before a command",
                f"give it as an option: {_instead(words, words[1:], '--env', first)}",
            )
        program = Path(first).name
        if _PYTHON.fullmatch(program) or program in _SHELLS:
            script = _script_of(words[1:])
            if script.endswith((".py", ".sh")) and not Path(script).is_file():
                raise _no_script(script)
            file = here / script if script and Path(script).is_file() else None
            named = first not in {"python", "python3"} and program not in _SHELLS
            return cls(here, ("python" if named else program, *words[1:]), file, first if named else "")
        if program == "env":
            return cls(here, tuple(words))
        if not Path(first).is_file():
            if len(words) == 1 and (unquoted := _unquoted(first)):
                raise UsageError(f"{first!r} is one word", f"unquote it: {_instead(words, unquoted)}")
            if first.endswith((".py", ".sh")):
                raise _no_script(first)
            raise UsageError(
                f"no image given, in which {first} would run",
                f"give one that has it: mxjob run --image IMAGE -- {shlex.join(words)};"
                " or give a script: mxjob run train.py",
            )
        path = Path(os.path.abspath(first))  # noqa: PTH100 - a script that is a link stays where the link is
        is_below = path.is_relative_to(here) and str(here) not in {here.anchor, os.path.expanduser("~")}  # noqa: PTH111 - there may be no home
        folder, name = (here, str(path.relative_to(here))) if is_below else (path.parent, path.name)
        if first.endswith(".sh"):
            return cls(folder, ("bash", name, *words[1:]), path)
        return cls(folder, with_python([name if first.endswith(".py") else f"./{name}", *words[1:]]), path)

    @property
    def python_file(self) -> Path | None:
        """The script, if Python runs it; of `python -m`, the module's file in the folder."""
        if not self.command[0].startswith("python"):
            return None
        if self.file is not None or self.command[1:2] != ("-m",) or len(self.command) < _MODULE:
            return self.file
        path = self.folder.joinpath(*self.command[2].split("."))
        found = (path.with_name(f"{path.name}.py"), path / "__main__.py")
        return next((each for each in found if each.is_file()), None)

    @cached_property
    def text(self) -> ScriptText:
        """What the script and its modules show before it runs."""
        return ScriptText(self.folder, self.python_file, self.search_folders)

    @property
    def search_folders(self) -> list[Path]:
        """Where the modules lie that the script imports: its own folder, and the one that is copied."""
        own = (self.folder,) if self.file is None else (self.file.parent, self.folder)
        return [*dict.fromkeys((*own, *self.modules))]

    @property
    def warnings(self) -> list[str]:
        """What runs in another way than its words say."""
        what = "the image's Python runs instead, with the packages of requirements.txt and --pip"
        return [f"{self.interpreter}: {what}"] if self.interpreter else []


def needs_image(
    script: Script, packages: Sequence[str], environment: EnvironmentOptions, *, gpus: bool, write: bool
) -> CommandError:
    """Build the error for a cluster other than the local one; with `write` the folder gets a Dockerfile."""
    image = f"REGISTRY/{image_name(script.folder)}:1"
    if write:
        with image_store() as store:
            base = environment.base(store, script.folder, packages, gpus=gpus)
        written = write_dockerfile(script.folder, script.command, packages, base)
        say(f"Dockerfile {'written' if written else 'found, and left as it is'}: {script.folder / 'Dockerfile'}")
    folder, base = shlex.quote(str(script.folder)), shlex.quote(str(_IMAGES))
    again = given_command("--image", image, without="--dry-run")
    text = (script.folder / "Dockerfile").read_text("utf-8", "replace") if write else _BUILT_ON
    first = f"  docker build -t {_BUILT_ON} -f {base}/mxnet-1.9.1.Dockerfile {base}\n" if _BUILT_ON in text else ""
    return UsageError(
        "this cluster needs an image with the script, from a registry that it reads",
        hint="build one, push it, and run it (REGISTRY is yours):\n"
        f"{first}"
        f"  docker build -t {image} {folder}\n"
        f"  docker push {image}\n"
        f"  {again}\n"
        "or run it on this machine: mxjob local up --detach; KUBECONFIG=$(mxjob local kubeconfig) mxjob run ...",
    )


def with_python(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command whose first word is a Python script as `python SCRIPT`; any other as it is."""
    return ("python", *words) if words and words[0].endswith(".py") else tuple(words)


def job_prefix(command: Sequence[str]) -> str:
    """Return the first part of the name of a job that has none: the script's name, or `train`."""
    script = next((word for word in command if word.endswith(".py")), "")
    stem = re.sub("[^a-z0-9]+", "-", Path(script).stem.lower())[:_STEM_LENGTH].strip("-")
    return stem if stem[:1].isalpha() else "train"


def _script_of(words: Sequence[str]) -> str:
    """Return the script among the words after Python or a shell; empty where they have code, a module or none."""
    left = iter(words)
    for word in left:
        if _CODE.fullmatch(word):
            return ""
        if word in _WITH_VALUE:
            next(left, "")
        elif not word.startswith(("-", "+")):
            return word
    return ""


def _unquoted(text: str) -> list[str]:
    """Return the words of a whole command that was quoted; empty where it is none."""
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    is_command = len(words) > 1 and (
        _PYTHON.fullmatch(Path(words[0]).name)
        or Path(words[0]).name in _SHELLS
        or _VARIABLE.match(words[0])
        or Path(words[0]).is_file()
    )
    return words if is_command else []


def _instead(words: Sequence[str], meant: Sequence[str], *options: str) -> str:
    """Return the command that the user typed, with other words for the script and its arguments."""
    own = [word for word in sys.argv[1:] if word not in {*words, "--"}]
    arguments = ["--", *meant[1:]] if meant[1:] else []
    script = [meant[0], *arguments] if meant[0].endswith((".py", ".sh")) else ["--", *meant]
    return shlex.join(["mxjob", *own, *options, *script])


def _no_script(name: str) -> CommandError:
    return UsageError(f"{name}: there is no such file in {Path.cwd()}", _scripts_in(Path(), name))


def _scripts_in(folder: Path, name: str) -> str:
    """Return a hint at the scripts in a folder, the one that was probably meant first."""
    try:
        scripts = sorted(each.name for each in folder.iterdir() if each.suffix == ".py")
    except OSError:
        scripts = []
    if not scripts:
        return "give the path of a script: mxjob run FOLDER/train.py"
    stems = {Path(each).stem: each for each in scripts}
    near = [stems[each] for each in difflib.get_close_matches(Path(name).stem, stems, n=1)]
    shown = [str(folder / each) for each in dict.fromkeys([*near, *scripts])]
    if near and near[0] != Path(name).name:
        return f"did you mean {shown[0]}?"
    return f"scripts there: {first_names(shown, _SHOWN)}; for one of them: mxjob run {shlex.quote(shown[0])}"
