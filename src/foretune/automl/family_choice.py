"""Lets families of estimators compete for the time of a search.

A search that follows expected improvement alone soon tries one family only, and a blend of its
near-copies gains little. Here each family has a share of the seconds: the closer its best trial is
to the best of all, and the fresher that is, the larger the share. A floor keeps each family alive,
and a ceiling leaves room for the others. Inside a family the method of the search chooses.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foretune.automl.fold_racing import FoldRacing
from foretune.automl.plan import FitPlan
from foretune.errors import ExhaustedError
from foretune.experience import Metric, Status
from foretune.experience.trial import Trial
from foretune.methods.contracts import Prior, Target
from foretune.search.method_entry import Method
from foretune.search.optimizer import Optimizer
from foretune.search.seeds import derive_seed
from foretune.search.suggestions import Suggestion
from foretune.space import Encoded, Space

FLOOR, CEILING = 0.03, 0.4
"""The least and the largest share of the seconds that a family has."""
UNTRIED = 0.5
"""The merit of a family without a trial; that of the best family is 1."""
STALE_TRIALS = 4.0
"""After so many trials without a better one the merit of a family is half."""
GIVEN_UP_AFTER = 2
"""A family whose first trials all fail has no share."""
SAMPLES = 300
"""The random configurations of a family among which the method chooses."""
LEAST_SECONDS = 0.5
"""Trials count with at least these seconds, so that quick families do not take all places."""


@dataclass(frozen=True, slots=True)
class FamilyRecord:
    """The trials of one family so far."""

    trials: int = 0
    best: float = math.inf
    """The lowest loss."""
    stale: int = 0
    """The number of trials since the best one."""
    seconds: float = 0.0
    """The seconds of all trials; those that run count with the mean of the others."""


def record_families(
    trials: Sequence[Trial], families: Sequence[str], choice: str, metric: Metric
) -> dict[str, FamilyRecord]:
    """Return the record of each family. choice: the hyperparameter with the family's name."""
    return {
        family: _record([t for t in trials if t.config.get(choice) == family], metric)
        for family in families
    }


def _record(trials: Sequence[Trial], metric: Metric) -> FamilyRecord:
    ended = [trial for trial in trials if trial.is_over]
    spent = [max(LEAST_SECONDS, t.seconds) for t in ended if math.isfinite(t.seconds)]
    mean = sum(spent) / len(spent) if spent else LEAST_SECONDS
    losses = [
        metric.sign * t.values[metric.name] if t.status is Status.DONE else math.inf for t in ended
    ]
    best = min(losses, default=math.inf)
    stale = len(losses) - 1 - losses.index(best) if losses else 0
    return FamilyRecord(len(trials), best, stale, mean * len(trials))


def share_of_families(records: Mapping[str, FamilyRecord]) -> dict[str, float]:
    """Return the share of the seconds that each family should have."""
    known = [each.best for each in records.values() if math.isfinite(each.best)]
    lowest = min(known, default=0.0)
    behind = [best - lowest for best in known if best > lowest]
    scale = float(np.median(behind)) if behind else 1.0
    merits = np.array([_merit(each, lowest, scale) for each in records.values()])
    if not merits.any():
        return dict.fromkeys(records, 1.0 / len(records))
    shares = np.where(merits > 0.0, np.clip(merits / merits.sum(), FLOOR, CEILING), 0.0)
    return dict(zip(records, (shares / shares.sum()).tolist(), strict=True))


def _merit(record: FamilyRecord, lowest: float, scale: float) -> float:
    if math.isinf(record.best):
        return UNTRIED if record.trials < GIVEN_UP_AFTER else 0.0
    close = math.exp(-(record.best - lowest) / scale)
    return close / (1.0 + record.stale / STALE_TRIALS)


def choose_family(records: Mapping[str, FamilyRecord]) -> str:
    """Return the family that lacks most of its share of the seconds."""
    shares = share_of_families(records)
    total = sum(each.seconds for each in records.values())
    return max(records, key=lambda name: (shares[name] * total - records[name].seconds, name))


