"""The events of a job, for objects that show or record it."""

from typing import TYPE_CHECKING

from foretune._base.progress import SILENT, Progress
from foretune.experience.trial import Trial

if TYPE_CHECKING:
    from pathlib import Path

    from foretune.automl.first_model import FirstModel
    from foretune.automl.fit_data import FitData
    from foretune.automl.fit_result import FitResult, SearchResult
    from foretune.automl.plan import FitPlan


class JobListener:
    """Hears of everything that happens in a job, in this order, and ignores it by default.

    Listeners only show or record. All that a job must do, such as writing the user's memory, it
    does itself, whoever listens.
    """

    progress: Progress = SILENT
    """Hears how far long work is: reading, learning from the past, fitting."""

    def on_start(self, plan: "FitPlan", data: "FitData") -> None:
        """The table was read, and the search was planned."""

    def first_model_ready(self, first: "FirstModel", seconds: float, path: "Path | None") -> None:
        """There is a first model after these seconds; it is saved if there is a path."""

    def search_began(self, plan: "FitPlan", data: "FitData") -> None:
        """The first trial is about to run."""

    def trial_began(self, trial: Trial) -> None:
        """A trial was begun or taken over by this process."""

    def trial_ended(self, trial: Trial) -> None:
        """A trial of any process has ended; first come those that had ended before the run."""

    def incumbent_changed(self, trial: Trial) -> None:
        """This trial is the best so far."""

    def search_ended(self, found: "SearchResult") -> None:
        """No more trials will run."""

    def model_saved(self, path: "Path") -> None:
        """The final model is in its file."""

    def on_failure(self, found: "SearchResult", reason: str) -> None:
        """The trials gave no model, and none stands in for it; an error follows."""

    def on_finish(self, result: "FitResult") -> None:
        """The job has its result."""


SILENT_LISTENER = JobListener()
