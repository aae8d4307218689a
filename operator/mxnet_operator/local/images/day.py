"""MXNet image of a day: the MXNet, the Python and the packages that a day, a Python or an MXNet means."""

import calendar
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from mxnet_operator.local.images.uv_process import ImageError


@dataclass(frozen=True, slots=True)
class Release:
    """MXNet release on the package index; `pythons` are those that it runs on, the one to prefer first.

    `numpy` is a bound that its own metadata lacks, `cuda` the newest CUDA that it was built for.
    """

    version: str
    released: date
    pythons: tuple[str, ...]
    numpy: str
    cuda: str


_UP_TO_36: Final = ("3.6", "2.7")
_UP_TO_37: Final = ("3.6", "3.7", "2.7")
_OF_2019: Final = ("3.7", "3.6", "3.8", "3.9", "3.10", "3.11", "2.7")
_OF_2020: Final = ("3.8", "3.7", "3.9", "3.6")
_OF_2021: Final = ("3.8", "3.9", "3.7", "3.10", "3.6", "3.11")
# numpy 1.20 changed what MXNet 1.6 and 1.7 override, 1.24 removed `np.bool`.
RELEASES: Final = (
    Release("0.9.5", date(2017, 5, 2), _UP_TO_36, "", "cu80"),
    Release("0.10.0", date(2017, 5, 26), _UP_TO_36, "", "cu80"),
    Release("0.11.0", date(2017, 8, 20), _UP_TO_36, "", "cu80"),
    Release("0.12.0", date(2017, 10, 30), _UP_TO_36, "", "cu90"),
    Release("0.12.1", date(2017, 11, 16), _UP_TO_36, "", "cu90"),
    Release("1.0.0", date(2017, 12, 4), _UP_TO_36, "", "cu90"),
    Release("1.1.0", date(2018, 2, 20), _UP_TO_36, "", "cu91"),
    Release("1.2.0", date(2018, 5, 21), _UP_TO_36, "", "cu92"),
    Release("1.2.1", date(2018, 7, 17), _UP_TO_36, "", "cu92"),
    Release("1.3.0", date(2018, 9, 12), _UP_TO_37, "", "cu92"),
    Release("1.3.1", date(2018, 11, 27), _UP_TO_37, "", "cu92"),
    Release("1.4.0", date(2019, 2, 28), ("3.7", "3.6", "2.7"), "", "cu100"),
    Release("1.4.1", date(2019, 5, 14), ("3.7", "3.6", "2.7"), "", "cu101"),
    Release("1.5.0", date(2019, 7, 19), _OF_2019, "<1.24", "cu101"),
    Release("1.5.1", date(2019, 9, 30), _OF_2019, "<1.24", "cu101"),
    Release("1.6.0", date(2020, 2, 21), _OF_2020, "<1.20", "cu102"),
    Release("1.7.0", date(2020, 8, 28), _OF_2020, "<1.20", "cu102"),
    Release("1.8.0", date(2021, 3, 21), _OF_2021, "<1.24", "cu112"),
    Release("1.9.0", date(2021, 12, 18), _OF_2021, "<1.24", "cu112"),
    Release("1.9.1", date(2022, 5, 17), _OF_2021, "<1.24", "cu112"),
)
_LAST_DAY: Final = date(2022, 12, 31)
"""Day of the last release where no other is asked for; it had no successor."""

PYTHONS: Final = {
    "2.7": date(2010, 7, 3),
    "3.6": date(2016, 12, 23),
    "3.7": date(2018, 9, 30),
    "3.8": date(2019, 12, 31),
    "3.9": date(2020, 12, 31),
    "3.10": date(2021, 12, 31),
    "3.11": date(2022, 12, 31),
}
"""Pythons that an MXNet runs on, and a day on which numpy, SciPy and scikit-learn were there for them."""

_EARLY: Final = timedelta(days=100)
"""How long before that day a Python is taken if it is asked for: it was out, and single packages were there."""

_FETCHED: Final = ("3.8", "3.9", "3.10", "3.11")
"""Pythons that uv downloads where the machine has none."""

