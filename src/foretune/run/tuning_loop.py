"""The one loop that tunes: trials from an optimiser, evaluated by an executor, kept in a study."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from foretune.errors import ExhaustedError, ForetuneWarning, UsageError
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.run import stopping
from foretune.run.background_learning import BackgroundLearning
from foretune.run.executor import Executor, Outcome, check_positive
from foretune.run.reports import TrialStart
from foretune.run.study import StoreAwayError, Study
from foretune.run.trial_log import Changes
from foretune.run.trial_results import Measured, ResultError, check_result
from foretune.search.optimizer import Optimizer
from foretune.search.suggestions import Suggestion, Told

MOST_ABANDONED = 5
"""A trial during which so many processes died is not tried again: it may be what kills them."""

DRAWN = ("random", "sobol", "per-algorithm")
"""Reasons of suggestions that cost next to nothing."""

Done = TypeVar("Done")
Ending: TypeAlias = Literal["trials", "time", "exhausted"]
Reserve: TypeAlias = Callable[[Sequence[Trial]], float]
"""Says by the trials so far how many seconds a run should end before its time."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop; None is without a limit."""

    trials: int | None = None
    """How many trials the study is to have, those of other processes and earlier runs included."""
    seconds: float | None = None
    """How long this run may take, on the clock. What is running then is left to the next run."""
    reserve: Reserve | None = None
    """How much of the seconds is left for what comes after this run."""

    def __post_init__(self) -> None:
        check_positive("a budget of", self, "trials", "seconds")


@dataclass(frozen=True, slots=True)
class LoopTimes:
    """How long the loop waits, in seconds, and its clock."""

    look: float = 2.0
    """Between two looks for changes by other processes."""
    look_while_learning: float = 0.5
    """The same while the optimiser learns before its next suggestion."""
    away: float = 300.0
    """For a server that went away. It may be restarting."""
    clock: Callable[[], float] = time.monotonic


USUAL_TIMES = LoopTimes()


class Watch(Protocol):
    """What a display hears."""

    def trial_began(self, trial: Trial) -> None:
        """A trial was begun or taken over by this process."""

    def trial_ended(self, trial: Trial) -> None:
        """A trial of any process has ended; first come those that had ended before the run."""


class SilentWatch:
    """Shows nothing."""

    def trial_began(self, trial: Trial) -> None:
        """Ignore."""

    def trial_ended(self, trial: Trial) -> None:
        """Ignore."""


SILENT_WATCH = SilentWatch()


def tune(
    study: Study,
    optimizer: Optimizer,
    executor: Executor[dict[str, Any], Any],
    budget: Budget,
    *,
    watch: Watch = SILENT_WATCH,
    times: LoopTimes = USUAL_TIMES,
) -> Ending:
    """Run trials until the budget is used up, and say what ended it.

    The optimiser must be new: it is told all that the study holds. Its objectives are the study's
    metrics, in order, or the first ones of them. What the executor's function returns is a number
    or a mapping, see `objectives.measured`. Ctrl-C, and every other exception, leaves all finished
    trials stored, and those that were running to be run again.
    """
    _check_new(optimizer)
    _check_objectives(optimizer, study)
    tuning = _Tuning(study, optimizer, executor, budget, watch, times)
    with stopping.absorb_requests():
        try:
            return tuning.run()
        finally:
            tuning.let_go()


def _check_new(optimizer: Optimizer) -> None:
    told, pending = len(optimizer.told), len(optimizer.pending)
    if told or pending:
        raise UsageError(
            f"an optimiser must be new, for it is told all that the study holds, but this one was "
            f"told {told} trials and waits for {pending}: make another one",
            rule="used-optimizer",
            value=(told, pending),
        )


def _check_objectives(optimizer: Optimizer, study: Study) -> None:
    """Refuse objectives that would be told of other metrics than those they are named after.

    A name that no metric of the study has, such as the default "loss", stands for the metric at its
    place.
    """
    objectives = optimizer.target.objectives
    names = tuple(metric.name for metric in study.metrics)
    if len(objectives) > len(names):
        raise UsageError(
            f"an optimiser must have at most as many objectives as the study has metrics, but got "
            f"{len(objectives)} and {len(names)}: add metrics",
            rule="too-many-objectives",
            value=len(objectives),
        )
    if any(o in names and o != name for o, name in zip(objectives, names, strict=False)):
        raise UsageError(
            f"the objectives of an optimiser must be the study's first metrics, in order, but "
            f"{list(objectives)} are others than {list(names)}: put these metrics first",
            rule="other-objectives",
            value=tuple(objectives),
        )


