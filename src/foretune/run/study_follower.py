"""Tells an optimiser what is new in a study, whoever did it."""

import math
from collections.abc import Iterator, Sequence

from foretune.experience import Status
from foretune.experience.curves import Curve
from foretune.experience.trial import Trial
from foretune.run.study import Study
from foretune.run.trial_folders import TrialFolders
from foretune.run.trial_log import Changes
from foretune.run.watch import Watch
from foretune.search.optimizer import Optimizer
from foretune.search.suggestions import Suggestion, Told


class StudyFollower:
    """What the optimiser knows of the trials of a study."""

    def __init__(
        self, study: Study, optimizer: Optimizer, watch: Watch, folders: TrialFolders | None
    ) -> None:
        self._study, self._optimizer, self._watch = study, optimizer, watch
        self._folders = folders
        self._metrics = study.metrics[: len(optimizer.target.objectives)]
        self.ids: dict[int, int] = {}
        """Number of an unfinished trial -> id under which the optimiser waits for it."""
        self.paused: dict[int, Trial] = {}
        """Trials that wait to be resumed, by number."""
        self._steps: dict[int, float] = {}
        """Number of an unfinished trial -> the last step that the optimiser knows of."""
        self._told: set[int] = set()
        self.has_done = False
        """True if a trial was complete."""
        self._seen = 0
        """How much of the study's changes the optimiser knows."""

    @property
    def trial_count(self) -> int:
        """How many trials of the study the optimiser knows of."""
        return len(self._told) + len(self.ids)

    def knows(self, trial: Trial) -> bool:
        """Return True if the optimiser knows of a trial."""
        return trial.number in self._told or trial.number in self.ids

    def number_of(self, id_: int) -> int:
        """Return the number of the unfinished trial that the optimiser knows under an id."""
        return next(number for number, each in self.ids.items() if each == id_)

    def changes(self) -> Changes:
        """Return what is new in the study since the last look."""
        return self._study.changes(self._seen)

    def look(self) -> None:
        """Take in what is new in the study."""
        self.learn(self.changes())

    def add(self, number: int, id_: int) -> None:
        """Take in a trial that this process begins."""
        self.ids[number] = id_
        self._optimizer.racing.place(id_, number)

    def losses(self, values: dict[str, float]) -> tuple[float, ...]:
        """Return the losses of a report; NaN if it lacks a metric."""
        return tuple(m.sign * values.get(m.name, math.nan) for m in self._metrics)

    def learn(self, changes: Changes) -> None:
        """Tell the optimiser what is new."""
        self._seen = changes.seen
        new = [trial for trial in changes.trials if trial.number not in self._told]
        ended = [trial for trial in new if trial.is_over]
        # In a race an ended trial counts too: it keeps its place and its reports.
        racing = self._optimizer.racing.is_on
        self._assume(new if racing else [trial for trial in new if not trial.is_over])
        for trial in new:
            if trial.number in self.ids:
                self.catch_up(trial.number, trial.curve)
        if ended:
            self._optimizer.tell(self._outcomes(ended))
            self._told.update(trial.number for trial in ended)
            self.has_done = self.has_done or any(t.status is Status.DONE for t in ended)
        if ended and self._folders is not None:
            self._folders.remove_all(trial.number for trial in ended)
        for trial in new:
            self._note_status(trial)

    def learn_one(self, trial: Trial, curve: Curve | None) -> None:
        """Take in a trial that this process takes over, and what it has reported."""
        self._assume([trial])
        self.catch_up(trial.number, curve)

    def farthest(self) -> int | None:
        """Return the paused trial that came farthest; of several, the one with the lowest loss."""
        ranked = list(self.list_for_removal())
        return ranked[-1] if ranked else None

    def list_for_removal(self) -> list[int]:
        """Return the paused trials in the order in which their checkpoints can be given up."""

        def rank(trial: Trial) -> tuple[float, float]:
            loss = self.losses(dict(trial.values))[0]
            return trial.last_step or 0.0, -math.inf if math.isnan(loss) else -loss

        return sorted(self.paused, key=lambda number: rank(self.paused[number]))

    def catch_up(self, number: int, curve: Curve | None) -> None:
        """Tell the optimiser the reports of a trial that it does not know yet."""
        if curve is None:
            return
        known = self._steps.get(number, -1.0)
        for place, step in enumerate(curve.steps):
            if step > known:
                values = {name: column[place] for name, column in curve.values.items()}
                self.record(number, step, values)

    def record(self, number: int, step: float, values: dict[str, float]) -> None:
        """Tell the optimiser one report, without a decision.

        A report without the first metric says nothing to those who decide.
        """
        self._steps[number] = step
        losses = self.losses(values)
        if not math.isnan(losses[0]):
            self._optimizer.racing.record(self.ids[number], step, losses)

    def note_step(self, number: int, step: float) -> None:
        """Note that the optimiser was told a report."""
        self._steps[number] = step

    def _assume(self, trials: Sequence[Trial]) -> None:
        """Let the optimiser wait for trials that are new to it."""
        unknown = [trial for trial in trials if trial.number not in self.ids]
        if not unknown:
            return
        # Ids of its own suggestions are not negative.
        suggestions = [Suggestion(-1 - t.number, t.config, t.chosen_by) for t in unknown]
        self._optimizer.assume_pending(suggestions)
        for trial in unknown:
            self.add(trial.number, -1 - trial.number)

    def _note_status(self, trial: Trial) -> None:
        """Take in that a trial waits, runs or has ended."""
        was_paused = self.paused.pop(trial.number, None) is not None
        if trial.is_over:
            self._steps.pop(trial.number, None)
            self._watch.trial_ended(trial)
        elif trial.status is Status.PAUSED:
            self.paused[trial.number] = trial
            self._optimizer.racing.move(self.ids[trial.number], Status.PAUSED)
            if self._folders is not None:
                self._folders.measure(trial.number)
            if not was_paused:
                self._watch.trial_paused(trial)
        else:
            self._optimizer.racing.move(self.ids[trial.number], Status.RUNNING)

    def _outcomes(self, ended: Sequence[Trial]) -> Iterator[Told]:
        """Yield what the optimiser is told of trials that have ended."""
        waiting = self._optimizer.pending.keys()
        for trial in ended:
            losses = trial.losses(self._metrics)
            pending = self.ids.pop(trial.number, None)
            if pending in waiting:
                yield Told(losses, id=pending, status=trial.status)
            else:
                # It is new here, or another trial of the same configuration was told before.
                yield Told(losses, config=trial.config, status=trial.status)
