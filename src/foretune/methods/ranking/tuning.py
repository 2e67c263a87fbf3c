"""Fine-tuning on the target's observations by a few second-order steps.

The ranking loss is convex in the scores, and the scores are nearly linear in small moves of the
weights. So instead of a thousand steps of Adam, each step here solves the linearised problem

    minimise over theta   loss(s + J (theta - theta_now)) + |theta - theta_0|² / (2 v)

by one Newton step. There are n observations and far more weights, so the step is solved in n
numbers a with theta - theta_0 = v J' a, which needs only the kernel K = v J J' (n, n). The penalty
keeps the weights near the initial ones, theta_0; without it the loss would drive the scores of each
list apart without end. The tuning of each trial starts from theta_0 again, so nothing depends on
earlier tunings, and a resumed search is the same search.
"""

from dataclasses import dataclass

import numpy as np

from foretune.methods.ranking.curvature import Criterion, Quadratic, Scores
from foretune.methods.ranking.ensemble import Singles, activations
from foretune.numerics.networks import Layers

SHRINK = 0.5
TOLERANCE = 0.01
"""Tuning ends when a step lowers no scorer's objective by more than this share."""
ATTEMPTS = 6
"""The most times that a step is shortened before it is given up."""


@dataclass(frozen=True, slots=True)
class FineTuning:
    """The limits of moving the weights."""

    variance: float
    """v, the variance of the distance between a weight and its initial value."""
    steps: int = 3


@dataclass(frozen=True, slots=True)
class _Point:
    """The weights during a tuning, and the criterion at their scores."""

    scorers: Layers
    layers: list[Singles]
    """Activations of every layer, the inputs first."""
    picture: Quadratic
    objective: Scores
    """(M,), the loss and the penalty."""


def fine_tune(initial: Layers, inputs: Singles, rank: Criterion, tuning: FineTuning) -> Layers:
    """Return the scorers, tuned so that their ranks of `inputs` (n, I) suit the criterion."""
    now = _evaluate(initial, initial, inputs, rank, tuning)
    for _ in range(tuning.steps):
        goal = _newton(initial, now, _slopes(now), tuning)
        before, now = now, _line_search(initial, now, goal, inputs, rank, tuning)
        if (before.objective - now.objective <= TOLERANCE * before.objective).all():
            break
    return now.scorers


def _evaluate(
    initial: Layers, scorers: Layers, inputs: Singles, rank: Criterion, tuning: FineTuning
) -> _Point:
    layers = activations(scorers, inputs)
    picture = rank(layers[-1][:, :, 0])
    moved = sum(
        np.square(now - start).reshape(len(now), -1).sum(axis=1)
        for layer, first in zip(scorers, initial, strict=True)
        for now, start in zip(layer, first, strict=True)
    )
    return _Point(scorers, layers, picture, picture.value + moved / (2.0 * tuning.variance))


def _slopes(now: _Point) -> list[Singles]:
    """Return the derivatives (M, n, units) of scores by each layer's sums before rectification."""
    slope = np.ones_like(now.layers[-1])
    slopes = [slope]
    for (weights, _), active in zip(
        reversed(now.scorers[1:]), reversed(now.layers[1:-1]), strict=True
    ):
        slope = (slope @ np.swapaxes(weights, 1, 2)) * (active > 0.0)
        slopes.insert(0, slope)
    return slopes


def _newton(initial: Layers, now: _Point, slopes: list[Singles], tuning: FineTuning) -> Layers:
    """Return the result of one Newton step of the linearised problem."""
    kernel = np.float32(tuning.variance) * _kernel(now, slopes)
    gone = _along(initial, now, slopes)
    curvature = now.picture.curvature
    n = kernel.shape[1]
    right = np.einsum("mij,mj->mi", curvature, gone) - now.picture.slope
    # With s(a) = scores - gone + K a the slope of the problem, K (slope + a), is zero here:
    dual = np.linalg.solve(np.eye(n, dtype=np.float32) + curvature @ kernel, right[:, :, None])
    push = (tuning.variance * dual).astype(np.float32)
    return tuple(
        (
            weights + np.swapaxes(before if before.ndim == 3 else before[None], 1, 2) @ (push * s),
            biases + (push * s).sum(axis=1),
        )
        for (weights, biases), before, s in zip(initial, now.layers[:-1], slopes, strict=True)
    )


def _kernel(now: _Point, slopes: list[Singles]) -> Singles:
    """Return J J' (M, n, n): products of inputs times products of slopes, summed over layers."""
    n = now.layers[0].shape[0]
    total = np.zeros((len(slopes[0]), n, n), dtype=np.float32)
    for before, slope in zip(now.layers[:-1], slopes, strict=True):
        alike = before @ np.swapaxes(before, -1, -2) + np.float32(1.0)
        total += alike * (slope @ np.swapaxes(slope, 1, 2))
    return total


def _along(initial: Layers, now: _Point, slopes: list[Singles]) -> Singles:
    """Return J (theta_now - theta_0) (M, n), the change of the scores to first order."""
    total = np.zeros(now.layers[-1].shape[:2], dtype=np.float32)
    for layer, first, before, slope in zip(
        now.scorers, initial, now.layers[:-1], slopes, strict=True
    ):
        change = before @ (layer[0] - first[0]) + (layer[1] - first[1])[:, None, :]
        total += (change * slope).sum(axis=2)
    return total


def _line_search(
    initial: Layers,
    now: _Point,
    goal: Layers,
    inputs: Singles,
    rank: Criterion,
    tuning: FineTuning,
) -> _Point:
    """Return, for each scorer, the first point on the way back from the goal that is no worse."""
    share = np.ones(len(now.objective), dtype=np.float32)
    for attempt in range(ATTEMPTS):
        point = _evaluate(initial, _between(now.scorers, goal, share), inputs, rank, tuning)
        worse = ~(point.objective <= now.objective)
        if not worse.any():
            return point
        share[worse] = 0.0 if attempt == ATTEMPTS - 2 else share[worse] * SHRINK
    return now


def _between(start: Layers, goal: Layers, share: Singles) -> Layers:
    """Return the weights of each scorer at its share (M,) of the way."""
    return tuple(
        (
            layer[0] + share[:, None, None] * (end[0] - layer[0]),
            layer[1] + share[:, None] * (end[1] - layer[1]),
        )
        for layer, end in zip(start, goal, strict=True)
    )