class _Tuning:
    """One run of the loop."""

    def __init__(
        self,
        study: Study,
        optimizer: Optimizer,
        executor: Executor[dict[str, Any], Any],
        budget: Budget,
        watch: Watch,
        times: LoopTimes,
    ) -> None:
        self._study, self._optimizer, self._executor = study, optimizer, executor
        self._budget, self._watch, self._times = budget, watch, times
        self._end = None if budget.seconds is None else times.clock() + budget.seconds
        self._learning = BackgroundLearning(optimizer)
        self._reserved = 0.0
        self._running: dict[int, int] = {}
        """Key of the executor -> number of the trial."""
        self._ids: dict[int, int] = {}
        """Number of an unfinished trial -> id under which the optimiser waits for it."""
        self._told: set[int] = set()
        self._seen = 0
        """How much of the study's changes the optimiser knows."""

    def run(self) -> Ending:
        """Keep the workers busy until the budget is used up."""
        while True:
            stopping.check()  # the exception of a signal may have been lost on its way
            ending = self._patiently(self._look_and_fill, self._recover_and_fill)
            if self._is_late():
                return "time"
            if self._running:
                for outcome in self._executor.results(self._patience()):
                    self._patiently(partial(self._take_in, outcome))
            elif ending is not None and not self._patiently(self._study.unsure):
                return ending
            else:
                time.sleep(self._patience())

    def let_go(self) -> None:
        """Leave what is still running to whoever comes next."""
        for number in self._running.values():
            self._study.let_go(number)

    def _patiently(
        self, action: Callable[[], Done], again: Callable[[], Done] | None = None
    ) -> Done:
        """Repeat an action while the store is away, so that no result is lost.

        again: what to do instead from the second time on.
        """
        until, is_first = self._times.clock() + self._times.away, True
        while True:
            try:
                return action() if is_first or again is None else again()
            except StoreAwayError as error:
                if self._times.clock() > until:
                    raise
                if is_first:
                    warnings.warn(
                        ForetuneWarning(
                            f"{error}; trying again for {self._times.away / 60:.0f} minutes",
                            rule="store-away",
                        ),
                        stacklevel=2,
                    )
            is_first = False
            time.sleep(self._times.look)
            stopping.check()

    def _look_and_fill(self) -> Ending | None:
        """Take in what is new in the study, and keep the workers busy."""
        self._look()
        return self._fill()

    def _recover_and_fill(self) -> Ending | None:
        """Do the same after the store was away: a trial may be stored that no worker has."""
        stored = set(self._ids.values())
        self._optimizer.withdraw([id_ for id_ in self._optimizer.pending if id_ not in stored])
        self._look()
        for number in self._ids.keys() - set(self._running.values()):
            self._study.let_go(number)
        return self._fill()

    def _fill(self) -> Ending | None:
        """Give every idle worker a trial; why there was none for it otherwise."""
        while len(self._running) < self._executor.workers:
            if self._is_late():
                return "time"
            again = self._adopt_abandoned_trial()
            if again is not None:
                self._submit(again)
                continue
            if not self._is_full(self._trial_count()) and self._learning.must_wait():
                return None
            begun = self._begin()
            if not isinstance(begun, Trial):
                return begun
            self._submit(begun)
        return None

    def _submit(self, trial: Trial) -> None:
        key = self._executor.submit(trial.config, TrialStart(trial.number))
        self._running[key] = trial.number
        self._watch.trial_began(trial)

    # Trials that were left behind

    def _adopt_abandoned_trial(self) -> Trial | None:
        """Take over a trial that nobody runs, if there is one within the budget."""
        if self._ids.keys() <= set(self._running.values()):
            return None  # known without a look into the storage: nobody else has begun a trial
        waiting = len(self._study.abandoned_trials())
        if not waiting or self._is_full(self._trial_count() - waiting):
            return None
        with self._study.lock():
            for trial in self._study.abandoned_trials():
                deaths = self._study.take_over(trial.number)
                if deaths < MOST_ABANDONED:
                    return trial
                reason = f"{deaths} processes ended while they ran it"
                self._study.end(trial.number, status=Status.FAILED, reason=reason)
        return None

    # New trials

    def _begin(self) -> Trial | Ending:
        """Begin a trial that the optimiser suggests and that no other process has begun."""
        while not self._is_full(self._trial_count()):
            suggestion = self._ask()
            if suggestion is None:
                return "exhausted"
            with self._study.lock():
                changes = self._study.changes(self._seen)
                new = [trial for trial in changes.trials if not self._knows(trial)]
                if suggestion.reason in DRAWN and self._is_double(suggestion, new):
                    # Another draw is quick, and whoever has the lock cannot be beaten to it.
                    self._optimizer.withdraw([suggestion.id])
                    self._learn(changes)
                    new = []
                    suggestion = self._ask()
                    if suggestion is None:
                        return "exhausted"
                full = self._is_full(self._trial_count() + len(new))
                if not full and not self._is_double(suggestion, new):
                    return self._begin_trial(suggestion)
            # Another process was faster: with the last trial, or with this configuration.
            self._optimizer.withdraw([suggestion.id])
            self._learn(changes)
        return "trials"

    def _ask(self) -> Suggestion | None:
        try:
            return self._optimizer.ask()[0]
        except ExhaustedError:
            return None

    def _begin_trial(self, suggestion: Suggestion) -> Trial:
        number = self._study.begin(suggestion.config, chosen_by=suggestion.reason)
        self._ids[number] = suggestion.id
        return Trial(number, suggestion.config, chosen_by=suggestion.reason)

    def _trial_count(self) -> int:
        """How many trials of the study the optimiser knows of."""
        return len(self._told) + len(self._ids)

    def _knows(self, trial: Trial) -> bool:
        return trial.number in self._told or trial.number in self._ids

    def _is_double(self, suggestion: Suggestion, new: list[Trial]) -> bool:
        """True if a trial that the optimiser does not know of has the same configuration."""
        if not new:
            return False
        space = self._study.space
        others = space.encode([trial.config for trial in new])
        return bool(space.encode([suggestion.config]).isin(others)[0])

    def _is_full(self, trials: int) -> bool:
        return self._budget.trials is not None and trials >= self._budget.trials

    # What came of trials

    def _take_in(self, outcome: Outcome[Any]) -> None:
        number = self._running.get(outcome.key)
        if number is None:
            return  # of an earlier run of this executor
        status, reason = outcome.status, outcome.reason
        result = Measured({})
        if status is Status.DONE:
            try:
                result = check_result(outcome.result, self._study.metrics)
            except ResultError as error:
                status, reason = Status.FAILED, str(error)
        self._study.end(
            number,
            status=status,
            values=result.values,
            seconds=outcome.seconds,
            reason=reason,
            notes=result.notes,
        )
        del self._running[outcome.key]

    def _look(self) -> None:
        """See what is new in the study, and how much time is left by that."""
        self._learn(self._study.changes(self._seen))
        if self._end is not None and self._budget.reserve is not None:
            self._reserved = self._budget.reserve(self._study.trials())

    def _learn(self, changes: Changes) -> None:
        """Tell the optimiser what is new in the study, whoever did it."""
        self._seen = changes.seen
        new = [trial for trial in changes.trials if trial.number not in self._told]
        ended = [trial for trial in new if trial.is_over]
        if ended:
            self._optimizer.tell(self._outcomes(ended))
        self._told.update(trial.number for trial in ended)
        for trial in new:
            if not trial.is_over and trial.number not in self._ids:
                # Ids of its own suggestions are not negative.
                self._ids[trial.number] = -1 - trial.number
                suggestion = Suggestion(-1 - trial.number, trial.config, trial.chosen_by)
                self._optimizer.assume_pending([suggestion])
        for trial in ended:
            self._watch.trial_ended(trial)

    def _outcomes(self, ended: Sequence[Trial]) -> Iterator[Told]:
        """Yield what the optimiser is told of trials that have ended."""
        metrics = self._study.metrics[: len(self._optimizer.target.objectives)]
        waiting = self._optimizer.pending.keys()
        for trial in ended:
            losses = trial.losses(metrics)
            pending = self._ids.pop(trial.number, None)
            if pending in waiting:
                yield Told(losses, id=pending, status=trial.status)
            else:
                # It is new here, or another trial of the same configuration was told before.
                yield Told(losses, config=trial.config, status=trial.status)

    # Time

    def _is_late(self) -> bool:
        return self._seconds_left() <= 0.0

    def _patience(self) -> float:
        is_learning = self._learning.is_running
        look = self._times.look_while_learning if is_learning else self._times.look
        return max(0.0, min(self._seconds_left(), look))

    def _seconds_left(self) -> float:
        if self._end is None:
            return math.inf
        return self._end - self._reserved - self._times.clock()
