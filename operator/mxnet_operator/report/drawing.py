"""Drawing of the report's pictures with matplotlib: one style, reproducible SVG."""

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

from mxnet_operator.api.installation import install_command

INK: Final = "#1c2733"
GREY: Final = "#5b6770"
_WIDTH: Final = 8.6
"""Width in inches; an SVG has 72 points per inch."""


class MissingMatplotlibError(ImportError):
    """matplotlib, which draws the curves, is not installed."""

    def __init__(self) -> None:
        super().__init__(f"A report's curve is drawn by matplotlib: {install_command('report')}")


def require_matplotlib() -> None:
    """Check that matplotlib can be imported.

    Raises:
        MissingMatplotlibError: matplotlib is not installed, or can't be imported.
    """
    try:
        import matplotlib.figure  # noqa: F401, PLC0415 - optional, and half a second to import
    except ImportError as e:
        raise MissingMatplotlibError from e


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
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    with rc_context({"svg.hashsalt": salt, "font.size": 11, "text.color": INK, "axes.edgecolor": GREY}):
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
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()
