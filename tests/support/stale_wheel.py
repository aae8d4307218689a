"""Tests run against the installed wheel: where that is older than the checkout, pytest stops and says so."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "mxnet_operator": ROOT / "operator" / "mxnet_operator",
    "mxnet_provider": ROOT / "mxnet_provider",
    "mxnet_argo": ROOT / "argo" / "mxnet_argo",
}


def installed(package: str) -> Path | None:
    """Where a package is imported from; None if that is no installed wheel: a mutant's copy, or the folder itself."""
    spec = importlib.util.find_spec(package)
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    return folder if folder is not None and "site-packages" in folder.parts else None


def differences(checkout: Path, wheel: Path) -> Iterator[str]:
    """The files of a package that the wheel lacks, has beyond, or has with another content."""
    ours, theirs = _files(checkout), _files(wheel)
    yield from sorted(
        name
        for name in ours | theirs
        if name not in ours or name not in theirs or (checkout / name).read_bytes() != (wheel / name).read_bytes()
    )


def _files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix() for path in found}


def pytest_configure(config: pytest.Config) -> None:
    """Stop before anything is tested."""
    if hasattr(config, "workerinput"):
        return
    for package, checkout in PACKAGES.items():
        wheel = installed(package)
        stale = next(differences(checkout, wheel), None) if wheel is not None else None
        if stale is not None:
            message = (
                f"{(checkout / stale).relative_to(ROOT)} is not what is installed, and tests run against that: "
                "run make install"
            )
            raise pytest.UsageError(message)
