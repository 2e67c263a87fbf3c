"""AutoGP: a Gaussian process that searches only where past tasks had their best configurations.

Perrone et al. (2019): the search space becomes the smallest box around the best configuration of
each past task. A number or an ordinal keeps the range between their extremes. A categorical keeps
the choices that occur among them. A hyperparameter that was active in none keeps all its values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from foretune.methods import GaussianProcessSurrogate, Prior, Region, Surrogate, Target, check_space
from foretune.numerics import Bools, Floats, Ints, standardise
from foretune.space import Encoded, Kind, Space, legal_values
from foretune_lab.baselines.best_of_past import BestOfEachLearner, save_configs

KIND = "foretune-autogp"


@dataclass(frozen=True, slots=True)
class Box(Region):
    """A part of a space: a range for a number or an ordinal, a set of choices for a categorical."""

    space: Space
    low: Floats
    """(H,), in the unit of `Encoded.values`."""
    high: Floats
    """(H,)"""
    choices: Mapping[int, Ints]
    """The indices of the choices that are kept, for the column of each categorical."""

    @classmethod
    def around(cls, configs: Encoded) -> "Box":
        """Make the smallest box that contains `configs`."""
        low, high = (
            np.array([getattr(p, end) for p in configs.space.parameters]) for end in ("low", "high")
        )
        choices: dict[int, Ints] = {}
        for column, parameter in enumerate(configs.space.parameters):
            seen = configs.values[configs.active[:, column], column]
            if parameter.kind is Kind.CATEGORICAL:
                kept = np.unique(seen) if len(seen) else np.arange(len(parameter.choices))
                choices[column] = kept.astype(np.int64)
            elif len(seen):
                low[column], high[column] = seen.min(), seen.max()
        return cls(configs.space, low, high, choices)

    def contains(self, x: Encoded) -> Bools:
        """Return (len(x),), True if all active values are in the box."""
        within = (self.low <= x.values) & (x.values <= self.high)
        for column, kept in self.choices.items():
            within[:, column] = np.isin(x.values[:, column], kept)
        inside: Bools = np.logical_and.reduce(within | ~x.active, axis=1)
        return inside

    def sample(self, n: int, *, seed: int) -> Encoded:
        """Draw `n` legal configurations of the box, uniform on the hyperparameters' scales."""
        rng = np.random.default_rng(seed)
        parameters = [
            replace(parameter, low=low, high=high)
            for parameter, low, high in zip(self.space.parameters, self.low, self.high, strict=True)
        ]

        def draw(m: int) -> Floats:
            unit = rng.random((m, len(parameters)))
            for column, kept in self.choices.items():
                # A choice is drawn by its part of the unit interval.
                unit[:, column] = (rng.choice(kept, m) + 0.5) / parameters[column].size
            return unit

        return Encoded(self.space, legal_values(parameters, self.space.rules, n, draw))


@dataclass(frozen=True, slots=True)
class BoxPrior(Prior):
    """The prior of a region to search; the search itself is that of the plain GP."""

    best: Encoded
    """The best configurations of the past tasks."""

    def region(self, target: Target) -> Region:
        """Return the box around the best configurations."""
        check_space(self.best.space, target)
        return Box.around(self.best)

    def surrogate(self, target: Target) -> Surrogate:
        """Return the GP of the target's own trials."""
        check_space(self.best.space, target)
        return GaussianProcessSurrogate.on(standardise, target)

    def save(self, path: Path) -> None:
        """Write the best configurations, which define the box."""
        save_configs(path, KIND, self.best)


def gp_in_a_box() -> BestOfEachLearner[BoxPrior]:
    """Make the learner of AutoGP."""
    return BestOfEachLearner(KIND, BoxPrior)
