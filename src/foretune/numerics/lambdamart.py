"""Learning to rank with LightGBM: LambdaMART, which optimises NDCG (Burges, 2010)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.errors import ArtifactError, MissingExtraError
from foretune.numerics.lightgbm_text import check_text

TREES = 100
LEAVES = 15
LEAST_IN_LEAF = 5
"""LightGBM's default of 20 is too many for a few dozen past tasks of a dozen algorithms each."""
RATE = 0.1


def relevances(scores: Floats, k: int) -> Ints:
    """Return k for the highest score, k - 1 for the next, ..., and 0 from the (k+1)-th on."""
    order = np.argsort(-scores, kind="stable")
    labels = np.zeros(len(scores), dtype=np.int64)
    labels[order[:k]] = np.arange(k, k - len(order[:k]), -1)
    return labels


@dataclass(frozen=True)
class Ranker:
    """Boosted trees whose scores order the entries of a list."""

    text: str
    """The complete model in LightGBM's text format."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a model from the text of a file, and check it before LightGBM's compiled parser."""
        try:
            check_text(text)
        except ValueError as error:
            raise ArtifactError(
                f"a ranker must be as LightGBM has written it, but {error}: learn the prior again",
                rule="damaged-ranker",
            ) from error
        return cls(text)

    @classmethod
    def fit(
        cls, features: Floats, labels: Ints, lists: Sequence[int], *, k: int, seed: int
    ) -> Self:
        """Learn from lists that follow each other in `features` (n, F). lists: their lengths.

        `labels` (n,) are `relevances` in each list. An entry of label l gains l² (the CASH paper,
        section 3.3), and NDCG reads the first k of a list. Features may be NaN.
        """
        settings = {
            "objective": "lambdarank",
            "label_gain": [float(label**2) for label in range(k + 1)],
            "lambdarank_truncation_level": k,
            "num_leaves": LEAVES,
            "min_data_in_leaf": LEAST_IN_LEAF,
            "learning_rate": RATE,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        data = _lightgbm().Dataset(features, label=labels, group=list(lists))
        booster = _lightgbm().train(settings, data, num_boost_round=TREES)
        return cls(booster.model_to_string())

    def scores(self, features: Floats) -> Floats:
        """Return (n,), scores that are higher for entries that should come first."""
        found: Floats = self._booster.predict(features, num_threads=1)
        return found

    @cached_property
    def _booster(self) -> Any:
        return _lightgbm().Booster(model_str=self.text)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as missing:
        raise MissingExtraError(
            "lightgbm", "automl", "learning to rank by meta-features"
        ) from missing
    return lightgbm
