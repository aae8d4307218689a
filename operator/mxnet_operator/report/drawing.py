"""Drawing of the report's pictures with matplotlib: one style, reproducible SVG, whatever the user's settings."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from mxnet_operator.api.installation import install_command

INK: Final = "#1c2733"
GREY: Final = "#5b6770"
_WIDTH: Final = 8.6
"""Width in inches; an SVG has 72 points per inch."""
_BACKEND: Final = "MPLBACKEND"
"""Variable that names matplotlib's backend for a user's programs; a report needs none."""


class MissingMatplotlibError(ImportError):
    """matplotlib, which draws the curves, is not installed or can't be imported."""

    def __init__(self, why: str = "") -> None:
        broken = f"; it can't be imported: {why}" if why else ""
        super().__init__(f"A report's curve is drawn by matplotlib: {install_command('report')}{broken}")


def require_matplotlib() -> None:
    """Check that matplotlib can be imported.

    Raises:
        MissingMatplotlibError: matplotlib is not installed, or can't be imported.
    """
    try:
        _import_matplotlib()
    except ModuleNotFoundError as e:
        raise MissingMatplotlibError from e
    except Exception as e:  # it reads the user's settings
        raise MissingMatplotlibError(f"{type(e).__name__}: {e}") from e


def _import_matplotlib() -> None:
    """Import matplotlib also where the user's backend is unknown to this Python, as in a shell below Jupyter."""
    if "matplotlib" in sys.modules or not (chosen := os.environ.pop(_BACKEND, "")):
        import matplotlib.figure  # noqa: PLC0415 - optional, and half a second to import

        return
    try:
        import matplotlib.figure  # noqa: PLC0415
    finally:
        os.environ[_BACKEND] = chosen
    with contextlib.suppress(ValueError):
        matplotlib.rcParams["backend"] = chosen  # the program may draw with it


@contextlib.contextmanager
def _own_settings(salt: str) -> Iterator[None]:
    """Draw with matplotlib's defaults and ours, and without those of a matplotlibrc, which may ask for LaTeX."""
    import matplotlib  # noqa: PLC0415

    settings: dict[Any, Any] = {name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"}
    settings |= {
        "svg.hashsalt": salt,
        "font.size": 11,
        "text.color": INK,
        "text.parse_math": False,
        "axes.edgecolor": GREY,
    }
    with matplotlib.rc_context(settings):
        yield


def drawn(salt: str, heights: Sequence[float], paint: Callable[[list[Any]], None]) -> bytes:
    """Draw an SVG document of panels one below the other, `heights` inches high, with a common horizontal axis.

    Args:
        salt: What the identifiers in the document are made from: the same for the same picture.
        heights: One for each panel.
        paint: Draws into the panels' axes.

    Raises:
        MissingMatplotlibError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    with _own_settings(salt):
        figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
        panels = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for axes in panels:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.tick_params(colors=GREY)
            axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(x=0.01)
        paint(list(panels))
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", backend="svg", metadata={"Date": None})
    return picture.getvalue()
