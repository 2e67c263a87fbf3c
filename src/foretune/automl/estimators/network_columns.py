"""Prepares columns for the tabular network: scaled numbers, and indicators of categories."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.automl.estimators.network_layers import Singles

MOST_CATEGORIES = 50
"""A column has indicators for its most frequent categories; the others share one."""
FAR = 3.0
"""Scaled numbers are bent so that none lies further from 0."""
LEAST_SPREAD = 1e-9


@dataclass(slots=True)
class NetworkColumns:
    """How the columns of a matrix become the inputs of a network."""

    numbers: Any
    """The places of the columns of numbers."""
    centres: Floats
    spreads: Floats
    lacking: Any
    """Which of these columns lack numbers; they have indicators."""
    categories: list[tuple[int, Floats]]
    """The place of each column of codes, and the codes that have indicators."""

    @classmethod
    def learn(cls, x: Floats, codes: tuple[int, ...]) -> "NetworkColumns":
        """Learn scales and categories of the columns of x (n, d); codes: which hold categories."""
        numbers = np.setdiff1d(np.arange(x.shape[1]), codes)
        known = x[:, numbers]
        lacking = np.isnan(known).any(axis=0)
        filled = np.where(np.isnan(known).all(axis=0), 0.0, known)
        low, centres, high = np.nanquantile(filled, [0.25, 0.5, 0.75], axis=0)
        whole = np.nanmax(filled, axis=0) - np.nanmin(filled, axis=0)
        # The range stands in where most values are equal; columns of one value become 0.
        spreads = np.where(high - low > LEAST_SPREAD * np.maximum(1.0, whole), high - low, whole)
        spreads = np.where(spreads > 0.0, spreads, 1.0)
        categories = [(place, _frequent(x[:, place])) for place in codes]
        return cls(numbers, centres, spreads, lacking, categories)

    def transform(self, x: Floats) -> tuple[Singles, Singles]:
        """Return numbers (n, a) and indicators (n, b)."""
        known = x[:, self.numbers]
        missing = np.isnan(known)
        scaled = (np.where(missing, self.centres, known) - self.centres) / self.spreads
        bent = scaled / np.sqrt(1.0 + (scaled / FAR) ** 2)
        parts = [missing[:, self.lacking]]
        parts += [x[:, [place]] == found for place, found in self.categories]
        indicators = np.concatenate(parts, axis=1).astype(np.float32)
        return bent.astype(np.float32), indicators


def _frequent(column: Floats) -> Floats:
    """Return the most frequent codes of a column, ascending; missing ones have none."""
    codes, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:MOST_CATEGORIES])
    frequent: Floats = codes[chosen]
    return frequent