_SETUPTOOLS: Final = (date(2020, 2, 29), date(2021, 7, 1))
"""Days of a setuptools that builds packages of years before: 46 dropped `Feature`, 58 `use_2to3`; and of its wheel."""
_BESIDE: Final = ("scipy", "scikit-learn", "requests", "graphviz")
ONLY_BINARY: Final = ("mxnet", "numpy", "scipy", "scikit-learn", "pandas")
"""Packages whose newest version without a wheel is passed over: building them takes compilers and minutes."""

_OLD_PANDAS: Final = {
    "numpy>=1.7.0": "0.19.2 0.20.0 0.20.1 0.20.2 0.20.3",
    "numpy>=1.9.0": "0.21.0 0.21.1 0.22.0 0.23.0 0.23.1 0.23.2 0.23.3 0.23.4",
    "numpy>=1.12.0": "0.24.0 0.24.1 0.24.2",
}
UV_SETTINGS: Final = "[tool.uv]\ndependency-metadata = [\n{}]\n".format(
    "".join(
        f'  {{name = "pandas", version = "{version}", requires-dist = ["{numpy}", "python-dateutil>=2.5", "pytz"]}},\n'
        for numpy, versions in _OLD_PANDAS.items()
        for version in versions.split()
    )
)
"""pyproject.toml with the requirements of pandas before 0.25, whose `pytz (>=2011k)` uv can't read.

uv takes it from its working directory, also in the folder of a project, and reads the user's settings beside it.
"""

_CUDA_11: Final = (
    "nvidia-cublas-cu11",
    "nvidia-cuda-nvrtc-cu11",
    "nvidia-cuda-runtime-cu11",
    "nvidia-cudnn-cu11<9",
    "nvidia-cufft-cu11",
    "nvidia-curand-cu11",
    "nvidia-cusolver-cu11",
    "nvidia-nccl-cu11",
    "nvidia-nvtx-cu11",
)
_REPOSITORY: Final = "mxjob/mxnet"
_TAG: Final = re.compile(
    r"(?P<mxnet>\d+\.\d+\.\d+)(?:-(?P<cuda>cu\d+))?-py(?P<python>\d\.\d+)(?:-(?P<day>\d{4}-\d\d-\d\d))?"
)
_PERIOD: Final = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_MXNET: Final = re.compile(
    r"mxnet(?:[-_.](?P<build>mkl|native|cu\d+(?:[-_.]?mkl)?))?\s*(?:\[[^\]]*\])?\s*(?P<versions>[<>=!~(].*)?",
    re.IGNORECASE,
)
_CUDA: Final = re.compile(r"cu\d+")


def parse_day(text: str) -> date:
    """Read a day; a month or a year means its last day, or today.

    Raises:
        ImageError: it is no day, or lies in the future.
    """
    match = _PERIOD.fullmatch(text)
    year, month, day = map(int, match.groups("0")) if match else (0, 0, 0)
    try:
        first = date(year, month or 1, day or 1)
        last = first if day else date(year, month or 12, calendar.monthrange(year, month or 12)[1])
    except ValueError:
        raise ImageError(f"{text!r} is no day: give one like 2019-12-01, or a month 2019-12, or a year 2019.") from None
    today = datetime.now(UTC).date()
    if first > today:
        raise ImageError(f"{text} lies in the future: packages are known up to today, {today}.")
    return min(last, today)


