"""Every pair that was evaluated, as an experience file that grows while a portfolio is built."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from foretune.automl.live_portfolio.pairs import PairSpace
from foretune.experience import Evaluation, Experience, Metric, Status
from foretune.experience.evaluation_rows import build_experience
from foretune.experience.trial import Trial
from foretune.run.watch import Watch

SAVE_SECONDS = 60.0
"""The time between two updates of the file while trials run."""


class SavedExperience(Watch):
    """Keeps what pairs gave, tells another watch, and saves now and then.

    The study holds every pair at once, so a kill between two updates loses nothing: the next run
    hears of all earlier pairs first.
    """

    def __init__(
        self,
        space: PairSpace,
        metrics: Sequence[Metric],
        path: Path | None,
        meta_features: Mapping[str, Mapping[str, float]],
        watch: Watch,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._space, self._metrics, self._path = space, tuple(metrics), path
        self._meta_features, self._watch, self._clock = meta_features, watch, clock
        self._evaluations: dict[int, Evaluation] = {}
        self._saved_at, self._saved_count = clock(), 0

    def experience(self) -> Experience | None:
        """Return all pairs so far; None if none has succeeded."""
        rows = list(self._evaluations.values())
        if not any(row.status is Status.DONE for row in rows):
            return None
        tasks = [task for task in self._space.tasks if any(row.task == task for row in rows)]
        return build_experience(
            self._space.space,
            self._metrics,
            rows,
            tasks=tasks,
            meta_features={t: self._meta_features[t] for t in tasks if t in self._meta_features},
        )

    def save(self) -> None:
        """Update the file in one step, if there is something new."""
        self._saved_at = self._clock()
        if self._path is None or self._saved_count == len(self._evaluations):
            return
        experience = self.experience()
        if experience is not None:
            experience.save(self._path)
            self._saved_count = len(self._evaluations)

    def trial_began(self, trial: Trial) -> None:
        """Pass it on."""
        self._watch.trial_began(trial)

    def trial_reported(self, number: int, step: float) -> None:
        """Pass it on."""
        self._watch.trial_reported(number, step)

    def trial_paused(self, trial: Trial) -> None:
        """Pass it on."""
        self._watch.trial_paused(trial)

    def trial_ended(self, trial: Trial) -> None:
        """Keep the pair."""
        task, config = self._space.split(trial.config)
        whole = trial.evaluation(task)
        self._evaluations[trial.number] = Evaluation(
            task,
            config,
            whole.values,
            whole.status,
            whole.seconds,
            reason=whole.reason,
            curve=whole.curve,
        )
        self._watch.trial_ended(trial)
        if self._clock() - self._saved_at >= SAVE_SECONDS:
            self.save()
