"""Figures of Pareto fronts: the front that a method found beside the possible one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from foretune.experience import Direction, Metric
from foretune.numerics import Floats
from foretune_lab.drawing.figures import PALETTE, REFERENCE_COLOUR, empty_panels, figure_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "os^Dv<>P"


@dataclass(frozen=True, slots=True)
class Fronts:
    """The Pareto fronts of one task, points (n, 2) each, in the metrics' own directions."""

    task: str
    possible: Floats
    """The front of all that could be chosen."""
    found: Mapping[str, Floats]
    """The fronts that were found, by method."""


def draw_fronts(panels: Sequence[Fronts], metrics: Sequence[Metric], *, title: str) -> "Figure":
    """Draw one panel for each task: the possible front as a staircase, the found ones as points."""
    across, up = metrics
    with figure_style():
        figure, axes = empty_panels(len(panels), width=4.0, height=3.8)
        for place, (panel, axis) in enumerate(zip(panels, axes, strict=True)):
            _draw(panel, across, axis)
            axis.set_title(panel.task)
            axis.set_xlabel(across.name)
            if place == 0:
                axis.set_ylabel(up.name)
        axes[-1].legend(frameon=False, loc="best")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _draw(panel: Fronts, across: Metric, axes: "Axes") -> None:
    stairs = panel.possible[np.argsort(panel.possible[:, 0])]
    axes.step(
        *stairs.T,
        # Between two points the line is at the one that is better in the first metric.
        where="post" if across.direction is Direction.MIN else "pre",
        color=REFERENCE_COLOUR,
        linestyle="--",
        label="possible",
    )
    for place, (name, points) in enumerate(panel.found.items()):
        axes.plot(
            *points[np.argsort(points[:, 0])].T,
            MARKERS[place % len(MARKERS)],
            color=PALETTE[place % len(PALETTE)],
            markersize=5,
            alpha=0.8,
            label=name,
        )
