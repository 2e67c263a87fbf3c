"""The reports of a target's trials as one list of points at the knots."""

from dataclasses import dataclass

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune.methods.contracts import Observations
from foretune.methods.curve_contracts import SeenCurves
from foretune.methods.freeze_thaw.knots import curve_at_knots, nearest_knot
from foretune.space import Encoded

MOST_POINTS = 1_000
"""The points to use. If there are more, early points of trials that came far are left out: the
later ones say nearly the same."""


@dataclass(frozen=True, slots=True)
class Points:
    """What was reported: a row for each knot that a trial has reached."""

    configs: Encoded
    """(C,), each configuration once."""
    member: Ints
    """(n,), rows of `configs`."""
    knot: Ints
    """(n,)"""
    losses: Floats
    """(n, objectives); what is not finite diverged."""
    pending_member: Ints
    """(m,), the configurations of running trials."""
    pending_knot: Ints
    """(m,), the knots at which they are decided about next."""

    @property
    def diverged(self) -> Bools:
        """(n, objectives)"""
        return ~np.isfinite(self.losses)


def points_of_curves(seen: SeenCurves, elsewhere: Observations, knots: Floats) -> Points:
    """Return the points of curves, and of trials that were told without a curve."""
    configs = Encoded.concat([seen.configs, elsewhere.configs])
    first = configs.first_occurrences()
    unique = configs.take(first)
    place = {key: row for row, key in enumerate(unique.keys().tolist())}
    member = np.array([place[key] for key in configs.keys().tolist()], dtype=np.int64)
    width = elsewhere.losses.shape[1]
    members, at, losses = [], [], []
    for row, (steps, reported) in enumerate(zip(seen.steps, seen.losses, strict=True)):
        found = _curve_points(steps, reported, seen.last_step, knots)
        reached = np.flatnonzero(~np.isnan(found).any(axis=1))
        members.append(np.full(len(reached), member[row]))
        at.append(reached)
        losses.append(found[reached])
    told = np.flatnonzero(elsewhere.is_success)
    members.append(member[len(seen) :][told])
    at.append(np.full(len(told), len(knots) - 1))
    losses.append(elsewhere.losses[told].reshape(-1, width))
    waits = np.flatnonzero(np.isfinite(seen.goals))
    goals = [nearest_knot(goal, seen.last_step, knots) for goal in seen.goals[waits].tolist()]
    together = _thin(
        np.concatenate(members).astype(np.int64),
        np.concatenate(at).astype(np.int64),
        np.concatenate(losses),
    )
    return Points(unique, *together, member[: len(seen)][waits], np.array(goals, dtype=np.int64))


def points_of_losses(seen: Observations, knots: Floats) -> Points:
    """Return the points of complete trials, whose believed rows are pending ones."""
    real = Observations(
        seen.configs.take(np.flatnonzero(~seen.believed)),
        seen.losses[~seen.believed],
        np.zeros(int((~seen.believed).sum()), dtype=np.bool_),
    )
    waiting = seen.configs.take(np.flatnonzero(seen.believed))
    empty = [np.empty(0)] * len(waiting)
    nothing = [np.empty((0, seen.losses.shape[1]))] * len(waiting)
    pending = SeenCurves(waiting, empty, nothing, np.ones(len(waiting)), 1.0, 1.0)
    return points_of_curves(pending, real, knots)


def _curve_points(steps: Floats, losses: Floats, last: float, knots: Floats) -> Floats:
    """Return (K, objectives), the losses of one curve at the knots."""
    if not len(steps):
        return np.full((len(knots), losses.shape[1]), np.nan)
    columns = [curve_at_knots(steps, column, last, knots) for column in losses.T]
    return np.column_stack(columns)


def _thin(member: Ints, knot: Ints, losses: Floats) -> tuple[Ints, Ints, Floats]:
    """Leave out early points if there are too many. The latest ones of each trial stay."""
    if len(member) <= MOST_POINTS:
        return member, knot, losses
    latest = np.zeros(int(member.max()) + 1, dtype=np.int64)
    np.maximum.at(latest, member, knot)
    age = latest[member] - knot
    keep = np.sort(np.argsort(age, kind="stable")[:MOST_POINTS])
    return member[keep], knot[keep], losses[keep]
