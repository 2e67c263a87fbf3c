"""The pruner: Foretune's stopping policies for trials of Optuna studies."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from foretune.experience import Status
from foretune.integrations.optuna.model_pruning import METHOD, StudyModel
from foretune.integrations.optuna.sampler_knowledge import SamplerKnowledge
from foretune.methods.stopping.model_steps import ModelSteps
from foretune.methods.stopping.policies import learn_steps
from foretune.methods.stopping.policy import Decision, StoppingPolicy
from foretune.methods.stopping.race import Race
from foretune.stores.optuna.past_studies import past_studies

STATUSES = {
    TrialState.COMPLETE: Status.DONE,
    TrialState.PRUNED: Status.STOPPED,
    TrialState.FAIL: Status.FAILED,
}
"""Trials in other states have not ended."""


class ForetunePruner(BasePruner):
    """Prunes poor trials of an Optuna study with a stopping policy of Foretune.

    A pruned trial in Optuna cannot go on later. Where a policy would pause a trial, it is pruned
    unless it is among the best so far.

    Arguments:
        policy: a name of `foretune tune --stop` (asha, halving, hyperband, median, model, none), or
            a `StoppingPolicy`. `model` learns from the curves of the other studies in the storage
            how curves run, and prunes a trial that is expected to end worse than others.
        first_step: the first step at which a trial may be pruned.
        last_step: the last step of a complete trial. Default: that of the first complete one.
        eta: one of `eta` trials goes on from each level to the next.

    Example:
        >>> pruner = ForetunePruner("asha", last_step=100)
        >>> study = optuna.create_study(sampler=ForetuneSampler(), pruner=pruner)
        >>> study.optimize(objective, n_trials=50)  # calls trial.report and trial.should_prune
    """

    def __init__(
        self,
        policy: str | StoppingPolicy = "asha",
        *,
        first_step: float = 1,
        last_step: float | None = None,
        eta: float = 3,
    ) -> None:
        if isinstance(policy, str):
            policy = learn_steps(policy, first=first_step, last=last_step, eta=eta)
        self._policy = policy.without_pauses()
        self._races: dict[tuple[int, str], _StudyRace] = {}
        self._lock = threading.Lock()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether a trial is to end, by its reports and those of all other trials."""
        key = (study._study_id, study.study_name)
        with self._lock:
            known = self._races.get(key)
            if known is not None and trial.number in known.stopped:
                return True
            if known is not None and known.is_too_early(trial):
                return False
            trials = study.get_trials(deepcopy=False)
            if known is None or len(known.race) > len(trials):  # another study has this name now
                sign = -1.0 if study.direction.name == "MAXIMIZE" else 1.0
                known = self._races[key] = _StudyRace(self._policy_for(study, sign), sign)
            known.update(trials, running=trial.number)
            return known.judge(trial)

    def _policy_for(self, study: Study, sign: float) -> StoppingPolicy:
        """Return the policy of one study; a model learns from the studies beside it."""
        settings = self._policy
        if not isinstance(settings, ModelSteps):
            return settings

        def learn() -> SamplerKnowledge:
            past = past_studies(study._storage, 1, but=study._study_id)
            return SamplerKnowledge(METHOD, past)

        otherwise = learn_steps("asha", first=settings.first, last=settings.last)
        return StudyModel(settings, otherwise.without_pauses(), learn, sign)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the races out: a copy in another process reads the reports itself."""
        return {**self.__dict__, "_lock": None, "_races": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


class _StudyRace:
    """The race of the trials of one study. The number of a trial is its place in the race."""

    def __init__(self, policy: StoppingPolicy, sign: float) -> None:
        self.race = Race()
        self.stopped = set[int]()
        """Trials that were judged to end, whether or not they have ended yet."""
        self._policy, self._sign = policy, sign

    def is_too_early(self, trial: FrozenTrial) -> bool:
        """Return whether no policy would end a trial after its last report."""
        last = trial.last_step
        if last is None:
            return True
        number = trial.number
        return number in self.race and last < self._policy.next_decision(self.race, number)

    def update(self, trials: Sequence[FrozenTrial], *, running: int) -> None:
        """Take in what other trials than the `running` one have reported, and how they ended."""
        if isinstance(self._policy, StudyModel):
            self._policy.follow(trials)
        for trial in trials:
            if trial.number not in self.race:
                self.race.start(trial.number)
            if trial.number == running or self.race[trial.number].status.is_final:
                continue
            for step, loss in self._new_reports(trial):
                self.race.report(trial.number, step, loss)
            self.race.move(trial.number, STATUSES.get(trial.state, Status.RUNNING))

    def judge(self, trial: FrozenTrial) -> bool:
        """Return whether a trial is to end, by one decision for each report that is new."""
        for step, loss in self._new_reports(trial):
            self.race.report(trial.number, step, loss)
            if self._policy.decide(self.race, trial.number).decision is not Decision.CONTINUE:
                self.stopped.add(trial.number)
        return trial.number in self.stopped

    def _new_reports(self, trial: FrozenTrial) -> Iterator[tuple[float, float]]:
        """Yield steps and losses after the last known step, in the order of the steps."""
        entry = self.race[trial.number]
        last = entry.last_step if entry.steps else -1.0
        for step, value in sorted(trial.intermediate_values.items()):
            if step > last:
                yield step, self._sign * value
