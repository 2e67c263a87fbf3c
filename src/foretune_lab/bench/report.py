"""A report on results: tables for the terminal and for files, and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foretune.errors import UsageError
from foretune.report import count_text
from foretune.search import METHODS
from foretune_lab.bench import measures, summary
from foretune_lab.bench.comparison import Compared, compare_methods, compare_over_suites
from foretune_lab.bench.curve_report import report_on_curves
from foretune_lab.bench.figures import distance_curves, figures_of_ranks, figures_of_suite
from foretune_lab.bench.results import Curves, Results, curves_of, merge, read
from foretune_lab.drawing.figures import save_figure
from foretune_lab.drawing.tables import TextTable
from foretune_lab.drawing.terminal_plot import terminal_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHECKPOINTS = (5, 10, 25, 50, 100)
TASKS_IN_TERMINAL = 20
"""Tables with one row for each task are shown up to this number of tasks, and always written."""


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The findings as text, and the places of the files."""

    tables: tuple[TextTable, ...]
    text: str
    """The text for the terminal: the tables, and a plot of each suite."""
    page: Path
    figures: tuple[Path, ...]


def report(
    results: Sequence[Path],
    out: Path,
    *,
    at: Sequence[float] | None = None,
    methods: Sequence[str] | None = None,
    baseline: str | None = None,
    against: str = "cost",
    figures: bool = True,
) -> BenchReport:
    """Write `report.md`, a CSV for each table, and a PNG and an SVG for each figure into `out`.

    Arguments:
        results: files that `replay` has written; those of one suite are joined.
        at: after how many trials tables and diagrams look (default: `CHECKPOINTS`), or after how
            many complete runs on learning curves (default: `COSTS`).
        methods: which to compare, in this order. Default: all, in the registry's order.
        baseline: the method that RED compares with. Default: `random`, or the first method.
        against: the unit of cost on learning curves: `cost` (complete runs), `steps`, `seconds`, or
            `clock` (complete runs, on the clock of several workers).
        figures: False to write tables only, which takes much less time.
    """
    merged = merge([read(path) for path in results])
    if any(suite.settings.curves is not None for suite in merged):
        made = report_on_curves(merged, at, methods, against=against, figures=figures)
        return _write(out, made.tables, made.figures, made.text)
    trials = _whole(CHECKPOINTS if at is None else at)
    suites = [curves_of(suite, methods or _in_the_registrys_order(suite)) for suite in merged]
    tables = _overview(suites)
    drawn: dict[str, Figure] = {}
    together = compare_over_suites(suites)
    if together is not None:
        checkpoints = _within(trials, together.trials)
        tables += _rank_tables(together, checkpoints)
        if figures:
            drawn |= figures_of_ranks(together, checkpoints)
    for curves in suites:
        checkpoints = _within(trials, curves.trials)
        tables += _tables(curves, checkpoints, _baseline(curves, baseline))
        if figures:
            ranks = compare_methods(curves)
            drawn |= figures_of_suite(curves) | figures_of_ranks(ranks, checkpoints)
    return _write(out, tables, drawn, _text(suites, tables))


def _write(
    out: Path, tables: Sequence[TextTable], drawn: "Mapping[str, Figure]", text: str
) -> BenchReport:
    """Write all files of a report."""
    out.mkdir(parents=True, exist_ok=True)
    figures = [path for name, figure in drawn.items() for path in save_figure(figure, out, name)]
    for table in tables:
        (out / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
    page = out / "report.md"
    page.write_text(_page(tables, figures), encoding="utf-8")
    return BenchReport(tuple(tables), text, page, tuple(figures))


def _in_the_registrys_order(results: Results) -> list[str]:
    found = {str(name) for name in results.rows["method"].unique()}
    return [name for name in METHODS if name in found] + sorted(found.difference(METHODS))


def _overview(suites: Sequence[Curves]) -> list[TextTable]:
    single = [curves for curves in suites if len(curves.objectives) == 1]
    return [summary.runs_table(suites), *([summary.suites_table(single)] if single else [])]


def _tables(curves: Curves, checkpoints: Sequence[int], baseline: str) -> list[TextTable]:
    if len(curves.objectives) > 1:
        tables = [summary.hypervolume_table(curves, checkpoints)]
    else:
        red = summary.relative_error_table(curves, checkpoints, baseline)
        tables = [
            summary.improvement_table(curves),
            summary.distance_table(curves, checkpoints),
            summary.regret_table(curves, checkpoints),
            *([red] if red is not None else []),
        ]
    ranks = _rank_tables(compare_methods(curves), checkpoints)
    return [*tables, *ranks, summary.seconds_table(curves)]


def _rank_tables(methods: Compared, checkpoints: Sequence[int]) -> list[TextTable]:
    tables = [summary.rank_table(methods, checkpoints)]
    if methods.testable:
        tables.append(summary.significance_table(methods, checkpoints))
    return tables


def _terminal(curves: Curves) -> str:
    if len(curves.objectives) > 1:
        missing = measures.missing_hypervolume(curves).mean(axis=(1, 2))
        lines = dict(zip(curves.methods, missing, strict=True))
        title = "missing share of the hypervolume"
    else:
        lines = {curve.name: curve.values for curve in distance_curves(curves)}
        title = "average distance to the minimum"
    return f"{curves.suite}: {title} over trials (log scale)\n\n{terminal_plot(lines, log=True)}"


def _text(suites: Sequence[Curves], tables: Sequence[TextTable]) -> str:
    plots = [_terminal(curves) for curves in suites]
    shown = [table.text() for table in tables if len(table.rows) <= TASKS_IN_TERMINAL + 2]
    notes = [
        f"Left out of '{curves.suite}': {count_text(curves.left_out, 'run')}. Methods are "
        "compared on "
        "tasks that each of them ran with the same seeds."
        for curves in suites
        if curves.left_out
    ]
    return "\n\n\n".join([*plots, *shown, *notes]) + "\n"


def _page(tables: Sequence[TextTable], figures: Sequence[Path]) -> str:
    pictures = [f"![{path.stem}]({path.name})\n" for path in figures if path.suffix == ".png"]
    return "\n".join(["# Benchmark report\n", *(table.markdown() for table in tables), *pictures])


def _whole(at: Sequence[float]) -> list[int]:
    """Return the checkpoints as numbers of trials."""
    for number in at:
        if number != int(number):
            raise UsageError(
                f"a report on trials looks after whole numbers of them, but got {number:g}: say "
                "10,50",
                rule="report-trials",
                field="at",
                value=number,
            )
    return [int(number) for number in at]


def _within(trials: Sequence[int], last: int) -> list[int]:
    """Return the checkpoints that the runs reach; the last trial replaces those beyond it."""
    for n in trials:
        if n < 1:
            raise UsageError(
                f"a report looks after 1 or more trials, but got {n}: leave it out",
                rule="report-trials",
                field="at",
                value=n,
            )
    return sorted({min(n, last) for n in trials})


def _baseline(curves: Curves, wanted: str | None) -> str:
    if wanted is None:
        return "random" if "random" in curves.methods else curves.methods[0]
    if wanted not in curves.methods:
        raise UsageError(
            f"the baseline must be one of the reported methods, but got '{wanted}': "
            f"choose among {', '.join(curves.methods)}",
            rule="unknown-baseline",
            field="baseline",
            value=wanted,
        )
    return wanted