@dataclass(frozen=True, slots=True)
class MXNetRequirement:
    """Requirement of MXNet in any of its builds, such as `mxnet-cu90==1.5.0`; `versions` is empty for any."""

    text: str
    versions: str
    cuda: str = ""

    @classmethod
    def parse(cls, line: str) -> "MXNetRequirement | None":
        """Read a requirement line; None for another package.

        Raises:
            ImageError: its versions can't be read.
        """
        match = _MXNET.fullmatch(line.partition(";")[0].strip())
        if match is None:
            return None
        cuda = _CUDA.match((match["build"] or "").lower())
        found = cls(line, (match["versions"] or "").strip("() "), cuda[0] if cuda else "")
        try:
            SpecifierSet(found.versions)
        except InvalidSpecifier:
            raise ImageError(f"`{line}`: {found.versions} is no version of MXNet; write mxnet==1.5.1.") from None
        return found

    def matches(self, version: str) -> bool:
        """Whether a release fulfils it. A pinned post-release or nightly build means its release."""
        later = Version(f"{version}.post99")
        return all(
            Version(Version(each.version).base_version) == Version(version)
            if each.operator == "==" and not each.version.endswith(".*")
            else each.contains(version) or each.contains(later)
            for each in SpecifierSet(self.versions)
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of an image: a day, a Python, an MXNet, each None for any, and the MXNet for GPUs."""

    day: date | None = None
    python: str | None = None
    mxnet: str | None = None
    gpus: bool = False
    written: date | None = None
    """Day of the code, where it is known: what is pinned beside an MXNet may be later than that."""

    def __bool__(self) -> bool:
        """Whether a day, a Python or an MXNet is asked for."""
        return any((self.day, self.python, self.mxnet))


@dataclass(frozen=True, slots=True)
class DayImage:
    """Image with this MXNet and Python, and with all other packages as they were at the end of a day (UTC)."""

    mxnet: str
    python: str
    day: date
    cuda: str = ""

    @property
    def name(self) -> str:
        """Image name, from which `parse` makes the same image."""
        cuda = f"-{self.cuda}" if self.cuda else ""
        return f"{_REPOSITORY}:{self.mxnet}{cuda}-py{self.python}-{self.day}"

    def __str__(self) -> str:
        """Return what it has, for people."""
        build = f" for CUDA ({self.cuda})" if self.cuda else ""
        return f"MXNet {self.mxnet}{build}, Python {self.python}, packages as of {self.day}"

    @property
    def requirements(self) -> tuple[str, ...]:
        """Requirement lines of its packages."""
        package = f"mxnet-{self.cuda}" if self.cuda else "mxnet"
        numpy = _release(self.mxnet).numpy
        cuda = _CUDA_11 if self.cuda.startswith("cu11") else ()
        bounded = [f"numpy{numpy}"] if numpy else []
        tools = [] if self.python == "2.7" else ["setuptools"]  # Pythons of then brought it: librosa 0.6 imports it
        return (f"{package}=={self.mxnet}.*", *bounded, *tools, *_BESIDE, *cuda)

    @property
    def older_python(self) -> str:
        """The Python before this one that its MXNet runs on; empty where that is the oldest of Python 3."""
        pythons = [each for each in PYTHONS if each in _release(self.mxnet).pythons and each != "2.7"]
        return pythons[pythons.index(self.python) - 1] if self.python in pythons[1:] else ""

    @classmethod
    def parse(cls, name: str) -> "DayImage | None":
        """Read the name of an image, which may lack the day: then it is the MXNet's. None for another image."""
        repository, _, tag = name.partition(":")
        match = _TAG.fullmatch(tag)
        release = next((each for each in RELEASES if match and each.version == match["mxnet"]), None)
        if repository != _REPOSITORY or match is None or release is None:
            return None
        if match["python"] not in release.pythons:
            return None
        try:
            day = date.fromisoformat(match["day"]) if match["day"] else _default_day(release, match["python"])
        except ValueError:
            return None
        return cls(release.version, match["python"], day, match["cuda"] or "")


def choose(wanted: Wanted, pin: MXNetRequirement | None, is_here: Callable[[str], bool]) -> DayImage:
    """Choose the image that has what is wanted: of the day's MXNets the newest, of its Pythons the best to be had.

    `is_here` says whether this machine has a Python; `pin` is what requirements say of MXNet.

    Raises:
        ImageError: no MXNet fits, or its Pythons aren't on this machine; the message says what to change.
    """
    if (python := wanted.python) is not None and python not in PYTHONS:
        raise ImageError(f"--python {python}: MXNet runs on Python {_listed(tuple(PYTHONS))}.")
    required = [each for each in (_asked(wanted.mxnet), pin) if each is not None]
    releases = [each for each in RELEASES if all(asked.matches(each.version) for asked in required)]
    if not releases:
        raise ImageError(
            f"There is no MXNet for {' and '.join(each.text for each in required)}. The index has"
            f" {', '.join(each.version for each in RELEASES)}."
        )
    releases = _until(wanted.day, releases)
    fitting = [each for each in releases if python is None or python in each.pythons]
    if not fitting:
        raise ImageError(
            f"MXNet {releases[-1].version} doesn't run on Python {python}, but on"
            f" {_listed(releases[-1].pythons)}: --python {releases[-1].pythons[0]}, or another --mxnet."
        )
    release = fitting[-1]
    if python is not None and wanted.day is not None and PYTHONS[python] - wanted.day > _EARLY:
        raise ImageError(
            f"On {wanted.day} there were no packages for Python {python} yet: --as-of {PYTHONS[python]} or later, or"
            " without --python."
        )
    day = wanted.day or max(_default_day(release, python or release.pythons[0]), wanted.written or date.min)
    cuda = ((pin.cuda if pin else "") or release.cuda) if wanted.gpus else ""
    return DayImage(release.version, python or _python(release, day, is_here), day, cuda)


def day_options(day: date, packages: Sequence[str]) -> list[str]:
    """Return uv's options that hide what was uploaded after the day.

    Builds of MXNet for GPUs were uploaded again later, and CUDA's libraries came as wheels after their MXNet. uv builds
    with a setuptools of 2019 or later.
    """
    hidden = ["--exclude-newer", f"{day + timedelta(days=1)}T00:00:00Z"]
    if later := [each for each in _SETUPTOOLS if day < each]:
        for name in ("setuptools", "wheel"):
            hidden += ["--exclude-newer-package", f"{name}={later[0]}"]
    for name in sorted(packages):
        if name.startswith(("mxnet-cu", "nvidia-")):
            hidden += ["--exclude-newer-package", f"{name}={datetime.now(UTC).date()}"]
    return hidden


def _release(version: str) -> Release:
    return next(each for each in RELEASES if each.version == version)


def _default_day(release: Release, python: str) -> date:
    """Return the last day on which a release was the newest, or a later one on which the Python had packages."""
    after = [each.released for each in RELEASES if each.released > release.released]
    return max(min(after) - timedelta(days=1) if after else _LAST_DAY, PYTHONS[python])


def _asked(mxnet: str | None) -> MXNetRequirement | None:
    if mxnet is None:
        return None
    if re.fullmatch(r"\d+(\.\w+)*", mxnet) is None:
        raise ImageError(f"--mxnet: {mxnet!r} is no version; give one like 1.5.1, or 1.5 for the last of 1.5.")
    versions = f"=={mxnet}.*" if mxnet.count(".") < 2 else f"=={mxnet}"
    return MXNetRequirement(f"--mxnet {mxnet}", versions)


def _until(day: date | None, releases: list[Release]) -> list[Release]:
    """Return the releases that were there on a day."""
    there = [each for each in releases if day is None or each.released <= day]
    if not there:
        first = releases[0]
        raise ImageError(
            f"MXNet {first.version} came to the index on {first.released}, after {day}: --as-of {first.released}, or"
            f" --mxnet {first.version} without --as-of."
        )
    return there


def _python(release: Release, day: date, is_here: Callable[[str], bool]) -> str:
    ran_on = [each for each in release.pythons if each != "2.7" and PYTHONS[each] <= day]
    found = next((each for each in ran_on if each in _FETCHED or is_here(each)), None)
    if found is None:
        raise no_python(tuple(ran_on), f"MXNet {release.version} as of {day}")
    return found


def no_python(versions: tuple[str, ...], needed_by: str) -> ImageError:
    """Build the error for Pythons that this machine doesn't have and that uv can't download."""
    first = versions[0]
    return ImageError(
        f"{needed_by} needs Python {_listed(versions)}, which isn't on this machine, and uv downloads {_FETCHED[0]}"
        f" and newer only. Install it (pyenv install {first}, or conda create -n py{first} python={first}, so that"
        f" python{first} is on PATH), or choose a later MXNet, which runs on Python 3.8, by --as-of 2020-06 alone."
    )


def can_be_fetched(python: str) -> bool:
    """Whether uv downloads this Python where the machine has none."""
    return python not in PYTHONS or python in _FETCHED


def _listed(versions: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(versions[:-1]), versions[-1])))
