"""Which trials of an optimiser run, wait or have been stopped, based on their reports."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune.experience import Status
from foretune.methods.curve_contracts import SeenCurves
from foretune.methods.stopping.policy import Decision, StepDecision, StepRange, StoppingPolicy
from foretune.methods.stopping.race import Race
from foretune.space import Encoded

STATUS_AFTER = {Decision.PAUSE: Status.PAUSED, Decision.STOP: Status.STOPPED}


class Racing:
    """The race of the trials that an optimiser suggested, and the policy that decides in it."""

    def __init__(self, policy: StoppingPolicy, objectives: int) -> None:
        self.policy = policy
        self.race = Race()
        self._objectives = objectives
        self._losses: dict[int, tuple[float, ...]] = {}
        """{id: the losses of its last report}"""
        self._reports: dict[int, list[Floats]] = {}
        """{id: all losses of each report}"""
        self._configs: dict[int, Encoded] = {}
        """{id: its configuration}. The race has the trials that ended, too."""

    def start(self, trial: int, config: Encoded) -> None:
        """Add a trial that was suggested."""
        self.race.start(trial)
        self._configs[trial] = config

    def place(self, trial: int, number: int) -> None:
        """Give a trial its place in the order of the start."""
        self.race.place(trial, number)

    def start_all(self, configs: Mapping[int, Encoded]) -> None:
        """Add trials that run elsewhere, if they are not known yet."""
        for trial, config in configs.items():
            if trial not in self.race:
                self.start(trial, config)

    @property
    def is_on(self) -> bool:
        """False if the policy lets every trial run to its end."""
        return type(self.policy) is not StoppingPolicy

    def report(self, trial: int, step: float, losses: Any) -> StepDecision:
        """Take in what a trial reported at a step, and decide whether it goes on.

        losses: as in `Told`. The policy decides by the loss of the first objective.
        """
        self.record(trial, step, losses)
        return self.decide(trial)

    def record(self, trial: int, step: float, losses: Any) -> None:
        """Take in what a trial reported at a step, without a decision."""
        if trial not in self.race:
            raise UsageError(
                f"a report must be of a trial that was suggested, but got the id {trial!r}: give "
                "the id of the suggestion",
                rule="unknown-trial",
                field="id",
                value=trial,
            )
        numbers = np.atleast_1d(np.asarray(losses, dtype=float))
        if numbers.shape != (self._objectives,):
            raise UsageError(
                f"a report needs one loss for each of {self._objectives} objectives, but got "
                f"{losses!r}: give that many",
                rule="losses-of-report",
                field="losses",
                value=losses,
            )
        self.race.report(trial, float(step), float(numbers[0]))
        self._reports.setdefault(trial, []).append(numbers)
        if np.isfinite(numbers).all():
            self._losses[trial] = tuple(numbers.tolist())

    def decide(self, trial: int) -> StepDecision:
        """Decide by its reports so far whether a trial goes on."""
        decided = self.policy.decide(self.race, trial)
        if decided.decision in STATUS_AFTER:
            self.race.move(trial, STATUS_AFTER[decided.decision])
        return decided

    def should_stop(self, trial: int) -> bool:
        """Return whether the policy has paused or stopped a trial."""
        return trial in self.race and self.race[trial].status in STATUS_AFTER.values()

    def resume(self) -> int | None:
        """Choose a paused trial that goes on, mark it as running and return it."""
        trial = self.policy.resume(self.race)
        if trial is not None:
            self.race.move(trial, Status.RUNNING)
        return trial

    def move(self, trial: int, status: Status) -> None:
        """Record that a trial runs again, or was paused, by a decision made elsewhere."""
        self.race.move(trial, status)

    def last_step(self, trial: int) -> float | None:
        """Return the last step that a trial reported; None if it reported none."""
        steps = self.race[trial].steps if trial in self.race else []
        return steps[-1] if steps else None

    def hopeless(self) -> set[int]:
        """Return the paused trials that will never be resumed."""
        return self.policy.hopeless(self.race) if self.is_on else set()

    def forget(self, trials: Iterable[int]) -> None:
        """Remove trials that nobody runs, as if they had not been suggested."""
        for trial in trials:
            self.race.forget(trial)
            if trial not in self.race:
                self._configs.pop(trial, None)

    def end(self, trials: Mapping[int, Status]) -> None:
        """Record how trials ended."""
        for trial, status in trials.items():
            if trial in self.race:
                self.race.move(trial, status)

    def reported_losses(self, trials: Sequence[int]) -> Floats:
        """Return (number of trials, objectives), the last reported losses, or NaN."""
        nothing = (np.nan,) * self._objectives
        rows = [self._losses.get(trial, nothing) for trial in trials]
        return np.array(rows, dtype=float).reshape(len(rows), self._objectives)

    def config(self, trial: int) -> Encoded:
        """Return the configuration of a trial, as a batch of one."""
        return self._configs[trial]

    def seen_curves(self, goals: Mapping[int, float], steps: StepRange) -> SeenCurves | None:
        """Return the reports of all trials; None if there is no trial.

        goals: {running trial: the step at which it is decided about next}.
        """
        trials = [trial for trial, _ in self.race]
        if not trials:
            return None
        nothing = np.empty((0, self._objectives))
        return SeenCurves(
            Encoded.concat([self._configs[trial] for trial in trials]),
            [np.array(self.race[trial].steps) for trial in trials],
            [
                np.array(self._reports[trial]) if self._reports.get(trial) else nothing
                for trial in trials
            ],
            np.array([goals.get(trial, np.nan) for trial in trials]),
            steps.first,
            steps.last,
        )
