"""The search in one study: from its trials to the next whole configuration.

Everything depends on the seed and on the trials in the storage only. Therefore a study goes on
after an interruption, or in another process, as if it had never stopped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from foretune.errors import ExhaustedError, SpaceError
from foretune.experience import Status
from foretune.integrations.optuna.pruned_losses import PrunedLosses
from foretune.integrations.optuna.sampler_knowledge import SamplerKnowledge
from foretune.search import Optimizer, Suggestion, Told
from foretune.search.seeds import derive_seed
from foretune.space import Encoded, Space
from foretune.stores.optuna.constraints import infeasible
from foretune.stores.optuna.study_space import KnownSpace
from foretune.stores.optuna.values import UNFIT, to_space_value

CHOICES_IN_PART = 2_000
"""How many random configurations are compared if a part of the configuration is decided."""
SUGGESTED = "foretune:suggested"
"""The system attribute that keeps the suggestion of a trial that tried something else.

A trial may leave out names, or ask for a range that does not hold a value. The next suggestion
depends on the attribute, so the storage keeps it.
"""


@dataclass
class StudySearch:
    """What is known about one study."""

    signs: tuple[float, ...]
    """1 for an objective that is minimised, else -1."""
    knowledge: SamplerKnowledge
    seed: int
    plans: dict[int, dict[str, Any]] = field(default_factory=dict)
    """{number of a running trial: the configuration that was suggested for it}"""
    make_pruned: Callable[[Sequence[float]], PrunedLosses] = PrunedLosses
    """Makes what estimates the losses of pruned trials."""
    _known: KnownSpace = field(default_factory=KnownSpace)
    _ended: list[tuple[datetime, int]] = field(default_factory=list)
    """The trials that were read, in the order of their ends."""
    _pruned: PrunedLosses = field(init=False)
    _unranked: list[FrozenTrial] = field(default_factory=list)
    """Trials that were pruned before any trial had a result. They count as running."""
    _optimizer: Optimizer | None = None
    _untold: list[FrozenTrial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pruned = self.make_pruned(self.signs)

    def learn_from(self, trials: Iterable[FrozenTrial]) -> bool:
        """Read the trials that have ended since the last call.

        Return False, and read nothing, if earlier ones have changed.
        """
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
        """Return what the trials of this study have asked for."""
        return self._known.distributions

    def plan(
        self, trial: FrozenTrial, trials: Sequence[FrozenTrial], decided: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the configuration for a trial. It stays the same until the trial ends.

        As long as nothing is known about the study, it may have too many names, or too few.

        decided: values that others have fixed.
        """
        if trial.number not in self.plans:
            self.plans[trial.number] = self._ask(trial, trials, decided)
        return self.plans[trial.number]

    def not_taken(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """Return what was suggested for a trial that now ends, if it tried something else.

        None if it asked for nothing, because then it tried nothing.
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
        seed = completion_seed(self.seed, trial.number)
        among = _completions(space, decided, seed)
        try:
            return optimizer.ask(among=among)[0].config
        except ExhaustedError:
            # Optuna's studies do not end by themselves: try a configuration again.
            again = space.sample(1, seed=seed) if among is None else among.take([0])
            return again.dicts()[0]

    def _optimizer_in(self, space: Space, trials: Sequence[FrozenTrial]) -> Optimizer:
        """Return an optimiser that was told all ended trials."""
        if self._optimizer is None or self._optimizer.target.space != space:
            self._optimizer = self.knowledge.optimizer(space, len(self.signs), self.seed)
            order = {number: place for place, (_, number) in enumerate(self._ended)}
            ended = (trial for trial in trials if trial.number in order)
            self._untold = sorted(ended, key=lambda trial: order[trial.number])
            self._pruned, self._unranked = self.make_pruned(self.signs), []
        self._optimizer.seed = self.seed
        outcomes = (outcome for trial in self._untold for outcome in self._outcomes(space, trial))
        self._optimizer.tell([outcome for outcome in outcomes if outcome is not None])
        # Otherwise the optimiser would suggest the same start again and again.
        self._optimizer.strike_start(_configs_not_taken(space, self._untold))
        self._untold = []
        return self._optimizer

    def _outcomes(self, space: Space, trial: FrozenTrial) -> Iterator[Told | None]:
        """Yield the outcome of a trial.

        The first one with a result is followed by all trials that were pruned before it: without
        them, the same configuration would be suggested again and again.
        """
        pruned = trial.state is TrialState.PRUNED and not infeasible(trial.system_attrs)
        if pruned and self._pruned.worst is None:
            self._unranked.append(trial)
            return
        yield self._outcome(space, trial)
        if self._pruned.worst is not None and self._unranked:
            yield from [self._outcome(space, earlier) for earlier in self._unranked]
            self._unranked = []

    def _outcome(self, space: Space, trial: FrozenTrial) -> Told | None:
        """Return the outcome of a trial; None if the model cannot learn from it."""
        failed = trial.state is TrialState.FAIL
        config = legal_config(space, _config_of(space, trial), fill=not failed)
        if config is None:
            return None
        if failed or infeasible(trial.system_attrs):
            return Told((np.nan,) * len(self.signs), config=config, status=Status.FAILED)
        if trial.state is TrialState.PRUNED:
            return Told(self._pruned.estimate(trial), config=config)
        losses = np.multiply(trial.values, self.signs)
        if np.isfinite(losses).all():
            self._pruned.learn(trial, losses)
        return Told(tuple(losses.tolist()), config=config)

    def _set_unranked_pending(self, optimizer: Optimizer, space: Space) -> None:
        """Make pruned trials without an estimate pending, and nothing else.

        There may be hundreds of them, so those that are pending already stay.
        """
        pending, held = set(optimizer.pending), {_pending_id(one): one for one in self._unranked}
        optimizer.withdraw(pending - held.keys())
        new = [one for id_, one in held.items() if id_ not in pending]
        optimizer.assume_pending(_pending_suggestions(space, new))

    def _running(
        self, space: Space, trial: FrozenTrial, trials: Sequence[FrozenTrial]
    ) -> list[Suggestion]:
        """Return the running trials: those of this process as planned, others as they asked."""
        found = []
        for other in trials:
            if other.state is TrialState.RUNNING and other.number != trial.number:
                params = {**self.plans.get(other.number, {}), **other.params}
                config = legal_config(space, params, fill=True) if params else None
                if config is not None:
                    found.append(Suggestion(other.number, config, "running"))
        return found


def completion_seed(seed: int, number: int) -> int:
    """Return the seed for configurations of which a part is decided.

    The last number makes it differ from all seeds of the optimiser. A derived seed does not change
    when zeros are added, so a zero would not do: (seed, 5) is the optimiser's (seed, 5, 0).
    """
    return derive_seed(seed, number, 0, 1)


def _pending_suggestions(space: Space, pruned: Iterable[FrozenTrial]) -> Iterator[Suggestion]:
    """Yield what pruned trials tried, as pending suggestions."""
    for trial in pruned:
        config = legal_config(space, _config_of(space, trial), fill=True)
        if config is not None:
            yield Suggestion(_pending_id(trial), config, "pruned")


def _pending_id(trial: FrozenTrial) -> int:
    """Return an id that no suggestion of the optimiser has: these are not negative."""
    return -1 - trial.number


def legal_config(space: Space, params: Mapping[str, Any], *, fill: bool) -> dict[str, Any] | None:
    """Return the parameters of a trial as a configuration; None if the space does not hold it.

    fill: use defaults for what the trial did not ask for, instead of returning None.
    """
    given = {
        p.name: to_space_value(p, params[p.name]) for p in space.parameters if p.name in params
    }
    if any(value is UNFIT for value in given.values()):
        return None
    columns = {name: [value] for name, value in given.items()}
    try:
        return space.from_columns(columns, 1, fill_defaults=fill, drop_inactive=True).dicts()[0]
    except SpaceError:
        return None


def _values_in(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a trial as the space writes them; UNFIT if it does not hold one."""
    return {
        each.name: to_space_value(each, params[each.name])
        for each in space.parameters
        if each.name in params
    }


def _config_of(space: Space, trial: FrozenTrial) -> dict[str, Any]:
    """Return the parameters of a trial, and the suggestion for those it did not ask for."""
    suggested = trial.system_attrs.get(SUGGESTED, {})
    values = _values_in(space, suggested)
    fitting = {name: suggested[name] for name in values if values[name] is not UNFIT}
    return {**fitting, **trial.params}


def _configs_not_taken(space: Space, trials: Iterable[FrozenTrial]) -> list[dict[str, Any]]:
    """Return the suggestions of trials that tried something else."""
    suggested = (trial.system_attrs.get(SUGGESTED) for trial in trials)
    configs = (legal_config(space, one, fill=False) for one in suggested if one)
    return [config for config in configs if config is not None]


def _completions(space: Space, decided: Mapping[str, Any], seed: int) -> Encoded | None:
    """Return random configurations that hold the decided values.

    None if nothing is decided, or if the space forbids it. The decided values are used in any
    case; in the second case the others are chosen as if nothing were decided.
    """
    given = {
        p.name: to_space_value(p, decided[p.name]) for p in space.parameters if p.name in decided
    }
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
