"""BoTorch: a SingleTaskGP and log expected improvement on the mixed cube.

Choices are one-hot in the cube. The first trials are a Sobol design of twice the number of
parameters, at most 10; the acquisition is maximised from its best Sobol points by gradients, and
again from the nearest legal point with the choices fixed.
"""

import warnings
from functools import partial

import numpy as np
import torch
from benchmarks.peers.objective import Floats, Problem
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import qmc

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


class BotorchTuner:
    """Bayesian optimisation as in BoTorch's tutorials."""

    def __init__(self, problem: Problem, seed: int, trials: int, *, pooled: bool = False) -> None:
        del trials
        torch.manual_seed(seed)
        self._problem = problem
        self._width = sum(p.choices if p.kind == "categorical" else 1 for p in problem.parameters)
        design = qmc.Sobol(self._width, rng=np.random.default_rng(seed))
        self._waiting = list(design.random(min(2 * len(problem.parameters), 10)))
        self._pool = np.array([self._cube(row) for row in problem.values]) if pooled else None
        self._x: list[Floats] = []
        self._y: list[float] = []

    def ask(self) -> Floats:
        cube = self._waiting.pop(0) if self._waiting else self._best()
        return self._row(cube)

    def tell(self, row: Floats, loss: float) -> None:
        self._x.append(self._cube(row))
        self._y.append(-loss)

    def observe(self, rows: Floats, losses: Floats) -> None:
        """Take trials that were made elsewhere, in place of the design."""
        self._waiting.clear()
        for row, loss in zip(rows, losses, strict=True):
            self.tell(row, float(loss))

    def _best(self) -> Floats:
        x = torch.tensor(np.array(self._x))
        y = torch.tensor(self._y, dtype=torch.double)[:, None]
        model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=y.max())
        if self._pool is not None:
            best, _ = optimize_acqf_discrete(acquisition, q=1, choices=torch.tensor(self._pool))
            return np.asarray(best[0])
        bounds = torch.stack([torch.zeros(self._width), torch.ones(self._width)]).double()
        best, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
        fixed = self._fixed(self._row(best[0].numpy()))
        if fixed:
            best, _ = optimize_acqf(
                acquisition, bounds, q=1, num_restarts=4, raw_samples=128, fixed_features=fixed
            )
        cube: Floats = best[0].numpy()
        return cube

    def _fixed(self, row: Floats) -> dict[int, float]:
        """Fix the columns of choices and of other whole numbers at the values of a row."""
        cube, column = self._cube(row), 0
        fixed: dict[int, float] = {}
        for parameter in self._problem.parameters:
            width = parameter.choices if parameter.kind == "categorical" else 1
            if parameter.kind != "float":
                fixed |= {c: float(cube[c]) for c in range(column, column + width)}
            column += width
        return fixed if len(fixed) < self._width else {}

    def _row(self, cube: Floats) -> Floats:
        row, column = [], 0
        for parameter in self._problem.parameters:
            if parameter.kind == "categorical":
                row.append(float(cube[column : column + parameter.choices].argmax()))
                column += parameter.choices
            else:
                row.append(parameter.from_unit(float(cube[column])))
                column += 1
        return np.array(row)

    def _cube(self, row: Floats) -> Floats:
        """Encode choices one-hot. An inactive parameter is in the middle, or has no choice."""
        parts = []
        for parameter, value in zip(self._problem.parameters, row, strict=True):
            if parameter.kind == "categorical":
                parts.append((np.arange(parameter.choices) == value).astype(np.float64))
            else:
                unit = parameter.to_unit(np.array([value]))
                parts.append(np.where(np.isnan(unit), 0.5, unit))
        return np.concatenate(parts)


PEERS = {"botorch": BotorchTuner}
POOLED = {"botorch": partial(BotorchTuner, pooled=True)}
"""The same tuner, choosing among the recorded configurations."""
