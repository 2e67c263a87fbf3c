"""The figures of a report: one suite, and methods compared over tasks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from foretune.experience import Direction, Metric
from foretune.numerics import pareto_front
from foretune_lab.bench import measures, summary
from foretune_lab.bench.comparison import Compared
from foretune_lab.bench.metrics import bootstrap_band
from foretune_lab.bench.results import Curves
from foretune_lab.drawing.figures import PlotLine, draw_critical_difference, draw_curves
from foretune_lab.drawing.fronts import Fronts, draw_fronts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = 3
"""The number of tasks that have their own panel in the figure of fronts."""


def figures_of_suite(curves: Curves) -> "dict[str, Figure]":
    """Return the figures, by name, of the progress of the methods on one suite."""
    if len(curves.objectives) == 1:
        drawn = {"adtm": _distance_figure(curves), "regret": _regret_figure(curves)}
    else:
        drawn = {"hypervolume": _hypervolume_figure(curves)}
        if len(curves.objectives) == 2:
            drawn["fronts"] = _front_figure(curves)
    return {f"{curves.suite}-{name}": figure for name, figure in drawn.items()}


def figures_of_ranks(methods: Compared, checkpoints: Sequence[int]) -> "dict[str, Figure]":
    """Return the figures, by name, of average ranks, with a diagram for each checkpoint."""
    drawn = {f"{methods.name}-rank": _rank_figure(methods)}
    if methods.testable:
        for n in checkpoints:
            drawn[f"{methods.name}-critical-difference-{n}"] = _difference_figure(methods, n)
    return drawn


def distance_curves(curves: Curves) -> list[PlotLine]:
    """Draw ADTM of each method with its 95% band over tasks, and of exact random search."""
    distances = measures.distances(curves)
    band = bootstrap_band(distances.mean(axis=2) if len(curves.tasks) > 1 else distances[:, 0])
    lines = [
        PlotLine(*line) for line in zip(curves.methods, band.mean, band.low, band.high, strict=True)
    ]
    exact = measures.random_distances(curves).mean(axis=0)
    return [*lines, PlotLine(summary.EXACT_RANDOM, exact, reference=True)]


def _distance_figure(curves: Curves) -> "Figure":
    return draw_curves(
        distance_curves(curves),
        title=f"{curves.suite}: how far the best trial is from the task's optimum\n"
        f"(mean over {curves.averaging_note}, 95% confidence)",
        ylabel="average distance to the minimum (ADTM)",
        log=True,
    )


def _regret_figure(curves: Curves) -> "Figure":
    low, middle, high = summary.regret_quartiles(curves)
    lines = [PlotLine(*line) for line in zip(curves.methods, middle, low, high, strict=True)]
    return draw_curves(
        lines,
        title=f"{curves.suite}: regret of a single run\n"
        f"(median and quartiles of {len(curves.tasks) * len(curves.seeds)} runs a method)",
        ylabel="normalised regret",
        log=True,
    )


def _rank_figure(methods: Compared) -> "Figure":
    ranks = methods.average_ranks()
    bands = zip(methods.methods, ranks.mean, ranks.low, ranks.high, strict=True)
    return draw_curves(
        [PlotLine(*band) for band in bands],
        title=f"{methods.name}: rank among {len(methods.methods)} methods\n"
        f"(mean over {methods.averaging_note}, 95% confidence)",
        ylabel="average rank (1 is best)",
    )


def _difference_figure(methods: Compared, n: int) -> "Figure":
    comparison = methods.after(n)
    return draw_critical_difference(
        dict(zip(comparison.methods, map(float, comparison.ranks), strict=True)),
        comparison.groups,
        title=f"{methods.name}: mean rank after {n} trials on {methods.tasks} tasks\n"
        "(a bar joins methods whose difference may be chance)",
    )


def _hypervolume_figure(curves: Curves) -> "Figure":
    missing = measures.missing_hypervolume(curves).mean(axis=(1, 2))
    return draw_curves(
        [PlotLine(name, line) for name, line in zip(curves.methods, missing, strict=True)],
        title=f"{curves.suite}: how much of the Pareto front's hypervolume is missing\n"
        f"({', '.join(curves.objectives)}; mean over {curves.averaging_note})",
        ylabel="hypervolume error, as a share",
        log=True,
    )


def _front_figure(curves: Curves) -> "Figure":
    """Draw the fronts of each method's median run on the first tasks, in unscaled values."""
    metrics = [
        Metric(name, Direction(direction))
        for name, direction in zip(curves.objectives, curves.settings.directions, strict=True)
    ]
    signs = np.array([metric.sign for metric in metrics])
    missing = measures.missing_hypervolume(curves)[..., -1]
    panels = []
    for task, (name, pool) in enumerate(zip(curves.tasks, curves.pools, strict=True)):
        found = {}
        for place, method_name in enumerate(curves.methods):
            median = int(np.argsort(missing[place, task])[len(curves.seeds) // 2])
            points = curves.values[place, task, median]
            points = points[np.isfinite(points).all(axis=1)]
            found[method_name] = signs * points[pareto_front(points)]
        panels.append(Fronts(name, signs * pool.front, found))
    return draw_fronts(
        panels[:PANELS],
        metrics,
        title=f"{curves.suite}: Pareto fronts after {curves.trials} trials (the median run of "
        "each method)",
    )
