"""Learning curves: what trials reported while they ran, in columns beside the evaluations.

A curve is a list of points. Each point has a step (an epoch, a round, a share of the rows:
whatever the user counts), one value for each metric, and the seconds spent until then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretune._base.arrays import Bools, Floats
from foretune.errors import ExperienceError

NO_STEPS = np.array([], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one trial, for people and for programs that run trials."""

    steps: Sequence[float]
    """Ascending."""
    values: Mapping[str, Sequence[float]]
    """{metric: one value for each step}; NaN where it was not measured."""
    seconds: Sequence[float] | None = None
    """Seconds spent up to each step."""

    def __len__(self) -> int:
        return len(self.steps)

    def only(self, names: Collection[str]) -> Curve:
        """Return the curve with the values of these names only."""
        values = {name: column for name, column in self.values.items() if name in names}
        return Curve(self.steps, values, self.seconds)

    @property
    def last_values(self) -> dict[str, float]:
        """The values at the last step, without those that were not measured there."""
        last = {name: column[-1] for name, column in self.values.items() if len(column)}
        return {name: value for name, value in last.items() if not math.isnan(value)}


class CurvePoint(NamedTuple):
    """What a trial reported at one step."""

    step: float
    values: Mapping[str, float]
    """By name, with those of the metrics."""
    seconds: float
    """CPU seconds that the trial has used up to here, in all its calls."""


def join_points(points: Sequence[CurvePoint]) -> Curve | None:
    """Return the curve of a trial's reports; None if there are none."""
    if not points:
        return None
    names = dict.fromkeys(name for point in points for name in point.values)
    return Curve(
        [point.step for point in points],
        {name: [point.values.get(name, math.nan) for point in points] for name in names},
        [point.seconds for point in points],
    )


