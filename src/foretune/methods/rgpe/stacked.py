"""Many Gaussian processes read at one configuration at a time, all in one pass.

At every trial each past process is asked about that one trial. One by one, this would cost more
in calls than in arithmetic.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from foretune._base.arrays import Floats
from foretune.numerics.gp import GP
from foretune.numerics.kernels import matern52

NUGGET = 1e-6
"""As a share of the signal: keeps joint draws apart where a process is certain of two trials."""


class Stacked:
    """M processes of at most k observations each, as arrays; shorter ones are filled with zeros."""

    def __init__(self, processes: tuple[GP, ...]) -> None:
        self.processes = processes
        size, width = max(len(p.x) for p in processes), processes[0].x.shape[1]
        self._inverse = np.exp([-p.hyper.log_lengthscales for p in processes])
        self._signal = np.exp([p.hyper.log_signal for p in processes])
        self._x = np.zeros((len(processes), size, width))
        self._alpha = np.zeros((len(processes), size))
        for number, process in enumerate(processes):
            self._x[number, : len(process.x)] = process.x * self._inverse[number]
            self._alpha[number, : len(process.x)] = process.alpha
        self._norms = np.einsum("mkd,mkd->mk", self._x, self._x)
        self._shift = np.array([p.units.shift + p.units.scale * p.hyper.mean for p in processes])
        self._scale = np.array([p.units.scale for p in processes])

    def __len__(self) -> int:
        return len(self.processes)

    def cross(self, point: Floats) -> Floats:
        """Covariances (M, k) of the functions at one point (d,) with those at the observations."""
        scaled = point * self._inverse
        products = np.matmul(self._x, scaled[:, :, None])[:, :, 0]
        squared = self._norms + np.einsum("md,md->m", scaled, scaled)[:, None] - 2.0 * products
        correlation = matern52(np.maximum(squared, 0.0))
        return correlation * self._signal[:, None]

    def between(self, point: Floats, others: Floats) -> Floats:
        """Covariances (M, n) before any observation of one point (d,) with others (n, d)."""
        squared = np.square(others - point) @ np.square(self._inverse).T
        return matern52(squared.T.copy()) * self._signal[:, None]

    def mean(self, cross: Floats) -> Floats:
        """(M,), what each process expects where it has these covariances."""
        standardised: Floats = np.einsum("mk,mk->m", cross, self._alpha)
        return self._shift + self._scale * standardised

    def whiten(self, cross: Floats) -> Floats:
        """(M, k), the covariances in terms of what each process has observed independently."""
        solved: Floats = np.matmul(self._whiteners, cross[:, :, None])[:, :, 0]
        return solved

    @property
    def scale(self) -> Floats:
        """(M,), what one standardised unit of each process is worth."""
        return self._scale

    @property
    def signal(self) -> Floats:
        """(M,), each function's variance before any observation."""
        return self._signal

    @cached_property
    def _whiteners(self) -> Floats:
        """(M, k, k), the inverses of the Cholesky factors."""
        size = self._x.shape[1]
        inverses = np.zeros((len(self), size, size))
        for number, process in enumerate(self.processes):
            n = len(process.x)
            inverses[number, :n, :n] = solve_triangular(process.cholesky, np.eye(n), lower=True)
        return inverses


class ExpectedLosses:
    """What the processes expect at the target's trials, each trial asked about once."""

    def __init__(self, stacked: Stacked) -> None:
        self._stacked = stacked
        self._known: dict[bytes, Floats] = {}

    def __call__(self, x: Floats) -> Floats:
        """(M, n) at trials (n, d)."""
        columns = []
        for point in x:
            key = point.tobytes()
            if key not in self._known:
                self._known[key] = self._stacked.mean(self._stacked.cross(point))
            columns.append(self._known[key])
        return np.stack(columns, axis=1)


class JointDraws:
    """Draws of each process's function at the target's trials.

    A draw at one trial follows from the draws at those before it and from fresh noise that hangs
    only on the trial's number. So the draws at earlier trials never change, and asking for one
    trial more costs one trial; a study that is resumed finds the same draws.
    """

    def __init__(self, stacked: Stacked, draws: int) -> None:
        self._stacked = stacked
        self._draws = draws
        self._forget()

    def __call__(self, x: Floats) -> Floats:
        """(n, M, draws) at trials (n, d)."""
        if not np.array_equal(self._x, x[: len(self._x)]):
            self._forget()
        for point in x[len(self._x) :]:
            self._extend(point)
        return np.stack(self._values[: len(x)])

    def _forget(self) -> None:
        stacked = self._stacked
        self._x = np.empty((0, stacked.processes[0].x.shape[1]))
        self._white = np.empty((len(stacked), 0, max(len(p.x) for p in stacked.processes)))
        self._noise = np.empty((len(stacked), 0, self._draws))
        # The inverse Cholesky factor of the covariance of the trials, given the observations.
        self._factor = np.empty((len(stacked), 0, 0))
        self._values: list[Floats] = []

    def _extend(self, point: Floats) -> None:
        stacked, n = self._stacked, len(self._x)
        cross = stacked.cross(point)
        white = stacked.whiten(cross)
        shared = (
            stacked.between(point, self._x) - np.matmul(self._white, white[:, :, None])[:, :, 0]
        )
        own = (1.0 + NUGGET) * stacked.signal - np.einsum("mk,mk->m", white, white)
        row = np.matmul(self._factor, shared[:, :, None])[:, :, 0]
        rest = np.sqrt(np.maximum(own - np.einsum("mn,mn->m", row, row), NUGGET * stacked.signal))
        noise = np.random.default_rng(n).standard_normal((len(stacked), 1, self._draws))
        deviation = np.matmul(row[:, None, :], self._noise)[:, 0] + rest[:, None] * noise[:, 0]
        value = stacked.mean(cross)[:, None] + stacked.scale[:, None] * deviation
        self._values.append(value.astype(np.float32))
        self._factor = _extend_inverse(self._factor, row, rest)
        self._white = np.concatenate([self._white, white[:, None]], axis=1)
        self._noise = np.concatenate([self._noise, noise], axis=1)
        self._x = np.vstack([self._x, point])


def _extend_inverse(inverse: Floats, row: Floats, rest: Floats) -> Floats:
    """The inverses (M, n+1, n+1) of lower factors that grew by `row` (M, n) and `rest` (M,)."""
    m, n = row.shape
    grown = np.zeros((m, n + 1, n + 1))
    grown[:, :n, :n] = inverse
    grown[:, n, :n] = -np.matmul(row[:, None, :], inverse)[:, 0] / rest[:, None]
    grown[:, n, n] = 1.0 / rest
    return grown
