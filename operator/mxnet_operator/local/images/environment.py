"""Build of a virtual environment from a lock, once for all concurrent callers, and lookup of its Python."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from mxnet_operator.local.claims import open_lock, try_lock
from mxnet_operator.local.images import python2
from mxnet_operator.local.images.day import can_be_fetched, day_options, no_python
from mxnet_operator.local.images.lock import Lock
from mxnet_operator.local.images.uv_process import (
    BuildError,
    Ended,
    ImageError,
    ProgressReader,
    build_error,
    clean_environment,
    run,
    uv_program,
)

PYTHON_VARIABLES: Final = {
    "PYTHONIOENCODING": "utf-8:surrogateescape",
    "MPLBACKEND": "Agg",
    "SDL_VIDEODRIVER": "dummy",
}
"""Variables of every image: else Python 2 prints ASCII only into a log, and Matplotlib before 3.0 and pygame need a
screen.
"""


async def find_interpreter(version: str, cwd: Path) -> Path:
    """Find an interpreter of this version ("3.11" or "3.11.7"); download it if this machine has none.

    Raises:
        ImageError: there is none and none can be fetched; the message says what to install.
    """
    found = await asyncio.to_thread(installed_interpreter, version)
    if found is not None:
        return found
    if not can_be_fetched(version):
        raise no_python((version,), "The image")
    install = [uv_program(), "python", "install", "--no-progress", version]
    fetched = await run(install, cwd=cwd)
    if fetched.code == 0 and (found := await asyncio.to_thread(installed_interpreter, version)) is not None:
        return found
    what = (
        f"Python {version}, which the image needs, isn't on this machine and can't be fetched. Install it so that "
        f"`python{version}` is on PATH (apt, dnf, pyenv and conda have it)"
    )
    raise build_error(what, fetched, cwd)


def installed_interpreter(version: str) -> Path | None:
    """Find an interpreter of this version on this machine, also one of pyenv's that its shims don't offer.

    Blocks for the moment that uv takes.
    """
    if _is_own(version):
        return Path(getattr(sys, "_base_executable", sys.executable))
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    folders = [os.environ.get("PATH", ""), *map(str, sorted(pyenv.glob(f"versions/{version}*/bin")))]
    if version.startswith("2."):  # uv knows Python 3 only
        paths = (shutil.which(f"python{version}", path=each) for each in reversed(folders))
        return next((Path(each) for each in paths if each), None)
    find = (*(uv_program(), "python", "find", "--no-project", "--system"), "--no-python-downloads", version)
    for path in folders:
        variables = clean_environment(os.environ) | {"PATH": path}
        done = subprocess.run(find, check=False, capture_output=True, text=True, env=variables)
        if done.returncode == 0:
            return Path(done.stdout.strip())
    return None


def _is_own(version: str) -> bool:
    wanted = tuple(int(part) for part in version.split("."))
    return sys.implementation.name == "cpython" and tuple(sys.version_info[: len(wanted)]) == wanted


_POLL_SECONDS = 0.2
MARK = "complete.json"
"""File of an environment that can be used, made as the last step; only its existence counts."""
_NUMPYS_LIBGFORTRAN = "numpy/.libs/libgfortran-*.so.3.0.0"


class Environment:
    """Virtual environment in the cache: `<root>/venv`, its lock, and a marker file once it is complete.

    Scripts in a virtual environment know its path, so it is built where it stays; the mark, written last, tells a
    complete one from what a killed build left behind. A lock file beside it, which uv holds as well, lets one
    build at a time near it.
    """

    def __init__(self, cache: Path, lock: Lock) -> None:
        self.lock = lock
        self.root = cache / lock.key
        self.bin_dir = self.root / "venv" / "bin"
        self.python = self.bin_dir / "python"
        self._mark = self.root / MARK
        self._lock_file = cache / f"{lock.key}.lock"
        self._failure = ""

    def library_path(self) -> str:
        """LD_LIBRARY_PATH with the folders of CUDA's libraries in NVIDIA's wheels, and of an old MXNet's libgfortran.

        PyTorch and TensorFlow find these libraries by themselves, MXNet doesn't.
        """
        lent = [self.root / "lib"] if (self.root / "lib").exists() else []
        return ":".join(sorted(map(str, [*self.root.glob("venv/lib/python3*/site-packages/nvidia/*/lib"), *lent])))

    def complete(self) -> bool:
        """Whether the environment can be used; false if the Python that it was made from is gone."""
        return self._mark.exists() and self.python.exists()

    async def build(self, progress: ProgressReader) -> None:
        """Build the environment unless it is complete; wait while another process builds it.

        Raises:
            BuildError: it can't be built, and the next call would fail in the same way.
            ImageError: it can't be built now.
        """
        async with self._locked(progress) as held:
            if self.complete():
                return
            if self._failure:
                raise BuildError(self._failure)
            try:
                await _to_thread_to_the_end(self._begin)
                await self._create(progress, held)
                await self._install(progress, held)
                await _to_thread_to_the_end(self._lend_libgfortran)
                await self._check(progress, held)
                self._mark.touch()
            except BuildError as error:
                self._failure = str(error)
                raise
            except OSError as error:
                raise _unwritable(error, self.root.parent) from error
        progress.stage("done", "")

    def _begin(self) -> None:
        # A user of this folder is a container of a cluster that found it complete; it isn't, or its Python is gone.
        if self.root.exists():
            shutil.rmtree(self.root)
        self.root.mkdir(parents=True)
        (self.root / "requirements.txt").write_text(self.lock.text, "utf-8")

    async def _create(self, progress: ProgressReader, held: int) -> None:
        progress.stage("python", f"looking for Python {self.lock.python}")
        interpreter = await find_interpreter(self.lock.python, self.root)
        progress.stage("environment", str(interpreter))
        command: list[str | Path] = [
            *(uv_program(), "venv", "--no-project", "--no-progress", "--python", interpreter),
            self.root / "venv",
        ]
        if self.lock.python == python2.PYTHON2:
            command = python2.make_environment(interpreter, self.root / "venv")
        ended = await run(command, cwd=self.root, held=[held])
        if ended.code != 0:
            raise build_error("The virtual environment can't be made", ended, self.root.parent)

    async def _install(self, progress: ProgressReader, held: int) -> None:
        progress.packages = len(self.lock.pins)
        progress.stage("download", f"{progress.packages} packages")
        day: list[str] = [] if self.lock.day is None else day_options(self.lock.day, list(self.lock.pins))
        command: list[str | Path] = [
            *(uv_program(), "pip", "sync", "--require-hashes", "--no-progress", "--python", self.python),
            self.root / "requirements.txt",
            *day,
        ]
        variables = {}
        if self.lock.python == python2.PYTHON2:
            command = python2.install(self.python, self.root / "requirements.txt")
            variables = python2.pip_variables()
        ended = await run(command, cwd=self.root, on_line=progress.line, held=[held], variables=variables)
        if ended.code != 0:
            raise build_error("The image's packages can't be installed", ended, self.root.parent)

    def _lend_libgfortran(self) -> None:
        """Give MXNet 0.12 and 1.0 the libgfortran.so.3 of numpy's wheel: today's systems have a newer one."""
        old = ("0.12.", "1.0.0")
        if any(name.startswith("mxnet") and version.startswith(old) for name, version in self.lock.pins.items()):
            for library in self.root.glob(f"venv/lib/python*/site-packages/{_NUMPYS_LIBGFORTRAN}"):
                (self.root / "lib").mkdir()
                (self.root / "lib" / "libgfortran.so.3").symlink_to(library)

    async def _check(self, progress: ProgressReader, held: int) -> None:
        statement = _first_import(self.lock)
        progress.stage("check", statement)
        libraries = self.library_path()
        variables = {"LD_LIBRARY_PATH": libraries} if libraries else {}
        ended = await run([self.python, "-c", statement], cwd=self.root, held=[held], variables=variables)
        if ended.code != 0:
            what = f"The image is installed, but `{statement}` fails in it (exit code {ended.code})"
            raise build_error(what, ended, self.root.parent)

    @contextlib.asynccontextmanager
    async def _locked(self, progress: ProgressReader) -> AsyncIterator[int]:
        """Hold the build lock and yield its descriptor; flock excludes tasks and processes alike."""
        try:
            self._lock_file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = open_lock(self._lock_file)
        except OSError as error:
            raise _unwritable(error, self.root.parent) from error
        try:
            is_announced = False
            while not try_lock(descriptor):
                if not is_announced:
                    progress.stage("waiting", "another process builds this image")
                    is_announced = True
                await asyncio.sleep(_POLL_SECONDS)
            yield descriptor
        finally:
            os.close(descriptor)


def _unwritable(error: OSError, cache: Path) -> ImageError:
    return ImageError(str(build_error("The image can't be written", Ended(1, (str(error),)), cache)))


async def _to_thread_to_the_end(function: Callable[[], None]) -> None:
    """Run a function in a thread; a cancelled caller waits for it too, since the thread needs the caller's lock."""
    task = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _first_import(lock: Lock) -> str:
    """Return imports that test the environment: MXNet's fails with a wrong numpy, TVM's RPC without tornado."""
    if any(name == "mxnet" or name.startswith("mxnet-cu") for name in lock.pins):
        return "import mxnet"
    if "apache-tvm" in lock.pins:
        return "import tvm, tvm.rpc.tracker, tvm.rpc.server"
    return "import sys"