@dataclass(frozen=True, eq=False, repr=False)
class CurveColumns:
    """The curves of N evaluations, point after point in shared arrays; they cannot be changed.

    An evaluation without a curve has no points.
    """

    offsets: NDArray[np.int64]
    """(N + 1,): the points of row i are those from `offsets[i]` to `offsets[i + 1]`."""
    steps: Floats
    """(P,), ascending within each curve."""
    values: Floats
    """(P, number of metrics), in the metrics' own directions; NaN where not measured."""
    seconds: NDArray[np.float32] = field(default_factory=lambda: np.array([], dtype=np.float32))
    """(P,), spent up to each point; NaN where unknown."""

    def __post_init__(self) -> None:
        for name in ("offsets", "steps", "values", "seconds"):
            locked = getattr(self, name).view()
            locked.flags.writeable = False
            object.__setattr__(self, name, locked)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"CurveColumns({np.count_nonzero(self.lengths)} curves, {len(self.steps)} points)"

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(N,), the number of points of each curve."""
        return np.diff(self.offsets)

    @cached_property
    def last_steps(self) -> Floats:
        """(N,), the last step of each curve; NaN where there is no point."""
        last = np.full(len(self), np.nan)
        has_points = self.lengths > 0
        last[has_points] = self.steps[self.offsets[1:][has_points] - 1]
        return last

    def points(self, row: int) -> slice:
        """Return the places of the points of one row in `steps`, `values` and `seconds`."""
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))

    def at_steps(self, row: int, metric: int) -> tuple[Floats, Floats]:
        """Return the steps of one row, and the values of one metric at these steps."""
        points = self.points(row)
        return self.steps[points], self.values[points, metric]

    def take(self, rows: ArrayLike | slice) -> CurveColumns:
        """Return the curves of these rows, in this order."""
        offsets, points = gather_points(self.offsets, rows)
        return CurveColumns(offsets, self.steps[points], self.values[points], self.seconds[points])

    def with_metrics(self, order: Sequence[int]) -> CurveColumns:
        """Return the same curves with only these metrics, in this order."""
        return CurveColumns(self.offsets, self.steps, self.values[:, list(order)], self.seconds)

    @staticmethod
    def concat(parts: Sequence[CurveColumns]) -> CurveColumns:
        """Join the curves of all parts, one part after the other."""
        lengths = np.concatenate([part.lengths for part in parts])
        return CurveColumns(
            _offsets_of(lengths),
            np.concatenate([part.steps for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.seconds for part in parts]),
        )

    @staticmethod
    def empty(rows: int, metrics: int) -> CurveColumns:
        """Return curves without any point, for a number of evaluations."""
        return CurveColumns(
            np.zeros(rows + 1, dtype=np.int64),
            NO_STEPS,
            np.empty((0, metrics)),
            np.array([], dtype=np.float32),
        )


def build_curves(
    lengths: ArrayLike, steps: ArrayLike, values: ArrayLike, seconds: ArrayLike | None = None
) -> CurveColumns:
    """Check columns of points, and build curves from them.

    lengths: (N,), the number of points of each evaluation.
    steps, values, seconds: of all points, one evaluation after the other. `values` is
        (P, number of metrics), or (P,) for one metric.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    steps = np.array(steps, dtype=np.float64)
    values = np.array(values, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    total = int(lengths.sum())
    unknown = np.full(total, np.nan, dtype=np.float32)
    seconds = unknown if seconds is None else np.array(seconds, dtype=np.float32)
    for name, column in (("steps", steps), ("values", values), ("seconds", seconds)):
        if len(column) != total:
            raise ExperienceError(
                f"curves need as many {name} as points, {total:,}, but got {len(column):,}: "
                "give one for each point",
                rule="curve-length",
                field=name,
                value=len(column),
            )
    curves = CurveColumns(_offsets_of(lengths), steps, values, seconds)
    _check_steps(curves)
    return curves


def stack_curves(rows: Sequence[Curve | None], metrics: Sequence[str]) -> CurveColumns:
    """Stack the curves of evaluations, each of which has one or none.

    metrics: the names of the metrics, in the order of the columns.
    """
    for row in rows:
        if row is not None:
            _check_curve(row, metrics)
    filled = [row for row in rows if row is not None and len(row)]
    values = [
        np.column_stack([row.values.get(name, [np.nan] * len(row)) for name in metrics])
        for row in filled
    ]
    seconds = [
        np.full(len(row), np.nan) if row.seconds is None else np.asarray(row.seconds)
        for row in filled
    ]
    return build_curves(
        [0 if row is None else len(row) for row in rows],
        np.concatenate([NO_STEPS, *(np.asarray(row.steps, dtype=float) for row in filled)]),
        np.concatenate([np.empty((0, len(metrics))), *values]),
        np.concatenate([NO_STEPS, *seconds]),
    )


def read_curve(curves: CurveColumns, row: int, metrics: Sequence[str]) -> Curve | None:
    """Return the curve of one row, or None if it has no points."""
    points = curves.points(row)
    if points.start == points.stop:
        return None
    seconds = curves.seconds[points]
    return Curve(
        curves.steps[points].tolist(),
        {name: curves.values[points, column].tolist() for column, name in enumerate(metrics)},
        None if np.isnan(seconds).all() else seconds.tolist(),
    )


def gather_points(
    offsets: NDArray[np.int64], rows: ArrayLike | slice
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the points of some rows, given as a slice, as a mask or as places.

    offsets: where the points of each row begin, and where those of the last row end.
    Returns such offsets for the chosen rows, and the places of their points.
    """
    index = np.arange(len(offsets) - 1)[rows] if isinstance(rows, slice) else np.asarray(rows)
    if index.dtype == np.bool_:
        index = np.flatnonzero(index)
    lengths = np.diff(offsets)[index]
    chosen = _offsets_of(lengths)
    # The n-th point of the result is the n-th of its row, counted from where that begins.
    shift = np.repeat(offsets[:-1][index] - chosen[:-1], lengths)
    return chosen, np.arange(int(chosen[-1])) + shift


def group_points(
    rows: ArrayLike, steps: ArrayLike, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bring points that come in any order into the order of curves.

    rows, steps: (P,), the evaluation (0 to n - 1) and the step of each point.
    Returns the order of the points, and the number of points of each of the n evaluations.
    """
    index = np.asarray(rows, dtype=np.int64)
    order = np.lexsort((np.asarray(steps, dtype=np.float64), index))
    return order, np.bincount(index, minlength=n)


def _offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return offsets


def _check_steps(curves: CurveColumns) -> None:
    """Refuse steps that are no numbers, negative, repeated or going backwards."""
    steps = curves.steps
    wrong = ~(np.isfinite(steps) & (steps >= 0))
    _refuse_first(curves, wrong, "a step must be a finite number of at least 0")
    same_curve = np.ones(len(steps), dtype=np.bool_)
    starts = curves.offsets[:-1][curves.lengths > 0]
    same_curve[starts] = False
    not_ascending = np.zeros(len(steps), dtype=np.bool_)
    not_ascending[1:] = steps[1:] <= steps[:-1]
    _refuse_first(curves, same_curve & not_ascending, "the steps of a curve must ascend")


def _refuse_first(curves: CurveColumns, wrong: Bools, rule: str) -> None:
    if not wrong.any():
        return
    point = int(np.flatnonzero(wrong)[0])
    row = int(np.searchsorted(curves.offsets, point, side="right")) - 1
    before = curves.steps[curves.offsets[row] : point]
    after = f" after {before[-1]:g}" if len(before) else ""
    raise ExperienceError(
        f"{rule}, but evaluation {row + 1} has {curves.steps[point]:g}{after}: keep one value for "
        "each step, in the order in which the steps were taken",
        rule="curve-steps",
        field=str(row),
        value=float(curves.steps[point]),
    )


def _check_curve(curve: Curve, metrics: Sequence[str]) -> None:
    """Refuse unknown metrics, and columns that do not have one entry for each step."""
    for name in curve.values:
        if name not in metrics:
            raise ExperienceError(
                f"a curve holds metrics of the experience, {', '.join(metrics)}, but got "
                f"'{name}': leave it out or rename it",
                rule="unknown-metric",
                field=name,
            )
    columns = list(curve.values.items())
    if curve.seconds is not None:
        columns.append(("seconds", curve.seconds))
    for name, column in columns:
        if len(column) != len(curve.steps):
            raise ExperienceError(
                f"a curve needs one value for each of its {len(curve.steps)} steps, but '{name}' "
                f"has {len(column)}: give NaN where nothing was measured",
                rule="curve-length",
                field=name,
                value=len(column),
            )
