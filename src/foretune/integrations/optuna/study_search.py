"""The search in one study: from its trials to the next whole configuration.

Everything follows from the seed and from the trials that the storage holds, so a study goes on
after an interruption, or in another process, as if it had never stopped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from foretune.errors import ExhaustedError, SpaceError
from foretune.experience import Status
from foretune.integrations.optuna.sampler_knowledge import SamplerKnowledge
from foretune.search import Optimizer, Suggestion, Told
from foretune.search.seeds import derive_seed
from foretune.space import Encoded, Space
from foretune.stores.optuna.constraints import infeasible
from foretune.stores.optuna.study_space import KnownSpace
from foretune.stores.optuna.values import UNFIT, inward

CHOICES_IN_PART = 2_000
"""So many random configurations are compared where part of the configuration is decided."""
COMPLETING = 1
"""Ends what the seed of these is derived from, so that it is no seed of the optimiser's own.

A derived seed stays the same when zeros are added: (seed, 5) is the optimiser's (seed, 5, 0).
"""
SUGGESTED = "foretune:suggested"
"""The system attribute with the configuration of a trial that did not take it as it was.

A trial may leave out names, or ask for a range that a value does not lie in. The next suggestion
depends on it, so it is kept where the trials are.
"""


@dataclass
class StudySearch:
    """What is known about one study."""

    signs: tuple[float, ...]
    """1 for an objective that is minimised, else -1."""
    knowledge: SamplerKnowledge
    seed: int
    plans: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By trial number: the configuration that was suggested for a trial that still runs."""
    _known: KnownSpace = field(default_factory=KnownSpace)
    _ended: list[tuple[datetime, int]] = field(default_factory=list)
    """The trials that were taken in, in their order."""
    _worst: list[float] | None = None
    _unranked: list[FrozenTrial] = field(default_factory=list)
    """Trials that were pruned before any had a result to be as bad as: as good as running."""
    _optimizer: Optimizer | None = None
    _untold: list[FrozenTrial] = field(default_factory=list)

    def takes_in(self, trials: Iterable[FrozenTrial]) -> bool:
        """Learn from the trials that have ended; False if earlier ones are not as they were."""
        ended = sorted((_moment(t), t.number, t) for t in trials if t.state.is_finished())
        if [(moment, number) for moment, number, _ in ended[: len(self._ended)]] != self._ended:
            return False
        for moment, number, trial in ended[len(self._ended) :]:
            self._known.learn(trial)
            self._untold.append(trial)
            self._ended.append((moment, number))
            self.plans.pop(number, None)
        return True

    def distributions(self) -> dict[str, BaseDistribution]:
        """What this study is known to ask for."""
        return self._known.distributions

    def plan(
        self, trial: FrozenTrial, trials: Sequence[FrozenTrial], decided: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The configuration for `trial`, of which part is `decided`; kept until it ends.

        Its names may be too many or too few as long as nothing is known about the study.
        """
        if trial.number not in self.plans:
            self.plans[trial.number] = self._ask(trial, trials, decided)
        return self.plans[trial.number]

    def not_taken(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """What was suggested for `trial`, which now ends, if that is not what it tried.

        None as well where it asked for nothing: then nothing was tried.
        """
        plan = self.plans.get(trial.number)
        if not plan or not trial.params:
            return None
        return plan if any(trial.params.get(n, UNFIT) != v for n, v in plan.items()) else None

    def _ask(
        self, trial: FrozenTrial, trials: Sequence[FrozenTrial], decided: Mapping[str, Any]
    ) -> dict[str, Any]:
        space = self.knowledge.space_for(self._known)
        if space is None:
            return self.knowledge.first_guess()
        optimizer = self._optimizer_in(space, trials)
        self._set_unranked_pending(optimizer, space)
        optimizer.assume_pending(self._running(space, trial, trials))
        seed = derive_seed(self.seed, trial.number, 0, COMPLETING)
        among = _completions(space, decided, seed)
        try:
            return optimizer.ask(among=among)[0].config
        except ExhaustedError:
            # Optuna's studies have no end of their own: go on, with a second look at something.
            again = space.sample(1, seed=seed) if among is None else among.take([0])
            return again.dicts()[0]

    def _optimizer_in(self, space: Space, trials: Sequence[FrozenTrial]) -> Optimizer:
        """The optimiser, which knows all ended trials."""
        if self._optimizer is None or self._optimizer.target.space != space:
            self._optimizer = self.knowledge.optimizer(space, len(self.signs), self.seed)
            order = {number: place for place, (_, number) in enumerate(self._ended)}
            ended = (trial for trial in trials if trial.number in order)
            self._untold = sorted(ended, key=lambda trial: order[trial.number])
            self._worst, self._unranked = None, []
        self._optimizer.seed = self.seed
        outcomes = (outcome for trial in self._untold for outcome in self._outcomes(space, trial))
        self._optimizer.tell([outcome for outcome in outcomes if outcome is not None])
        # Else the optimiser would wait for ever for the start that it is never told about.
        self._optimizer.strike_start(_configs_not_taken(space, self._untold))
        self._untold = []
        return self._optimizer

    def _outcomes(self, space: Space, trial: FrozenTrial) -> Iterator[Told | None]:
        """How a trial ended, and those that were pruned before it if it is the first to rank them.

        Not telling of them at all would have the same configuration suggested for ever.
        """
        pruned = trial.state is TrialState.PRUNED and not infeasible(trial.system_attrs)
        if pruned and self._worst is None:
            self._unranked.append(trial)
            return
        yield self._outcome(space, trial)
        if self._worst is not None and self._unranked:
            yield from [self._outcome(space, earlier) for earlier in self._unranked]
            self._unranked = []

    def _outcome(self, space: Space, trial: FrozenTrial) -> Told | None:
        """How a trial ended; None where the model cannot learn from it."""
        failed = trial.state is TrialState.FAIL
        config = legal_config(space, _config_of(space, trial), fill=not failed)
        if config is None:
            return None
        if failed or infeasible(trial.system_attrs):
            return Told((np.nan,) * len(self.signs), config=config, status=Status.FAILED)
        if trial.state is TrialState.PRUNED:
            # It was stopped because others did better: as bad as the worst before it.
            assert self._worst is not None
            return Told(tuple(self._worst), config=config)
        losses = np.multiply(trial.values, self.signs)
        if np.isfinite(losses).all():
            before = losses if self._worst is None else self._worst
            self._worst = np.maximum(before, losses).tolist()
        return Told(tuple(losses.tolist()), config=config)

    def _set_unranked_pending(self, optimizer: Optimizer, space: Space) -> None:
        """Leave nothing pending but the trials that cannot be ranked yet.

        There may be hundreds of them: those that are pending already stay so.
        """
        pending, held = set(optimizer.pending), {_pending_id(one): one for one in self._unranked}
        optimizer.withdraw(pending - held.keys())
        new = [one for id_, one in held.items() if id_ not in pending]
        optimizer.assume_pending(_pending_suggestions(space, new))

    def _running(
        self, space: Space, trial: FrozenTrial, trials: Sequence[FrozenTrial]
    ) -> list[Suggestion]:
        """The trials under way: those of this process as planned, others as far as they say."""
        found = []
        for other in trials:
            if other.state is TrialState.RUNNING and other.number != trial.number:
                params = {**self.plans.get(other.number, {}), **other.params}
                config = legal_config(space, params, fill=True) if params else None
                if config is not None:
                    found.append(Suggestion(other.number, config, "running"))
        return found


def _pending_suggestions(space: Space, pruned: Iterable[FrozenTrial]) -> Iterator[Suggestion]:
    """What pruned trials tried, for the optimiser to wait for."""
    for trial in pruned:
        config = legal_config(space, _config_of(space, trial), fill=True)
        if config is not None:
            yield Suggestion(_pending_id(trial), config, "pruned")


def _pending_id(trial: FrozenTrial) -> int:
    """Ids of suggestions are not negative."""
    return -1 - trial.number


def legal_config(space: Space, params: Mapping[str, Any], *, fill: bool) -> dict[str, Any] | None:
    """The configuration of `space` that a trial's parameters are; None where it is none.

    fill: give what the trial did not ask for its default, instead of giving up.
    """
    given = {p.name: inward(p, params[p.name]) for p in space.parameters if p.name in params}
    if any(value is UNFIT for value in given.values()):
        return None
    columns = {name: [value] for name, value in given.items()}
    try:
        return space.from_columns(columns, 1, fill_defaults=fill, drop_inactive=True).dicts()[0]
    except SpaceError:
        return None


def _config_of(space: Space, trial: FrozenTrial) -> dict[str, Any]:
    """The parameters of a trial; what it did not ask for is taken as it was suggested."""
    suggested = trial.system_attrs.get(SUGGESTED, {})
    fitting = {
        p.name: suggested[p.name]
        for p in space.parameters
        if p.name in suggested and inward(p, suggested[p.name]) is not UNFIT
    }
    return {**fitting, **trial.params}


def _configs_not_taken(space: Space, trials: Iterable[FrozenTrial]) -> list[dict[str, Any]]:
    """What was suggested for the trials that tried something else."""
    suggested = (trial.system_attrs.get(SUGGESTED) for trial in trials)
    configs = (legal_config(space, one, fill=False) for one in suggested if one)
    return [config for config in configs if config is not None]


def _completions(space: Space, decided: Mapping[str, Any], seed: int) -> Encoded | None:
    """Random configurations that agree with what is decided.

    None where nothing is, or where the space forbids it: whoever decided so has the last word, and
    the rest is chosen as if nothing were decided.
    """
    given = {p.name: inward(p, decided[p.name]) for p in space.parameters if p.name in decided}
    given = {name: value for name, value in given.items() if value is not UNFIT}
    if not given:
        return None
    rng = np.random.default_rng(seed)
    drawn = np.column_stack([p.quantile(rng.random(CHOICES_IN_PART)) for p in space.parameters])
    for column, parameter in enumerate(space.parameters):
        if parameter.name in given:
            drawn[:, column] = parameter.number_of(given[parameter.name])
    settled = space.rules.settle(drawn)
    allowed = settled[~space.rules.forbidden(settled)]
    return space.from_values(allowed) if len(allowed) else None


def _moment(trial: FrozenTrial) -> datetime:
    return trial.datetime_complete or datetime.min
