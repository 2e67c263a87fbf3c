"""Learning for all experts at once, and what is kept of it."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune.contracts import Learner, Prior, Surrogate, Target
from foretune.experience import Experience
from foretune.learning import check_space
from foretune.methods.auto.model import AutoSurrogate
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.progress import Progress
from foretune.space import Encoded, Space

KIND = "foretune-auto"
VERSION = 1
ODDS_OF_NOTHING = 0.2
"""Of an expert that starts from nothing, beside 1 for each that past tasks taught."""

OPENING_TRIALS = 5

Opening: TypeAlias = Callable[[Experience, int], Encoded]


@dataclass(frozen=True, slots=True)
class AutoPrior:
    """The experts' priors, and the configurations to begin with."""

    experts: Mapping[str, Prior]
    taught: frozenset[str]
    """Those that learnt from past tasks."""
    first: Encoded | None
    """The portfolio of past tasks; None where there are none."""
    trials: int = OPENING_TRIALS
    """How many configurations the search opens with, where no portfolio says it."""
    seed: int = 0

    def surrogate(self, target: Target) -> Surrogate:
        """All experts on the target."""
        odds = [1.0 if name in self.taught else self._odds_of_nothing for name in self.experts]
        surrogates = tuple(prior.surrogate(target) for prior in self.experts.values())
        return AutoSurrogate(surrogates, np.log(odds))

    @property
    def _odds_of_nothing(self) -> float:
        return ODDS_OF_NOTHING if self.taught else 1.0

    def opening(self, target: Target) -> Encoded:
        """The portfolio of past tasks; without it, configurations spread over the space."""
        if self.first is None:
            return target.space.sample(self.trials, seed=self.seed, how="sobol")
        check_space(self.first.space, target)
        return self.first

    def save(self, path: Path) -> None:
        """Write one file that holds every expert's own."""
        arrays: dict[str, NDArray[Any]] = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, prior in self.experts.items():
                place = Path(folder) / "prior"
                prior.save(place)
                arrays[f"expert.{name}"] = np.frombuffer(place.read_bytes(), dtype=np.uint8)
        meta: dict[str, object] = {
            "experts": list(self.experts),
            "taught": sorted(self.taught),
            "trials": self.trials,
            "seed": self.seed,
        }
        if self.first is not None:
            # Artifacts hold no NaN, so what is inactive is marked apart.
            arrays["values"] = np.nan_to_num(self.first.values)
            arrays["active"] = self.first.active
            meta["space"] = self.first.space.to_json()
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class AutoLearner:
    """Lets every expert learn what it can."""

    taught: Mapping[str, Callable[[], Learner]]
    """Experts that learn from past tasks, by name."""
    from_nothing: Mapping[str, Callable[[], Learner]]
    """Experts that know the target alone."""
    opening: Opening
    """The first configurations to try, from experience."""
    others: Mapping[str, Callable[[], Learner]] = field(default_factory=dict)
    """Experts that a saved prior may hold, though they cannot learn here."""
    trials: int = OPENING_TRIALS
    """How many configurations the search opens with."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> AutoPrior:
        """The priors of all experts; without experience, of those that need none."""
        makers = {**(self.taught if experience is not None else {}), **self.from_nothing}
        experts = {
            name: make().learn(experience, seed=seed, progress=progress)
            for name, make in makers.items()
        }
        if experience is None:
            return AutoPrior(experts, frozenset(), None, self.trials, seed)
        first = self.opening(experience, self.trials)
        return AutoPrior(experts, frozenset(self.taught), first, self.trials, seed)

    def load(self, path: Path) -> AutoPrior:
        """Read a saved prior."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        makers = {**self.others, **self.taught, **self.from_nothing}
        experts = {}
        with tempfile.TemporaryDirectory() as folder:
            for name in meta["experts"]:
                place = Path(folder) / "prior"
                place.write_bytes(arrays[f"expert.{name}"].tobytes())
                experts[name] = makers[name]().load(place)
        first = None
        if "space" in meta:
            values = np.where(arrays["active"], arrays["values"], np.nan)
            first = Space.from_json(meta["space"]).from_values(values)
        return AutoPrior(experts, frozenset(meta["taught"]), first, meta["trials"], meta["seed"])
