"""A report on results: tables for the terminal and for files, and figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from foretune.bench import measures, summary
from foretune.bench.metrics import average_ranks, pareto_front
from foretune.bench.results import Curves, Results, curves_of, merge, read
from foretune.bench.statistics import compare
from foretune.errors import UsageError
from foretune.report.figures import Curve, draw_critical_difference, draw_curves, save_figure
from foretune.report.fronts import Fronts, draw_fronts
from foretune.report.tables import Table
from foretune.report.terminal import terminal_plot
from foretune.search import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHECKPOINTS = (5, 10, 25, 50, 100)
PANELS = 3
"""So many tasks have a panel of their own in the figure of fronts."""
TASKS_IN_TERMINAL = 20
"""Tables with one row a task are shown up to this many tasks, and always written to files."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, as text, and where the files are."""

    tables: tuple[Table, ...]
    text: str
    """For the terminal: the tables, and a plot of each suite."""
    page: Path
    figures: tuple[Path, ...]


def report(
    results: Sequence[Path],
    out: Path,
    *,
    trials: Sequence[int] = CHECKPOINTS,
    methods: Sequence[str] | None = None,
    baseline: str | None = None,
) -> Report:
    """Write `report.md`, one CSV a table and one PNG and SVG a figure into the folder `out`.

    Arguments:
        results: files that `replay` has written; those of one suite are joined.
        trials: after how many trials tables and diagrams look.
        methods: which to compare, in this order; all, in the registry's order, where None.
        baseline: what RED compares with; `random`, or else the first method, where None.
    """
    suites = [
        curves_of(suite, methods or _in_the_registrys_order(suite))
        for suite in merge([read(path) for path in results])
    ]
    tables = _overview(suites)
    for curves in suites:
        tables += _tables(curves, _within(trials, curves), _baseline(curves, baseline))
    out.mkdir(parents=True, exist_ok=True)
    figures = [path for curves in suites for path in _figures(curves, _within(trials, curves), out)]
    for table in tables:
        (out / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
    page = out / "report.md"
    page.write_text(_page(tables, figures), encoding="utf-8")
    return Report(tuple(tables), _text(suites, tables), page, tuple(figures))


def _in_the_registrys_order(results: Results) -> list[str]:
    found = {str(name) for name in results.rows["method"].unique()}
    return [name for name in METHODS if name in found] + sorted(found.difference(METHODS))


def _overview(suites: Sequence[Curves]) -> list[Table]:
    single = [curves for curves in suites if len(curves.objectives) == 1]
    return [summary.suites_table(single)] if single else []


def _tables(curves: Curves, checkpoints: Sequence[int], baseline: str) -> list[Table]:
    if len(curves.objectives) > 1:
        tables = [summary.hypervolume_table(curves, checkpoints)]
    else:
        red = summary.red_table(curves, checkpoints, baseline)
        tables = [
            summary.improvement_table(curves),
            summary.distance_table(curves, checkpoints),
            summary.regret_table(curves, checkpoints),
            *([red] if red is not None else []),
        ]
    tables.append(summary.rank_table(curves, checkpoints))
    if _comparable(curves):
        tables.append(summary.significance_table(curves, checkpoints))
    return [*tables, summary.seconds_table(curves)]


def _figures(curves: Curves, checkpoints: Sequence[int], out: Path) -> list[Path]:
    if len(curves.objectives) > 1:
        drawn = {"hypervolume": _hypervolume_figure(curves)}
        if len(curves.objectives) == 2:
            drawn["fronts"] = _front_figure(curves)
    else:
        drawn = {"adtm": _distance_figure(curves), "regret": _regret_figure(curves)}
    drawn["rank"] = _rank_figure(curves)
    if _comparable(curves):
        by_task = measures.scores(curves).mean(axis=2)
        for n in checkpoints:
            comparison = compare(curves.methods, by_task[:, :, n - 1])
            ranks = dict(zip(comparison.methods, map(float, comparison.ranks), strict=True))
            drawn[f"critical-difference-{n}"] = draw_critical_difference(
                ranks,
                comparison.groups,
                title=f"{curves.suite}: mean rank after {n} trials on {len(curves.tasks)} tasks\n"
                "(a bar joins methods whose difference may be chance)",
            )
    paths = [save_figure(figure, out, f"{curves.suite}-{name}") for name, figure in drawn.items()]
    return [path for pair in paths for path in pair]


def _distance_curves(curves: Curves) -> list[Curve]:
    of_methods = measures.distances(curves).mean(axis=(1, 2))
    lines = [Curve(name, line) for name, line in zip(curves.methods, of_methods, strict=True)]
    exact = measures.random_distances(curves).mean(axis=0)
    return [*lines, Curve(summary.EXACT_RANDOM, exact, reference=True)]


def _distance_figure(curves: Curves) -> "Figure":
    return draw_curves(
        _distance_curves(curves),
        title=f"{curves.suite}: how far the best trial is from the task's optimum\n"
        f"(mean over {len(curves.tasks)} tasks and {len(curves.seeds)} seeds)",
        ylabel="average distance to the minimum (ADTM)",
        log=True,
    )


def _regret_figure(curves: Curves) -> "Figure":
    low, middle, high = summary.regret_quartiles(curves)
    lines = [Curve(*line) for line in zip(curves.methods, middle, low, high, strict=True)]
    return draw_curves(
        lines,
        title=f"{curves.suite}: regret of a single run\n"
        f"(median and quartiles of {len(curves.tasks) * len(curves.seeds)} runs a method)",
        ylabel="normalised regret",
        log=True,
    )


def _rank_figure(curves: Curves) -> "Figure":
    ranks = average_ranks(measures.scores(curves))
    bands = zip(curves.methods, ranks.mean, ranks.low, ranks.high, strict=True)
    return draw_curves(
        [Curve(*band) for band in bands],
        title=f"{curves.suite}: rank among {len(curves.methods)} methods\n"
        f"(mean over {len(curves.tasks)} tasks and {len(curves.seeds)} seeds, 95% confidence)",
        ylabel="average rank (1 is best)",
    )


def _hypervolume_figure(curves: Curves) -> "Figure":
    missing = measures.missing_hypervolume(curves).mean(axis=(1, 2))
    return draw_curves(
        [Curve(name, line) for name, line in zip(curves.methods, missing, strict=True)],
        title=f"{curves.suite}: how much of the Pareto front's hypervolume is missing\n"
        f"({', '.join(curves.objectives)}; mean over {len(curves.tasks)} tasks and "
        f"{len(curves.seeds)} seeds)",
        ylabel="hypervolume error, as a share",
        log=True,
    )


def _front_figure(curves: Curves) -> "Figure":
    """The fronts of each method's median run on the first tasks."""
    missing = measures.missing_hypervolume(curves)[..., -1]
    panels = []
    for task, (name, pool) in enumerate(zip(curves.tasks, curves.pools, strict=True)):
        found = {}
        for place, method_name in enumerate(curves.methods):
            median = int(np.argsort(missing[place, task])[len(curves.seeds) // 2])
            points = curves.values[place, task, median]
            points = points[np.isfinite(points).all(axis=1)]
            found[method_name] = points[pareto_front(points)]
        panels.append(Fronts(name, pool.front, found))
    return draw_fronts(
        panels[:PANELS],
        curves.objectives,
        title=f"{curves.suite}: Pareto fronts after {curves.trials} trials (the median run of "
        "each method)",
    )


def _terminal(curves: Curves) -> str:
    if len(curves.objectives) > 1:
        missing = measures.missing_hypervolume(curves).mean(axis=(1, 2))
        lines = dict(zip(curves.methods, missing, strict=True))
        title = "missing share of the hypervolume"
    else:
        lines = {curve.name: curve.values for curve in _distance_curves(curves)}
        title = "average distance to the minimum"
    return f"{curves.suite}: {title} over trials (log scale)\n\n{terminal_plot(lines, log=True)}"


def _text(suites: Sequence[Curves], tables: Sequence[Table]) -> str:
    plots = [_terminal(curves) for curves in suites]
    shown = [table.text() for table in tables if len(table.rows) <= TASKS_IN_TERMINAL + 2]
    notes = [
        f"{curves.left_out} runs of '{curves.suite}' were left out, because not every method has "
        "its task and seed."
        for curves in suites
        if curves.left_out
    ]
    return "\n\n\n".join([*plots, *shown, *notes]) + "\n"


def _page(tables: Sequence[Table], figures: Sequence[Path]) -> str:
    pictures = [f"![{path.stem}]({path.name})\n" for path in figures if path.suffix == ".png"]
    return "\n".join(["# Benchmark report\n", *(table.markdown() for table in tables), *pictures])


def _within(trials: Sequence[int], curves: Curves) -> list[int]:
    """The checkpoints that the runs reach, and their last trial in place of those beyond it."""
    for n in trials:
        if n < 1:
            raise UsageError(f"a report looks after 1 or more trials, but got {n}: leave it out")
    return sorted({min(n, curves.trials) for n in trials})


def _baseline(curves: Curves, wanted: str | None) -> str:
    if wanted is None:
        return "random" if "random" in curves.methods else curves.methods[0]
    if wanted not in curves.methods:
        raise UsageError(
            f"the baseline must be one of the reported methods, but got '{wanted}': "
            f"choose among {', '.join(curves.methods)}"
        )
    return wanted


def _comparable(curves: Curves) -> bool:
    return len(curves.methods) >= 2 and len(curves.tasks) >= 2
