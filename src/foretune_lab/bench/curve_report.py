"""A report on replays on learning curves: regret against cost, and ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from foretune.errors import UsageError
from foretune.numerics import Floats
from foretune.report import count_text
from foretune_lab.bench.curve_replay import regret_at
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.metrics import bootstrap_band, half_width, mean_over_seeds, ranks_by_task
from foretune_lab.bench.results import ReplaySettings, Results
from foretune_lab.bench.shared_grid import SharedGrid, find_shared_grid
from foretune_lab.drawing.figures import PlotLine, draw_curves
from foretune_lab.drawing.tables import Cell, TextTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = (1.0, 2.0, 5.0, 10.0, 20.0)
"""The numbers of complete runs that tables look at."""
UNITS = {
    "cost": "the cost of n complete runs",
    "steps": "n steps",
    "seconds": "n recorded seconds",
    "clock": "n complete runs on the clock",
}
"""The units of cost that reports can look at, in words."""
DRAWN = 200
"""The number of costs that a line is drawn through."""
CHEAPEST = 0.1
"""The smallest cost that is drawn, in complete runs."""


@dataclass(frozen=True, slots=True)
class CurveReport:
    """The tables and figures of a report, before they are written."""

    tables: tuple[TextTable, ...]
    figures: "Mapping[str, Figure]"
    text: str


@dataclass(frozen=True, slots=True)
class CurveScores:
    """The runs that all methods of a suite share, as arrays."""

    settings: ReplaySettings
    curves: CurveSettings
    grid: SharedGrid
    costs: Floats
    """The costs that are looked at, ascending, in the unit of `against`."""
    against: str
    """The column of the cost: `cost` (complete runs), `steps`, `seconds`, `clock`."""
    regrets: Floats
    """(methods, tasks, seeds, costs)"""
    areas: Floats
    """(methods, tasks, seeds), the mean regret over all costs up to the budget."""
    suggest_seconds: Floats
    """(methods,), the mean seconds of a decision."""

    @property
    def by_task(self) -> Floats:
        """(methods, tasks, costs), the mean regret over seeds."""
        return mean_over_seeds(self.regrets)

    @property
    def averaging_note(self) -> str:
        """What the means are taken over, in words."""
        return f"{count_text(len(self.grid.tasks), 'task')} and " + count_text(
            len(self.grid.seeds), "seed"
        )


def report_on_curves(
    suites: Sequence[Results],
    at: Sequence[float] | None,
    methods: Sequence[str] | None,
    *,
    against: str = "cost",
    figures: bool = True,
) -> CurveReport:
    """Make the report of suites that were all played on learning curves.

    against: `cost`, or one of `SPENT`.
    figures: False to make tables only.
    """
    tables: list[TextTable] = []
    drawn: dict[str, Figure] = {}
    all_scores = []
    for suite in suites:
        curves = suite.settings.curves
        if curves is None:
            raise UsageError(
                "results on trials and on learning curves cannot stand in one report, but got "
                f"'{suite.settings.suite}' beside results on curves: report them apart",
                rule="mixed-results",
                field="results",
                value=suite.settings.suite,
            )
        budget = _largest_cost(suite, curves, against)
        shares = np.array(COSTS) / (1.0 if against == "cost" else max(COSTS) / budget)
        costs = np.unique(np.minimum(shares if at is None else at, budget))
        scores = curve_scores(suite, curves, costs, methods, against)
        all_scores.append(scores)
        tables += [_regret_table(scores), _rank_table(scores)]
        if figures:
            cheapest = min(CHEAPEST, budget / 10) if against == "cost" else budget / 100
            fine = np.geomspace(cheapest, budget, DRAWN)
            lines = curve_scores(suite, curves, fine, methods, against)
            drawn[f"{suite.settings.suite}-regret-against-{against}"] = _figure(lines)
    tables.insert(0, _runs_table(all_scores))
    text = "\n\n\n".join([*(table.text() for table in tables), *_notes(all_scores)]) + "\n"
    return CurveReport(tuple(tables), drawn, text)


def curve_scores(
    results: Results,
    curves: CurveSettings,
    costs: Floats,
    methods: Sequence[str] | None = None,
    against: str = "cost",
) -> CurveScores:
    """Arrange the runs that all methods share as arrays."""
    limit = _largest_cost(results, curves, against)
    grid = find_shared_grid(results.rows, results.settings.suite, methods)
    shape = (len(grid.methods), len(grid.tasks), len(grid.seeds))
    regrets, areas = np.empty((*shape, len(costs))), np.empty(shape)
    rows = grid.select(results.rows)
    for (method, task, seed), run in rows.groupby(["method", "task", "seed"], sort=False):
        place = grid.methods.index(method), grid.tasks.index(task), grid.seeds.index(seed)
        regrets[place] = regret_at(run, costs, against)
        areas[place] = anytime_area(run[against].to_numpy(), run["regret"].to_numpy(), limit)
    seconds = rows.groupby("method")["suggest_seconds"].mean().loc[list(grid.methods)].to_numpy()
    return CurveScores(results.settings, curves, grid, costs, against, regrets, areas, seconds)


def _largest_cost(results: Results, curves: CurveSettings, against: str) -> float:
    """Return the budget or, in another unit, the largest cost that every run has reached."""
    if against == "cost":
        return curves.costs.budget
    if against not in results.rows or results.rows[against].isna().any():
        raise UsageError(
            f"a report against {against} needs results that say them, but those of "
            f"'{results.settings.suite}' do not: report against cost, or play again on curves "
            "with recorded seconds",
            rule="spent-not-recorded",
            field="against",
            value=against,
        )
    return float(results.rows.groupby(["task", "method", "seed"])[against].last().min())


def anytime_area(costs: Floats, regrets: Floats, budget: float) -> float:
    """Return the mean of the regret over all costs from 0 to the budget; 1 before a decision."""
    within = costs <= budget * (1 + 1e-9)
    edges = np.minimum([0.0, *costs[within], budget], budget)
    levels = np.minimum.accumulate([1.0, *regrets[within]])
    return float(np.diff(edges) @ levels / budget)


def _runs_table(suites: Sequence[CurveScores]) -> TextTable:
    rows: list[tuple[Cell, ...]] = []
    for scores in suites:
        costs, grid = scores.curves.costs, scores.grid
        first = scores.curves.first_step
        rows.append(
            (
                scores.settings.suite,
                len(grid.tasks),
                len(grid.seeds),
                costs.budget,
                costs.unit + (" and thinking" if costs.charge_thinking else ""),
                costs.workers,
                costs.resume_cost,
                "by eta" if first is None else f"{first:g}",
                scores.curves.eta,
                scores.settings.split,
                ", ".join(scores.settings.objectives),
            )
        )
    heads = ("suite", "tasks", "seeds", "budget", "charged", "workers", "resume cost")
    return TextTable(
        "runs",
        "What was run",
        (*heads, "first step", "eta", "split", "objective"),
        tuple(rows),
        "The budget is in complete runs.",
    )


def _measure(scores: CurveScores) -> tuple[str, str]:
    """Return what regret is, in a word and in a sentence."""
    if len(scores.settings.objectives) > 1:
        share = "the share of the hypervolume of all complete runs' front that is missing"
        return "hypervolume error", f"{share}, of {', '.join(scores.settings.objectives)}"
    return "regret", "0 is the best possible, 1 the median configuration at its end"


def _regret_table(scores: CurveScores) -> TextTable:
    name, meaning = _measure(scores)
    by_task = np.concatenate([scores.by_task, scores.areas.mean(axis=2)[..., None]], axis=2)
    return TextTable(
        f"{scores.settings.suite}-regret",
        f"{scores.settings.suite}: {name} after {UNITS[scores.against]} (lower is better: "
        f"{meaning})",
        ("method", *_heads(scores.costs), "area", "seconds"),
        tuple(
            (name, *cells, float(seconds))
            for name, cells, seconds in zip(
                scores.grid.methods,
                _with_spread(by_task, 3),
                scores.suggest_seconds,
                strict=True,
            )
        ),
        f"± 95% confidence, over tasks. Mean over {scores.averaging_note}. Area: mean {name} over "
        "all costs up to the budget. Seconds: the mean time of a decision.",
    )


def _rank_table(scores: CurveScores) -> TextTable:
    ranks = ranks_by_task(scores.regrets)
    return TextTable(
        f"{scores.settings.suite}-rank",
        f"{scores.settings.suite}: average rank after {UNITS[scores.against]} (lower is better)",
        ("method", *_heads(scores.costs)),
        tuple(
            (name, *cells)
            for name, cells in zip(scores.grid.methods, _with_spread(ranks, 2), strict=True)
        ),
        f"± 95% confidence, over tasks. Mean over {scores.averaging_note}.",
    )


def _figure(scores: CurveScores) -> "Figure":
    by_task = scores.by_task if len(scores.grid.tasks) > 1 else scores.regrets[:, 0]
    band = bootstrap_band(by_task)
    return draw_curves(
        [
            PlotLine(*line)
            for line in zip(scores.grid.methods, band.mean, band.low, band.high, strict=True)
        ],
        title=f"{scores.settings.suite}: {_measure(scores)[0]} against {scores.against}\n"
        f"(mean over {scores.averaging_note}, 95% confidence)",
        ylabel="missing share of the hypervolume"
        if len(scores.settings.objectives) > 1
        else "regret (1 is the median configuration)",
        log=True,
        costs=scores.costs,
    )


def _with_spread(by_task: Floats, decimals: int) -> list[list[str]]:
    """Return means over tasks of (methods, tasks, columns), with half of their 95% intervals."""
    return [
        [
            f"{mean:.{decimals}f} ± " + ("-" if np.isnan(half) else f"{half:.{decimals}f}")
            for mean, half in zip(*row, strict=True)
        ]
        for row in zip(by_task.mean(axis=1), half_width(by_task), strict=True)
    ]


def _heads(costs: Floats) -> tuple[str, ...]:
    return tuple(f"n={cost:g}" for cost in costs)


def _notes(suites: Sequence[CurveScores]) -> list[str]:
    return [
        f"Left out of '{scores.settings.suite}': {count_text(scores.grid.left_out, 'run')}. "
        "Methods are compared on tasks that each of them ran with the same seeds."
        for scores in suites
        if scores.grid.left_out
    ]
