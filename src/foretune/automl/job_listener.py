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
    """Receives every event of a job, in this order. By default, it does nothing.

    Listeners only show or record. The job itself does all that it must do, such as writing the
    user's memory.
    """

    progress: Progress = SILENT
    """Shows the progress of long work: reading, learning from the past, fitting."""

    def on_start(self, plan: "FitPlan", data: "FitData") -> None:
        """The table was read, and the search was planned."""

    def first_model_ready(self, first: "FirstModel", seconds: float, path: "Path | None") -> None:
        """A first model was ready after these seconds. If there is a path, it is saved there.

        A model of a sample comes before `on_start`, and a better one may follow.
        """

    def search_began(self, plan: "FitPlan", data: "FitData") -> None:
        """The first trial is about to run."""

    def trial_began(self, trial: Trial) -> None:
        """A trial was begun or taken over by this process."""

    def trial_ended(self, trial: Trial) -> None:
        """A trial of any process has ended. Trials that ended before this run come first."""

    def incumbent_changed(self, trial: Trial) -> None:
        """This trial is the best so far."""

    def search_ended(self, found: "SearchResult") -> None:
        """No more trials will run."""

    def model_saved(self, path: "Path") -> None:
        """The final model is in its file."""

    def on_failure(self, found: "SearchResult", reason: str) -> None:
        """There is no final model and no other one in its place. An error follows."""

    def on_finish(self, result: "FitResult") -> None:
        """The job has its result."""


SILENT_LISTENER = JobListener()
