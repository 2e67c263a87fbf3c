"""Shared parts of matrix factorisations: the table of past losses, its low-rank form, positions.

A factorisation knows configurations by name, not by their hyperparameters. Past tasks give each of
them a position. A configuration that no past task tried takes the position of the nearest one that
some task tried.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foretune.methods import Catalogue, PastTask
from foretune.numerics import Floats
from foretune.space import Encoded

RANK = 20
"""The latent dimensions of a configuration, as in Fusi et al. (2018) and later comparisons."""
ROUNDS = 10
"""The number of times that missing losses are filled in by the factors' predictions."""


@dataclass(frozen=True, slots=True)
class LowRank:
    """z[t, c] = mean[c] + factors[c] . u[t] + noise, with u[t] of mean square 1 over tasks."""

    mean: Floats
    """(C,)"""
    factors: Floats
    """(C, rank), the strongest first; columns are zero if there are fewer tasks."""
    noise: float
    """The mean square of the residuals of the known losses."""


def catalogue_of(tasks: list[PastTask], configs: Encoded) -> Catalogue:
    """Return the configurations that these tasks tried with success. Others teach nothing.

    tasks: with rows of `configs`, which may contain those of tasks that are not learnt from.
    """
    rows = np.unique(np.concatenate([task.rows for task in tasks]))
    return Catalogue(configs if len(rows) == len(configs) else configs.take(rows))


def renumber_rows(tasks: list[PastTask], configs: Encoded, catalogue: Catalogue) -> list[PastTask]:
    """Return the same tasks, with rows of the catalogue in place of rows of `configs`."""
    if catalogue.configs is configs:
        return tasks
    used = np.unique(np.concatenate([task.rows for task in tasks]))
    row_of = np.full(len(configs), -1, dtype=np.int64)
    row_of[used] = catalogue.rows(configs.take(used))
    return [PastTask(row_of[task.rows], task.z) for task in tasks]


def loss_matrix(tasks: list[PastTask], n_configs: int) -> NDArray[np.float32]:
    """Return (tasks, C) losses, NaN if a task has not tried a configuration."""
    matrix = np.full((len(tasks), n_configs), np.nan, dtype=np.float32)
    for place, task in enumerate(tasks):
        matrix[place, task.rows] = task.z
    return matrix


def factorise(matrix: NDArray[np.float32], rank: int = RANK) -> LowRank:
    """Return the principal components of a table (T, C) with NaN for missing losses.

    Missing losses start at their configuration's mean (0 without one) and then follow the factors.
    """
    missing = np.isnan(matrix)
    known = np.maximum(np.count_nonzero(~missing, axis=0), 1)
    mean = np.where(missing, 0.0, matrix).sum(axis=0, dtype=np.float64) / known
    residual = np.where(missing, 0.0, matrix - mean).astype(np.float32)
    rank = min(rank, len(matrix))
    for _ in range(ROUNDS if missing.any() else 1):
        # There are far fewer tasks than configurations, so the small Gram matrix is enough.
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
