"""Takes in the trials of a search: the memory keeps them, the disk stays small, listeners hear."""

from pathlib import Path

from foretune.automl.final_model.fold_models import drop_fold_models
from foretune.automl.job_listener import JobListener
from foretune.automl.knowledge.fit_journal import FitJournal
from foretune.experience import Metric
from foretune.experience.trial import Trial, best_first
from foretune.run.watch import Watch


class TrialEvents(Watch):
    """Writes each trial of the loop into the memory, then tells the listener."""

    def __init__(
        self,
        listener: JobListener,
        metric: Metric,
        journal: FitJournal | None,
        fold_models: Path | None = None,
    ) -> None:
        """Take in the trials of one search.

        fold_models: the folder with the pipelines of trials; those of poor trials are removed.
        """
        self._listener, self._metric, self._journal = listener, metric, journal
        self._fold_models = fold_models
        self._trials: list[Trial] = []
        self._best: Trial | None = None

    def trial_began(self, trial: Trial) -> None:
        """Tell the listener."""
        self._listener.trial_began(trial)

    def trial_ended(self, trial: Trial) -> None:
        """Keep a trial, and tell the listener."""
        # The loop reports earlier trials as well, because a crash may have come before they were
        # in the memory. The memory keeps every trial once.
        if self._journal is not None:
            self._journal.add(trial.evaluation(self._journal.task))
        if self._fold_models is not None:
            self._trials.append(trial)
            best = best_first(self._trials, self._metric)
            drop_fold_models(self._fold_models, [each.config for each in best])
        self._listener.trial_ended(trial)
        leading = next(iter(best_first(filter(None, (self._best, trial)), self._metric)), None)
        if leading is not None and leading is not self._best:
            self._best = leading
            self._listener.incumbent_changed(leading)
