"""The prior of a search: what past tasks taught about each objective, in one file."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune.methods.contracts import Prior, Target
from foretune.methods.freeze_thaw.belief import WeightedPrior
from foretune.methods.freeze_thaw.curve_prior import CurvePrior
from foretune.methods.freeze_thaw.generic import generic_prior
from foretune.methods.freeze_thaw.knots import GENERIC_FIRST, place_knots
from foretune.methods.freeze_thaw.model import FreezeThawSurrogate
from foretune.methods.past_data import check_space
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.space import Encoded, Space

KIND = "foretune-freeze-thaw"
VERSION = 1
SPREAD_TRIALS = 3
"""The first configurations, spread over the space, if there are no past tasks."""
STRETCHES = (0.5, 1.0, 2.0)
"""Multiples of the usual lengthscales, for a task about whose configurations nothing is known."""


class Expert(StrEnum):
    """What a belief is based on."""

    PAST = "past"
    """Past configurations and past curves."""
    CURVES = "curves"
    """Past curves; which configurations are good is not known."""
    NOTHING = "nothing"
    """No past task."""


ODDS: Mapping[Expert, float] = {Expert.PAST: 1.0, Expert.CURVES: 0.1, Expert.NOTHING: 0.1}
"""The weights of beliefs before the first report."""


@dataclass(frozen=True, slots=True)
class FreezeThawPrior(Prior):
    """Beliefs about the curves of each objective."""

    space: Space | None = None
    """None without past tasks."""
    experts: tuple[Mapping[Expert, CurvePrior], ...] = ()
    """For each objective."""
    good: Encoded | None = None
    """The best configurations of past tasks."""
    last_step: float | None = None
    """The last step of past trials, if all tasks agree."""

    def surrogate(self, target: Target) -> FreezeThawSurrogate:
        """Return the surrogate for one task."""
        self._check(target)
        beliefs = tuple(
            self._weigh_beliefs(target, objective) for objective in range(len(target.objectives))
        )
        return FreezeThawSurrogate(beliefs, target.pool, self.last_step)

    def opening(self, target: Target) -> Encoded:
        """Return the configuration that is expected to end best, or a few that spread out."""
        self._check(target)
        first = [each[Expert.PAST] for each in self.experts if Expert.PAST in each]
        if not first:
            return target.space.sample(SPREAD_TRIALS, seed=0, how="sobol")
        choices = self.good if target.pool is None else target.pool
        if choices is None or not len(choices):
            return target.space.encode([])
        ends = [prior.expect(prior.features(choices.x), [-1])[0][:, 0] for prior in first]
        return choices.take([int(np.argmin(np.sum(ends, axis=0)))])

    @property
    def spreads(self) -> bool:
        """Whether there are no past tasks."""
        return not any(Expert.PAST in each for each in self.experts)

    def reserve(self, target: Target) -> Encoded:
        """Return configurations that were good for past tasks."""
        return self.known_good(target)

    def known_good(self, target: Target) -> Encoded:
        """Return configurations that were good for past tasks."""
        return target.space.encode([]) if self.good is None else self.good

    def save(self, path: Path) -> None:
        """Write one file of plain arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        for objective, experts in enumerate(self.experts):
            for name, prior in experts.items():
                packed = prior.pack()
                arrays |= {f"{objective}.{name}.{key}": value for key, value in packed.items()}
        meta: dict[str, object] = {
            "experts": [[str(name) for name in each] for each in self.experts],
            "last_step": self.last_step,
            "space": None if self.space is None else self.space.to_json(),
        }
        if self.good is not None:
            arrays |= {f"good.{key}": value for key, value in self.good.pack().items()}
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)

    def _check(self, target: Target) -> None:
        if self.space is not None:
            check_space(self.space, target)

    def _weigh_beliefs(self, target: Target, objective: int) -> tuple[WeightedPrior, ...]:
        """Return the beliefs about one objective, with their odds."""
        known = self.experts[objective] if objective < len(self.experts) else {}
        knots = next(iter(known.values())).knots if known else place_knots(GENERIC_FIRST)
        groups = target.space.column_groups
        found = [
            WeightedPrior(str(name), prior, float(np.log(ODDS[name])))
            for name, prior in known.items()
        ]
        odds = float(np.log(ODDS[Expert.NOTHING] / len(STRETCHES)))
        found += [
            WeightedPrior(str(Expert.NOTHING), generic_prior(knots, groups, stretch), odds)
            for stretch in STRETCHES
        ]
        return tuple(found)


def load_prior(path: Path) -> FreezeThawPrior:
    """Read a prior that was saved."""
    meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
    if meta["space"] is None:
        return FreezeThawPrior()
    space = Space.from_json(meta["space"])
    experts = tuple(
        {Expert(name): CurvePrior.unpack(_under(arrays, f"{objective}.{name}.")) for name in names}
        for objective, names in enumerate(meta["experts"])
    )
    good = _under(arrays, "good.")
    return FreezeThawPrior(space, experts, space.unpack(good) if good else None, meta["last_step"])


def _under(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose name begins with a prefix, without it."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
