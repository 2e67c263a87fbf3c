"""What matrix factorisations share: the table of past losses, its low-rank form, known positions.

A factorisation knows configurations by name, not by their hyperparameters: each has a position
that past tasks gave it. A configuration that no past task tried takes the position of the nearest
one that some task did.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foretune.methods import Catalogue, PastTask
from foretune.numerics import Floats
from foretune.space import Encoded

RANK = 20
"""Latent dimensions of a configuration, as Fusi et al. (2018) and later comparisons have it."""
ROUNDS = 10
"""How often missing losses are filled in by what the factors say about them."""


@dataclass(frozen=True, slots=True)
class LowRank:
    """z[t, c] = mean[c] + factors[c] . u[t] + noise, with u[t] of mean square 1 over tasks."""

    mean: Floats
    """(C,)"""
    factors: Floats
    """(C, rank), the strongest first; zero columns where there are fewer tasks."""
    noise: float
    """Mean square of what is left of the known losses."""


def catalogue_of(tasks: list[PastTask], configs: Encoded) -> Catalogue:
    """The configurations that these tasks tried with success: of others nothing is known.

    tasks: with rows of `configs`, among which may be those of tasks that are not learnt from.
    """
    rows = np.unique(np.concatenate([task.rows for task in tasks]))
    return Catalogue(configs if len(rows) == len(configs) else configs.take(rows))


def renumber_rows(tasks: list[PastTask], configs: Encoded, catalogue: Catalogue) -> list[PastTask]:
    """The same tasks with rows of the catalogue in place of rows of `configs`."""
    if catalogue.configs is configs:
        return tasks
    used = np.unique(np.concatenate([task.rows for task in tasks]))
    row_of = np.full(len(configs), -1, dtype=np.int64)
    row_of[used] = catalogue.rows(configs.take(used))
    return [PastTask(row_of[task.rows], task.z) for task in tasks]


def loss_matrix(tasks: list[PastTask], n_configs: int) -> NDArray[np.float32]:
    """(tasks, C) losses, NaN where a task has not tried a configuration."""
    matrix = np.full((len(tasks), n_configs), np.nan, dtype=np.float32)
    for place, task in enumerate(tasks):
        matrix[place, task.rows] = task.z
    return matrix


def factorise(matrix: NDArray[np.float32], rank: int = RANK) -> LowRank:
    """The principal components of a table (T, C) with NaN where a loss is missing.

    Missing losses start at their configuration's mean (0 without one) and then follow the factors.
    """
    missing = np.isnan(matrix)
    known = np.maximum(np.count_nonzero(~missing, axis=0), 1)
    mean = np.where(missing, 0.0, matrix).sum(axis=0, dtype=np.float64) / known
    residual = np.where(missing, 0.0, matrix - mean).astype(np.float32)
    rank = min(rank, len(matrix))
    for _ in range(ROUNDS if missing.any() else 1):
        # There are far fewer tasks than configurations: the small Gram matrix has it all.
        _, vectors = np.linalg.eigh((residual @ residual.T).astype(np.float64))
        directions = vectors[:, ::-1][:, :rank].astype(np.float32)
        loadings = directions.T @ residual
        fitted = directions @ loadings
        left = np.where(missing, 0.0, residual - fitted)
        np.copyto(residual, fitted, where=missing)
    factors = np.zeros((matrix.shape[1], RANK))
    factors[:, :rank] = loadings.T / np.sqrt(len(matrix))
    noise = float(np.square(left, dtype=np.float64).sum() / max(np.count_nonzero(~missing), 1))
    return LowRank(mean, factors, noise)
