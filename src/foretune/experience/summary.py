"""A summary of an experience as plain text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.experience.data import ExperienceData
from foretune.experience.selection import compact
from foretune.experience.trial import Direction, Metric, Status

MOST_TASKS = 20


def summarise(experience: ExperienceData) -> str:
    """Describe sizes, metrics, the first tasks with their values, splits and the space."""
    experience = compact(experience)
    parts = [
        _align(_sizes(experience), left=2),
        "Metrics\n"
        + "\n".join(f"  {metric.name} ({_wish(metric)})" for metric in experience.metrics),
        *(_tasks(experience, column) for column in range(len(experience.metrics))),
        _splits(experience),
        f"Space ({experience.space.structure.kind})\n{_indent(experience.space.describe())}",
    ]
    return "\n\n".join(part for part in parts if part)


def _sizes(experience: ExperienceData) -> list[tuple[str, str]]:
    pairs = len(experience.tasks) * len(experience.configs)
    missing = 1.0 - _distinct_pairs(experience) / pairs
    failed = _failures(experience.status)
    return [
        ("Tasks", f"{len(experience.tasks):,}"),
        ("Configurations", f"{len(experience.configs):,}"),
        ("Evaluations", f"{len(experience):,}"),
        ("Missing", f"{missing:.1%} of all pairs of task and configuration"),
        ("Failed", f"{failed:,} ({failed / len(experience):.1%})"),
        *_curve_sizes(experience),
    ]


def _curve_sizes(experience: ExperienceData) -> list[tuple[str, str]]:
    """Return how many curves there are, how long they are, and how many were stopped early."""
    curves = experience.curves
    if curves is None:
        return []
    lengths = curves.lengths[curves.lengths > 0]
    stopped = int(np.count_nonzero(experience.status == Status.STOPPED))
    return [
        ("Curves", f"{len(lengths):,} with {int(lengths.sum()):,} points"),
        (
            "Curve length",
            f"{int(lengths.min()):,} to {int(lengths.max()):,} points, half of them at least "
            f"{int(np.median(lengths)):,}, up to step {np.nanmax(curves.last_steps):g}",
        ),
        ("Stopped early", f"{stopped:,} ({stopped / len(experience):.1%})"),
    ]


def _failures(status: NDArray[np.int8]) -> int:
    return int(np.count_nonzero((status == Status.FAILED) | (status == Status.TIMEOUT)))


def _distinct_pairs(experience: ExperienceData) -> int:
    """Count the pairs of task and configuration that were evaluated."""
    return sum(
        int(np.count_nonzero(np.bincount(experience.task(name).config_index)))
        for name in experience.tasks
    )


def _tasks(experience: ExperienceData, column: int) -> str:
    metric = experience.metrics[column]
    header = ("task", "evaluations", "failed", "best", "median", "worst")
    rows = [_task_row(experience, name, column, metric) for name in experience.tasks[:MOST_TASKS]]
    lines = ["Tasks by " + metric.name, _indent(_align([header, *rows], left=1))]
    if len(experience.tasks) > MOST_TASKS:
        lines.append(f"  ... and {len(experience.tasks) - MOST_TASKS} more")
    return "\n".join(lines)


def _task_row(
    experience: ExperienceData, name: str, column: int, metric: Metric
) -> tuple[str, ...]:
    records = experience.task(name)
    losses = records.losses[:, column]
    failed = _failures(records.status)
    best, median, worst = _range(losses[np.isfinite(losses)] * metric.sign, metric)
    return name, f"{len(records):,}", f"{failed:,}", best, median, worst


def _range(values: Floats, metric: Metric) -> tuple[str, str, str]:
    if len(values) == 0:
        return "-", "-", "-"
    ends = float(values.min()), float(values.max())
    best, worst = ends if metric.direction is Direction.MIN else ends[::-1]
    return f"{best:.5g}", f"{float(np.median(values)):.5g}", f"{worst:.5g}"


def _splits(experience: ExperienceData) -> str:
    if not experience.splits:
        return ""
    rows = [
        (name, *(f"{len(tasks):,}" for tasks in parts.values()))
        for name, parts in experience.splits.items()
    ]
    header = ("split", "train", "validation", "test")
    return "Splits\n" + _indent(_align([header, *rows], left=1))


def _wish(metric: Metric) -> str:
    return "less is better" if metric.direction is Direction.MIN else "more is better"


def _align(rows: Sequence[Sequence[str]], left: int) -> str:
    """Align columns: the first `left` of them to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
