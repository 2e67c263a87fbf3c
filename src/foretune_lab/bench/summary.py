"""The numbers of a suite as tables."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from foretune.numerics import Floats, relative_error_difference
from foretune_lab.bench import measures
from foretune_lab.bench.comparison import TOGETHER, Compared
from foretune_lab.bench.metrics import average_distance_to_minimum, half_width
from foretune_lab.bench.results import Curves
from foretune_lab.drawing.tables import Cell, TextTable, format_cell

EXACT_RANDOM = "random (exact)"


def distance_table(curves: Curves, checkpoints: Sequence[int]) -> TextTable:
    """Return ADTM of each method and of exact random search."""
    of_methods = average_distance_to_minimum(np.moveaxis(measures.distances(curves), 1, 0))
    rows = [*of_methods.mean(axis=1), measures.random_distances(curves).mean(axis=0)]
    return TextTable(
        f"{curves.suite}-adtm",
        f"{curves.suite}: average distance to the minimum after n trials (lower is better)",
        ("method", *_heads(checkpoints)),
        _rows((*curves.methods, EXACT_RANDOM), [row[_at(checkpoints)] for row in rows]),
        _averaging_text(curves),
    )


def improvement_table(curves: Curves) -> TextTable:
    """Return the improvement over exact random search, with one row for each task."""
    gains = measures.improvements(curves)
    rows: list[tuple[Cell, ...]] = [
        (task, *map(float, gains[:, place])) for place, task in enumerate(curves.tasks)
    ]
    rows.append(("mean", *map(float, gains.mean(axis=1))))
    rows.append(("average rank", *map(float, _ranks_of_gains(gains)[:-1])))
    return TextTable(
        f"{curves.suite}-improvement",
        f"{curves.suite}: improvement over exact random search, mean over trials 1 to "
        f"{curves.trials} (higher is better, 1 is perfect)",
        ("task", *curves.methods),
        tuple(rows),
        "The rank is among these methods and exact random search, whose improvement is 0.",
        decimals=2,
    )


def runs_table(suites: Sequence[Curves]) -> TextTable:
    """Return how the runs of each suite were made."""
    rows = []
    for curves in suites:
        made, tasks = curves.settings, str(len(curves.tasks))
        if curves.held_out is not None and curves.held_out > len(curves.tasks):
            tasks = f"{tasks} of {curves.held_out}"
        row = (curves.suite, tasks, len(curves.seeds), curves.trials, made.split, made.start)
        rows.append((*row, ", ".join(made.objectives)))
    return TextTable(
        "runs",
        "What was run",
        ("suite", "tasks", "seeds", "trials", "split", "start", "objective"),
        tuple(rows),
        "The trials of a common start count as the first trials.",
    )


def suites_table(suites: Sequence[Curves]) -> TextTable:
    """Return improvement over exact random search and average rank, one column for each suite."""
    names = [*dict.fromkeys(name for curves in suites for name in curves.methods), EXACT_RANDOM]
    gains = {
        curves.suite: dict(zip(curves.methods, measures.improvements(curves), strict=True))
        for curves in suites
    }
    shared = [name for name in names if all(name in of for of in gains.values())]
    if len(suites) > 1 and shared:
        gains[TOGETHER] = {
            name: np.concatenate([of[name] for of in gains.values()]) for name in shared
        }
    columns = []
    for of in gains.values():
        by_task = np.array(list(of.values()))
        means = [*by_task.mean(axis=1), 0.0]
        cells = zip((*of, EXACT_RANDOM), means, _ranks_of_gains(by_task), strict=True)
        columns.append({name: f"{mean:.2f} ({rank:.1f})" for name, mean, rank in cells})
    return TextTable(
        "improvement",
        "Improvement over exact random search (average rank), mean over tasks",
        ("method", *gains),
        tuple((name, *(column.get(name, "-") for column in columns)) for name in names),
        "Higher is better: 0 is random search, 1 finds the minimum at the first trial.",
    )


def rank_table(methods: Compared, checkpoints: Sequence[int]) -> TextTable:
    """Return average ranks with half of their 95% intervals, even if those leave the ranks."""
    ranks = methods.ranks[:, :, _at(checkpoints)]
    cells = [
        [f"{mean:.2f} ± {_spread(width)}" for mean, width in zip(*row, strict=True)]
        for row in zip(ranks.mean(axis=1), half_width(ranks), strict=True)
    ]
    return TextTable(
        f"{methods.name}-rank",
        f"{methods.name}: average rank after n trials (lower is better)",
        ("method", *_heads(checkpoints)),
        _rows(methods.methods, cells),
        f"± 95% confidence, over tasks. Mean over {methods.averaging_note}.",
    )


def regret_table(curves: Curves, checkpoints: Sequence[int]) -> TextTable:
    """Return the median normalised regret of a run, with quartiles."""
    quartiles = regret_quartiles(curves)[:, :, _at(checkpoints)]
    cells = [
        [
            f"{format_cell(middle)} ({format_cell(low)}, {format_cell(high)})"
            for low, middle, high in of_method.T
        ]
        for of_method in np.moveaxis(quartiles, 0, 1)
    ]
    return TextTable(
        f"{curves.suite}-regret",
        f"{curves.suite}: normalised regret after n trials, median of all runs (quartiles)",
        ("method", *_heads(checkpoints)),
        _rows(curves.methods, cells),
    )


def regret_quartiles(curves: Curves) -> Floats:
    """Return the quartiles of the normalised regret over all runs: (3, methods, trials)."""
    runs = measures.distances(curves).reshape(len(curves.methods), -1, curves.trials)
    quartiles: Floats = np.quantile(runs, [0.25, 0.5, 0.75], axis=1)
    return quartiles


def relative_error_table(
    curves: Curves, checkpoints: Sequence[int], baseline: str
) -> TextTable | None:
    """Return the mean relative error difference to `baseline`; None if the metric is no error."""
    errors = measures.errors(curves)
    if errors is None:
        return None
    against = errors[curves.methods.index(baseline)]
    by_task = relative_error_difference(errors, against[None]).mean(axis=2)[:, :, _at(checkpoints)]
    means = 100 * by_task.mean(axis=1)
    one_task = by_task.shape[1] == 1
    deviations = np.full_like(means, np.nan) if one_task else 100 * stats.sem(by_task, axis=1)
    cells = [
        [f"{mean:+.2f}% ± {_spread(error)}" for mean, error in zip(*row, strict=True)]
        for row in zip(means, deviations, strict=True)
    ]
    return TextTable(
        f"{curves.suite}-red",
        f"{curves.suite}: relative error difference (RED) to '{baseline}' after n trials "
        "(lower is better)",
        ("method", *_heads(checkpoints)),
        _rows(curves.methods, cells),
        "Mean over tasks ± its standard error.",
    )


def hypervolume_table(curves: Curves, checkpoints: Sequence[int]) -> TextTable:
    """Return the share of the Pareto hypervolume that is still missing."""
    missing = measures.missing_hypervolume(curves).mean(axis=(1, 2))
    return TextTable(
        f"{curves.suite}-hypervolume",
        f"{curves.suite}: missing share of the hypervolume of {', '.join(curves.objectives)} "
        "after n trials (lower is better)",
        ("method", *_heads(checkpoints)),
        _rows(curves.methods, missing[:, _at(checkpoints)]),
        _averaging_text(curves),
    )


def seconds_table(curves: Curves) -> TextTable:
    """Return the seconds that each method takes."""
    costs = np.stack([curves.suggest_seconds, curves.learn_seconds], axis=1)
    return TextTable(
        f"{curves.suite}-seconds",
        f"{curves.suite}: seconds that the methods themselves take",
        ("method", "one suggestion", "learning from experience"),
        _rows(curves.methods, costs),
    )


def significance_table(methods: Compared, checkpoints: Sequence[int]) -> TextTable:
    """Return Friedman's test and the methods that cannot be told apart."""
    rows: list[tuple[Cell, ...]] = []
    for n in checkpoints:
        comparison = methods.after(n)
        groups = [" = ".join(group) for group in comparison.groups] or ["none"]
        rows.append((str(n), groups[0], comparison.friedman_p))
        rows += [("", group, "") for group in groups[1:]]
    return TextTable(
        f"{methods.name}-significance",
        f"{methods.name}: which methods differ over {methods.tasks} tasks, at the 5% level",
        ("trials", "cannot be told apart", "Friedman p"),
        tuple(rows),
        "Wilcoxon signed-rank tests of all pairs with Holm's correction, the best method first.",
        names=2,
    )


def _ranks_of_gains(gains: Floats) -> Floats:
    """Return mean ranks over tasks of the methods and, last, of exact random search."""
    contenders = np.vstack([gains, np.zeros(gains.shape[1])])
    ranks: Floats = stats.rankdata(-contenders, axis=0).mean(axis=1)
    return ranks


def _spread(width: float) -> str:
    """Return the text after ±; a dash if there is only one sample."""
    return "-" if np.isnan(width) else f"{width:.2f}"


def _heads(checkpoints: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"n={n}" for n in checkpoints)


def _at(checkpoints: Sequence[int]) -> list[int]:
    return [n - 1 for n in checkpoints]


def _rows(
    names: Sequence[str], cells: Sequence[Sequence[Cell]] | Floats
) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (name, *(cell if isinstance(cell, str) else float(cell) for cell in row))
        for name, row in zip(names, cells, strict=True)
    )


def _averaging_text(curves: Curves) -> str:
    return f"Mean over {curves.averaging_note}."
