"""A picture of embedded pipelines: two dimensions of the latent space, in several colourings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from foretune.numerics import Floats, Ints
from foretune_lab.drawing.figures import PALETTE, empty_panels, figure_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 3000
"""More points than this hide each other, and t-SNE would take minutes."""


@dataclass(frozen=True, slots=True)
class ByName:
    """Points coloured by their kind: the algorithm of a stage."""

    title: str
    names: Sequence[str]
    """One name for each point."""


@dataclass(frozen=True, slots=True)
class ByLoss:
    """Points coloured by their losses on a task."""

    title: str
    losses: Floats
    """(n,), NaN if unknown; these points are left out."""


def spread_sample(n: int, *, seed: int, most: int = MOST_POINTS) -> Ints:
    """Return ascending indices of at most `most` of n points, drawn at random."""
    return np.sort(np.random.default_rng(seed).permutation(n)[:most])


def draw_embedding(points: Floats, colourings: Sequence[ByName | ByLoss]) -> "Figure":
    """Draw points (n, 2), once for each colouring, side by side."""
    with figure_style():
        figure, panels = empty_panels(len(colourings), width=4.6 * len(colourings), height=4.4)
        for axes, colouring in zip(panels, colourings, strict=True):
            if isinstance(colouring, ByName):
                _by_name(axes, points, colouring)
            else:
                _by_loss(axes, points, colouring)
            axes.set_title(colouring.title)
            axes.set_xticks([])
            axes.set_yticks([])
    return figure


def _by_name(axes: "Axes", points: Floats, colouring: ByName) -> None:
    from matplotlib import colormaps

    names = np.asarray(colouring.names)
    every = sorted(set(colouring.names))
    few = len(every) <= len(PALETTE)
    colours = PALETTE if few else [colormaps["tab20"](place) for place in range(20)]
    for place, name in enumerate(every):
        x, y = points[names == name].T
        axes.scatter(x, y, s=5, color=colours[place % len(colours)], label=name, linewidths=0)
    axes.legend(fontsize=7, markerscale=2.5, loc="best", frameon=True, framealpha=0.8)


def _by_loss(axes: "Axes", points: Floats, colouring: ByLoss) -> None:
    known = np.flatnonzero(~np.isnan(colouring.losses))
    # The best are drawn last, so that none of them is hidden.
    order = known[np.argsort(-colouring.losses[known], kind="stable")]
    x, y = points[order].T
    shown = axes.scatter(x, y, s=5, c=colouring.losses[order], cmap="viridis_r", linewidths=0)
    axes.figure.colorbar(shown, ax=axes, label="loss")
