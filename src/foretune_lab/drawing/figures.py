"""Figures as PNG and SVG: curves with bands, and critical-difference diagrams.

They do not use pyplot's global state, so nothing needs a display and nothing stays open.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from foretune.errors import MissingExtraError
from foretune.numerics import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, which people with all common kinds of colour vision can tell
# apart. Yellow is left out, because it is too pale for lines on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
REFERENCE_COLOUR = "#767676"
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
"""If there are more curves than colours, curves differ in their dashes."""
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "svg.hashsalt": "foretune",
    "svg.fonttype": "none",
}


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line over trials 1, 2, 3, ... or over costs, with a band if there is one."""

    name: str
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    reference: bool = False
    """Whether it is drawn in grey dashes, for comparison."""


def draw_curves(
    curves: Sequence[PlotLine],
    *,
    title: str,
    ylabel: str,
    log: bool = False,
    costs: Floats | None = None,
) -> "Figure":
    """Draw lines over trials, or over these costs, each labelled at its end."""
    with figure_style():
        figure, (axes,) = empty_panels(1, width=7.2, height=4.2)
        places = iter(range(len(curves)))
        for curve in curves:
            _draw_curve(axes, curve, None if curve.reference else next(places), costs)
        if log and any((curve.values > 0).any() for curve in curves):
            _logarithmic(axes, "y")
        if costs is None:
            axes.set_xlim(1, max(2, *(len(curve.values) for curve in curves)))
        else:
            _logarithmic(axes, "x")
            axes.set_xlim(costs[0], costs[-1])
        axes.set_title(title)
        axes.set_xlabel("trials" if costs is None else "cost (complete runs)")
        axes.set_ylabel(ylabel)
        figure.draw_without_rendering()  # This settles the scales that the labels are placed by.
        _label_ends(axes)
    return figure


def draw_critical_difference(
    ranks: Mapping[str, float], groups: Sequence[Sequence[str]], *, title: str
) -> "Figure":
    """Draw mean ranks on a line, best on the left; bars join methods that cannot be told apart."""
    names = sorted(ranks, key=ranks.__getitem__)
    half = (len(names) + 1) // 2
    top = 0.5 * len(groups) + 0.6
    with figure_style():
        figure, (axes,) = empty_panels(1, width=7.2, height=1.3 + 0.25 * (top + half))
        axes.set_axis_off()
        axes.set_title(title, pad=22)
        span = math.floor(ranks[names[0]]), math.ceil(ranks[names[-1]])
        _rank_axis(axes, span)
        for level, group in enumerate(groups):
            ends = [ranks[name] for name in (group[0], group[-1])]
            depth = -0.5 * (level + 1)
            axes.plot(
                [ends[0] - 0.03, ends[1] + 0.03], [depth, depth], color="black", linewidth=4,
                solid_capstyle="round",
            )  # fmt: skip
        for place, name in enumerate(names):
            left = place < half
            row = place if left else len(names) - 1 - place
            _rank_label(axes, name, ranks[name], -top - row, span, left=left)
        axes.set_ylim(-top - half + 0.4, 0.6)
    return figure


def save_figure(figure: "Figure", folder: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.png and NAME.svg, the same bytes for the same figure."""
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with figure_style():
        figure.savefig(png, dpi=160, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return png, svg


def figure_style() -> AbstractContextManager[None]:
    """Set the style of all figures, while they are drawn and saved."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("matplotlib", "bench", "drawing figures") from error
    return matplotlib.rc_context(STYLE)


def empty_panels(n: int, *, width: float, height: float) -> "tuple[Figure, list[Axes]]":
    """Make a figure of n empty panels side by side, each of this size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(n * width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(1, n, place + 1) for place in range(n)]


def _logarithmic(axes: "Axes", which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_curve(axes: "Axes", curve: PlotLine, place: int | None, costs: Floats | None) -> None:
    colour = REFERENCE_COLOUR if place is None else PALETTE[place % len(PALETTE)]
    dash = (0, (2, 2)) if place is None else DASHES[place // len(PALETTE) % len(DASHES)]
    x = np.arange(1, len(curve.values) + 1) if costs is None else costs
    width = 1.4 if curve.reference else 1.9
    axes.plot(x, curve.values, color=colour, linestyle=dash, linewidth=width, label=curve.name)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(x, curve.low, curve.high, color=colour, alpha=0.11, linewidth=0)


def _label_ends(axes: "Axes") -> None:
    """Write each line's name beside its end, moved apart if names would overlap."""
    lines = [line for line in axes.get_lines() if np.isfinite(line.get_ydata()).any()]
    ends = []
    for line in lines:
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        last = np.flatnonzero(np.isfinite(y))[-1]
        shown = axes.transData.transform((x[last], max(y[last], axes.get_ylim()[0])))
        ends.append(axes.transAxes.inverted().transform(shown)[1])
    heights = spread_apart(np.array(ends), 0.06)
    for line, end, height in zip(lines, ends, heights, strict=True):
        axes.annotate(
            str(line.get_label()),
            xy=(1.0, end),
            xytext=(1.04, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=line.get_color(),
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": line.get_color(), "linewidth": 0.7, "shrinkA": 0,
                "shrinkB": 0, "relpos": (0, 0.5),
            },
        )  # fmt: skip


def spread_apart(heights: Floats, gap: float) -> Floats:
    """Move heights between 0 and 1 as little as needed until neighbours are `gap` apart."""
    order = np.argsort(heights, kind="stable")
    steps = np.arange(len(heights)) * gap
    # After the gaps are subtracted, "at least gap apart" becomes "not decreasing". The
    # least-squares answer is to replace neighbours that violate it by their mean.
    blocks: list[list[float]] = []
    for value in heights[order] - steps:
        blocks.append([float(value)])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    level = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])
    moved = np.empty(len(heights))
    moved[order] = np.clip(level, 0.0, max(1.0 - steps[-1], 0.0)) + steps
    return moved


def _rank_axis(axes: "Axes", span: tuple[int, int]) -> None:
    axes.plot(span, [0, 0], color="black", linewidth=1.2)
    for rank in range(span[0], span[1] + 1):
        axes.plot([rank, rank], [0, 0.2], color="black", linewidth=1.2)
        axes.text(rank, 0.3, str(rank), ha="center", va="bottom")


def _rank_label(
    axes: "Axes", name: str, rank: float, depth: float, span: tuple[int, int], *, left: bool
) -> None:
    """Write a method's name at the side, joined to its place on the axis."""
    low, high = span
    margin = 0.06 * max(high - low, 1)
    side = low - margin if left else high + margin
    axes.plot([rank, rank, side], [0, depth, depth], color="#444444", linewidth=1.0)
    text = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
    axes.text(
        side - margin / 4 if left else side + margin / 4,
        depth,
        text,
        ha="right" if left else "left",
        va="center",
    )
