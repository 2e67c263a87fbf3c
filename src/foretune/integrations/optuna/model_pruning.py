"""Pruning by a model of curves that has learnt from the other studies in the storage."""

from collections.abc import Callable, Sequence

from optuna.trial import FrozenTrial, TrialState

from foretune.experience import Status
from foretune.integrations.optuna.sampler_knowledge import SamplerKnowledge
from foretune.integrations.optuna.study_search import legal_config
from foretune.methods.stopping.model_steps import ModelSteps, next_level
from foretune.methods.stopping.policy import StepDecision, StoppingPolicy
from foretune.methods.stopping.race import Race, RaceEntry
from foretune.search import Optimizer, Suggestion, Told
from foretune.space import Space
from foretune.stores.optuna.study_space import KnownSpace

METHOD = "freeze-thaw"


class StudyModel(StoppingPolicy):
    """Decides about the trials of one study. Until its space is known, another policy decides.

    learn: returns what is known from past studies; called when the first decision is due.
    """

    def __init__(
        self,
        settings: ModelSteps,
        otherwise: StoppingPolicy,
        learn: Callable[[], SamplerKnowledge],
        sign: float,
    ) -> None:
        self._settings, self._otherwise, self._learn = settings, otherwise, learn
        self._sign = sign
        self._knowledge: SamplerKnowledge | None = None
        self._trials: dict[int, FrozenTrial] = {}
        self._optimizer: Optimizer | None = None
        self._known: dict[int, int] = {}
        """{number of a trial that the optimiser knows: how many of its reports}"""

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Take in the latest state of all trials."""
        self._trials = {trial.number: trial for trial in trials}

    def decide(self, race: Race, trial: int) -> StepDecision:
        """Ask the model about a trial that has just reported."""
        space = self._space()
        if space is None or self._config(space, trial) is None:
            return self._otherwise.decide(race, trial)
        optimizer = self._optimizer_in(space)
        for number, entry in race:
            self._tell(optimizer, number, entry)
        if trial not in self._known:
            return self._otherwise.decide(race, trial)
        return optimizer.racing.decide(trial)

    def next_decision(self, race: Race, trial: int) -> float:
        """Return the next step at which it compares a trial with others."""
        steps, last = self._settings.range_of(race, None), race[trial].last_step
        return last if steps is None else next_level(last, steps)

    def _space(self) -> Space | None:
        """Return the space of the trials that ended or have reported."""
        known = KnownSpace()
        for trial in self._trials.values():
            if trial.state.is_finished() or trial.intermediate_values:
                known.learn(trial)
        if self._knowledge is None:
            self._knowledge = self._learn()
        return self._knowledge.space_for(known)

    def _optimizer_in(self, space: Space) -> Optimizer:
        """Return the optimiser, a new one if the space has grown."""
        if self._optimizer is None or self._optimizer.target.space != space:
            assert self._knowledge is not None
            self._optimizer = self._knowledge.optimizer(space, 1, seed=0)
            self._optimizer.use_policy(self._settings)
            self._known = {}
        return self._optimizer

    def _config(self, space: Space, number: int) -> dict[str, object] | None:
        trial = self._trials.get(number)
        return None if trial is None else legal_config(space, trial.params, fill=True)

    def _tell(self, optimizer: Optimizer, number: int, entry: RaceEntry) -> None:
        """Tell the optimiser what is new of one trial."""
        if number not in self._known:
            config = self._config(optimizer.target.space, number)
            if config is None or not entry.steps:
                return
            optimizer.assume_pending([Suggestion(number, config, "study")])
            self._known[number] = 0
        for place in range(self._known[number], len(entry.steps)):
            optimizer.racing.record(number, entry.steps[place], entry.losses[place])
        self._known[number] = len(entry.steps)
        if entry.status.is_final and number in optimizer.pending:
            optimizer.tell([self._outcome(number, entry)])

    def _outcome(self, number: int, entry: RaceEntry) -> Told:
        trial = self._trials[number]
        value = trial.value if trial.state is TrialState.COMPLETE else None
        loss = entry.losses[-1] if value is None else self._sign * value
        status = Status.DONE if value is not None else entry.status
        return Told(loss, id=number, status=status)
