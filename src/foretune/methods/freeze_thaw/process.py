"""One belief about one objective after the reports of a target: an exact Gaussian process.

The covariance of two points is that of their configurations times that of their steps, plus what
the factors share. A prediction at one step needs the covariances with the C configurations and the
Q factors only, so it costs (C + Q)^2 for each candidate, however many points there are.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpotrs

from foretune._base.arrays import Floats, Ints
from foretune.methods.freeze_thaw.curve_prior import CurvePrior
from foretune.methods.freeze_thaw.points import Points
from foretune.methods.freeze_thaw.units import CAP, Unit, UnitPrior, fit_unit
from foretune.numerics.gp import robust_cholesky
from foretune.numerics.kernels import matern52, squared_distances
from foretune.space import Encoded

LEAST_VARIANCE = 1e-8
OBSERVED_NOISE = 1e-3
"""The variance of a report, beside what the basis leaves out."""


@dataclass(frozen=True)
class CurveProcess:
    """A conditioned process of n points. The last ones belong to running trials."""

    prior: CurvePrior
    configs: Encoded
    """(C,), the configurations that have points."""
    unit: Unit
    log_evidence: float
    best: float
    """The lowest score that was reported, or is expected of a running trial."""
    member: Ints
    """(n,), rows of `configs`."""
    steps: Floats
    """(n, R), the basis at the points."""
    factors: Floats
    """(n, Q), the factors at the points."""
    cholesky: Floats
    """(n, n)"""
    weights: Floats
    """(n,), the inverse of the covariance times the residuals; 0 for running trials."""

    @classmethod
    def condition(cls, prior: CurvePrior, points: Points, objective: int) -> Self:
        """Condition on all points. Running trials are expected to go on as predicted."""
        member = np.concatenate([points.member, points.pending_member])
        knot = np.concatenate([points.knot, points.pending_knot])
        mean, factors = prior.expect(prior.features(points.configs.x))
        expected, shared, steps = mean[member, knot], factors[member, knot], prior.basis[knot]
        among = _smooth(prior, points.configs, points.configs)
        among[np.diag_indices(len(among))] += prior.shares.own
        covariance = among[np.ix_(member, member)] * (steps @ steps.T) + shared @ shared.T
        covariance[np.diag_indices(len(member))] += prior.noise[knot] + OBSERVED_NOISE
        cholesky, _ = robust_cholesky(covariance)
        n, losses = len(points.member), points.losses[:, objective]
        told, diverged = np.asfortranarray(cholesky[:n, :n]), ~np.isfinite(losses)
        unit, evidence = fit_unit(losses, diverged, expected[:n], told, _units(prior, losses))
        scores = np.where(diverged, CAP, unit.to_scores(np.where(diverged, 0.0, losses)))
        weights = dpotrs(told, scores - expected[:n], lower=1)[0] if n else np.empty(0)
        ahead = expected[n:] + covariance[n:, :n] @ weights
        best = float(np.min([*scores, *ahead], initial=CAP))
        weights = np.append(weights, np.zeros(len(ahead)))
        return cls(
            prior, points.configs, unit, evidence, best, member, steps, shared, cholesky, weights
        )

    def predict(self, x: Encoded, knot: int = -1) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (m,) of the scores at one knot."""
        view = self._at_end if knot == -1 else _View.of(self, knot)
        mean, cross, before = self._cross(x, knot, view)
        variance = before - np.square(cross @ view.projection.T).sum(axis=1)
        return mean, np.sqrt(np.maximum(variance, LEAST_VARIANCE))

    def sample(self, x: Encoded, n: int, rng: np.random.Generator) -> Floats:
        """Return (n, m), joint draws of the scores at the last step."""
        prior, view = self.prior, self._at_end
        mean, cross, before = self._cross(x, -1, view)
        among = _smooth(prior, x, x) * float(np.square(prior.basis[-1]).sum())
        factors = prior.expect(prior.features(x.x), [-1])[1][:, 0]
        among += factors @ factors.T
        among[np.diag_indices(len(x))] = before + LEAST_VARIANCE
        reduced = cross @ view.projection.T
        factor, _ = robust_cholesky(among - reduced @ reduced.T)
        drawn: Floats = mean + rng.standard_normal((n, len(x))) @ factor.T
        return drawn

    @cached_property
    def _at_end(self) -> "_View":
        return _View.of(self, -1)

    def _cross(self, x: Encoded, knot: int, view: "_View") -> tuple[Floats, Floats, Floats]:
        """Return means (m,), similarities to configurations and factors (m, C + Q), and variances
        without any point (m,).
        """
        prior = self.prior
        mean, factors = prior.expect(prior.features(x.x), [knot])
        similar = _smooth(prior, x, self.configs)
        similar += prior.shares.own * _same(x, self.configs)
        cross = np.hstack([similar, factors[:, 0]])
        size = float(np.square(prior.basis[knot]).sum())
        before = prior.shares.total * size + np.square(factors[:, 0]).sum(axis=1)
        return mean[:, 0] + cross @ view.slopes, cross, before


@dataclass(frozen=True, slots=True)
class _View:
    """A process as one knot sees it."""

    slopes: Floats
    """(C + Q,), what a similarity of 1 adds to a mean."""
    projection: Floats
    """(r, C + Q); the squares of what it makes of similarities reduce variances."""

    @classmethod
    def of(cls, process: CurveProcess, knot: int) -> Self:
        """Gather the points by configuration and factor."""
        n, count = len(process.member), len(process.configs)
        design = np.zeros((n, count + process.factors.shape[1]))
        design[np.arange(n), process.member] = process.steps @ process.prior.basis[knot]
        design[:, count:] = process.factors
        if not n:
            return cls(np.zeros(design.shape[1]), design)
        projection: Floats = solve_triangular(
            process.cholesky, design, lower=True, check_finite=False
        )
        if n > design.shape[1]:
            triangle = qr(projection, mode="r", check_finite=False)[0]
            return cls(design.T @ process.weights, np.asarray(triangle[: design.shape[1]]))
        return cls(design.T @ process.weights, projection)


def _smooth(prior: CurvePrior, a: Encoded, b: Encoded) -> Floats:
    """Return (m, n), the covariance of residuals, without what a configuration has alone."""
    lengthscales = prior.lengthscales * prior.shares.stretch
    similar = matern52(squared_distances(a.x / lengthscales, b.x / lengthscales))
    similar *= prior.shares.smooth
    similar += prior.shares.task
    return similar


def _same(x: Encoded, configs: Encoded) -> Floats:
    """Return (m, C), 1 where two configurations are equal."""
    found = np.zeros((len(x), len(configs)))
    place = {key: row for row, key in enumerate(configs.keys().tolist())}
    for row, key in enumerate(x.keys().tolist()):
        if key in place:
            found[row, place[key]] = 1.0
    return found


def _units(prior: CurvePrior, losses: Floats) -> UnitPrior:
    finite = losses[np.isfinite(losses)]
    if prior.units is not None:
        return prior.units
    return UnitPrior.of_losses(finite if len(finite) else np.zeros(1))
