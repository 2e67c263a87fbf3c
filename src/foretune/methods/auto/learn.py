"""Learner and prior of `auto`: all experts learn, and one file keeps them."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune._base.progress import SILENT, Progress, report_every_second
from foretune.experience import Experience, Status
from foretune.methods.auto.curves import WithCurves
from foretune.methods.auto.model import AutoSurrogate
from foretune.methods.contracts import Keep, Learner, Prior, Surrogate, Target
from foretune.methods.curve_contracts import CurveSurrogate
from foretune.methods.past_data import check_space
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.space import Encoded, Space

KIND = "foretune-auto"
VERSION = 1
CURVES = "freeze-thaw"
"""The model of curves."""
ODDS_OF_NOTHING = 0.2
"""The weight of an expert that does not use past tasks. Others usually have the weight 1."""

PORTFOLIO_TRIALS = 3
"""The configurations of the portfolio that are tried before the experts choose. A few suffice,
because the experts soon know better what suits this task."""
SPREAD_TRIALS = 5
"""The first trials, spread over the space, if there are no past tasks."""
GREEDY_TRIALS = 10
"""On a task with meta-features, in a whole space, this number of trials goes where the best loss is
expected. A quarter of the steps from a good trial improve on it, and an eighth of the jumps to
configurations that were good elsewhere."""


@dataclass(frozen=True, slots=True)
class AutoPrior(Prior):
    """The experts' priors, and the configurations to begin with."""

    experts: Mapping[str, Prior]
    taught: frozenset[str]
    """The experts that learnt from past tasks."""
    first: Encoded | None
    """The portfolio of past tasks; None if there are none."""
    good: Encoded | None = None
    """Configurations that were good for past tasks."""
    trials: int = SPREAD_TRIALS
    """The number of configurations that the search opens with if there is no portfolio."""
    seed: int = 0
    curves: Prior | None = None
    """The model of curves, for trials that report steps."""

    @property
    def space(self) -> Space | None:
        """The space of the prior; None if there were no past tasks."""
        return None if self.first is None else self.first.space

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate of all experts on the target."""
        taught = np.array([name in self.taught for name in self.experts])
        own = [prior.odds(target) for prior in self.experts.values()]
        odds = np.where(taught, own, ODDS_OF_NOTHING)
        surrogates = tuple(prior.surrogate(target) for prior in self.experts.values())
        # A pool has no steps, and without meta-features the mean is that of all tasks.
        whole = target.pool is None and bool(target.meta_features)
        greedy = GREEDY_TRIALS if whole else 0
        found = AutoSurrogate(tuple(self.experts), surrogates, np.log(odds), taught, greedy)
        curves = None if self.curves is None else self.curves.surrogate(target)
        return WithCurves(found, curves) if isinstance(curves, CurveSurrogate) else found

    def opening(self, target: Target) -> Encoded:
        """Return the portfolio of past tasks or, without one, a Sobol sequence."""
        if self.first is None:
            return target.space.sample(self.trials, seed=self.seed, how="sobol")
        check_space(self.first.space, target)
        return self.first

    def reserve(self, target: Target) -> Encoded:
        """Return the reserve of the first expert that has one."""
        each = (prior.reserve(target) for prior in self.experts.values())
        return next(filter(len, each), target.space.encode([]))

    @property
    def spreads(self) -> bool:
        """Whether there is no portfolio to open with."""
        return self.first is None

    def known_good(self, target: Target) -> Encoded:
        """Return the configurations that were good for past tasks."""
        if self.good is None:
            return target.space.encode([])
        check_space(self.good.space, target)
        return self.good

    def save(self, path: Path) -> None:
        """Write one file that contains the file of each expert."""
        arrays: dict[str, NDArray[Any]] = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, prior in self._priors_with_files().items():
                place = Path(folder) / "prior"
                prior.save(place)
                arrays[f"expert.{name}"] = np.frombuffer(place.read_bytes(), dtype=np.uint8)
        meta: dict[str, object] = {
            "experts": list(self.experts),
            "taught": sorted(self.taught),
            "trials": self.trials,
            "seed": self.seed,
            "curves": self.curves is not None,
        }
        for name, configs in (("first", self.first), ("good", self.good)):
            if configs is not None:
                arrays |= {f"{name}.{key}": value for key, value in configs.pack().items()}
                meta["space"] = configs.space.to_json()
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)

    def _priors_with_files(self) -> Mapping[str, Prior]:
        """Return what has a file of its own."""
        return self.experts if self.curves is None else {**self.experts, CURVES: self.curves}


@dataclass(frozen=True, slots=True)
class AutoLearner(Learner):
    """Lets every expert learn."""

    taught: Mapping[str, Callable[[], Learner]]
    """Experts that learn from past tasks, by name."""
    from_nothing: Mapping[str, Callable[[], Learner]]
    """Experts that use the target's trials only."""
    lister: str
    """The expert that knows the portfolio, and the good configurations of past tasks."""
    others: Mapping[str, Callable[[], Learner]] = field(default_factory=dict)
    """Experts that a saved prior may hold, even if they cannot learn here."""
    trials: int = SPREAD_TRIALS
    """The number of configurations that the search opens with if there are no past tasks."""
    curves: Callable[[], Learner] | None = None
    """The learner of a model of curves."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> AutoPrior:
        """Learn the priors of all experts or, without experience, of those that need none."""

        def at_once(_: str, learner: Learner, experience: Experience, __: Experience) -> Prior:
            return learner.learn(experience, seed=seed, progress=progress)

        return self.learn_in_parts(experience, seed=seed, progress=progress, keep=at_once)

    def learn_in_parts(
        self, experience: Experience | None, *, seed: int, progress: Progress, keep: Keep
    ) -> AutoPrior:
        """Learn the priors; `keep` learns those that read past tasks, or finds them."""
        experts: dict[str, Prior] = {}
        if experience is not None:
            for name, make in self.taught.items():
                learner = make()
                read = learner.reads(experience, seed=seed)
                with report_every_second(progress, f"learning from past tasks ({name})"):
                    experts[name] = keep(name, learner, experience, read)
        for name, make in self.from_nothing.items():
            experts[name] = make().learn(experience, seed=seed, progress=progress)
        curves = self._learn_curves(experience, seed, progress, keep)
        if experience is None:
            nobody = frozenset[str]()
            return AutoPrior(experts, nobody, None, trials=self.trials, seed=seed, curves=curves)
        lister, target = experts[self.lister], Target(experience.space)
        first = self.early_opening(experience, seed=seed)
        if first is None:
            portfolio = lister.reserve(target)
            rows = np.arange(min(PORTFOLIO_TRIALS, len(portfolio)))
            first = cheapest_first(portfolio.take(rows), experience)
        taught = frozenset(self.taught)
        good = lister.known_good(target)
        return AutoPrior(experts, taught, first, good, self.trials, seed, curves)

    def _learn_curves(
        self, experience: Experience | None, seed: int, progress: Progress, keep: Keep
    ) -> Prior | None:
        """Learn from past curves. Without any, the model starts from generic ones."""
        if self.curves is None:
            return None
        learner = self.curves()
        past = None if experience is None else experience.curves
        if experience is None or past is None or not past.lengths.any():
            return learner.learn(None, seed=seed, progress=progress)
        return keep(CURVES, learner, experience, learner.reads(experience, seed=seed))

    def early_opening(self, experience: Experience, *, seed: int) -> Encoded | None:
        """Return the portfolio if there are many past tasks, because learning takes long then."""
        lister = self.taught[self.lister]()
        early = lister.early_reserve(experience, PORTFOLIO_TRIALS, seed=seed)
        return None if early is None else cheapest_first(early, experience)

    def load(self, path: Path) -> AutoPrior:
        """Read a saved prior."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        makers = {**self.others, **self.taught}
        taught = frozenset(meta["taught"])
        experts: dict[str, Prior] = {}
        curves: Prior | None = None
        with tempfile.TemporaryDirectory() as folder:
            for name in filter(taught.__contains__, meta["experts"]):
                place = Path(folder) / "prior"
                place.write_bytes(arrays[f"expert.{name}"].tobytes())
                experts[name] = makers[name]().load(place)
            if meta.get("curves") and self.curves is not None:
                place = Path(folder) / "prior"
                place.write_bytes(arrays[f"expert.{CURVES}"].tobytes())
                curves = self.curves().load(place)
        # Experts without past tasks have learnt nothing, so they are made again.
        for name, make in self.from_nothing.items():
            experts[name] = make().learn(None, seed=meta["seed"], progress=SILENT)
        kept: dict[str, Encoded] = {}
        if "space" in meta:
            space = Space.from_json(meta["space"])
            for name in ("first", "good"):
                packed = {key: arrays[f"{name}.{key}"] for key in ("values", "active")}
                kept[name] = space.unpack(packed)
        return AutoPrior(
            experts,
            taught,
            kept.get("first"),
            kept.get("good"),
            meta["trials"],
            meta["seed"],
            curves,
        )


def cheapest_first(configs: Encoded, experience: Experience) -> Encoded:
    """Sort configurations by their costs on past tasks, so that the first result comes soon.

    If the cost of one is unknown, the order does not change.
    """
    # A trial that was stopped tells only what a part of it costs.
    whole = experience.status != Status.STOPPED
    if np.isnan(experience.seconds[whole]).all():
        return configs
    table = experience.configs.values
    costs = []
    for one in configs.values:
        place = np.flatnonzero(((table == one) | (np.isnan(table) & np.isnan(one))).all(axis=1))
        costs.append(experience.seconds[whole & np.isin(experience.config_index, place)])
    if not all(np.isfinite(cost).any() for cost in costs):
        return configs
    return configs.take(np.argsort([np.nanmean(cost) for cost in costs], kind="stable"))