@dataclass(frozen=True, slots=True)
class FamilyContest:
    """The families that compete in a search."""

    plan: FitPlan
    families: tuple[str, ...]
    trials: Callable[[], Sequence[Trial]]
    """Returns all trials of the search."""
    counts_seconds: bool = True
    """Whether families share the seconds; otherwise the trials, so that a search without a time
    limit repeats itself."""

    def choose(self) -> str:
        """Return the family that is to go on."""
        plan, trials = self.plan, self.trials()
        if not self.counts_seconds:
            trials = [replace(trial, seconds=LEAST_SECONDS) for trial in trials]
        return choose_family(
            record_families(trials, self.families, plan.shipped.choice, plan.metric)
        )


class FamilyOptimizer(Optimizer):
    """An optimiser that first chooses the family, and then asks its method for a configuration."""

    def __init__(
        self,
        contest: FamilyContest,
        target: Target,
        method: Method,
        prior: Prior,
        *,
        seed: int,
        start: Encoded,
    ) -> None:
        """Make an optimiser for the trials of a plan. start: the opening."""
        folds = len(contest.plan.protocol.splits(contest.plan.table))
        policy = FoldRacing(folds) if folds > 1 else None
        super().__init__(target, method, prior, seed=seed, start=start, policy=policy)
        self._contest, self._opening = contest, start
        self._spaces: dict[str, Space] = {}

    def ask(
        self, n: int = 1, *, among: Encoded | None = None, may_resume: bool = True
    ) -> list[Suggestion]:
        """Suggest configurations; after the opening those of the family that is to go on."""
        if among is not None or n != 1 or not self._is_open():
            return super().ask(n, among=among, may_resume=may_resume)
        pool = self._configs_of(self._contest.choose())
        if len(pool):
            try:
                return super().ask(1, among=pool, may_resume=may_resume)
            except ExhaustedError:
                pass
        return super().ask(1, may_resume=may_resume)

    def _is_open(self) -> bool:
        """Return whether the opening is over and a trial has succeeded."""
        tried = self._list_tried()
        return bool(self._opening.isin(tried).all()) and bool(self.told.is_success.any())

    def _list_tried(self) -> Encoded:
        pending = self.target.space.encode(list(self.pending.values()))
        return Encoded.concat([self.told.configs, pending])

    def _configs_of(self, family: str) -> Encoded:
        """Return untried configurations of a family: random ones, and neighbours of its best."""
        space, choice = self.target.space, self._contest.plan.shipped.choice
        if family not in self._spaces:
            self._spaces[family] = self._contest.plan.shipped.build((family,))
        seed = derive_seed(self.seed, len(self.told), len(self.pending))
        drawn: list[dict[str, Any]] = self._spaces[family].sample(SAMPLES, seed=seed).dicts()
        configs = [space.encode(drawn)]
        best = self._best_of(family)
        if best is not None:
            beside = space.neighbours(best, seed=seed)
            of_family = [config[choice] == family for config in beside.dicts()]
            configs.append(beside.take(np.flatnonzero(of_family)))
        found, tried = Encoded.concat(configs), self._list_tried()
        if self.target.effect is not None:
            # Equivalent pipelines have one form, and a form is tried once.
            found, tried = self.target.effect(found), self.target.effect(tried)
        found = found.take(found.first_occurrences())
        return found.take(np.flatnonzero(~found.isin(tried)))

    def _best_of(self, family: str) -> Encoded | None:
        choice = self._contest.plan.shipped.choice
        configs = self.told.configs.dicts()
        losses = self.told.losses[:, 0]
        rows = [
            row
            for row, config in enumerate(configs)
            if config[choice] == family and np.isfinite(losses[row])
        ]
        return self.told.configs.take([min(rows, key=lambda row: losses[row])]) if rows else None
